"""``make demo``: a decoder from Python to prepared weights to logits, checked against the reference semantics, in one table."""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ..dialect.reports.report import bytes_text
from ..lowering.manifest_specs import total_bytes
from ..runtime.executable import Executable
from ..runtime.loading import load
from ..weights import write_safetensors
from .demo_peers import Variant, best_of_some, gain, variants
from .summary import lifted_groups

if TYPE_CHECKING:
    from rich.table import Table

    from .llama import LlamaConfig

__all__ = ["TOLERANCE", "Measured", "Run", "demo_table", "main", "prepare_apart", "prepare_measured", "problem_of", "run_model"]

#: Largest error allowed, relative to the largest logit: what f32 sums in another order differ by, and some room.
TOLERANCE = 1e-4

#: Lengths of the sequences that the one compiled module runs on.
_LENGTHS = (1, 16, 128)


@dataclass(frozen=True)
class Measured:
    """A preparation in a process of its own: wall time, and how far its resident memory rose above where it began."""

    seconds: float
    peak_bytes: int


@dataclass(frozen=True)
class Run:
    """A call: sequence length, best wall time of some, error relative to the largest logit of the reference."""

    tokens: int
    seconds: float
    error: float


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the demo; the exit code is 1 when a result differs from the reference semantics."""
    from .llama import LlamaConfig

    parser = argparse.ArgumentParser(prog="python -m relaxir.tools.demo", description=__doc__)
    parser.add_argument("--layers", type=int, default=LlamaConfig.layers, help="default: %(default)s")
    parser.add_argument("--vocab", type=int, default=LlamaConfig.vocab, help="default: %(default)s")
    options = parser.parse_args(argv)
    with tempfile.TemporaryDirectory(prefix="relaxir-demo-") as folder:
        return _demo(LlamaConfig(layers=options.layers, vocab=options.vocab), Path(folder))


def _demo(config: LlamaConfig, folder: Path) -> int:
    from rich.console import Console

    from .. import compile
    from .llama import build_llama, random_weights

    raw, artifact, prepared = (folder / name for name in ("model.safetensors", "model.relax", "model.prepared.safetensors"))
    weights = random_weights(config)
    write_safetensors(raw, weights)
    module = build_llama(config)
    started = time.perf_counter()
    executable = compile(module)
    compiled = time.perf_counter() - started
    executable.save(artifact)
    measured = prepare_apart(artifact, raw, prepared)
    executable.bind(prepared)
    runs = run_model(executable, module, weights, _LENGTHS)
    console = Console(width=None if sys.stdout.isatty() else 120)
    others = list(variants(config, module, weights, _LENGTHS))
    console.print(demo_table(config, executable, compiled, measured, runs, others))
    console.print(gain(_lifted(executable, runs), others, _LENGTHS))
    problem = problem_of(runs)
    if problem is not None:
        console.print(f"error: {problem}")
    return 0 if problem is None else 1


def problem_of(runs: Sequence[Run]) -> str | None:
    """What is wrong with the results, or None."""
    wrong = next((r for r in runs if not r.error <= TOLERANCE), None)  # a NaN is wrong
    if wrong is None:
        return None
    return f"expected logits within {TOLERANCE} of the reference, got {wrong.error} for {wrong.tokens} tokens"


def prepare_apart(artifact: Path, raw: Path, prepared: Path) -> Measured:
    """Prepares in a fresh process, as on a machine that only deploys: no MLIR, and memory that nothing else has touched."""
    command = [sys.executable, "-c", f"from {__package__}.demo import prepare_measured; prepare_measured()"]
    paths = [str(p) for p in (artifact, raw, prepared)]
    result = subprocess.run([*command, *paths], check=True, stdout=subprocess.PIPE, text=True)
    return Measured(**json.loads(result.stdout))


def prepare_measured() -> None:
    """The fresh process's side: prepares what the command line names, and prints what it measured as JSON."""
    artifact, raw, prepared = sys.argv[1:]
    executable = load(artifact)
    base = _resident("VmRSS")
    started = time.perf_counter()
    executable.prepare(raw, prepared)
    seconds = time.perf_counter() - started
    print(json.dumps({"seconds": seconds, "peak_bytes": _resident("VmHWM") - base}))


def _resident(field: str) -> int:
    """Resident memory in bytes: on Linux ``VmRSS`` is now and ``VmHWM`` the most so far; elsewhere only the most is known."""
    status = Path("/proc/self/status")
    if status.exists():
        line = next(line for line in status.read_text().splitlines() if line.startswith(f"{field}:"))
        return int(line.split()[1]) * 1024
    import resource

    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def run_model(executable: Executable, module: Any, weights: dict[str, Any], lengths: Sequence[int]) -> list[Run]:
    """Calls the executable on random tokens of each length and compares with the reference semantics of the module."""
    from .. import evaluate

    vocab = weights["model.embed_tokens.weight"].shape[0]
    runs: list[Run] = []
    for length in lengths:
        tokens = np.random.default_rng(length).integers(0, vocab, length)
        logits, seconds = best_of_some(lambda t=tokens: executable(t))
        (expected,) = evaluate(module, "main", tokens, weights=weights)
        runs.append(Run(length, seconds, float(np.max(np.abs(logits - expected)) / np.max(np.abs(expected)))))
    return runs


def _lifted(executable: Executable, runs: Sequence[Run]) -> Variant:
    """What the demo is about, to be compared with others."""
    size = sum(w.array.nbytes for w in executable.manifest.prepared_weights.values())
    return Variant("lifted, weights in bf16", tuple(run.seconds for run in runs), size)


def demo_table(
    config: LlamaConfig,
    executable: Executable,
    compiled: float,
    measured: Measured,
    runs: Sequence[Run],
    others: Sequence[Variant] = (),
) -> Table:
    """Everything that happened: what was lifted, memory, times and errors."""
    from rich.box import ROUNDED
    from rich.table import Table

    table = Table(title="relaxir: a Llama-style decoder", box=ROUNDED, show_header=False, title_justify="left")
    for justify in ("left", "right", "right", "right"):
        table.add_column(justify=justify)
    manifest = executable.manifest

    def section(*titles: str) -> None:
        table.add_section()
        table.add_row(*(f"[bold]{title}[/bold]" for title in titles))

    layers = f"{config.layers} layers of {config.hidden}, {config.heads} heads on {config.kv_heads}, vocabulary {config.vocab}"
    section("model", "", "", "")
    table.add_row(layers, "", "", "")
    section("lifted out of inference", "weights", "bytes in", "bytes out")
    for group in lifted_groups(manifest):
        count = f"{len(group.raw)} -> {len(group.prepared)}"
        table.add_row(group.title, count, bytes_text(group.raw_bytes), bytes_text(group.prepared_bytes))
    raw, prepared = manifest.raw_weights, manifest.prepared_weights
    count = f"{len(raw)} -> {len(prepared)}"
    table.add_row("all (a weight may feed several)", count, bytes_text(total_bytes(raw)), bytes_text(total_bytes(prepared)))
    section("memory of prepare", "", "predicted", "measured")
    table.add_row("peak above the process's base", "", bytes_text(manifest.peak_bytes), bytes_text(measured.peak_bytes))
    section("time", "", "", "seconds")
    table.add_row("compile", "", "", f"{compiled:.2f}")
    table.add_row(f"prepare ({len(manifest.steps)} steps, streamed)", "", "", f"{measured.seconds:.2f}")
    section("run (one module, any length)", "tokens", "max error", "ms per token")
    for run in runs:
        each = 1e3 * run.seconds / run.tokens
        table.add_row("logits against reference semantics", str(run.tokens), f"{run.error:.1e}", f"{each:.2f}")
    section("milliseconds of a call", *(f"{run.tokens} token{'s' if run.tokens > 1 else ''}" for run in runs))
    for variant in (_lifted(executable, runs), *others):
        name = f"{variant.name}; {bytes_text(variant.weight_bytes)}"
        table.add_row(name, *(f"{1e3 * seconds:.1f}" for seconds in variant.seconds))
    return table


if __name__ == "__main__":
    sys.exit(main())

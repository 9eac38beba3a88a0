"""How long compiling takes, by phase, and how it grows with layers: seconds of the processor, without the cache on disk.

    python test/benchmark/compile_time.py [--layers 2,8,32] [--models bert-base-b1-s128 ...] [--rounds 3]

Llama has a hidden size of 4096, and is exported without the values of its weights; the models are cases of ``suite.py``. Rounds
alternate between what is compiled, and the least time of each phase counts; ``rest`` is LLVM's in this process, but for a few
ms. ``wall`` is what the clock says, with the processes that compile kernels beside this one; ``again`` the same where kernels
are in the cache on disk, as for another model of the family. The aim is 5 s for 32 layers: time should grow with distinct
shapes, not with layers.
"""

from __future__ import annotations

# ruff: noqa: E402  the cache is switched off, and the path is extended, before anything is imported
import argparse
import os
import shutil
import sys
import tempfile
import time
from pathlib import Path

os.environ["RELAXIR_CACHE_DIR"] = "off"
sys.path[:0] = [str(Path(__file__).resolve().parent), str(Path(__file__).resolve().parents[1])]

import torch
from comparison.cases import CASES
from comparison.networks import _Output

import relaxir
from relaxir.dialect.passes.manager import observing
from support.models import quiet

#: Under which name a pass is counted; those of MLIR are "mlir", others "passes".
PHASES = {
    "relax-partition-transforms": "steps", "relax-to-linalg": "linalg", "relax-outline-kernels": "outline",
    "relax-bufferize": "buffers", "relax-lower-kernels": "kernels", "relax-expand-math": "kernels",
}  # fmt: skip
COLUMNS = ["relax", *dict.fromkeys(PHASES.values()), "mlir", "passes", "rest", "all", "wall", "again"]
LOWERING = "relax-check-entries"


class Clock:
    """Seconds by phase, as the pass manager tells of each pass that has run.

    Attributes:
        seconds: what has been counted, by phase.
    """

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        self._last, self._lowers = time.process_time(), False

    def __call__(self, element: str, op: object) -> None:
        """What ran since the last call is that pass."""
        del op
        now, name = time.process_time(), element.partition("{")[0]
        self._lowers = self._lowers or name == LOWERING
        phase = PHASES.get(name, "passes" if name.startswith("relax-") else "mlir") if self._lowers else "relax"
        self.seconds[phase] = self.seconds.get(phase, 0.0) + now - self._last
        self._last = now


def seconds_of(module: relaxir.Module) -> dict[str, float]:
    """Compiles once."""
    start, begun, clock = time.process_time(), time.perf_counter(), Clock()
    with observing(clock):
        relaxir.compile(module)
    total, wall = time.process_time() - start, time.perf_counter() - begun
    return clock.seconds | {"rest": total - sum(clock.seconds.values()), "all": total, "wall": wall, "again": again(module)}


def again(module: relaxir.Module) -> float:
    """Seconds by the clock where the kernels were compiled before, and the module was not."""
    with tempfile.TemporaryDirectory() as folder:
        os.environ["RELAXIR_CACHE_DIR"] = folder
        try:
            relaxir.compile(module)
            shutil.rmtree(Path(folder) / "objects")
            begun = time.perf_counter()
            relaxir.compile(module)
            return time.perf_counter() - begun
        finally:
            os.environ["RELAXIR_CACHE_DIR"] = "off"


def llama(layers: int) -> relaxir.Module:
    """Prefill of 128 tokens."""
    from transformers import LlamaConfig, LlamaForCausalLM

    config = LlamaConfig(hidden_size=4096, intermediate_size=11008, num_hidden_layers=layers, num_attention_heads=32,
                         num_key_value_heads=8, attn_implementation="sdpa")  # fmt: skip
    with torch.device("meta"):
        model = _Output(LlamaForCausalLM(config), "logits", use_cache=False, logits_to_keep=1)
        return _imported(model, {"x": torch.zeros(1, 128, dtype=torch.int64)})


def _imported(model: torch.nn.Module, inputs: dict[str, torch.Tensor]) -> relaxir.Module:
    with torch.no_grad(), quiet():
        return relaxir.from_torch(torch.export.export(model.eval(), (), inputs))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--layers", default="2,8,32")
    models = ["bert-base-b1-s128", "gpt2-prefill-128", "resnet50-b1", "densenet-121-b1"]
    parser.add_argument("--models", nargs="*", default=models)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    layers = [int(n) for n in options.layers.split(",") if n]
    modules = {f"llama-4096x{n}": llama(n) for n in layers}
    for name in options.models:
        case = CASES[name].make()
        modules[name] = _imported(case.module, case.inputs)
    best: dict[str, dict[str, float]] = {}
    for _ in range(options.rounds):
        for name, module in modules.items():
            found = seconds_of(module)
            known = best.setdefault(name, found)
            best[name] = {c: min(known.get(c, 0.0), found.get(c, 0.0)) for c in COLUMNS}
    print(f"{'seconds':<22}" + "".join(f"{c:>9}" for c in COLUMNS))
    for name, found in best.items():
        print(f"{name:<22}" + "".join(f"{found[c]:>9.2f}" for c in COLUMNS))
    if len(layers) > 1:
        few, many = best[f"llama-4096x{layers[0]}"], best[f"llama-4096x{layers[-1]}"]
        grown = {c: (many[c] - few[c]) / (layers[-1] - layers[0]) for c in COLUMNS}
        print(f"{'ms per layer':<22}" + "".join(f"{1e3 * grown[c]:>9.1f}" for c in COLUMNS))


if __name__ == "__main__":
    main()

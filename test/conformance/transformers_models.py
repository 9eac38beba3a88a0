"""Compares tiny models of the architectures of transformers, compiled, with transformers itself.

    .venv/bin/python test/conformance/transformers_models.py [--open] [--jobs N] [--sample N] [--keep FILE] [NAME ...]

Each is built from its configuration made small, with random weights, exported by torch.export (``--open``: with sizes of
the batch and of sequences that are not known, and called with others, too), imported, compiled, and called. A line for each
that is not right, and how many are. What torch.export does not take does not count.

``--keep FILE`` writes what each gave as JSON lines, and takes what is there already: a run that was stopped goes on.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from multiprocessing import get_context
from multiprocessing.pool import ThreadPool
from pathlib import Path
from typing import Any

os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("TRANSFORMERS_VERBOSITY", "error")

import torch
from tiny_models import architectures, classes_of, inputs_of, model_of
from torch import nn
from torch.export import Dim
from torch.utils import _pytree as pytree

import relaxir
import relaxir.compiler
from relaxir.frontend import torch_graph, torch_to_relax  # noqa: F401  once, not in each process

#: Seconds for one model, and bytes of memory.
LIMIT, MEMORY = 240, 8 << 30

#: Of the largest number of a result: sums in another order, through a few layers.
TOLERANCE = 2e-4

#: Rows and tokens of the export, and what a program with open sizes is called with, too.
SIZES = ((2, 12), (3, 17), (1, 9))


class Tensors(nn.Module):
    """A model of transformers as a function of tensors to tensors."""

    def __init__(self, model: nn.Module, names: Sequence[str]):
        super().__init__()
        self.model, self.names = model, list(names)

    def forward(self, *tensors: torch.Tensor) -> list[torch.Tensor]:
        output = self.model(**dict(zip(self.names, tensors, strict=True)))
        return [x for x in pytree.tree_leaves(_plain(output)) if isinstance(x, torch.Tensor)]


def _plain(output: Any) -> Any:
    return dict(output) if isinstance(output, dict) else output


def runnable(name: str) -> tuple[nn.Module, dict[str, torch.Tensor]]:
    """The first class of an architecture that is built small and runs in PyTorch, with its inputs."""
    last: Exception = ValueError("no class")
    for cls in classes_of(name):
        try:
            model = model_of(name, cls)
        except Exception as error:
            last = error
            continue
        for skip in (0, 1):
            try:
                inputs = inputs_of(model, *SIZES[0], skip)
                Tensors(model, list(inputs))(*inputs.values())
                return model, inputs
            except Exception as error:
                last = error
    raise last


def outcome(name: str, is_open: bool) -> tuple[str, str]:
    """``right``, ``wrong``, ``refused``, ``failed``, or ``unbuilt`` and ``unexported``; and why."""
    try:
        model, inputs = runnable(name)
    except Exception as error:
        return "unbuilt", _line(error)
    called = Tensors(model, list(inputs)).eval()
    dims = tuple({i: Dim.AUTO for i in _open_axes(n, t)} for n, t in inputs.items())
    try:
        program = torch.export.export(called, tuple(inputs.values()), dynamic_shapes=(dims,) if is_open else None)
    except Exception as error:
        return "unexported", _line(error)
    found = type(model).__name__
    try:
        exe = relaxir.compile(relaxir.from_torch(program), cache=False)
        with tempfile.TemporaryDirectory() as folder:
            relaxir.save_weights(program, f"{folder}/weights.safetensors")
            exe.bind(exe.prepare(f"{folder}/weights.safetensors"))
        ranges = _ranges(program)
        for sizes in SIZES if is_open else SIZES[:1]:
            other = inputs_of(model, *sizes, "pixel_values" not in inputs)
            try:
                wanted = called(*(t.clone() for t in other.values()))
            except Exception:
                continue
            if sizes != SIZES[0] and not all(map(_fits, other.values(), ranges)):
                continue
            reason = unlike(wanted, exe(*other.values()))
            if reason:
                return "wrong", f"{found} of {sizes}: {reason}"
    except relaxir.RelaxError as error:
        return "refused", f"{found}: {error}"
    except Exception as error:
        return "failed", f"{found}: {type(error).__name__}: {error}"
    return "right", found


def _open_axes(name: str, tensor: torch.Tensor) -> range:
    """Batch, and length of what is no image."""
    return range(1) if name in ("pixel_values", "input_features", "input_values") else range(tensor.dim())


def _ranges(program: Any) -> list[tuple[Any, ...]]:
    """The sizes of inputs in the program; what is a number there is no longer open."""
    names = [s.arg.name for s in program.graph_signature.input_specs if s.kind.name == "USER_INPUT"]
    nodes = {n.name: n.meta["val"] for n in program.graph.nodes if n.op == "placeholder"}
    limits = {str(k): v for k, v in program.range_constraints.items()}
    return [tuple(limits.get(str(d), d) for d in nodes[n].shape) for n in names]


def _fits(tensor: torch.Tensor, limits: tuple[Any, ...]) -> bool:
    """Whether a tensor has sizes that the program takes; of an expression of several nothing is said."""
    pairs = zip(tensor.shape, limits, strict=True)
    return all(n == d if isinstance(d, int) else not hasattr(d, "lower") or d.lower <= n <= d.upper for n, d in pairs)


def unlike(wanted: Sequence[torch.Tensor], got: Any) -> str:
    """How results differ; empty where they do not."""
    found = [torch.as_tensor(x) for x in pytree.tree_leaves(got)]
    if len(found) < len(wanted):
        return f"{len(found)} results, expected {len(wanted)}"
    for i, (a, b) in enumerate(zip(wanted, found, strict=False)):
        if a.shape != b.shape or a.dtype != b.dtype:
            return f"result {i} is {b.dtype}{list(b.shape)}, expected {a.dtype}{list(a.shape)}"
        if not a.is_floating_point():
            if not torch.equal(a, b):
                return f"result {i}: {int((a != b).sum())} of {a.numel()} integers differ"
            continue
        if not torch.equal(a.isfinite(), b.isfinite()):
            return f"result {i}: infinities or NaN elsewhere"
        a, b = (torch.where(t.isfinite(), t, 0).double() for t in (a, b))
        scale, error = float(a.abs().max() if a.numel() else 0), float((a - b).abs().max() if a.numel() else 0)
        if error > TOLERANCE * max(scale, 1e-3):
            return f"result {i}: off by {error:.2g} where the largest is {scale:.2g}"
    return ""


def _line(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}"


def go_through(name: str, is_open: bool, path: str) -> None:
    """One architecture, in this process; a line of JSON."""
    import logging
    import resource
    import signal
    import warnings

    with Path(os.devnull).open("w") as nothing:
        os.dup2(nothing.fileno(), 1)
        os.dup2(nothing.fileno(), 2)
    warnings.simplefilter("ignore")
    logging.disable(logging.CRITICAL)
    torch.set_num_threads(1)
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    signal.alarm(LIMIT)
    with torch.no_grad():
        found = outcome(name, is_open)
    Path(path).write_text(json.dumps(found))


def found_of(name: str, is_open: bool) -> tuple[str, str]:
    """What an architecture gives, in a process of its own."""
    with tempfile.NamedTemporaryFile("r") as file:
        child: Any = get_context("fork").Process(target=go_through, args=(name, is_open, file.name))
        child.start()
        child.join()
        text = file.read()
    return tuple(json.loads(text)) if text else ("died", f"exit code {child.exitcode}")


def found_of_all(names: Sequence[str], is_open: bool, jobs: int, keep: Path | None) -> Iterator[tuple[str, str, str]]:
    """Name, outcome and reason of each."""
    lines = keep.read_text().splitlines() if keep and keep.exists() else []
    kept = {line[0]: line for line in map(json.loads, lines)}
    with ThreadPool(jobs) as pool:
        futures = {n: pool.apply_async(found_of, (n, is_open)) for n in names if n not in kept}
        for name in names:
            line = kept.get(name) or [name, *futures[name].get()]
            if keep and name not in kept:
                with keep.open("a") as out:
                    print(json.dumps(line), file=out)
            yield line[0], line[1], line[2]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--open", action="store_true", help="with sizes that are not known when compiled")
    parser.add_argument("--jobs", type=int, default=1, help="processes at a time")
    parser.add_argument("--sample", type=int, help="so many architectures, drawn at random")
    parser.add_argument("--seed", type=int, default=0, help="of the draw")
    parser.add_argument("--keep", type=Path, help="file of what was found")
    parser.add_argument("names", nargs="*")
    arguments = parser.parse_args()
    names = arguments.names or architectures()
    if arguments.sample:
        names = random.Random(arguments.seed).sample(names, min(arguments.sample, len(names)))
    counts: Counter[str] = Counter()
    for name, kind, reason in found_of_all(names, arguments.open, arguments.jobs, arguments.keep):
        counts[kind] += 1
        if kind != "right":
            text = " ".join(reason.split())
            print(f"{name:32} {kind:10} {text[:300]}", flush=True)
    print(", ".join(f"{count} {kind}" for kind, count in counts.most_common()))


if __name__ == "__main__":
    main()

"""Prints how many of torch's OpInfo samples of each operator run right: imported, compiled, called, compared with eager torch.

    .venv/bin/pip install expecttest            # torch's OpInfo samples need it
    .venv/bin/python test/conformance/operators.py [--core] [--samples N] [--symbolic] [--jobs N] [--keep FILE] [NAME ...]

A line per operator: samples that are right, refused and wrong, and the first reason. Samples that torch.export does not take,
or whose results are random or complex, do not count. Nothing may be wrong. All operators take an hour of one core.

``--core`` goes through the core operators of ATen, each by the OpInfos that reach it, and asks the reference interpreter, too,
where a sample is all relax. It prints the operators that are not all right, and how many of each dtype are.

``--keep FILE`` writes what each OpInfo gave as JSON lines, and takes what is there already: a run that was stopped goes on.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from multiprocessing import get_context
from multiprocessing.pool import ThreadPool
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import torch
from core_operators import ELSEWHERE, core_operators, infos_of
from first_of_equal import FirstOfEqual
from outlined_operators import DTYPES, LIMIT, Sample, difference, run
from preload import preload
from torch.export import Dim
from torch.testing._internal.common_methods_invocations import op_db
from torch.utils import _pytree as pytree

import relaxir

#: What no compiler reproduces: memory that was not written, random numbers.
_LEFT_OUT = {
    "empty",
    "empty_like",
    "empty_permuted",
    "empty_strided",
    "new_empty",
    "new_empty_strided",
    "bernoulli",
    "multinomial",
}

_KINDS = ("right", "refused", "wrong", "died")
_DTYPES = (torch.float32, torch.bfloat16, torch.int64)


@dataclass(frozen=True)
class Asked:
    """What is asked of OpInfos.

    Attributes:
        samples: how many of each dtype.
        symbolic: whether sizes are open.
        reference: whether the reference is asked, too.
        keep: file of what was found.
    """

    samples: int
    symbolic: bool
    reference: bool
    keep: Path | None = None


@dataclass
class Found:
    """What samples gave.

    Attributes:
        counts: how many of each dtype and kind.
        reasons: what was said of those that are not right, wrong ones first.
    """

    counts: Counter[tuple[str, str]] = field(default_factory=Counter[tuple[str, str]])
    reasons: list[str] = field(default_factory=list[str])

    def of(self, kind: str) -> int:
        return sum(count for (_, other), count in self.counts.items() if other == kind)

    def add(self, other: Found) -> None:
        self.counts.update(other.counts)
        self.reasons += other.reasons

    def line(self, name: str) -> str:
        reason = (self.reasons or [""])[0].strip().replace("\n", " ")
        return f"{name:40} " + " ".join(f"{self.of(kind):4}" for kind in _KINDS) + f"  {reason[:200]}"


def outcome(sample: Sample, asked: Asked) -> tuple[str, str]:
    """``right``, ``refused`` or ``wrong`` and why; ``""`` when torch.export does not take it."""
    dims = tuple({i: Dim.AUTO for i, size in enumerate(t.shape) if size > 1} for t in sample.tensors)
    with torch.no_grad():
        try:
            wanted = sample(*[t.clone() for t in sample.tensors])
            program = torch.export.export(sample.eval(), sample.tensors, dynamic_shapes=(dims,) if asked.symbolic else None)
        except Exception:
            return "", ""
        if any(isinstance(x, torch.Tensor) and x.is_complex() for x in pytree.tree_leaves(wanted)):
            return "", ""
        try:
            module = relaxir.from_torch(program)
            found = unlike(sample, wanted, run(module, program, sample.tensors), program)
            if asked.reference and not found and not _has_calls(module):
                found = unlike(sample, wanted, evaluated(module, program, sample.tensors), program)
                found = found and f"reference: {found}"
        except relaxir.RelaxError as error:
            return "refused", str(error)
        except Exception as error:
            return "wrong", f"{type(error).__name__}: {error}"
    return ("wrong" if found else "right"), found


def unlike(sample: Sample, wanted: Any, got: Any, program: Any) -> str:
    """How results differ from those of torch; what the program changes comes after its results and is not looked at.

    Of narrow floats torch may round in between; what is nearer to its results in f32 than its own are is right. Of
    equal numbers torch leaves open which come first.
    """
    leaves = pytree.tree_leaves(got)[: len(program.graph_signature.user_outputs)]
    results = [torch.as_tensor(_tensor(x) if isinstance(x, np.ndarray) else x) for x in leaves]
    expected = [x for x in pytree.tree_leaves(wanted) if x is not None]
    if len(expected) == len(results):
        wanted = [_as_result(x, r) for x, r in zip(expected, results, strict=True)]
    found = difference(wanted, results)
    if found:
        with FirstOfEqual():
            wanted = sample(*[t.clone() for t in sample.tensors])
        found = difference(wanted, results) and found
    return "" if found and _is_nearer(sample, pytree.tree_leaves(wanted), results) else found


def _as_result(wanted: Any, result: torch.Tensor) -> Any:
    """A Python number comes as a tensor without dimensions, as narrow as the one that it is an element of."""
    if isinstance(wanted, torch.Tensor) or isinstance(wanted, float) != result.is_floating_point():
        return wanted
    return torch.as_tensor(wanted, dtype=result.dtype)


def _is_nearer(sample: Sample, wanted: Sequence[torch.Tensor], got: Sequence[torch.Tensor]) -> bool:
    if not any(t.dtype == torch.bfloat16 for t in sample.tensors) or len(wanted) != len(got):
        return False
    exact = pytree.tree_leaves(sample(*[t.float() if t.dtype == torch.bfloat16 else t.clone() for t in sample.tensors]))
    triples = list(zip(exact, wanted, got, strict=True))
    if any(not e.is_floating_point() or e.shape != g.shape or not g.isfinite().all() for e, _, g in triples):
        return False
    return all((g.float() - e).abs().max() <= (w.float() - e).abs().max() for e, w, g in triples)


def _has_calls(module: relaxir.Module) -> bool:
    """Whether torch-mlir lowered a part of it to linalg, which the reference interpreter does not know."""
    return len(module.functions) > 1


def evaluated(module: relaxir.Module, program: Any, tensors: Sequence[torch.Tensor]) -> tuple[np.ndarray, ...]:
    """What the reference interpreter makes of the tensors."""
    names = {argument.name for argument in module.functions["main"].inputs}
    constants = {n: _array(t) for n, t in program.constants.items() if isinstance(t, torch.Tensor) and n not in names}
    weights = {a.name: constants[a.name] for a in module.functions["main"].weights if a.name in constants}
    return relaxir.evaluate(module, "main", *map(_array, tensors), weights=weights)


def _array(tensor: torch.Tensor) -> np.ndarray:
    tensor = tensor.detach().contiguous()
    return tensor.view(torch.int16).numpy().view(ml_dtypes.bfloat16) if tensor.dtype == torch.bfloat16 else tensor.numpy()


def _tensor(array: np.ndarray) -> torch.Tensor:
    array = np.ascontiguousarray(array).reshape(array.shape)
    is_narrow = array.dtype == ml_dtypes.bfloat16
    return torch.from_numpy(array.view(np.int16)).view(torch.bfloat16) if is_narrow else torch.from_numpy(array)


def go_through(position: int, asked: Asked, path: str) -> None:
    """One OpInfo, in this process; a line of JSON for each sample."""
    import logging
    import os
    import signal
    import warnings

    with Path(os.devnull).open("w") as nothing:
        os.dup2(nothing.fileno(), 1)
        os.dup2(nothing.fileno(), 2)
    warnings.simplefilter("ignore")
    logging.disable(logging.CRITICAL)
    op = op_db[position]
    with Path(path).open("a") as out:
        for dtype, _, _ in DTYPES:
            if dtype not in op.supported_dtypes("cpu") or dtype not in _DTYPES:
                continue
            torch.manual_seed(0)
            for i, sample in enumerate(op.sample_inputs("cpu", dtype, requires_grad=False)):
                if i >= asked.samples:
                    break
                signal.setitimer(signal.ITIMER_PROF, LIMIT)
                print(json.dumps([str(dtype), *outcome(Sample(op.get_op(), sample), asked)]), file=out, flush=True)
                signal.setitimer(signal.ITIMER_PROF, 0)


def found_of(op: Any, asked: Asked) -> Found:
    """What the samples of an OpInfo give; what was kept is not run again."""
    name = f"{op.name} {op.variant_test_name}".strip()
    kept = dict(map(json.loads, asked.keep.read_text().splitlines())) if asked.keep and asked.keep.exists() else {}
    lines, exit_code = kept.get(name) or _run(op, asked)
    if asked.keep and name not in kept:
        with asked.keep.open("a") as out:
            print(json.dumps([name, [lines, exit_code]]), file=out)
    found = Found(Counter((dtype, kind) for dtype, kind, _ in lines if kind))
    found.reasons = [f"{dtype.removeprefix('torch.')}: {why}" for dtype, kind, why in sorted(lines, key=_badness) if why]
    if exit_code:
        found.counts["", "died"] += 1
    return found


def _run(op: Any, asked: Asked) -> tuple[list[Sequence[str]], int]:
    """A line of each sample and the exit code, of a process of its own."""
    with tempfile.NamedTemporaryFile("r") as file:
        child: Any = get_context("fork").Process(target=go_through, args=(op_db.index(op), asked, file.name))
        child.start()
        child.join()
        return [json.loads(line) for line in file], child.exitcode


def _badness(line: Sequence[str]) -> bool:
    return line[1] != "wrong"


def go_through_core(asked: Asked, jobs: int, names: Sequence[str]) -> Iterator[tuple[str, Found]]:
    """Every core operator that has samples, with what they give."""
    operators = [o for o in core_operators() if o not in ELSEWHERE and (not names or o in names)]
    with ThreadPool(jobs) as pool:
        futures = {o: [pool.apply_async(found_of, (info, asked)) for info in infos_of(o)] for o in operators}
        for operator, parts in futures.items():
            found = Found()
            for part in parts:
                found.add(part.get())
            yield operator, found


def go_through_all(asked: Asked, jobs: int, names: Sequence[str]) -> Iterator[tuple[str, Found]]:
    """Every OpInfo, or those of some names, with what its samples give."""
    chosen = [o for o in op_db if (not names or o.name in names) and o.name not in _LEFT_OUT and "rand" not in o.name]
    with ThreadPool(jobs) as pool:
        for op, found in zip(chosen, pool.imap(lambda op: found_of(op, asked), chosen), strict=True):
            yield f"{op.name} {op.variant_test_name}".strip(), found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--core", action="store_true", help="the core operators of ATen; names are theirs")
    parser.add_argument("--samples", type=int, default=4, help="of each dtype")
    parser.add_argument("--symbolic", action="store_true", help="with sizes that are not known when compiled")
    parser.add_argument("--jobs", type=int, default=1, help="processes at a time")
    parser.add_argument("--keep", type=Path, help="file of what was found")
    parser.add_argument("names", nargs="*")
    arguments = parser.parse_args()
    asked = Asked(arguments.samples, arguments.symbolic, arguments.core, arguments.keep)
    preload()
    total, whole, counted = Found(), 0, 0
    for name, found in (go_through_core if arguments.core else go_through_all)(asked, arguments.jobs, arguments.names):
        total.counts.update(found.counts)
        counted += bool(found.counts)
        is_whole = found.counts.total() == found.of("right") > 0
        whole += is_whole
        if found.counts and not (is_whole and arguments.core and not arguments.names):
            print(found.line(name), flush=True)
    print(total.line("all"))
    for dtype in _DTYPES:
        print(f"{dtype!s:40} " + " ".join(f"{total.counts[str(dtype), kind]:4}" for kind in _KINDS))
    print(f"{whole} of {counted} operators are right in all samples")


if __name__ == "__main__":
    main()

"""Writes python/frontend/outlined_operators.py: which operators agree with torch when torch-mlir lowers them.

    .venv/bin/python test/conformance/outlined_operators.py [--check N] [--keep FILE] [OPINFO NAME ...]

Every sample of torch's OpInfo database that takes an operator through torch-mlir is exported with known and with symbolic
sizes, imported, compiled, run, and compared with eager torch. What differs once, is refused by the compiler or crashes is left
out. With names, only those are gone through and the result is printed. A full run takes more than half an hour of one core.

``--check N`` writes nothing: of all OpInfos, with N samples per dtype, the uses that the table allows have to be right; what it
does not allow is refused before torch-mlir sees it. Each OpInfo has a process of its own. It exits with 1 if one is wrong.

``--keep FILE`` writes what each OpInfo gave to a file of JSON lines, and takes what is there already from it: a run that was
stopped goes on where it was.
"""

from __future__ import annotations

import argparse
import json
import logging
import multiprocessing
import os
import signal
import sys
import tempfile
import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import torch
from torch.export import Dim
from torch.testing._internal.common_methods_invocations import op_db
from torch.utils import _pytree as pytree

import relaxir
from relaxir.frontend import torch_outline
from relaxir.frontend.outlined_operators import untrusted
from relaxir.frontend.torch_report import UnsupportedError

ROOT = Path(__file__).resolve().parents[2]
TABLE = ROOT / "python" / "frontend" / "outlined_operators.py"

#: dtype, samples of known sizes, samples of symbolic sizes.
DTYPES = [(torch.float32, 12, 4), (torch.float64, 4, 2), (torch.float16, 4, 2), (torch.bfloat16, 4, 2), (torch.int64, 4, 2),
          (torch.int32, 4, 2), (torch.int16, 2, 1), (torch.int8, 2, 1)]  # fmt: skip

#: As torch.testing has them, but for sums in another order.
TOLERANCE = {
    torch.float32: (1e-5, 1e-5),
    torch.float64: (1e-7, 1e-7),
    torch.float16: (2e-3, 2e-3),
    torch.bfloat16: (2e-2, 2e-2),
}

#: Seconds for one sample.
LIMIT = 120

#: More samples than any dtype has in the list above.
MOST = 100

Use = tuple[str, str, bool]


class Sample(torch.nn.Module):
    """An OpInfo sample as a function of its tensors."""

    def __init__(self, op: Any, sample: Any):
        super().__init__()
        leaves, self.spec = pytree.tree_flatten((sample.input, sample.args, sample.kwargs))
        self.op = op
        self.fixed = [None if isinstance(x, torch.Tensor) else x for x in leaves]
        self.is_tensor = [isinstance(x, torch.Tensor) for x in leaves]
        self.tensors = tuple(x for x in leaves if isinstance(x, torch.Tensor))

    def forward(self, *tensors: torch.Tensor) -> Any:
        given = iter(tensors)
        leaves = [next(given) if is_tensor else x for is_tensor, x in zip(self.is_tensor, self.fixed, strict=True)]
        first, args, kwargs = pytree.tree_unflatten(leaves, self.spec)
        return self.op(first, *args, **kwargs)


def uses_of(sample: Sample, symbolic: bool, allowed: bool) -> tuple[list[Use], str]:
    """What goes through torch-mlir, or may by the table, and why it is not right; empty when it is."""
    found: list[Use] = []

    def note(key: str, dtypes: frozenset[str], is_static: bool) -> str | None:
        reason = untrusted(key, dtypes, is_static) if allowed else None
        if reason is None:
            found.append((key, "+".join(sorted(dtypes)), is_static))
        return reason

    torch_outline.untrusted = note
    dims = tuple({i: Dim.AUTO for i, size in enumerate(t.shape) if size > 1} for t in sample.tensors)
    with torch.no_grad():
        try:
            wanted = sample(*[t.clone() for t in sample.tensors])
            program = torch.export.export(sample.eval(), sample.tensors, dynamic_shapes=(dims,) if symbolic else None)
        except Exception:  # what torch cannot export says nothing about the lowering
            return [], ""
        try:
            module = relaxir.from_torch(program)
            if not found:
                return [], ""
            return found, difference(wanted, run(module, program, sample.tensors))
        except UnsupportedError as error:
            return ([], "") if allowed else (found, str(error))
        except relaxir.RelaxError as error:
            return found, str(error)


def run(module: relaxir.Module, program: Any, tensors: Sequence[torch.Tensor]) -> Any:
    executable = relaxir.compile(module, cache=False)
    constants = {n: t for n, t in program.constants.items() if isinstance(t, torch.Tensor)}
    return executable.bind(executable.prepare(constants))(*tensors)


def difference(wanted: Any, got: Any) -> str:
    left = [x for x in pytree.tree_leaves(wanted) if isinstance(x, torch.Tensor)]
    right = [torch.as_tensor(x) for x in pytree.tree_leaves(got)]
    try:
        assert len(left) == len(right), f"{len(right)} results"
        for a, b in zip(left, right, strict=True):
            rtol, atol = TOLERANCE.get(a.dtype, (0, 0))
            torch.testing.assert_close(b, a, rtol=rtol, atol=atol, equal_nan=True, check_stride=False)
    except AssertionError as error:
        return str(error)
    return ""


def samples(position: int, limit: int) -> Iterator[tuple[Sample, bool]]:
    op = op_db[position]
    for dtype, *counts in DTYPES:
        if dtype not in op.supported_dtypes("cpu"):
            continue
        known, symbolic = (min(count, limit) for count in counts)
        torch.manual_seed(0)
        for i, sample in enumerate(op.sample_inputs("cpu", dtype, requires_grad=False)):
            if i >= known:
                break
            yield Sample(op.get_op(), sample), False
            if i < symbolic:
                yield Sample(op.get_op(), sample), True


def go_through(position: int, path: str, limit: int, allowed: bool) -> None:
    """One OpInfo, in this process; a line of JSON for each sample, written before a crash can lose it."""
    with Path(os.devnull).open("w") as nothing:
        os.dup2(nothing.fileno(), 1)
        os.dup2(nothing.fileno(), 2)
    warnings.simplefilter("ignore")
    logging.disable(logging.CRITICAL)
    outlined = 0
    with Path(path).open("a") as out:
        for count, (sample, symbolic) in enumerate(samples(position, limit)):
            if count >= 6 and not outlined:
                return  # nothing of this operator goes through torch-mlir
            signal.alarm(LIMIT)
            uses, why = uses_of(sample, symbolic, allowed)
            signal.alarm(0)
            outlined += bool(uses)
            print(json.dumps([uses, why]), file=out, flush=True)


def collect(
    names: Sequence[str], limit: int = MOST, allowed: bool = False, keep: Path | None = None
) -> tuple[set[Use], dict[Use, str]]:
    """The uses that were right, and those that were not, with the first reason.

    Args:
        names: of OpInfos; none for all.
        limit: samples of each dtype, of known and of symbolic sizes.
        allowed: whether only what the table allows is compiled.
        keep: what is known of OpInfos, and is added to.
    """
    right: set[Use] = set()
    wrong: dict[Use, str] = {}
    known = dict(map(json.loads, keep.read_text().splitlines())) if keep is not None and keep.exists() else {}
    for position, op in enumerate(op_db):
        if names and op.name not in names:
            continue
        full = f"{op.name}.{op.variant_test_name} {limit} {allowed}"
        found = known[full] if full in known else outcomes(position, limit, allowed)
        if keep is not None and full not in known:
            with keep.open("a") as file:
                print(json.dumps([full, found]), file=file)
        for uses, why in found:
            for use in map(tuple, uses):
                right.add(use)
                if why:
                    wrong.setdefault(use, f"{op.name}: {why.strip().splitlines()[0]}")
    return right - wrong.keys(), wrong


def outcomes(position: int, limit: int, allowed: bool) -> list[Any]:
    """What the samples of one OpInfo gave: uses, and why they are not right."""
    with tempfile.NamedTemporaryFile("r") as file:
        # A process of its own, which a crash may end; forked, since importing torch and its samples takes seconds.
        child = multiprocessing.get_context("fork").Process(target=go_through, args=(position, file.name, limit, allowed))
        child.start()
        child.join()
        return list(map(json.loads, file))


def text(right: set[Use]) -> str:
    """The table's source."""
    lines = TABLE.read_text().partition("#: What follows is written")[0].rstrip() + "\n\n\n"
    lines += "#: What follows is written by test/conformance/outlined_operators.py.\n"
    for name, is_static in (("KNOWN_SIZES", True), ("SYMBOLIC_SIZES", False)):
        chosen = sorted({key for key, _, static in right if static == is_static})
        lines += f"{name}: dict[str, str] = {{\n"
        for key in chosen:
            dtypes = " ".join(sorted(d for k, d, static in right if (k, static) == (key, is_static)))
            lines += f'    "{key}": "{dtypes}",\n'
        lines += "}\n"
    return lines


def check(names: Sequence[str], limit: int, keep: Path | None) -> int:
    """Prints what the table allows and is right, or wrong; how many are wrong."""
    right, wrong = collect(names, limit, True, keep)
    for use, why in sorted(wrong.items()):
        print("wrong:", *use, why)
    print(f"{len(right)} uses of {len({key for key, _, _ in right})} operators are right, {len(wrong)} are wrong")
    return len(wrong)


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--check", type=int, metavar="N", help="write nothing; N samples per dtype of what the table allows")
    parser.add_argument("--keep", type=Path, metavar="FILE", help="what is known of OpInfos, and is added to")
    parser.add_argument("names", nargs="*", help="OpInfos to go through")
    options = parser.parse_args(arguments)
    if options.check is not None:
        return int(check(options.names, options.check, options.keep) > 0)
    right, wrong = collect(options.names, keep=options.keep)
    for use, why in sorted(wrong.items()):
        print(*use, why, file=sys.stderr)
    if options.names:
        print(text(right))
    else:
        TABLE.write_text(text(right))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

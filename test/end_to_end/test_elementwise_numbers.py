"""Every elementwise op of the registry against extended precision: compiled for several processors, and evaluated.

One table, in ``support/elementwise.py``, says what each op gives and how far it may be off. Operands are a grid of edges and
random bits, in long vectors and in pieces that are shorter than one. By default four floats have all ops on this machine and
the others a third each; ``RELAXIR_NUMBERS=<n>`` gives every dtype all of them on every processor, n times with other numbers.
"""

from __future__ import annotations

import os
from functools import partial
from itertools import pairwise

import numpy as np
import pytest

import relaxir as rx
from relaxir.dialect.dtypes import numpy_dtype
from relaxir.lowering.target import Target
from relaxir.runtime.executable import Executable
from support import casts
from support.elementwise import FLOATS, INTEGERS, Run, check, elementwise_ops, known, module_for, names_for
from support.emulation import compile_for, runs_natively
from support.number_grid import grid

MORE = int(os.environ.get("RELAXIR_NUMBERS", "0"))
COUNT = 2000 if MORE else 400
DTYPES = (*FLOATS, *INTEGERS, "i1")
#: A piece is shorter than a vector of any processor, or ends with a part of one.
PIECES = (1, 7, 19)

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")

#: Processors and dtypes, and whether all ops are compiled or a third.
WHOLE = [("", dtype) for dtype in ("f32", "f64", "bf16", "f16")] + [("x86-64-v2", "f32")]
THIRDS = [("", d) for d in ("f8E4M3FN", "f8E5M2", *INTEGERS, "i1")] + [
    ("x86-64-v2", "bf16"), ("x86-64-v2", "f16"), ("x86-64-v2", "i32"),
    ("x86-64-v3", "f32"), ("x86-64-v3", "bf16"), ("x86-64-v4", "f32"), ("x86-64-v4", "f16"),
]  # fmt: skip
EVERY = [(name, dtype) for name in ("", "x86-64-v2", "x86-64-v3", "x86-64-v4") for dtype in DTYPES]


def share(name: str, dtype: str) -> list[str]:
    """The ops of a dtype that are compiled for a processor."""
    every = names_for(dtype)
    return every if MORE or (name, dtype) in WHOLE else every[(len(name) + DTYPES.index(dtype)) % 3 :: 3]


def compiled(module: rx.Module, name: str) -> Executable:
    return compile_for(module, name) if name else rx.compile(module, cache=False)


def flushes(name: str) -> bool:
    """x86's instruction for bf16 takes what is below the normal numbers for zero."""
    target = Target.parse(f"cpu:{name}") if name else Target.host()
    return target.has_bf16 and runs_natively(target)


def in_pieces(run: Run) -> Run:
    """The same results from calls with a few elements each."""

    def pieces(*operands: np.ndarray) -> np.ndarray:
        # The edges are at the beginning, the rest is one more piece.
        ends = [e for e in np.cumsum(np.resize(PIECES, 60)).tolist() if e < len(operands[0])]
        return np.concatenate([run(*(o[a:b] for o in operands)) for a, b in pairwise([0, *ends, len(operands[0])])])

    return pieces


def failures(name: str, dtype: str, seed: int) -> list[str]:
    names = share(name, dtype)
    executable, flush = compiled(module_for(dtype, names), name), dtype == "bf16" and flushes(name)
    found = list[str | None]()
    for op in names:
        run = partial(executable, entry=op)
        found += [check(op, dtype, route, seed, COUNT, flush) for route in (run, in_pieces(run))]
    return [line for line in found if line is not None]


@pytest.mark.parametrize("seed", range(max(1, MORE)))
@pytest.mark.parametrize(("name", "dtype"), EVERY if MORE else WHOLE + THIRDS)
def test_compiled_numbers(name: str, dtype: str, seed: int) -> None:
    found = failures(name, dtype, seed)
    assert not found, "\n".join(found)


@pytest.mark.parametrize("seed", range(max(1, MORE)))
@pytest.mark.parametrize("dtype", DTYPES)
def test_evaluated_numbers(dtype: str, seed: int) -> None:
    names = names_for(dtype)
    module = module_for(dtype, names)
    found = [check(op, dtype, lambda *x, op=op: rx.evaluate(module, op, *x)[0], seed, COUNT) for op in names]
    assert not any(found), "\n".join(line for line in found if line is not None)


@pytest.mark.parametrize("seed", range(max(1, MORE)))
@pytest.mark.parametrize("name", ["", "x86-64-v2"])
def test_conversions(name: str, seed: int) -> None:
    part = None if MORE else len(name) % 3
    module = casts.module_for(part)
    executable, found = compiled(module, name), list[str]()
    for source in casts.DTYPES:
        targets, x = casts.targets_of(source, part), grid(source, seed, COUNT)
        flush = ["bf16"] if flushes(name) else []
        found += casts.check(x, source, targets, executable(x, entry=source), flush)
        found += casts.check(x, source, targets, rx.evaluate(module, source, x))
    assert not found, "\n".join(found)


@pytest.mark.parametrize("name", ["", "x86-64-v2"])
def test_bits_stay(name: str) -> None:
    """Every pattern of them, out of each dtype of whole bytes and into another."""
    sizes = {d: numpy_dtype(d).itemsize for d in casts.DTYPES if d not in ("i1", "i4", "ui4")}
    alike = [[d for d in sizes if sizes[d] == size] for size in set(sizes.values())]
    pairs = [pair for group in alike for pair in pairwise([*group, group[0]])]
    b = rx.Builder()
    for source, target in pairs:
        with b.function(f"{source}_{target}"):
            b.output(b.bitcast(b.input("x", ("n", 19), source), dtype=target))
    module = b.build()
    executable = compiled(module, name)
    for source, target in pairs:
        x = np.frombuffer(np.random.default_rng(0).bytes(19 * 40 * sizes[source]), numpy_dtype(source)).reshape(40, 19)
        entry = f"{source}_{target}"
        for got in (executable(x, entry=entry), rx.evaluate(module, entry, x)[0]):
            assert (got.dtype, got.tobytes()) == (numpy_dtype(target), x.tobytes()), entry


def test_choices_keep_what_they_choose() -> None:
    """Every bit of it, NaN and zeros included; the condition is a truth value."""
    b = rx.Builder()
    with b.function("main"):
        b.output(b.where(b.input("c", ("n",), "i1"), b.input("x", ("n",), "f32"), b.input("y", ("n",), "f32")))
    module = b.build()
    x = grid("f32")
    y, condition = x[::-1].copy(), np.random.default_rng(0).random(len(x)) < 0.5
    for got in (rx.compile(module)(condition, x, y), rx.evaluate(module, "main", condition, x, y)[0]):
        np.testing.assert_array_equal(got.view(np.uint32), np.where(condition, x, y).view(np.uint32))


def test_every_elementwise_op_has_an_entry() -> None:
    missing = set(elementwise_ops()) - known()
    assert not missing, f"expected entries in support/elementwise.py for {', '.join(sorted(missing))}"
    assert not known() - set(elementwise_ops())


def test_bounds_of_more_than_four_units_have_a_reason() -> None:
    from support.elementwise import NUMBERS

    assert not [name for name, n in NUMBERS.items() if (n.units > 4 or n.slack is not None) and not n.why]

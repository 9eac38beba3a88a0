"""Symbolic dimensions at a call: which dimension gives which value, and every message when they do not fit."""

from __future__ import annotations

import pytest

from relaxir import RelaxError
from relaxir.lowering.manifest import Manifest
from relaxir.lowering.manifest_specs import EntrySpec
from relaxir.runtime.shapes import ShapeSolver
from support.hand_compiled import entry, manifest, tensor


def spec(inputs: list[list[int | str]], symbols: str, output: list[int | str] | None = None, **limits: object) -> EntrySpec:
    records = [{"name": n, "min": 1, "max": None} | limits for n in symbols.split()]
    tensors = [tensor("xyz"[i], shape) for i, shape in enumerate(inputs)]
    main = entry("main", "f", symbols=records, inputs=tensors, outputs=[tensor("o", output or [])])
    return Manifest.of(manifest(entries=[main])).entries["main"]


@pytest.mark.parametrize(
    ("inputs", "symbols", "shapes", "values"),
    [
        ([["n", 4]], "n", [(3, 4)], (3,)),
        ([["n", "m"]], "m n", [(3, 4)], (4, 3)),
        ([["n * 2"], ["n"]], "n", [(6,), (3,)], (3,)),
        ([["n * 2 + 1"]], "n", [(7,)], (3,)),
        ([["n * m"], ["m"]], "n m", [(12,), (4,)], (3, 4)),
        ([["n + m + k"], ["m + k"], ["k"]], "n m k", [(12,), (7,), (5,)], (5, 2, 5)),
        ([["(n + 1) // 2", "n"]], "n", [(2, 3)], (3,)),
        ([["m + n // 2"], ["n"]], "n m", [(5,), (7,)], (7, 2)),
        ([["n * n", "n"]], "n", [(9, 3)], (3,)),
        ([[4, 2]], "", [(4, 2)], ()),
    ],
)
def test_values(inputs: list[list[int | str]], symbols: str, shapes: list[tuple[int, ...]], values: tuple[int, ...]) -> None:
    assert ShapeSolver(spec(inputs, symbols)).solve(tuple(shapes)).symbols == values


def test_output_shapes() -> None:
    solver = ShapeSolver(spec([["n", "m"]], "n m", ["n * m", 3, "n // 2"]))
    assert solver.solve(((5, 4),)).outputs == ((20, 3, 2),)


@pytest.mark.parametrize(
    ("inputs", "symbols"),
    [([["n * n"]], "n"), ([["n // 2"]], "n"), ([["n * m"]], "n m"), ([[4]], "n"), ([["m * (n % 4)"], ["m"]], "n m")],
)
def test_symbols_that_no_shape_gives(inputs: list[list[int | str]], symbols: str) -> None:
    with pytest.raises(RelaxError, match="entry 'main': expected inputs whose shapes determine 'n', got none that does"):
        ShapeSolver(spec(inputs, symbols))


@pytest.mark.parametrize(
    ("inputs", "symbols", "shapes", "message"),
    [
        ([[4, 2]], "", [(4, 3)], r"input 'x': expected shape \[4, 2\], got \[4, 3\]"),
        ([["n", 2]], "n", [(4,)], r"input 'x': expected shape \[n, 2\], got \[4\]"),
        ([["n"], ["n", 2]], "n", [(4,), (5, 2)], r"expected shape \[n, 2\] = \[4, 2\] \(n = 4 from input 'x'\), got \[5"),
        ([["n", "n * 2"]], "n", [(4, 7)], r"input 'x': expected shape \[n, n \* 2\] = \[4, 8\] .*, got \[4, 7\]"),
        ([["n * 2"]], "n", [(7,)], r"input 'x': expected dimension 0 to be 'n \* 2' for some n, got 7"),
        ([["n * m"], ["m"]], "n m", [(5,), (0,)], r"expected dimension 0 to be 'm \* n' for some n \(m = 0 from input 'y'"),
        ([["n + 3"]], "n", [(2,)], r"input 'x': expected dimension 0 to be 'n \+ 3' for some n, got 2"),
    ],
)  # fmt: skip
def test_mismatch(inputs: list[list[int | str]], symbols: str, shapes: list[tuple[int, ...]], message: str) -> None:
    with pytest.raises(RelaxError, match=message):
        ShapeSolver(spec(inputs, symbols)).solve(tuple(shapes))


@pytest.mark.parametrize(
    ("limits", "size", "message"),
    [
        ({"min": 2, "max": 8}, 1, r"input 'x': expected 'n' \(dimension 1\) from 2 to 8, got 1"),
        ({"min": 2, "max": 8}, 9, r"from 2 to 8, got 9"),
        ({"min": 2, "max": None}, 1, r"at least 2, got 1"),
        ({"min": None, "max": 8}, 9, r"from 0 to 8, got 9"),
    ],
)
def test_ranges(limits: dict[str, object], size: int, message: str) -> None:
    with pytest.raises(RelaxError, match=message):
        ShapeSolver(spec([[4, "n"]], "n", **limits)).solve(((4, size),))


def test_range_ends_are_allowed() -> None:
    solver = ShapeSolver(spec([["n"]], "n", min=2, max=8))
    assert [solver.solve(((n,),)).symbols for n in (2, 8)] == [(2,), (8,)]
    assert ShapeSolver(spec([["n"]], "n", min=0)).solve(((0,),)).symbols == (0,)


def test_impossible_outputs() -> None:
    with pytest.raises(
        RelaxError, match=r"output 'o': expected a shape \[n - 5\] of sizes of 0 or more, got \[-2\] \(n = 3 from"
    ):
        ShapeSolver(spec([["n"]], "n", ["n - 5"])).solve(((3,),))
    with pytest.raises(RelaxError, match=r"'o': expected no division by zero in '.*n // m.*', got m = 0, n = 3"):
        ShapeSolver(spec([["n", "m"]], "n m", ["n // m"], min=0)).solve(((3, 0),))

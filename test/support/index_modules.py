"""Random functions that read or write where indices say, of sizes that are known or not, and inputs in and out of range."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from relaxir.building.builder import Builder
from relaxir.dialect.bindings import ir
from relaxir.dialect.dtypes import numpy_dtype

__all__ = ["IndexCase", "index_case"]

_SIZES, _COUNTS = (0, 1, 2, 3, 5, 8, 33), (0, 1, 3, 7, 200)
_DTYPES, _INDICES = ("f32", "f32", "bf16", "i32", "i8"), ("i64", "i64", "i32", "i8", "ui8", "ui32")
_FAR = (1 << 30, -(1 << 31), (1 << 31) - 1, 1 << 32, -(1 << 32), 1 << 40, -(1 << 63), (1 << 63) - 1)


@dataclass
class IndexCase:
    """A function of a module.

    Attributes:
        op: what it does.
        inputs: shapes and dtypes.
        wraps: whether negative indices count from the end.
        limits: by input of indices, the size that each is below; of several numbers in an index, one each.
    """

    op: str
    wraps: bool
    inputs: list[tuple[tuple[int, ...], str]] = field(default_factory=list[tuple[tuple[int, ...], str]])
    limits: dict[int, tuple[int, ...]] = field(default_factory=dict[int, tuple[int, ...]])

    def arrays(self, rng: random.Random, *, wrong: bool) -> list[np.ndarray]:
        """Inputs, whose indices are in range, negative ones among them, but for one where they are to be wrong."""
        numbers = np.random.default_rng(rng.randrange(1 << 30))
        return [self._indices(i, numbers, rng, wrong) if i in self.limits else _values(*s, numbers) for i, s in self._inputs()]

    def _inputs(self) -> list[tuple[int, tuple[tuple[int, ...], str]]]:
        return list(enumerate(self.inputs))

    def _indices(self, number: int, numbers: np.random.Generator, rng: random.Random, wrong: bool) -> np.ndarray:
        (shape, dtype), limits = self.inputs[number], self.limits[number]
        least = -1 if self.wraps and not dtype.startswith("u") else 0
        bounds = np.array([limits[i % len(limits)] for i in range(int(np.prod(shape)))], np.int64)
        found = numbers.integers(least * bounds, np.maximum(bounds, 1)) if bounds.size else bounds
        if self.op == "index_copy":
            found = numbers.permutation(limits[0])[: bounds.size]  # of equals, any may be the last
        if wrong and found.size:
            at, info = rng.choice([0, found.size - 1, rng.randrange(found.size)]), np.iinfo(numpy_dtype(dtype))
            asked = rng.choice([int(bounds[at]), int(bounds[at]) + 1, -int(bounds[at]) - 1 if self.wraps else -1, *_FAR])
            found[at] = max(int(info.min), min(int(info.max), asked))
        return found.reshape(shape).astype(numpy_dtype(dtype))


def _values(shape: tuple[int, ...], dtype: str, numbers: np.random.Generator) -> np.ndarray:
    return numbers.integers(-9, 9, shape).astype(numpy_dtype(dtype))


class _Building:
    """The inputs of one function, each of whose sizes is a symbol of its own, or known."""

    def __init__(self, b: Builder, rng: random.Random, op: str):
        self.b, self.rng, self._symbols = b, rng, iter("abcdefghijkl")
        self.case = IndexCase(op, rng.random() < 0.5)

    def emitted(self, op: Callable[..., ir.Value], *operands: ir.Value, **attrs: Any) -> ir.Value:
        return op(*operands, wrap_negative_indices=self.case.wraps, **attrs)

    def dim(self, size: int) -> int | str:
        return next(self._symbols) if self.rng.random() < 0.6 else size

    def input(self, sizes: Sequence[int], shape: Sequence[int | str], dtype: str, limits: Sequence[int] = ()) -> ir.Value:
        number = len(self.case.inputs)
        self.case.inputs.append((tuple(sizes), dtype))
        if limits:
            self.case.limits[number] = tuple(limits)
        return self.b.input(f"x{number}", tuple(shape), dtype)


def index_case(b: Builder, name: str, rng: random.Random) -> IndexCase:
    """Builds a function of a name."""
    op = rng.choice(list(_OPS))
    made = _Building(b, rng, op)
    sizes = [rng.choice(_SIZES) for _ in range(rng.choice([1, 2, 3]))]
    axis, dtype, integer = rng.randrange(len(sizes)), rng.choice(_DTYPES), rng.choice(_INDICES)
    with b.function(name):
        shape = [made.dim(size) for size in sizes]
        x = made.input(sizes, shape, dtype)
        y = _OPS[op](made, x, sizes, shape, axis, dtype, integer)
        b.output(b.add(y, y) if rng.random() < 0.5 else y)
    return made.case


def _take(m: _Building, x: ir.Value, sizes: list[int], _: list[int | str], axis: int, __: str, integer: str) -> ir.Value:
    own = [m.rng.choice(_COUNTS) for _ in range(m.rng.choice([0, 1, 2]))]
    return m.emitted(m.b.take, x, m.input(own, [m.dim(n) for n in own], integer, [sizes[axis]]), axis=axis)


def _take_twice(m: _Building, x: ir.Value, sizes: list[int], _: list[int | str], axis: int, __: str, integer: str) -> ir.Value:
    """The second time of indices that a kernel computes, of what the first one gives."""
    first, second = m.rng.choice(_COUNTS[1:]), m.rng.choice(_COUNTS)
    y = m.emitted(m.b.take, x, m.input([first], [m.dim(first)], integer, [sizes[axis]]), axis=axis)
    return m.emitted(m.b.take, y, m.b.negative(m.b.negative(m.input([second], [m.dim(second)], "i64", [first]))), axis=axis)


def _along(
    m: _Building, sizes: list[int], shape: list[int | str], axis: int, integer: str
) -> tuple[ir.Value, list[int], list[int | str]]:  # fmt: skip
    """Indices of a tensor's shape, but for their axis."""
    count = m.rng.choice([1, 4, 9])
    own = [count if d == axis else size for d, size in enumerate(sizes)]
    dims = [m.dim(count) if d == axis else size for d, size in enumerate(shape)]
    return m.input(own, dims, integer, [sizes[axis]]), own, dims


def _gather_elements(
    m: _Building, x: ir.Value, sizes: list[int], shape: list[int | str], axis: int, __: str, integer: str
) -> ir.Value:  # fmt: skip
    return m.emitted(m.b.gather_elements, x, _along(m, sizes, shape, axis, integer)[0], axis=axis)


def _scatter_elements(
    m: _Building, x: ir.Value, sizes: list[int], shape: list[int | str], axis: int, dtype: str, integer: str
) -> ir.Value:  # fmt: skip
    indices, own, dims = _along(m, sizes, shape, axis, integer)
    return m.emitted(
        m.b.scatter_elements, x, indices, m.input(own, dims, dtype), axis=axis, reduction=m.rng.choice(["update", "add"])
    )


def _gather_nd(m: _Building, x: ir.Value, sizes: list[int], _: list[int | str], __: int, ___: str, integer: str) -> ir.Value:
    count, numbers = m.rng.choice([1, 4, 130]), m.rng.randrange(1, len(sizes) + 1)
    return m.emitted(m.b.gather_nd, x, m.input([count, numbers], [m.dim(count), numbers], integer, sizes[:numbers]))


def _index_copy(
    m: _Building, x: ir.Value, sizes: list[int], shape: list[int | str], axis: int, dtype: str, integer: str
) -> ir.Value:  # fmt: skip
    count = min(m.rng.choice([1, 2, 33]), sizes[axis])
    dim = m.dim(count)
    indices = m.input([count], [dim], integer, [sizes[axis]])
    own, dims = ([mine if d == axis else n for d, n in enumerate(all_)] for mine, all_ in ((count, sizes), (dim, shape)))
    return m.emitted(m.b.index_copy, x, indices, m.input(own, dims, dtype), axis=axis)


_OPS: dict[str, Callable[..., ir.Value]] = {
    "take": _take,
    "take_twice": _take_twice,
    "gather_elements": _gather_elements,
    "scatter_elements": _scatter_elements,
    "gather_nd": _gather_nd,
    "index_copy": _index_copy,
}

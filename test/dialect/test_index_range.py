"""Where the integers of a value lie is what the reference computes, in random orders of ops, of symbols that may be 0."""

from __future__ import annotations

import random
from collections.abc import Callable

import numpy as np
import pytest

import relaxir as rx
from relaxir import Builder
from relaxir.building.value import Value
from relaxir.dialect.analysis.index_range import IndexRange, index_range, reads_inside
from relaxir.dialect.bindings import ir
from relaxir.dialect.functions import find_function
from relaxir.dialect.symbolic import Expr, substitute

#: Numbers that are near to where integers end, and near to 0.
_NUMBERS = (-(2**31), -7, -1, 0, 1, 2, 3, 5, 2**31 - 1)


class Maker:
    """Integers of some rows, made by random ops of floats ``x[n, 6]``, given integers ``i[n]`` and numbers."""

    def __init__(self, seed: int):
        self.random, self.b = random.Random(seed), Builder()
        self.floats: Value
        self.made: list[Value] = []

    def module(self, ops: int) -> rx.Module:
        b = self.b
        with b.function("main"):
            self.floats = b.input("x", ("n", 6))
            self.made = [b.input("i", ("n",), "i64"), b.arange("n"), b.arange(-2, "n - 2")]
            while len(self.made) < ops:
                self.made.append(self.random.choice(_OPS)(self))
            b.output(*self.made)
        return b.build()

    def any(self) -> Value:
        return self.random.choice(self.made)

    def number(self) -> Value:
        return self.b.full((), self.random.choice(_NUMBERS), "i64")

    def other(self) -> Value:
        return self.random.choice([self.any, self.number])()

    def positions(self) -> Value:
        b = self.b
        chosen = self.random.choice([b.argmax, b.argmin])(self.floats, axis=1)
        first = b.strided_slice(b.argsort(self.floats, axis=self.random.choice([0, 1])), axes=[1], begin=[2], end=[3])
        return self.random.choice([chosen, b.squeeze(first, axis=[1]), b.argsort(self.any(), axis=0)])

    def put(self) -> Value:
        """Wherever the index is not proven to be inside, it is made so."""
        b, size = self.b, b_rows(self.b)
        where = b.mod(self.any(), b.maximum(size, b.full((), 1, "i64")))
        if self.random.random() < 0.5:
            return b.index_copy(b.full(("n",), 0, "i64"), b.argsort(self.any(), axis=0), self.any())
        return b.scatter_elements(self.any(), where, self.any(), reduction=self.random.choice(["update", "add", "max"]))

    def narrow(self) -> Value:
        return self.b.astype(self.b.astype(self.any(), self.random.choice(["i32", "ui8", "i1"])), "i64")


def b_rows(b: Builder) -> Value:
    return b.shape_value("n", dtype="i64")


_OPS: tuple[Callable[[Maker], Value], ...] = (
    Maker.positions,
    Maker.put,
    Maker.narrow,
    lambda m: m.b.astype(m.b.astype(m.any(), "f32"), "i64"),
    lambda m: m.b.add(m.any(), m.other()),
    lambda m: m.b.multiply(m.any(), m.other()),
    lambda m: m.b.floor_divide(m.any(), m.number()),
    lambda m: m.b.mod(m.any(), m.number()),
    lambda m: m.b.minimum(m.any(), m.other()),
    lambda m: m.b.maximum(m.any(), m.other()),
    lambda m: m.b.clip(m.any(), min=m.random.choice([None, -3, 0, 2]), max=m.random.choice([None, 4, 9])),
    lambda m: m.b.where(m.b.less(m.any(), m.other()), m.any(), m.other()),
    lambda m: m.b.flip(m.any(), axis=0),
    lambda m: m.b.take(m.any(), m.b.argsort(m.any(), axis=0), axis=0),
    lambda m: m.b.strided_slice(m.b.concat([m.any(), m.any()]), axes=[0], begin=[0], end=["n"]),
    lambda m: m.b.squeeze(m.b.reshape(m.any(), ("n", 1)), axis=[1]),
)


def ranges(module: rx.Module) -> list[IndexRange]:
    function = find_function(module.ir.operation, "main")
    return [index_range(value) for value in function.regions[0].blocks[0].operations[-1].operands]


def end_of(found: IndexRange, n: int) -> int | None:
    end = substitute(found.end, {"n": n}) if isinstance(found.end, Expr) else found.end
    assert end is None or isinstance(end, int)
    return end


@pytest.mark.parametrize("seed", range(40))
def test_random_ops(seed: int) -> None:
    chance = np.random.default_rng(seed)
    module = Maker(seed).module(30)
    found = ranges(module)
    assert any(r.low is not None and r.end is not None for r in found)
    for n in (0, 1, 2, 5):
        given = chance.choice(np.array([*_NUMBERS, -(2**63), 2**63 - 1]), n)
        x = chance.standard_normal((n, 6)).astype(np.float32)
        values = rx.evaluate(module, "main", x, given)
        for r, value in zip(found, values, strict=True):
            array = np.asarray(value)
            end = end_of(r, n)
            if array.size:
                assert r.low is None or r.low <= array.min(), (n, r)
                assert end is None or array.max() < end, (n, r)


def taken(make: Callable[[Builder, Value], Value], rows: int | str = "n") -> bool:
    """Whether what reads rows of ``x[rows, 6]`` by made indices is known to read what is there."""
    b = Builder()
    with b.function("main"):
        x = b.input("x", (rows, 6))
        b.output(b.take(x, make(b, x), axis=0))
    found: list[ir.Operation] = []
    function = find_function(b.build().ir.operation, "main")
    found += [op for op in function.regions[0].blocks[0].operations if op.operation.name == "relax.take"]
    return reads_inside(found[-1])


def test_what_is_proven() -> None:
    assert taken(lambda b, x: b.argsort(b.max(x, axis=[1]), axis=0))
    assert taken(lambda b, x: b.arange("n"))
    assert taken(lambda b, x: b.argmax(x, axis=0), rows=4)
    assert taken(lambda b, x: b.floor_divide(b.argsort(b.reshape(x, ("n * 6",)), axis=0), b.full((), 6, "i64")))
    assert taken(lambda b, x: b.index_copy(b.full(("n",), 0, "i64"), b.argsort(b.max(x, axis=[1]), axis=0), b.arange("n")))
    assert taken(lambda b, x: b.clip(b.input("i", (3,), "i64"), min=0, max=3), rows=4)


def test_what_is_not() -> None:
    assert not taken(lambda b, x: b.input("i", (3,), "i64"))
    assert not taken(lambda b, x: b.argmax(x, axis=0))  # the largest of no rows is at 0
    assert not taken(lambda b, x: b.argmax(x, axis=1), rows=5)
    assert not taken(lambda b, x: b.full((2,), 0, "i64"))  # where there is no row
    assert not taken(lambda b, x: b.arange("n + 1"))
    assert not taken(lambda b, x: b.arange(-1, "n"))
    assert not taken(lambda b, x: b.floor_divide(b.argsort(b.reshape(x, ("n * 6",)), axis=0), b.full((), 5, "i64")))
    assert not taken(lambda b, x: b.clip(b.input("i", (3,), "i64"), min=0, max=4), rows=4)
    assert not taken(lambda b, x: b.minimum(b.input("i", (3,), "i64"), b.full((), 3, "i64")), rows=4)

"""Reductions of a tensor along axes, into a tensor of the type that values are accumulated in."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from ...dialect.bindings import ir
from ...dialect.inference import is_float
from .builder import ZERO, Input, LinalgBuilder, Size, Tensor, index, value_type
from .conversion import load, store
from .dtypes import accumulator_type, integer_range, is_boolean, is_unsigned, storage_dtype
from .scalar import Number, Scalar, constant, emit, larger, maximum, minimum

__all__ = [
    "LARGEST",
    "PRODUCT",
    "TOTAL",
    "Reduction",
    "accumulated",
    "count",
    "extreme",
    "finish",
    "finish_at",
    "reduce",
    "reduce_elements",
]


@dataclass(frozen=True)
class Reduction:
    """How elements are combined, and what combining none gives."""

    combine: Callable[[Scalar, Scalar], Scalar]
    initial: Number


TOTAL = Reduction(lambda x, y: x + y, 0)
#: The largest of floats; NaN are passed over, for where what is computed from all elements anyway is NaN.
LARGEST = Reduction(larger, -math.inf)
PRODUCT = Reduction(lambda x, y: x * y, 1)


def extreme(dtype: ir.Type, which: str) -> Reduction:
    """The largest (``"max"``) or smallest (``"min"``) element; NaN if one is."""
    largest = which == "max"
    limits = (-math.inf, math.inf) if is_float(dtype) else integer_range(dtype)
    return Reduction(maximum if largest else minimum, limits[0 if largest else 1])


def accumulated(value: ir.Value, dtype: ir.Type) -> Scalar:
    """An element in memory as it is accumulated: narrow floats as f32, truth values as 0 or 1."""
    return Scalar(value, unsigned=True) if is_boolean(dtype) else load(value, dtype)


def reduce(b: LinalgBuilder, x: Tensor, axes: Sequence[int], reduction: Reduction, keep: bool = False) -> ir.Value:
    """Reduces the elements of ``x``; the axes are of size one in the result, or not in it."""
    return reduce_elements(b, x, axes, reduction, lambda e: accumulated(e, x.dtype), keep=keep)


def reduce_elements(
    b: LinalgBuilder,
    x: Tensor,
    axes: Sequence[int],
    reduction: Reduction,
    element: Callable[..., Scalar],
    *others: Input,
    keep: bool = False,
) -> ir.Value:
    """Reduces a function of the stored elements of ``x`` (and of other tensors, at the loops of ``x``).

    Axes that are kept are constants in the index map: a reshape would stand between this and what reads it.
    """
    kept = [ZERO if i in axes else i for i in range(x.rank) if keep or i not in axes]
    unsigned = is_unsigned(x.dtype)
    sizes: list[Size] = [1 if i == ZERO else b.size(x, i) for i in kept]
    total = accumulator_type(x.dtype)

    def body(*elements: ir.Value) -> ir.Value:
        return reduction.combine(Scalar(elements[-1], unsigned), element(*elements[:-1])).value

    def alone(*elements: ir.Value) -> ir.Value:
        return body(*elements[:-1], constant(total, reduction.initial, unsigned).value)

    if not axes:  # every element is a row of its own: elementwise, and nothing is read of the destination
        return b.generic("p" * x.rank, [(x.value, range(x.rank)), *others], b.empty(sizes, total), alone)
    start = b.filled(sizes, total, reduction.initial, unsigned)
    kinds = "".join("r" if i in axes else "p" for i in range(x.rank))
    return b.generic(kinds, [(x.value, range(x.rank)), *others], start, body, kept)


def finish(
    b: LinalgBuilder, value: ir.Value, dtype: ir.Type, function: Callable[[Scalar], Scalar] | None = None
) -> ir.Value:  # fmt: skip
    """Accumulated values as elements of a dtype, after a function of each."""
    stored = storage_dtype(dtype)
    done = value_type(value).element_type == stored if is_float(dtype) else getattr(dtype, "width", 8) != 4
    if function is None and done:
        return value
    sizes = b.value_sizes(value)

    def body(x: ir.Value, _: ir.Value) -> ir.Value:
        scalar = Scalar(x, is_unsigned(dtype))
        return store(scalar if function is None else function(scalar), dtype)

    return b.generic("p" * len(sizes), [(value, range(len(sizes)))], b.empty(sizes, stored), body)


def finish_at(
    b: LinalgBuilder, value: ir.Value, dtype: ir.Type, function: Callable[[Scalar, list[Scalar]], Scalar]
) -> ir.Value:
    """Accumulated values as elements of a dtype, after a function of each and of the loops' indices."""
    sizes = b.value_sizes(value)
    loops = range(len(sizes))

    def body(x: ir.Value, _: ir.Value) -> ir.Value:
        return store(function(Scalar(x, is_unsigned(dtype)), [index(i) for i in loops]), dtype)

    return b.generic("p" * len(sizes), [(value, loops)], b.empty(sizes, storage_dtype(dtype)), body)


def count(b: LinalgBuilder, x: Tensor, axes: Sequence[int]) -> Callable[[ir.Type], Scalar | Number]:
    """How many elements each result of a reduction along the axes has, as a number or, in a body, as a scalar."""
    number = b.product(b.size(x, a) for a in axes)
    if isinstance(number, int):
        return lambda type_: float(number)
    i64 = ir.IntegerType.get_signless(64)
    integer = emit("arith.index_cast", i64, number)
    return lambda type_: Scalar(emit("arith.sitofp", type_, integer))

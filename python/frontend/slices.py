"""Where a slice begins and ends: bounds counted from the end of a dimension, or outside of it, as places inside."""

from __future__ import annotations

from ..dialect.errors import RelaxError
from ..dialect.symbolic import Dim, Expr
from .ranges import Ranges, at_least, at_most, larger, smaller

__all__ = ["UncertainError", "is_place", "limited_bound", "limited_bounds", "slice_bound"]


class UncertainError(RelaxError):
    """A slice whose length is no simple expression: a bound lies outside of the dimension for some sizes."""


def slice_bound(value: Dim, size: Dim, ranges: Ranges) -> Dim:
    """A slice bound counted from the start and inside of the dimension, as Python limits it.

    Raises:
        UncertainError: a bound may lie outside for some sizes.
    """
    if size is None:
        raise RelaxError("expected to slice a dimension whose size is known or symbolic")
    if value is None or value == size:
        return size
    if isinstance(value, int) and value <= -(2**62):
        return 0
    if at_most(value, -1, ranges):
        value = value + size
        if at_most(value, 0, ranges):
            return 0
    if isinstance(value, int) and (value == 0 or value >= 2**62):
        return min(value, size) if isinstance(size, int) else (0 if value == 0 else size)
    if at_least(value - size, 0, ranges):
        return size
    if not at_least(value, 0, ranges) or not at_most(value - size, 0, ranges):
        raise UncertainError(f"expected a slice bound that always lies inside of {size}, got {value}")
    return value


def limited_bound(value: int, size: int | Expr, ranges: Ranges) -> int | Expr:
    """The same of a number, for every size: where it may lie outside, the smaller or the larger one of two."""
    try:
        found = slice_bound(value, size, ranges)
    except UncertainError:
        return smaller(value, size, ranges) if value > 0 else larger(value + size, 0, ranges)
    assert found is not None
    return found


def limited_bounds(begin: int, end: int, size: int | Expr, ranges: Ranges) -> tuple[int | Expr, int | Expr]:
    """Where ``x[begin:end]`` begins and ends for every size; one that would end before it begins is empty.

    Bounds that are counted from the same end never cross for some sizes alone.
    """
    start, stop = limited_bound(begin, size, ranges), limited_bound(end, size, ranges)
    if start == 0 or stop == size:
        return start, stop
    if start == size or stop == 0:
        return start, start
    if (begin < 0) == (end < 0):
        return start, stop if begin <= end else start
    if begin < 0:
        return start, larger(start, stop, ranges)
    return stop - larger(size + end - begin, 0, ranges), stop


def is_place(index: int | Expr, size: int | Expr, ranges: Ranges) -> bool:
    """Whether a dimension has an index, counted from the start, for every size."""
    return at_least(index, 0, ranges) and at_most(index - size, -1, ranges)

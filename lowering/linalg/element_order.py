"""Which of two elements comes first where they are sorted."""

from __future__ import annotations

from ...dialect.bindings import ir
from .reduction import accumulated
from .scalar import Scalar

__all__ = ["precedes"]


def precedes(one: ir.Value, other: ir.Value, dtype: ir.Type, *, descending: bool) -> Scalar:
    """Whether an element, as it is in memory, comes before another one in any order of equals: a NaN is above all numbers."""
    x, y = (accumulated(element, dtype) for element in (one, other))
    if descending:
        x, y = y, x
    below = x.compare("lt", y)
    return below | (x.compare("eq", x) & y.compare("ne", y)) if x.is_float else below

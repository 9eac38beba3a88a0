"""What models compute of sizes that is no integer, and is known at import all the same: fractions, and whether two are equal.

Exporters scale sizes as floats, ``Cast(Floor(Mul(Cast(size), 0.5)))``, and squeeze a dimension where ``Equal(size, 1)``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ...dialect import ops
from ...dialect.bindings import ir
from ...dialect.symbolic import Expr
from ..emit import cast, concat, emit, expand, full, integer, reshape
from ..ranges import larger, quotient_to_zero, smaller

__all__ = ["OTHER_RANK", "Equality", "SizeFraction", "is_expression", "written"]

#: Products of sizes up to 2**20 with a number of so many steps are exact in f32, which has 24 bits.
_MOST_STEPS = 16

#: Why a size is refused, at the end of a message.
OTHER_RANK = "for which results have another rank: import the model with dims= for that"

Size = int | Expr


@dataclass(frozen=True)
class Equality:
    """Whether two sizes are equal, or differ, where that depends on symbols."""

    left: Size
    right: Size
    is_negated: bool = False

    def __invert__(self) -> Equality:
        return Equality(self.left, self.right, not self.is_negated)


@dataclass(frozen=True)
class SizeFraction:
    """A size over a positive number, which floats hold exactly where that is a power of two.

    Another quotient is rounded, but not to another integer: the next one is as far as ``1 / under``. It takes part in nothing
    but being rounded. TypeError is raised for what is not exact, and left to be computed at run time.
    """

    over: Size
    under: int = 1

    def _is_exact(self) -> bool:
        return self.under & (self.under - 1) == 0

    def __add__(self, other: object) -> SizeFraction:
        a, b = self, _exact(other)
        if not a._is_exact():
            raise TypeError
        return SizeFraction(a.over * b.under + b.over * a.under, a.under * b.under)

    __radd__ = __add__

    def __neg__(self) -> SizeFraction:
        return SizeFraction(-self.over, self.under)

    def __sub__(self, other: object) -> SizeFraction:
        return self + -_exact(other)

    def __rsub__(self, other: object) -> SizeFraction:
        return _exact(other) + -self

    def __mul__(self, other: object) -> SizeFraction:
        b = _exact(other)
        if not self._is_exact() or not isinstance(b.over, int) or abs(b.over) > _MOST_STEPS:
            raise TypeError
        return SizeFraction(self.over * b.over, self.under * b.under)

    __rmul__ = __mul__

    def __truediv__(self, other: object) -> SizeFraction:
        b = _exact(other)
        if not self._is_exact() or not isinstance(b.over, int) or b.over <= 0 or b.under > 1:
            raise TypeError
        return SizeFraction(self.over, self.under * b.over)

    def __rtruediv__(self, other: object) -> SizeFraction:
        raise TypeError

    def floor(self) -> SizeFraction:
        return SizeFraction(self.over // self.under)

    def ceil(self) -> SizeFraction:
        return SizeFraction(-(-self.over // self.under))

    def to_integer(self) -> Size:
        """Rounded towards zero, as a cast does."""
        found = quotient_to_zero(self.over, self.under, {})
        if found is None:
            raise TypeError
        return found

    def smaller(self, other: object) -> SizeFraction:
        b = _exact(other)
        return SizeFraction(smaller(self.over * b.under, b.over * self.under, {}), self.under * b.under)

    def larger(self, other: object) -> SizeFraction:
        b = _exact(other)
        return SizeFraction(larger(self.over * b.under, b.over * self.under, {}), self.under * b.under)


def _exact(number: object) -> SizeFraction:
    """A number as a fraction. Raises TypeError for what is none of few steps."""
    if isinstance(number, SizeFraction) and number._is_exact():
        return number
    if isinstance(number, bool) or not isinstance(number, int | float) or not np.isfinite(number):
        raise TypeError
    over, under = float(number).as_integer_ratio()
    if under > 1 << 20:
        raise TypeError
    return SizeFraction(over, under)


def is_expression(element: object) -> bool:
    """Whether an element of an array is one of these."""
    return isinstance(element, Equality | SizeFraction)


def written(array: np.ndarray[Any, Any], dtype: ir.Type) -> ir.Value:
    """The elements as a relax value."""
    scalars = [_scalar(e, dtype) for e in array.reshape(-1).tolist()]
    if not array.ndim:
        return scalars[0]
    if len(scalars) == 1:
        return expand(scalars[0], array.shape)
    return reshape(concat([reshape(s, (1,)) for s in scalars], 0), array.shape)


def _scalar(element: Any, dtype: ir.Type) -> ir.Value:
    if isinstance(element, Equality):
        op = ops.NotEqual if element.is_negated else ops.Equal
        return cast(emit(op, full(element.left, integer()), full(element.right, integer())), dtype)
    if isinstance(element, SizeFraction):
        size = cast(full(element.over, integer()), dtype)
        return size if element.under == 1 else emit(ops.Divide, size, full(float(element.under), dtype))
    return full(element, dtype)

"""Scalar expressions in bodies: Python operators on a :class:`Scalar` emit ``arith`` and ``math`` ops at the insertion point.

Numbers mix with scalars and take their type::

    x * 0.5 * (1 + math("erf", x * 0.7071067811865476))
"""

from __future__ import annotations

from ...dialect.bindings import ir
from ..marks import NOT_POSITIVE, NUMBER_FIRST, VANISHING

__all__ = [
    "Number", "Scalar", "at_least", "at_most", "constant", "decay", "emit", "larger", "math", "maximum", "minimum", "select",
    "smaller",
]  # fmt: skip

Number = int | float | bool

# Predicate numbers of arith.cmpf (ordered but for ne: a NaN differs from everything) and of arith.cmpi.
_CMPF = {"eq": 1, "gt": 2, "ge": 3, "lt": 4, "le": 5, "ne": 13}
_CMPI = {"eq": 0, "ne": 1, "lt": 2, "le": 3, "gt": 4, "ge": 5}
_TO_UNSIGNED = 4


def emit(name: str, type_: ir.Type, *operands: ir.Value, **attributes: ir.Attribute) -> ir.Value:
    """Creates an op of one result."""
    return ir.Operation.create(name, [type_], operands, attributes).result


class Scalar:
    """A value of integer, index or floating-point type in a body.

    Attributes:
        value: the SSA value.
        unsigned: whether integer operations on it ignore the sign.
        number: its value where it is known, else None.
    """

    __slots__ = ("number", "unsigned", "value")

    def __init__(self, value: ir.Value, unsigned: bool = False, number: Number | None = None):
        self.value, self.unsigned, self.number = value, unsigned, number

    @property
    def type(self) -> ir.Type:
        return self.value.type

    @property
    def is_float(self) -> bool:
        return isinstance(self.value.type, ir.FloatType)

    @property
    def is_truth(self) -> bool:
        """Whether this is an ``i1``."""
        type_ = self.value.type
        return isinstance(type_, ir.IntegerType) and type_.width == 1

    def like(self, value: ir.Value) -> Scalar:
        """A value with this one's signedness."""
        return Scalar(value, self.unsigned)

    def lift(self, other: Scalar | Number) -> Scalar:
        """A number as a constant of this type."""
        return other if isinstance(other, Scalar) else constant(self.value.type, other, self.unsigned)

    def _arith(self, on_float: str, on_integer: str, other: Scalar | Number, swap: bool = False) -> Scalar:
        left, right = self, self.lift(other)
        if swap:
            left, right = right, left
        name = on_float if self.is_float else on_integer
        return self.like(emit(f"arith.{name}", self.value.type, left.value, right.value))

    def __add__(self, other: Scalar | Number) -> Scalar:
        return self._arith("addf", "addi", other)

    def __radd__(self, other: Number) -> Scalar:
        return self + other

    def __sub__(self, other: Scalar | Number) -> Scalar:
        return self._arith("subf", "subi", other)

    def __rsub__(self, other: Number) -> Scalar:
        return self._arith("subf", "subi", other, swap=True)

    def __mul__(self, other: Scalar | Number) -> Scalar:
        return self._arith("mulf", "muli", other)

    def __rmul__(self, other: Number) -> Scalar:
        return self * other

    def __truediv__(self, other: Scalar | Number) -> Scalar:
        """The quotient; of integers it is truncated, and undefined for a divisor of 0."""
        return self._arith("divf", "divui" if self.unsigned else "divsi", other)

    def __rtruediv__(self, other: Number) -> Scalar:
        return self._arith("divf", "divui" if self.unsigned else "divsi", other, swap=True)

    def __mod__(self, other: Scalar | Number) -> Scalar:
        """The remainder with the sign of the dividend; undefined for an integer divisor of 0."""
        return self._arith("remf", "remui" if self.unsigned else "remsi", other)

    def __neg__(self) -> Scalar:
        if self.is_float:
            return self.like(emit("arith.negf", self.value.type, self.value))
        return 0 - self

    def __and__(self, other: Scalar | Number) -> Scalar:
        return self._bits("andi", other)

    def __or__(self, other: Scalar | Number) -> Scalar:
        return self._bits("ori", other)

    def __xor__(self, other: Scalar | Number) -> Scalar:
        return self._bits("xori", other)

    def __lshift__(self, other: Scalar | Number) -> Scalar:
        return self._bits("shli", other)

    def __rshift__(self, other: Scalar | Number) -> Scalar:
        return self._bits("shrui" if self.unsigned else "shrsi", other)

    def _bits(self, name: str, other: Scalar | Number) -> Scalar:
        return self.like(emit(f"arith.{name}", self.value.type, self.value, self.lift(other).value))

    def __invert__(self) -> Scalar:
        return self ^ (True if self.is_truth else -1)

    def compare(self, predicate: str, other: Scalar | Number) -> Scalar:
        """``eq ne lt le gt ge`` as an ``i1``; with a NaN only ``ne`` holds."""
        other = self.lift(other)
        code = _CMPF[predicate] if self.is_float else _CMPI[predicate]
        if not self.is_float and code > 1 and (self.unsigned or self.is_truth):
            code += _TO_UNSIGNED
        attribute = ir.IntegerAttr.get(ir.IntegerType.get_signless(64), code)
        name = "arith.cmpf" if self.is_float else "arith.cmpi"
        truth = ir.IntegerType.get_signless(1)
        return Scalar(emit(name, truth, self.value, other.value, predicate=attribute), unsigned=True)


def constant(type_: ir.Type, number: Number, unsigned: bool = False) -> Scalar:
    """A number of an integer, index or floating-point type; an integer too large for the type wraps."""
    if isinstance(type_, ir.FloatType):
        attribute: ir.Attribute = ir.FloatAttr.get(type_, float(number))
    else:
        attribute = ir.IntegerAttr.get(type_, _wrapped(int(number), type_))
    return Scalar(emit("arith.constant", type_, value=attribute), unsigned, number)


def _wrapped(number: int, type_: ir.Type) -> int:
    if not isinstance(type_, ir.IntegerType):
        return number
    half = 1 << (type_.width - 1)
    return (number + half) % (2 * half) - half


def select(condition: Scalar, x: Scalar | Number, y: Scalar | Number) -> Scalar:
    """``x`` where the condition holds, else ``y``; one of them is a scalar."""
    like = x if isinstance(x, Scalar) else y
    assert isinstance(like, Scalar)
    x, y = like.lift(x), like.lift(y)
    return like.like(emit("arith.select", like.type, condition.value, x.value, y.value))


def at_least(x: Scalar, low: Number) -> Scalar:
    """``x``, or the limit where it is below; what equals the limit, as a zero of the other sign, stays, and so does a NaN."""
    return select(x.compare("lt", low), low, x) if x.is_float else maximum(x, low)


def at_most(x: Scalar, high: Number) -> Scalar:
    """``x``, or the limit where it is above; see :func:`at_least`."""
    return select(x.compare("gt", high), high, x) if x.is_float else minimum(x, high)


def maximum(x: Scalar, y: Scalar | Number) -> Scalar:
    """The larger one; NaN if one is NaN."""
    return _extreme(x, y, "max")


def larger(best: Scalar, x: Scalar) -> Scalar:
    """The larger one of a number and of ``x``, which may be a NaN: that is passed over. One instruction, not five."""
    return best.like(emit("arith.maxnumf", best.type, best.value, x.value, **{NUMBER_FIRST: ir.UnitAttr.get()}))


def smaller(best: Scalar, x: Scalar) -> Scalar:
    """The smaller one of a number and of ``x``; see :func:`larger`."""
    return best.like(emit("arith.minnumf", best.type, best.value, x.value, **{NUMBER_FIRST: ir.UnitAttr.get()}))


def minimum(x: Scalar, y: Scalar | Number) -> Scalar:
    """The smaller one; NaN if one is NaN."""
    return _extreme(x, y, "min")


def _extreme(x: Scalar, y: Scalar | Number, which: str) -> Scalar:
    sign = "u" if x.unsigned or x.is_truth else "s"
    name = f"arith.{which}imumf" if x.is_float else f"arith.{which}{sign}i"
    return x.like(emit(name, x.type, x.value, x.lift(y).value))


def decay(x: Scalar) -> Scalar:
    """``exp`` of what is at most 0, or NaN."""
    return x.like(emit("math.exp", x.type, x.value, **{NOT_POSITIVE: ir.UnitAttr.get()}))


def weight_of(x: Scalar) -> Scalar:
    """``exp`` of what is at most 0, or NaN, as a weight beside one of 1: 0 where it is less than ``e ** -80``.

    Intel's processors take some 150 cycles for a result that is subnormal, which such a weight is, or its products.
    """
    return x.like(emit("math.exp", x.type, x.value, **{VANISHING: ir.UnitAttr.get()}))


def math(name: str, *operands: Scalar) -> Scalar:
    """An op of the math dialect: ``exp``, ``erf``, ``powf``..."""
    return operands[0].like(emit(f"math.{name}", operands[0].type, *(o.value for o in operands)))

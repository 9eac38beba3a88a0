"""Elementwise functions of two broadcast tensors, as bodies."""

from __future__ import annotations

from collections.abc import Callable

from ...dialect.bindings import ir
from .builder import LinalgBuilder
from .registry import Source, lowering
from .scalar import Scalar, constant, math, maximum, minimum, select

__all__: list[str] = []

_Function = Callable[[Scalar, Scalar], Scalar]


def _quotient(x: Scalar, y: Scalar) -> Scalar:
    """The quotient of integers rounded towards zero, 0 for a divisor of 0.

    Both that and the least integer divided by -1 are faults on x86, so they never reach the division.
    """
    if y.number is not None and y.number not in (0, -1):
        return x / y
    zero = y.compare("eq", 0)
    if x.unsigned:
        return select(zero, 0, x / select(zero, 1, y))
    minus_one = y.compare("eq", -1)
    divided = x / select(zero | minus_one, 1, y)
    return select(zero, 0, select(minus_one, -x, divided))


def _divide(x: Scalar, y: Scalar) -> Scalar:
    return x / y if x.is_float else _quotient(x, y)


def _floor_divide(x: Scalar, y: Scalar) -> Scalar:
    if x.is_float:
        return _float_floor_divide(x, y)
    quotient = _quotient(x, y)
    if x.unsigned:
        return quotient
    rest = x - quotient * y
    return select(_unlike(rest, y) & y.compare("ne", 0), quotient - 1, quotient)


def _float_floor_divide(x: Scalar, y: Scalar) -> Scalar:
    """torch's: the quotient without the remainder is near a whole number, and is rounded to it."""
    rest = x % y
    quotient = (x - rest) / y
    quotient = select(_unlike(rest, y), quotient - 1, quotient)
    whole = math("floor", quotient)
    whole = select((quotient - whole).compare("gt", 0.5), whole + 1, whole)
    divided = x / y
    whole = select(quotient.compare("eq", 0), math("copysign", x.lift(0), divided), whole)
    return select(y.compare("eq", 0), divided, whole)


def _fmod(x: Scalar, y: Scalar) -> Scalar:
    return x % y if x.is_float else _rest(x, y, lambda rest: rest)


def _mod(x: Scalar, y: Scalar) -> Scalar:
    floored = lambda rest: rest if x.unsigned else select(_unlike(rest, y), rest + y, rest)  # noqa: E731
    return floored(x % y) if x.is_float else _rest(x, y, floored)


def _rest(x: Scalar, y: Scalar, adapted: Callable[[Scalar], Scalar]) -> Scalar:
    """What a truncated division of integers leaves, adapted; 0 for a divisor of 0."""
    return select(y.compare("eq", 0), 0, adapted(x - _quotient(x, y) * y))


def _unlike(rest: Scalar, divisor: Scalar) -> Scalar:
    """Whether a remainder is not 0 and has not the divisor's sign."""
    return (rest.compare("lt", 0) ^ divisor.compare("lt", 0)) & rest.compare("ne", 0)


def _shift(x: Scalar, y: Scalar, left: bool) -> Scalar:
    """Shifts by what a type has not so many bits for are undefined in LLVM; they shift all bits out, as in torch."""
    width = ir.IntegerType(x.type).width
    if y.number is None:
        fits = Scalar(y.value, unsigned=True).compare("lt", width)
    elif 0 <= y.number < width:
        return x << y if left else x >> y
    else:
        fits = constant(ir.IntegerType.get_signless(1), False)
    if left:
        return select(fits, x << select(fits, y, 0), 0)
    return x >> select(fits, y, width - 1) if not x.unsigned else select(fits, x >> select(fits, y, 0), 0)


def _power(x: Scalar, y: Scalar) -> Scalar:
    if not x.is_float:
        return _integer_power(x, y)
    if y.number == 2:
        return x * x
    if y.number == 1:
        return x
    return math("powf", x, y)


def _integer_power(x: Scalar, y: Scalar) -> Scalar:
    """Wrapping power by repeated squaring; a negative exponent truncates ``1 / x ** -y``: 1, -1, or else 0."""
    bits = x.type.width if y.number is None else max(1, int(y.number).bit_length())
    result, square = x.lift(1), x
    exponent = Scalar(y.value, unsigned=True)
    for bit in range(bits):
        is_set = ((exponent >> bit) & 1).compare("ne", 0)
        result = select(is_set, result * square, result)
        square = square * square if bit + 1 < bits else square
    if x.unsigned or (y.number is not None and y.number >= 0):
        return result
    parity = select((y & 1).compare("eq", 0), x.lift(1), -1)
    inverse = select(x.compare("eq", 1), 1, select(x.compare("eq", -1), parity, 0))
    return select(y.compare("lt", 0), inverse, result)


def _truth(x: Scalar) -> Scalar:
    return x if x.is_truth else x.compare("ne", 0)


def _comparison(predicate: str) -> _Function:
    return lambda x, y: x.compare(predicate, y)


_FUNCTIONS: dict[str, _Function] = {
    "add": lambda x, y: x + y,
    "bitwise_and": lambda x, y: x & y,
    "bitwise_or": lambda x, y: x | y,
    "bitwise_xor": lambda x, y: x ^ y,
    "divide": _divide,
    "equal": _comparison("eq"),
    "floor_divide": _floor_divide,
    "fmod": _fmod,
    "greater": _comparison("gt"),
    "greater_equal": _comparison("ge"),
    "left_shift": lambda x, y: _shift(x, y, left=True),
    "less": _comparison("lt"),
    "less_equal": _comparison("le"),
    "logical_and": lambda x, y: _truth(x) & _truth(y),
    "logical_or": lambda x, y: _truth(x) | _truth(y),
    "logical_xor": lambda x, y: _truth(x) ^ _truth(y),
    "maximum": maximum,
    "minimum": minimum,
    "mod": _mod,
    "multiply": lambda x, y: x * y,
    "not_equal": _comparison("ne"),
    "power": _power,
    "right_shift": lambda x, y: _shift(x, y, left=False),
    "subtract": lambda x, y: x - y,
}


@lowering(*(f"relax.{name}" for name in _FUNCTIONS))
def _lower(b: LinalgBuilder, source: Source) -> ir.Value:
    function = _FUNCTIONS[source.op.operation.name.removeprefix("relax.")]
    return b.elementwise(source.operands, source.result, function)

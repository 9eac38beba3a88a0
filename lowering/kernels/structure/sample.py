"""What a scalar body computes from numbers: marks that say it in short are held to it before a kernel relies on them."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence

from ....dialect.bindings import ir
from ....dialect.errors import RelaxError
from ..emit.linear_index import Linear, from_affine

__all__ = ["Number", "Sample"]

Number = int | float
_Make = Callable[..., Number]

_BINARY: dict[str, _Make] = {
    "arith.addi": operator.add, "arith.subi": operator.sub, "arith.muli": operator.mul,
    "arith.andi": operator.and_, "arith.ori": operator.or_, "arith.xori": operator.xor, "arith.shli": operator.lshift,
    "arith.addf": operator.add, "arith.subf": operator.sub, "arith.mulf": operator.mul,
}  # fmt: skip
_UNSIGNED: dict[str, _Make] = {
    "arith.shrui": operator.rshift, "arith.divui": operator.floordiv, "arith.remui": operator.mod,
    "arith.extui": int, "arith.uitofp": float, "arith.index_castui": int,
}  # fmt: skip
_SIGNED: dict[str, _Make] = {
    "arith.shrsi": operator.rshift, "arith.remsi": lambda a, b: a - b * int(a / b), "arith.divsi": lambda a, b: int(a / b),
    "arith.extsi": int, "arith.sitofp": float, "arith.trunci": int, "arith.index_cast": int, "arith.extf": float,
    "arith.select": lambda condition, a, b: a if condition else b,
}  # fmt: skip
# Of arith.cmpi, by number; the second four that order compare integers without a sign.
_COMPARISONS = (operator.eq, operator.ne, *(operator.lt, operator.le, operator.gt, operator.ge) * 2)
_WITHOUT_SIGN = 6


class Sample:
    """Values of a body in one iteration of its loops: ``values`` are given, ``indices`` are where the loops are."""

    def __init__(self, values: Mapping[ir.Value, Number], indices: Mapping[int, int]):
        self.values, self.indices = {v: _wrapped(number, v.type) for v, number in values.items()}, indices

    def of(self, value: ir.Value) -> Number:
        """What a value is. Raises RelaxError at an operation that is none of those that are known here."""
        if value not in self.values:
            self.values[value] = self._result(value.owner.operation)
        return self.values[value]

    def _result(self, op: ir.Operation) -> Number:
        type_ = op.results[0].type
        if op.name == "arith.constant":
            return _wrapped(_literal(op), type_)
        if op.name == "linalg.index":
            return self.indices.get(ir.IntegerAttr(op.attributes["dim"]).value, 0)
        if op.name == "affine.apply":
            place = from_affine(ir.AffineMapAttr(op.attributes["map"]).value.results[0])
            return _place(place, [self.of(v) for v in op.operands])
        known = _BINARY.get(op.name) or _UNSIGNED.get(op.name) or _SIGNED.get(op.name)
        if known is None and op.name != "arith.cmpi":
            raise RelaxError(f"expected integer operations in a body with marks, got '{op.name}'", op.location)
        given = [self.of(v) for v in op.operands]
        code = -1 if known is not None else ir.IntegerAttr(op.attributes["predicate"]).value
        if op.name in _UNSIGNED or code >= _WITHOUT_SIGN:
            given = [_without_sign(*pair) for pair in zip(given, op.operands, strict=True)]
        return _wrapped(known(*given) if known is not None else int(_COMPARISONS[code](*given)), type_)


def _place(linear: Linear, given: Sequence[Number]) -> int:
    """The number that an index expression is."""
    total = linear.constant.static or 0
    for atom, factor in linear.terms:
        value = given[atom] if isinstance(atom, int) else _place(atom.inner, given) // atom.divisor
        total += int(value) * (factor.static or 0)
    return total


def _literal(op: ir.Operation) -> Number:
    attribute = op.attributes["value"]
    if isinstance(attribute, ir.BoolAttr):
        return int(attribute.value)
    return ir.FloatAttr(attribute).value if isinstance(attribute, ir.FloatAttr) else ir.IntegerAttr(attribute).value


def _wrapped(value: Number, type_: ir.Type) -> Number:
    """A number as a type has it, integers with a sign."""
    if not isinstance(type_, ir.IntegerType):
        return value
    if type_.width == 1:
        return int(value) & 1
    half = 1 << (type_.width - 1)
    return (int(value) + half) % (2 * half) - half


def _without_sign(value: Number, operand: ir.Value) -> Number:
    return int(value) % (1 << operand.type.width) if isinstance(operand.type, ir.IntegerType) else value

"""Guards of a program as checks of a call: expressions of sizes in symbolic arithmetic, and where that ends as scalars."""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from typing import Any

from ..dialect import ops
from ..dialect.bindings import ir
from ..dialect.errors import RelaxError
from ..dialect.symbolic import Expr, symbol
from .emit import info_of, integer
from .whole_numbers import masked, shifted

__all__ = ["emit_guards"]


def emit_guards(guards: Sequence[tuple[str, str]], arguments: Sequence[ir.Value]) -> None:
    """Writes a check for each that sizes do not make true already, at the insertion point."""
    scalars = _Scalars(arguments)
    for shown, code in guards:
        holds = scalars.of(ast.parse(code, mode="eval").body)
        if holds is True:
            continue
        text = f"expected sizes as torch.export has assumed them, by the example or the model's code: {shown}"
        condition = holds if isinstance(holds, ir.Value) else _constant(bool(holds), ir.IntegerType.get_signless(1))
        ir.Operation.create("cf.assert", [], [condition], {"msg": ir.StringAttr.get(text)})


#: A number that is known, a size, or a scalar: i64, f64, or i1.
_Number = int | float | bool | Expr | ir.Value

_INTEGER: dict[type[ast.operator], tuple[Callable[[Any, Any], Any], str]] = {
    ast.Add: (lambda a, b: a + b, "arith.addi"),
    ast.Sub: (lambda a, b: a - b, "arith.subi"),
    ast.Mult: (lambda a, b: a * b, "arith.muli"),
    ast.FloorDiv: (lambda a, b: a // b, "arith.floordivsi"),
    ast.BitAnd: (masked, "arith.andi"),
    ast.LShift: (shifted, "arith.shli"),
    ast.RShift: (lambda a, b: shifted(a, -b), "arith.shrsi"),
}
_FLOAT: dict[type[ast.operator], str] = {
    ast.Add: "arith.addf", ast.Sub: "arith.subf", ast.Mult: "arith.mulf", ast.Div: "arith.divf",
}  # fmt: skip
#: Numbers of predicates of arith.cmpi, signed, and of arith.cmpf, ordered.
_PREDICATES: dict[type[ast.cmpop], tuple[int, int]] = {
    ast.Eq: (0, 1), ast.NotEq: (1, 6), ast.Lt: (2, 4), ast.LtE: (3, 5), ast.Gt: (4, 2), ast.GtE: (5, 3),
}  # fmt: skip
#: Comparisons that torch writes as functions.
_COMPARED: dict[str, ast.cmpop] = {
    "Eq": ast.Eq(), "Ne": ast.NotEq(), "Lt": ast.Lt(), "Le": ast.LtE(), "Gt": ast.Gt(), "Ge": ast.GtE(),
}  # fmt: skip
_DIVISIONS = {"FloorDiv": ast.FloorDiv(), "CleanDiv": ast.FloorDiv(), "Mod": ast.Mod(), "PythonMod": ast.Mod()}
_TO_FLOAT = {"sym_float", "ToFloat", "float"}
_ROUNDINGS = {
    "trunc": "trunc", "TruncToInt": "trunc", "int": "trunc", "floor": "floor", "FloorToInt": "floor", "ceil": "ceil",
    "CeilToInt": "ceil", "round": "round", "RoundToInt": "round",
}  # fmt: skip


class _Scalars:
    """Evaluates an expression: in symbolic arithmetic as far as that goes, then as scalar operations."""

    def __init__(self, arguments: Sequence[ir.Value]):
        self._arguments = arguments

    def of(self, node: ast.expr) -> _Number:
        match node:
            case ast.Constant(value=bool() | int() | float() as number):
                return number
            case ast.BoolOp(op=op, values=values):
                name = "arith.andi" if isinstance(op, ast.And) else "arith.ori"
                return self._joined(name, [self.of(v) for v in values])
            case ast.UnaryOp(op=ast.Not(), operand=operand):
                return self._joined("arith.xori", [self.of(operand), True])
            case ast.UnaryOp(op=ast.USub(), operand=operand):
                return self._arithmetic(ast.Sub(), 0, self.of(operand))
            case ast.Compare(left=left, ops=operators, comparators=others):
                sides = [self.of(left), *(self.of(o) for o in others)]
                pairs = zip(sides, operators, sides[1:], strict=False)
                return self._joined("arith.andi", [self._compared(op, a, b) for a, op, b in pairs])
            case ast.BinOp(left=left, op=op, right=right):
                return self._arithmetic(op, self.of(left), self.of(right))
            case ast.Call(func=ast.Name(id=name) | ast.Attribute(attr=name), args=args):
                return self._called(name, args)
            case _:
                pass
        raise RelaxError(f"expected assumptions of sizes in arithmetic, got {ast.unparse(node)}")

    def _called(self, name: str, args: Sequence[ast.expr]) -> _Number:
        if name == "size":
            place, axis = (a.value for a in args if isinstance(a, ast.Constant))
            return info_of(self._arguments[int(place)]).shape[int(axis)]  # type: ignore[return-value]
        if name == "symbol":
            (known,) = (a.value for a in args if isinstance(a, ast.Constant))
            return symbol(str(known))
        values = [self.of(a) for a in args]
        if name in ("max", "min", "Max", "Min"):
            return self._extreme(ast.Gt() if name in ("max", "Max") else ast.Lt(), values)
        if name in _COMPARED:
            return self._compared(_COMPARED[name], *values)
        if name in ("And", "Or"):
            return self._joined("arith.andi" if name == "And" else "arith.ori", values)
        if name in _DIVISIONS:
            return self._arithmetic(_DIVISIONS[name], *values)
        if name in ("IntTrueDiv", "FloatTrueDiv"):
            return self._arithmetic(ast.Div(), *values)
        if name in _TO_FLOAT:
            return self._float(values[0])
        if name in _ROUNDINGS:
            return self._rounded(values[0], _ROUNDINGS[name])
        raise RelaxError(f"expected assumptions of sizes in arithmetic, got a call of {name}")

    def _arithmetic(self, op: ast.operator, a: _Number, b: _Number) -> _Number:
        if isinstance(op, ast.Pow) and isinstance(b, int) and 0 < b < 8:
            return a if b == 1 else self._arithmetic(ast.Mult(), a, self._arithmetic(op, a, b - 1))
        if isinstance(op, ast.Mod):
            quotient = self._arithmetic(ast.FloorDiv(), a, b)
            return self._arithmetic(ast.Sub(), a, self._arithmetic(ast.Mult(), quotient, b))
        if type(op) in _INTEGER and not (_is_float(a) or _is_float(b)):
            known, name = _INTEGER[type(op)]
            if isinstance(a, int | Expr) and isinstance(b, int | Expr):
                return known(a, b)
            return _made(name, integer(), self._integer(a), self._integer(b))
        if type(op) not in _FLOAT:
            raise RelaxError(f"expected assumptions of sizes in arithmetic, got {type(op).__name__}")
        return _made(_FLOAT[type(op)], ir.F64Type.get(), self._float(a), self._float(b))

    def _compared(self, op: ast.cmpop, a: _Number, b: _Number) -> _Number:
        of_integers, of_floats = _PREDICATES[type(op)]
        if isinstance(a, int | float) and isinstance(b, int | float):
            return {0: a == b, 1: a != b, 2: a < b, 3: a <= b, 4: a > b, 5: a >= b}[of_integers]
        if _is_float(a) or _is_float(b):
            return _made("arith.cmpf", _boolean(), self._float(a), self._float(b), predicate=of_floats)
        return _made("arith.cmpi", _boolean(), self._integer(a), self._integer(b), predicate=of_integers)

    def _extreme(self, op: ast.cmpop, values: Sequence[_Number]) -> _Number:
        first, *others = values
        for other in others:
            is_first = self._compared(op, first, other)
            if isinstance(is_first, bool):
                first = first if is_first else other
                continue
            assert isinstance(is_first, ir.Value)
            a, b = (self._float(v) if _is_float(first) or _is_float(other) else self._integer(v) for v in (first, other))
            first = ir.Operation.create("arith.select", [a.type], [is_first, a, b]).result
        return first

    def _rounded(self, x: _Number, how: str) -> _Number:
        """A float as an integer: towards zero, down, up, or to the nearest, halves to the even one."""
        if not _is_float(x):
            return x
        x = self._float(x)
        whole = _made("arith.fptosi", integer(), x)
        if how == "trunc":
            return whole
        if how == "round":
            down = self._rounded(x, "floor")
            rest = self._arithmetic(ast.Sub(), x, self._float(down))
            is_odd = self._compared(ast.NotEq(), self._arithmetic(ast.Mod(), down, 2), 0)
            half = self._joined("arith.andi", [self._compared(ast.Eq(), rest, 0.5), is_odd])
            more = self._joined("arith.ori", [self._compared(ast.Gt(), rest, 0.5), half])
            return self._arithmetic(ast.Add(), down, self._number_of(more))
        is_off = self._compared(ast.Gt() if how == "floor" else ast.Lt(), self._float(whole), x)
        return self._arithmetic(ast.Sub() if how == "floor" else ast.Add(), whole, self._number_of(is_off))

    def _number_of(self, holds: _Number) -> _Number:
        return _made("arith.extui", integer(), holds) if isinstance(holds, ir.Value) else int(bool(holds))

    def _joined(self, name: str, values: Sequence[_Number]) -> _Number:
        first, *others = values
        for other in others:
            if isinstance(first, bool) and isinstance(other, bool):
                first = {"arith.andi": first and other, "arith.ori": first or other, "arith.xori": first != other}[name]
            else:
                a, b = (v if isinstance(v, ir.Value) else _constant(bool(v), _boolean()) for v in (first, other))
                first = _made(name, _boolean(), a, b)
        return first

    def _integer(self, x: _Number) -> ir.Value:
        if isinstance(x, ir.Value):
            return x
        if isinstance(x, Expr):
            return _made(
                "arith.index_cast", integer(), ops.PrimValue.create(value=[x], result_types=[ir.IndexType.get()]).result
            )
        return _constant(int(x), integer())

    def _float(self, x: _Number) -> ir.Value:
        if isinstance(x, ir.Value) and isinstance(x.type, ir.F64Type):
            return x
        if isinstance(x, float):
            return _constant(x, ir.F64Type.get())
        return _made("arith.sitofp", ir.F64Type.get(), self._integer(x))


def _is_float(x: _Number) -> bool:
    return isinstance(x, float) or (isinstance(x, ir.Value) and isinstance(x.type, ir.F64Type))


def _boolean() -> ir.Type:
    return ir.IntegerType.get_signless(1)


def _constant(value: float, type_: ir.Type) -> ir.Value:
    made = ir.FloatAttr.get(type_, value) if isinstance(type_, ir.F64Type) else ir.IntegerAttr.get(type_, int(value))
    return ir.Operation.create("arith.constant", [type_], attributes={"value": made}).result


def _made(name: str, type_: ir.Type, *operands: ir.Value, predicate: int | None = None) -> ir.Value:
    attributes = {} if predicate is None else {"predicate": ir.IntegerAttr.get(integer(), predicate)}
    return ir.Operation.create(name, [type_], list(operands), attributes).result

"""Symbolic dimensions as code: an expression over symbols becomes ``arith`` ops on ``index``."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping

from .bindings import ir
from .errors import RelaxError
from .symbolic import Expr

__all__ = ["arithmetic_tree", "emit_index", "may_be_negative"]

_ARITH: dict[type[ast.operator], str] = {
    ast.Add: "addi",
    ast.Sub: "subi",
    ast.Mult: "muli",
    ast.FloorDiv: "floordivsi",
    ast.Mod: "remsi",
}


def emit_index(dim: int | Expr, symbols: Mapping[str, ir.Value] | Callable[[str], ir.Value]) -> ir.Value:
    """Emits ops at the insertion point that compute a dimension; ``symbols`` gives the ``index`` value of each name.

    Raises RelaxError where a number of the expression is no 64-bit integer.
    """
    value_of = symbols if callable(symbols) else symbols.__getitem__

    def build(node: ast.expr) -> ir.Value:
        if isinstance(node, ast.Name):
            return value_of(node.id)
        if not isinstance(node, ast.BinOp):
            return _constant(ast.literal_eval(node))
        left, right = build(node.left), build(node.right)
        if isinstance(node.op, ast.Mod) and may_be_negative(node):
            return _emit("subi", left, _emit("muli", _emit("floordivsi", left, right), right))
        return _emit(_ARITH[type(node.op)], left, right)

    return build(arithmetic_tree(dim))


def arithmetic_tree(dim: int | Expr) -> ast.expr:
    """The expression's syntax tree; a leading minus becomes a product, so that only binary ops and numbers are left."""
    if isinstance(dim, int):
        return ast.Constant(dim)

    class Negations(ast.NodeTransformer):
        def visit_UnaryOp(self, node: ast.UnaryOp) -> ast.expr:
            operand = self.visit(node.operand)
            return operand if isinstance(operand, ast.Constant) and operand.value == 0 else _negated(operand)

    return Negations().visit(ast.parse(str(dim), mode="eval").body)


def _negated(operand: ast.expr) -> ast.expr:
    if isinstance(operand, ast.Constant) and isinstance(operand.value, int):
        return ast.Constant(-operand.value)
    return ast.BinOp(ast.Constant(-1), ast.Mult(), operand)


def may_be_negative(node: ast.expr) -> bool:
    """Whether something is subtracted in an expression: symbols and sums of them are not negative."""
    inner = list(ast.walk(node))
    return any(isinstance(n, ast.Sub) or (isinstance(n, ast.Constant) and ast.literal_eval(n) < 0) for n in inner)


def _emit(name: str, left: ir.Value, right: ir.Value) -> ir.Value:
    return ir.Operation.create(f"arith.{name}", [ir.IndexType.get()], [left, right]).result


def _constant(number: int) -> ir.Value:
    if not -(2**63) <= number < 2**63:
        raise RelaxError(f"expected sizes whose computation fits 64 bits, got {number} in it")
    index = ir.IndexType.get()
    return ir.Operation.create("arith.constant", [index], attributes={"value": ir.IntegerAttr.get(index, number)}).result

"""Symbolic dimensions as code: an expression over symbols becomes ``arith`` ops on ``index``, or LLVM IR text on ``i64``."""

from __future__ import annotations

import ast
from collections.abc import Mapping

from ..dialect.bindings import ir
from ..dialect.symbolic import Expr

__all__ = ["emit_index", "llvm_text"]

_ARITH: dict[type[ast.operator], str] = {
    ast.Add: "addi",
    ast.Sub: "subi",
    ast.Mult: "muli",
    ast.FloorDiv: "floordivsi",
    ast.Mod: "remsi",
}
# Dimensions and their divisors are not negative, where truncating division is floor division.
_LLVM: dict[type[ast.operator], str] = {ast.Add: "add", ast.Sub: "sub", ast.Mult: "mul", ast.FloorDiv: "sdiv", ast.Mod: "srem"}


def emit_index(dim: int | Expr, symbols: Mapping[str, ir.Value]) -> ir.Value:
    """Emits ops at the insertion point that compute a dimension; ``symbols`` gives the ``index`` value of each name."""
    index = ir.IndexType.get()

    def build(node: ast.expr) -> ir.Value:
        if isinstance(node, ast.Name):
            return symbols[node.id]
        if isinstance(node, ast.BinOp):
            name = f"arith.{_ARITH[type(node.op)]}"
            return ir.Operation.create(name, [index], [build(node.left), build(node.right)]).result
        value = ir.IntegerAttr.get(index, ast.literal_eval(node))
        return ir.Operation.create("arith.constant", [index], attributes={"value": value}).result

    return build(_tree(dim))


def llvm_text(dim: int | Expr, symbols: Mapping[str, str], lines: list[str], prefix: str) -> str:
    """Appends LLVM IR lines that compute a dimension from i64 values; returns the name of the result, or the constant."""

    def build(node: ast.expr) -> str:
        if isinstance(node, ast.Name):
            return symbols[node.id]
        if not isinstance(node, ast.BinOp):
            return str(ast.literal_eval(node))
        left, right = build(node.left), build(node.right)
        result = f"%{prefix}{len(lines)}"
        lines.append(f"  {result} = {_LLVM[type(node.op)]} i64 {left}, {right}")
        return result

    return build(_tree(dim))


def _tree(dim: int | Expr) -> ast.expr:
    """The expression's syntax tree; a leading minus becomes a product, so that only binary ops and numbers are left."""

    class Negations(ast.NodeTransformer):
        def visit_UnaryOp(self, node: ast.UnaryOp) -> ast.expr:
            operand = self.visit(node.operand)
            return operand if isinstance(operand, ast.Constant) and operand.value == 0 else _negated(operand)

    return Negations().visit(ast.parse(str(dim), mode="eval").body)


def _negated(operand: ast.expr) -> ast.expr:
    if isinstance(operand, ast.Constant) and isinstance(operand.value, int):
        return ast.Constant(-operand.value)
    return ast.BinOp(ast.Constant(-1), ast.Mult(), operand)

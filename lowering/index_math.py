"""Symbolic dimensions as code: an expression over symbols becomes LLVM IR text on ``i64``."""

from __future__ import annotations

import ast
from collections.abc import Mapping

from ..dialect.index_math import arithmetic_tree
from ..dialect.symbolic import Expr

__all__ = ["llvm_text"]

# Dimensions and their divisors are not negative, where truncating division is floor division.
_LLVM: dict[type[ast.operator], str] = {ast.Add: "add", ast.Sub: "sub", ast.Mult: "mul", ast.FloorDiv: "sdiv", ast.Mod: "srem"}


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

    return build(arithmetic_tree(dim))

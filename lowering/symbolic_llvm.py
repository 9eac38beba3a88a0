"""Symbolic dimensions as code: an expression over symbols becomes LLVM IR text on ``i64``."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping

from ..dialect.symbolic import Expr
from ..dialect.symbolic_arith import arithmetic_tree, may_be_negative

__all__ = ["llvm_text", "saturating_text"]

_LLVM: dict[type[ast.operator], str] = {ast.Add: "add", ast.Sub: "sub", ast.Mult: "mul", ast.FloorDiv: "sdiv", ast.Mod: "srem"}
_OVERFLOWING = ("add", "sub", "mul")


def saturating_text(dim: int | Expr, symbols: Mapping[str, str], lines: list[str], prefix: str) -> str:
    """Like :func:`llvm_text`; where a step exceeds 64 bits the result is 2**63 - 1, more memory than there is."""
    flags: list[str] = []

    def emit(name: str, left: str, right: str) -> str:
        result = f"%{prefix}{len(lines)}"
        if name not in _OVERFLOWING:
            lines.append(f"  {result} = {name} i64 {left}, {right}")
            return result
        lines.append(f"  {result}.both = call {{i64, i1}} @llvm.s{name}.with.overflow.i64(i64 {left}, i64 {right})")
        lines.append(f"  {result}.over = extractvalue {{i64, i1}} {result}.both, 1")
        lines.append(f"  {result} = extractvalue {{i64, i1}} {result}.both, 0")
        flags.append(f"{result}.over")
        return result

    value = _text(dim, symbols, emit)
    if not flags:
        return value
    any_ = flags[0]
    for flag in flags[1:]:
        lines.append(f"  {flag}.any = or i1 {any_}, {flag}")
        any_ = f"{flag}.any"
    lines.append(f"  %{prefix}saturated = select i1 {any_}, i64 {2**63 - 1}, i64 {value}")
    return f"%{prefix}saturated"


def llvm_text(dim: int | Expr, symbols: Mapping[str, str], lines: list[str], prefix: str) -> str:
    """Appends LLVM IR lines that compute a dimension from i64 values; returns the name of the result, or the constant."""

    def emit(name: str, left: str, right: str) -> str:
        result = f"%{prefix}{len(lines)}"
        lines.append(f"  {result} = {name} i64 {left}, {right}")
        return result

    return _text(dim, symbols, emit)


def _text(dim: int | Expr, symbols: Mapping[str, str], emit: Callable[[str, str, str], str]) -> str:
    def build(node: ast.expr) -> str:
        if isinstance(node, ast.Name):
            return symbols[node.id]
        if not isinstance(node, ast.BinOp):
            return str(ast.literal_eval(node))
        left, right = build(node.left), build(node.right)
        if isinstance(node.op, ast.FloorDiv | ast.Mod) and not isinstance(node.right, ast.Constant):
            # 1 instead of 0, of which the top bit of ~x & (x - 1) is set: the call is refused after this.
            right = emit("or", right, emit("lshr", emit("and", emit("xor", right, "-1"), emit("sub", right, "1")), "63"))
        if isinstance(node.op, ast.FloorDiv | ast.Mod) and may_be_negative(node):
            return floored(node.op, left, right)
        return emit(_LLVM[type(node.op)], left, right)

    def floored(op: ast.operator, left: str, right: str) -> str:
        """LLVM's division truncates. Where something is left over whose sign is not the divisor's, it is one less."""
        quotient, rest = emit("sdiv", left, right), emit("srem", left, right)
        signs_differ = emit("ashr", emit("xor", rest, right), "63")
        some = emit("lshr", emit("or", rest, emit("sub", "0", rest)), "63")
        less = emit("and", some, signs_differ)
        if isinstance(op, ast.FloorDiv):
            return emit("sub", quotient, less)
        return emit("add", rest, emit("mul", less, right))

    return build(arithmetic_tree(dim))

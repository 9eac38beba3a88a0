"""Affine expressions of MLIR as symbolic dimensions."""

from __future__ import annotations

from collections.abc import Sequence

from ..bindings import ir
from ..symbolic import Dim, Expr

__all__ = ["affine_dim"]


def affine_dim(expr: ir.AffineExpr, dims: Sequence[Dim], symbols: Sequence[Dim]) -> Dim:
    """What an affine expression is for the given values of its dimensions and symbols; None when one it needs is unknown."""
    if isinstance(expr, ir.AffineConstantExpr):
        return expr.value
    if isinstance(expr, ir.AffineDimExpr):
        return dims[expr.position]
    if isinstance(expr, ir.AffineSymbolExpr):
        return symbols[expr.position]
    left, right = (affine_dim(e, dims, symbols) for e in (expr.lhs, expr.rhs))
    if left is None or right is None:
        return None
    return _combined(expr, left, right)


def _combined(expr: ir.AffineExpr, left: int | Expr, right: int | Expr) -> int | Expr:
    if isinstance(expr, ir.AffineAddExpr):
        return left + right
    if isinstance(expr, ir.AffineMulExpr):
        return left * right
    if isinstance(expr, ir.AffineFloorDivExpr):
        return left // right
    if isinstance(expr, ir.AffineCeilDivExpr):
        return (left + right - 1) // right
    return left % right

"""Numbers in a graph of torch, which torch-mlir's importer does not know."""

from __future__ import annotations

import math
import operator
from typing import Any, cast

import sympy
import torch
from torch.utils._sympy import functions

from ..dialect.bindings import extras_module
from .whole_numbers import LARGEST_FACTOR

__all__ = ["ON_NUMBERS", "in_whole_numbers", "known_number"]

fx_importer = extras_module("extras.fx_importer")

# What makes symbolic numbers, for which sympy's types do not stand.
FloorDiv: Any = functions.FloorDiv
Mod: Any = functions.Mod

#: Operations on numbers for which the torch dialect has none; they are known by their own names.
ON_NUMBERS = {
    math.ceil, math.floor, math.trunc, operator.and_, operator.lshift, operator.pow, operator.rshift, round, torch.sym_float,
    torch.sym_max, torch.sym_min, torch.sym_sqrt,
}  # fmt: skip


def known_number(node: torch.fx.Node) -> int | None:
    """What arithmetic of sizes gives where the sizes have turned out to be numbers."""
    if not fx_importer.is_builtin_function_or_method(node.target):
        return None
    value = node.meta.get("val")
    if isinstance(value, torch.SymInt) and isinstance(value.node.expr, sympy.Integer):
        return int(value.node.expr)
    return value if isinstance(value, int) else None


def in_whole_numbers(expr: Any) -> Any:
    """``5 * n // 2`` of torch's expression for the whole part of ``2.5 * n``, and likewise for other ways to round, and for
    bits that are kept, as :mod:`.whole_numbers` has them; None of another expression.
    """
    name = type(expr).__name__
    if name == "BitwiseFn_bitwise_and":
        return _kept_bits(*expr.args)
    fraction = _fraction(expr.args[0]) if name in ("CeilToInt", "FloorToInt", "RoundToInt", "TruncToInt") else None
    if fraction is None:
        return None
    above, below = fraction
    if name == "CeilToInt":
        return FloorDiv(above + below - 1, below)
    if name == "FloorToInt" or (name == "TruncToInt" and above.is_nonnegative):
        return FloorDiv(above, below)
    if name != "RoundToInt" or (below != 2 and below % 2 == 0):
        return None
    down = FloorDiv(above, 2)
    return down + Mod(down, 2) * Mod(above, 2) if below == 2 else FloorDiv(2 * above + below, 2 * below)


def _fraction(expr: Any) -> tuple[Any, Any] | None:
    """A size times or by a number, as a numerator and a denominator."""
    if type(expr).__name__ == "IntTrueDiv" and isinstance(expr.args[1], sympy.Integer) and 0 < expr.args[1] <= LARGEST_FACTOR:
        return expr.args[0], expr.args[1]
    if not isinstance(expr, sympy.Mul) or len(expr.args) != 2 or not isinstance(expr.args[0], sympy.Float):
        return None
    factor, size = cast("list[Any]", list(expr.args))
    times, by = float(factor).as_integer_ratio()
    size = size.args[0] if type(size).__name__ == "ToFloat" else size
    return (times * size, sympy.Integer(by)) if 0 < times < LARGEST_FACTOR and by <= LARGEST_FACTOR else None


def _kept_bits(size: Any, mask: Any) -> Any:
    """As :func:`.whole_numbers.masked`."""
    if isinstance(size, sympy.Integer):
        size, mask = mask, size
    if not isinstance(mask, sympy.Integer):
        return None
    bits = int(mask)
    if bits > 0 and (bits & (bits + 1)) == 0:
        return Mod(size, bits + 1)
    return FloorDiv(size, -bits) * -bits if bits < -1 and (-bits & (-bits - 1)) == 0 else None

"""Numbers in a graph of torch, which torch-mlir's importer does not know."""

from __future__ import annotations

import math
import operator

import sympy
import torch

from ..dialect.bindings import extras_module

__all__ = ["ON_NUMBERS", "known_number"]

fx_importer = extras_module("extras.fx_importer")

#: Operations on numbers for which the torch dialect has none; they are known by their own names.
ON_NUMBERS = {operator.pow, math.trunc, torch.sym_float, torch.sym_max, torch.sym_min, torch.sym_sqrt}


def known_number(node: torch.fx.Node) -> int | None:
    """What arithmetic of sizes gives where the sizes have turned out to be numbers."""
    if not fx_importer.is_builtin_function_or_method(node.target):
        return None
    value = node.meta.get("val")
    if isinstance(value, torch.SymInt) and isinstance(value.node.expr, sympy.Integer):
        return int(value.node.expr)
    return value if isinstance(value, int) else None

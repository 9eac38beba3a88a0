"""A kernel function's only product, and what is fused with it."""

from __future__ import annotations

from ....dialect.bindings import func
from ....dialect.functions import body_of
from ....dialect.traversal import nested_operations
from ...kernels.structure.match import MatchedGroup, find_group
from ...marks import CONTRACTION

__all__ = ["erase_group", "product_group"]


def product_group(function: func.FuncOp) -> MatchedGroup | None:
    """The only product of a function whose other linalg operations are fused with it."""
    block = body_of(function)
    found = [] if block is None else [op.operation for op in block.operations]
    every = [op for op in nested_operations(function.operation) if op.name == "linalg.generic"]
    products = [op for op in every if CONTRACTION in op.attributes]
    if len(products) != 1 or any(op not in found for op in every):
        return None
    group = find_group(products[0], found)
    members = [op for op in (group.fill, group.contraction, group.epilogue) if op is not None]
    return group if len(members) == len(every) else None


def erase_group(group: MatchedGroup) -> None:
    """Takes its operations away, the last one first."""
    for op in (group.epilogue, group.contraction, group.fill):
        if op is not None:
            op.erase()

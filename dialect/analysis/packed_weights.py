"""How the weights that a function takes are packed: what the ops that read them say, through what makes them wider."""

from __future__ import annotations

from typing import Any

from ..bindings import func, ir
from ..functions import body_of, full_argument_names, num_input
from ..ops import AsType, Dequantize, LookUp, QuantizedGroupedMatMul, QuantizedMatMul
from ..packed_layout import PackedLayout
from ..struct_info import TensorInfo

__all__ = ["packed_weights"]


def packed_weights(function: func.FuncOp) -> dict[str, PackedLayout]:
    """The layout of each weight that is packed, by name."""
    block, first = body_of(function), num_input(function)
    if block is None or first is None:
        return {}
    arguments = list(zip(full_argument_names(function), block.arguments, strict=True))[first:]
    found = {name: _layout(value) for name, value in arguments}
    return {name: layout for name, layout in found.items() if layout is not None}


def _layout(value: ir.Value) -> PackedLayout | None:
    """How a value is packed, as the first of its readers that says so has it; all have it so."""
    layouts = (_as_read(use.owner, value) for use in value.uses)
    return next((layout for layout in layouts if layout is not None), None)


def _as_read(op: Any, value: ir.Value) -> PackedLayout | None:
    if isinstance(op, AsType):
        return _layout(op.result)
    if isinstance(op, LookUp):
        return _layout(op.result) if op.codes == value else None
    if isinstance(op, Dequantize):
        layout = _layout(op.result)
        return layout if op.x == value or layout is None else _of_groups(value, layout)
    if getattr(op, "packed", None) is None:
        return None
    if getattr(op, op.packed) == value:
        return op.layout
    is_integer = isinstance(op, QuantizedMatMul | QuantizedGroupedMatMul)
    return _of_groups(value, op.layout) if is_integer and value in (op.scale, op.zero) else None


def _of_groups(value: ir.Value, layout: PackedLayout) -> PackedLayout | None:
    """How parameters of groups of rows are packed, in panels like those of the weight; None for others."""
    shape = TensorInfo.of(value).shape
    groups = PackedLayout(layout.tile)
    return groups if len(shape) == groups.rank and shape[-1] == layout.tile else None

"""Which ops follow an image into another order of its dimensions, and what they become: what their classes say of it."""

from __future__ import annotations

from collections.abc import Container
from typing import Any

from ...bindings import ir
from ...image_rules import CONVOLUTION, REDUCTION, Change
from ...op import is_elementwise, op_class
from ...struct_info import TensorInfo

__all__ = ["follows", "gives_image", "is_convolution", "moved_attributes"]


def is_convolution(op: ir.Operation | ir.OpView, layout: str) -> bool:
    """Whether an op is a convolution of an image in a layout."""
    cls = op_class(op)
    return cls is not None and cls.image is CONVOLUTION and op.opview.data_layout == layout


def follows(op: ir.Operation, images: Container[ir.Value]) -> bool:
    """Whether an op reads one of the images as one: what is broadcast to more dimensions is none."""
    found = [v for v in op.operands if v in images]
    if not found or not is_elementwise(op):
        return bool(found)
    rank = TensorInfo.of(op.results[0]).rank
    return any(TensorInfo.of(v).rank == rank for v in found)


def gives_image(op: ir.Operation) -> bool:
    """Whether results of an op that follows are in the new order; a reduction that drops dimensions leaves the others."""
    cls = op_class(op)
    return cls is None or cls.image is not REDUCTION or bool(op.opview.keepdims)


def moved_attributes(op: ir.OpView, change: Change) -> dict[str, Any] | None:
    """The attributes that change when an op's images go from one layout to another; None when it cannot read the other."""
    cls = op_class(op)
    if cls is None:
        return None
    if cls.elementwise:
        return {} if change.moves(TensorInfo.of(op.results[0]).rank) else None
    return None if cls.image is None else cls.image.moved(op, change)

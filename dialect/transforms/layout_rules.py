"""What ops become when the images they read are in another order of dimensions: an op in, its new attributes out."""

from __future__ import annotations

from typing import Any

from ..bindings import ir
from ..inference import normalize_axes, normalize_axis
from ..layouts import permutation
from ..op import attrs_of
from ..op_kinds import is_elementwise
from ..ops import (
    AdaptiveAvgPool2D,
    AvgPool2D,
    BatchNorm,
    Concat,
    Conv2D,
    CumSum,
    Flip,
    LogSoftmax,
    Max,
    MaxPool2D,
    Mean,
    Min,
    Pad,
    Prod,
    Repeat,
    Softmax,
    Split,
    StridedSlice,
    Sum,
    Variance,
)
from ..struct_info import TensorInfo

__all__ = ["moved_attributes"]

_POOLS = AdaptiveAvgPool2D | AvgPool2D | MaxPool2D
_ALONG_AXIS = BatchNorm | Concat | CumSum | Flip | LogSoftmax | Repeat | Softmax | Split
_REDUCTIONS = Max | Mean | Min | Prod | Sum | Variance
_RANK = 4
_KERNELS = {"NCHW": "OIHW", "NHWC": "HWIO"}


def moved_attributes(op: ir.OpView, source: str, target: str) -> dict[str, Any] | None:
    """The attributes that change when an op's images go from one layout to another; None when it cannot read the other."""
    order = permutation(source, target)
    if isinstance(op, Conv2D):
        return {"data_layout": target, "kernel_layout": _KERNELS[target]} if op.data_layout == source else None
    if isinstance(op, _POOLS):
        return {"layout": target} if op.layout == source else None
    if TensorInfo.of(op.operands[0]).rank != _RANK and not is_elementwise(op):
        return None
    if isinstance(op, _ALONG_AXIS):
        return {"axis": order.index(normalize_axis(op.axis, _RANK))}
    if isinstance(op, Pad):
        return {key: [attrs_of(op)[key][i] for i in order] for key in ("before", "after")}
    if isinstance(op, StridedSlice):
        return {"axes": [order.index(normalize_axis(a, _RANK)) for a in op.axes]}
    if isinstance(op, _REDUCTIONS):
        return _of_reduction(op, order)
    return {} if is_elementwise(op) and TensorInfo.of(op.results[0]).rank == _RANK else None


def _of_reduction(op: ir.OpView, order: list[int]) -> dict[str, Any] | None:
    """Of a result without the reduced dimensions, the others must be in the order that they had."""
    axes = normalize_axes(op.axis, _RANK)
    kept = [i for i in order if i not in axes]
    if not op.keepdims and kept != sorted(kept):
        return None
    return {"axis": sorted(order.index(a) for a in axes)}

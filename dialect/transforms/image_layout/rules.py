"""What ops become when the images they read are in another order of dimensions: an op in, its new attributes out.

An image of three dimensions has its lines one after another, or has one line: NCHW becomes NCW, NHWC becomes NWC.
"""

from __future__ import annotations

from collections.abc import Container
from dataclasses import dataclass
from typing import Any

from ...bindings import ir
from ...inference import normalize_axes, normalize_axis
from ...layouts import permutation
from ...op import attrs_of
from ...op_kinds import is_elementwise
from ...ops import (
    AdaptiveAvgPool2D,
    AvgPool2D,
    BatchNorm,
    Concat,
    Conv2D,
    CumSum,
    ExpandDims,
    Flip,
    LogSoftmax,
    Max,
    MaxPool2D,
    Mean,
    Min,
    Pad,
    Prod,
    Repeat,
    Reshape,
    Softmax,
    Split,
    Squeeze,
    StridedSlice,
    Sum,
    Variance,
)
from ...struct_info import TensorInfo, is_tensor
from ...symbolic import same

__all__ = ["Change", "follows", "gives_image", "moved_attributes"]

_POOLS = AdaptiveAvgPool2D | AvgPool2D | MaxPool2D
_ALONG_AXIS = BatchNorm | Concat | CumSum | Flip | LogSoftmax | Repeat | Softmax | Split
_REDUCTIONS = Max | Mean | Min | Prod | Sum | Variance
_RANK = 4
_KERNELS = {"NCHW": "OIHW", "NHWC": "HWIO"}


@dataclass(frozen=True)
class Change:
    """From one order of an image's dimensions to another.

    Attributes:
        source, target: both by letters.
    """

    source: str
    target: str

    def moves(self, rank: int) -> bool:
        """Whether tensors of that many dimensions can be images."""
        return rank in (_RANK - 1, _RANK)

    def letters(self, rank: int) -> tuple[str, str]:
        """The dimensions of an image of that rank before and after."""
        if rank == _RANK:
            return self.source, self.target
        return self.source.replace("H", ""), self.target.replace("H", "")

    def order(self, rank: int) -> list[int]:
        """The ``axes`` of the permutation of an image of that rank."""
        return permutation(*self.letters(rank))


def follows(op: ir.Operation, images: Container[ir.Value]) -> bool:
    """Whether an op reads one of the images as one: what is broadcast to more dimensions is none."""
    found = [v for v in op.operands if v in images]
    if not found or not is_elementwise(op):
        return bool(found)
    rank = TensorInfo.of(op.results[0]).rank
    return any(TensorInfo.of(v).rank == rank for v in found)


def gives_image(op: ir.Operation) -> bool:
    """Whether results of an op that follows are in the new order; a reduction that drops dimensions leaves the others."""
    return not isinstance(op.opview, _REDUCTIONS) or bool(op.opview.keepdims)


def moved_attributes(op: ir.OpView, change: Change) -> dict[str, Any] | None:
    """The attributes that change when an op's images go from one layout to another; None when it cannot read the other."""
    source, target = change.source, change.target
    if isinstance(op, Conv2D):
        return {"data_layout": target, "kernel_layout": _KERNELS[target]} if op.data_layout == source else None
    if isinstance(op, _POOLS):
        return {"layout": target} if op.layout == source else None
    if not len(op.results) or not is_tensor(op.results[0]):
        return None
    if is_elementwise(op):
        return {} if change.moves(TensorInfo.of(op.results[0]).rank) else None
    rank = TensorInfo.of(op.operands[0]).rank if len(op.operands) and is_tensor(op.operands[0]) else 0
    if not change.moves(rank):
        return None
    if isinstance(op, Squeeze | ExpandDims | Reshape):
        return _of_lines(op, change)
    order = change.order(rank)
    if isinstance(op, _ALONG_AXIS):
        return {"axis": order.index(normalize_axis(op.axis, rank))}
    if isinstance(op, Pad):
        return {key: [attrs_of(op)[key][i] for i in order] for key in ("before", "after")}
    if isinstance(op, StridedSlice):
        return {"axes": [order.index(normalize_axis(a, rank)) for a in op.axes]}
    return _of_reduction(op, order) if isinstance(op, _REDUCTIONS) else None


def _of_reduction(op: ir.OpView, order: list[int]) -> dict[str, Any] | None:
    """Of a result without the reduced dimensions, the others must be in the order that they had."""
    axes = normalize_axes(op.axis, len(order))
    kept = [i for i in order if i not in axes]
    if not op.keepdims and kept != sorted(kept):
        return None
    return {"axis": sorted(order.index(a) for a in axes)}


def _of_lines(op: ir.OpView, change: Change) -> dict[str, Any] | None:
    """Of what puts an image's lines one after another, or takes them apart."""
    before, after = TensorInfo.of(op.operands[0]), TensorInfo.of(op.results[0])
    if {before.rank, after.rank} != {_RANK - 1, _RANK}:
        return None
    if isinstance(op, Reshape):
        rows = [info.shape[change.letters(info.rank)[0].index(letter)] for letter in "NC" for info in (before, after)]
        return {} if same(rows[0], rows[1]) and same(rows[2], rows[3]) else None
    axes = None if op.axis is None else normalize_axes(op.axis, _RANK)
    if axes is None or len(axes) != 1 or change.source[axes[0]] not in "HW":
        return None
    return {"axis": [change.target.index(change.source[axes[0]])]}

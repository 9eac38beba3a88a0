"""Which ops compute on a narrow float: those that always do, those that follow what they read, and all others never.

After TVM's ToMixedPrecision and PyTorch's autocast. An op that follows adds at most one rounding to what it computes in f32, or
none where it only moves or compares elements.
"""

from __future__ import annotations

from ...bindings import ir
from ...op import op_class
from ...ops import (
    Abs,
    Add,
    Attention,
    BroadcastTo,
    Clip,
    Concat,
    Conv2D,
    Divide,
    ExpandDims,
    Flip,
    GatherElements,
    GatherND,
    Gelu,
    GeluTanh,
    HardSwish,
    LeakyRelu,
    MatMul,
    Max,
    Maximum,
    MaxPool2D,
    Min,
    Minimum,
    Multiply,
    Negative,
    Pad,
    PermuteDims,
    Relu,
    Repeat,
    Reshape,
    Sigmoid,
    Silu,
    Split,
    Squeeze,
    StridedSlice,
    Subtract,
    Take,
    Tanh,
    Tile,
    ToVDevice,
    Where,
)

__all__ = ["always_narrow", "follows", "has_out_dtype"]

_ALWAYS = (Attention, Conv2D, MatMul)
_FOLLOW = frozenset({
    Abs, Add, BroadcastTo, Clip, Concat, Divide, ExpandDims, Flip, GatherElements, GatherND, Gelu, GeluTanh, HardSwish,
    LeakyRelu, Max, MaxPool2D, Maximum, Min, Minimum, Multiply, Negative, Pad, PermuteDims, Relu, Repeat, Reshape, Sigmoid,
    Silu, Split, Squeeze, StridedSlice, Subtract, Take, Tanh, Tile, ToVDevice, Where,
})  # fmt: skip


def always_narrow(op: ir.Operation) -> bool:
    """Whether an op is one of those that are worth a cast of what they read."""
    return isinstance(op.opview, _ALWAYS)


def has_out_dtype(op: ir.Operation) -> bool:
    """Whether an op can return its f32 sums though it reads a narrower dtype."""
    return isinstance(op.opview, Conv2D | MatMul)


def follows(op: ir.Operation) -> bool:
    """Whether an op computes on the narrow dtype when everything it reads at run time is of it."""
    return op_class(op) in _FOLLOW

"""The rewrites of ``relax-canonicalize``: each a function named by what it does, tried on ops of one class.

A value only takes another's place when their types are equal, encodings included.
"""

from __future__ import annotations

import math
from typing import Any

from ...analysis.lossless import is_lossless
from ...bindings import ir
from ...inference import normalize_axes, normalize_axis
from ...op import EffectOp, attrs_of
from ...op_sizes import op_sizes
from ...ops import (
    Abs,
    AsType,
    BitwiseNot,
    BroadcastTo,
    Conv2D,
    Dequantize,
    ExpandDims,
    Flip,
    LogicalNot,
    MatchCast,
    Maximum,
    Minimum,
    Negative,
    Pad,
    PermuteDims,
    Quantize,
    Relu,
    Repeat,
    Reshape,
    Split,
    Squeeze,
    StridedSlice,
    Tile,
    ToVDevice,
    Where,
)
from ...passes.rewriting import Patterns, Rewriter
from ...struct_info import TensorInfo, vdevice_of

__all__ = ["PATTERNS"]

# What a convolution may have.
_LARGEST_PADDING = 2**31 - 1


def _replace(op: Any, rewriter: Rewriter, value: ir.Value) -> bool:
    """Replaces a one-result op by a value, if the types are equal and the op refuses no sizes."""
    return value.type == op.results[0].type and _takes_all_sizes(op) and rewriter.replace(op, [value])


def _producer(op: Any, kind: type[EffectOp]) -> Any | None:
    """The op of that class that makes the first operand and refuses no sizes, None when something else does."""
    owner = op.operands[0].owner
    return owner if isinstance(owner, kind) and _takes_all_sizes(owner) else None


def _takes_all_sizes(op: EffectOp) -> bool:
    """Whether types prove all that an op needs of sizes: what else it refuses goes on to be refused."""
    sizes = op_sizes(op)
    return not sizes.unproven and all(r.decided() for r in sizes.relations)


def _rebuild(op: Any, rewriter: Rewriter, operand: ir.Value, **attrs: Any) -> bool:
    """Replaces an op by one of its class that reads another operand; the result type stays."""
    with rewriter.before(op):
        return rewriter.replace(op, type(op).create(operand, result_types=[op.results[0].type], **attrs))


def _axes(op: Any) -> list[int]:
    """The permutation of a permute_dims, defaults filled in."""
    rank, axes = TensorInfo.of(op.operands[0]).rank, op.axes
    return list(range(rank))[::-1] if axes is None else [normalize_axis(a, rank) for a in axes]


def drop_identity_permute(op: PermuteDims, rewriter: Rewriter) -> bool:
    axes = _axes(op)
    return axes == sorted(axes) and _replace(op, rewriter, op.operands[0])


def merge_permutes(op: PermuteDims, rewriter: Rewriter) -> bool:
    inner = _producer(op, PermuteDims)
    if inner is None:
        return False
    first = _axes(inner)
    return _rebuild(op, rewriter, inner.operands[0], axes=[first[a] for a in _axes(op)])


def _is_known(value: ir.Value) -> bool:
    """Whether every dimension is a number or an expression: two values of one such type have one shape."""
    return None not in TensorInfo.of(value).shape


def drop_if_type_stays(op: Any, rewriter: Rewriter) -> bool:
    """For ops that do nothing exactly when the type stays: squeeze, expand_dims, astype, match_cast."""
    return _replace(op, rewriter, op.operands[0])


def drop_if_shape_stays(op: Any, rewriter: Rewriter) -> bool:
    """For ops that do nothing exactly when the shape stays: reshape, broadcast_to."""
    return _is_known(op.operands[0]) and _replace(op, rewriter, op.operands[0])


def merge_into_reshape(op: Reshape, rewriter: Rewriter) -> bool:
    inner = _producer(op, Reshape) or _producer(op, ExpandDims) or _producer(op, Squeeze)
    return inner is not None and _rebuild(op, rewriter, inner.operands[0])


def merge_broadcasts(op: BroadcastTo, rewriter: Rewriter) -> bool:
    inner = _producer(op, BroadcastTo)
    return inner is not None and _rebuild(op, rewriter, inner.operands[0])


def drop_squeeze_of_expand(op: Squeeze, rewriter: Rewriter) -> bool:
    inner = _producer(op, ExpandDims)
    if inner is None or op.axis is None:
        return False
    rank = TensorInfo.of(op.operands[0]).rank
    same = normalize_axes(op.axis, rank) == normalize_axes(inner.axis, rank)
    return same and _replace(op, rewriter, inner.operands[0])


def drop_expand_of_squeeze(op: ExpandDims, rewriter: Rewriter) -> bool:
    inner = _producer(op, Squeeze)
    if inner is None:
        return False
    shape = TensorInfo.of(inner.operands[0]).shape
    gone = [i for i, d in enumerate(shape) if d == 1] if inner.axis is None else normalize_axes(inner.axis, len(shape))
    same = normalize_axes(op.axis, len(shape)) == gone if len(shape) == TensorInfo.of(op.results[0]).rank else False
    return same and _replace(op, rewriter, inner.operands[0])


def merge_casts(op: AsType, rewriter: Rewriter) -> bool:
    """``astype(astype(x, wide), t)`` is ``astype(x, t)`` when every value of x's dtype is one of the wide dtype."""
    inner = _producer(op, AsType)
    if inner is None:
        return False
    source, wide, target = (TensorInfo.of(v).dtype for v in (inner.operands[0], op.operands[0], op.results[0]))
    return is_lossless(source, wide, target) and _rebuild(op, rewriter, inner.operands[0], dtype=op.dtype)


def drop_double_inverse(op: Any, rewriter: Rewriter) -> bool:
    """``f(f(x))`` is ``x``: negative, bitwise_not, and logical_not of a truth value (of others the type changes)."""
    inner = _producer(op, type(op))
    return inner is not None and _replace(op, rewriter, inner.operands[0])


def drop_second(op: Any, rewriter: Rewriter) -> bool:
    """``f(f(x))`` is ``f(x)``: abs, relu."""
    inner = _producer(op, type(op))
    return inner is not None and _replace(op, rewriter, inner.results[0])


def drop_sign_under_abs(op: Abs, rewriter: Rewriter) -> bool:
    inner = _producer(op, Negative)
    return inner is not None and _rebuild(op, rewriter, inner.operands[0])


def drop_if_operands_equal(op: Any, rewriter: Rewriter) -> bool:
    """``f(x, x)`` is ``x``: maximum, minimum."""
    return op.operands[0] == op.operands[1] and _replace(op, rewriter, op.operands[0])


def drop_where_of_equal(op: Where, rewriter: Rewriter) -> bool:
    same = op.operands[1] == op.operands[2] and _is_known(op.operands[1])
    return same and _replace(op, rewriter, op.operands[1])


def drop_double_flip(op: Flip, rewriter: Rewriter) -> bool:
    inner = _producer(op, Flip)
    if inner is None:
        return False
    rank = TensorInfo.of(op.operands[0]).rank
    same = normalize_axis(op.axis, rank) == normalize_axis(inner.axis, rank)
    return same and _replace(op, rewriter, inner.operands[0])


def drop_single_repeat(op: Repeat, rewriter: Rewriter) -> bool:
    return op.repeats == 1 and _replace(op, rewriter, op.operands[0])


def drop_single_tile(op: Tile, rewriter: Rewriter) -> bool:
    return all(r == 1 for r in op.repeats) and _replace(op, rewriter, op.operands[0])


def drop_split_into_one(op: Split, rewriter: Rewriter) -> bool:
    return len(op.results) == 1 and _replace(op, rewriter, op.operands[0])


def drop_full_slice(op: StridedSlice, rewriter: Rewriter) -> bool:
    """A slice of unit steps is the operand when its length is: bounds are limited to the dimension."""
    whole = _is_known(op.operands[0]) and all(s == 1 for s in attrs_of(op)["strides"] or ())
    return whole and _replace(op, rewriter, op.operands[0])


def drop_copy_to_same_device(op: ToVDevice, rewriter: Rewriter) -> bool:
    return vdevice_of(op.operands[0]) == op.vdevice and _replace(op, rewriter, op.operands[0])


#: Ops that only place elements elsewhere, and how many bits integers have whose multiples of an f32 are told apart.
_PLACES, _TOLD_APART = (ExpandDims, PermuteDims, Reshape, Squeeze), 16


def drop_quantize_of_dequantize(op: Quantize, rewriter: Rewriter) -> bool:
    """Integers that become multiples of a scale, are moved, and become integers again by the same one, are moved as they are.

    Not where multiples overflow, or the scale is 0: integers are not told apart there.
    """
    moves, value = list[EffectOp](), op.x
    while isinstance(value.owner, _PLACES):
        moves.append(value.owner)
        value = value.owner.operands[0]
    source = value.owner
    if not isinstance(source, Dequantize) or not _undoes(op, source):
        return False
    with rewriter.before(op):
        moved = source.x
        for move in reversed(moves):
            info = TensorInfo.of(move.results[0]).with_(dtype=TensorInfo.of(source.x).dtype)
            moved = type(move).create(moved, result_types=[info.type], **attrs_of(move)).results[0]
        return moved.type == op.result.type and rewriter.replace(op, [moved])


def merge_pad_into_convolution(op: Conv2D, rewriter: Rewriter) -> bool:
    """Zeros around an image are what a convolution has there itself."""
    pad = _producer(op, Pad)
    if pad is None or pad.value != 0 or math.copysign(1, pad.value) < 0:
        return False
    height, width = (op.data_layout.index(letter) for letter in "HW")
    around = list(zip(pad.before, pad.after, strict=True))
    if any(amounts != (0, 0) for axis, amounts in enumerate(around) if axis not in (height, width)):
        return False
    more = (pad.before[height], pad.before[width], pad.after[height], pad.after[width])
    attrs = {name: value for name, value in attrs_of(op).items() if name in op.attributes}
    attrs["padding"] = [p + q for p, q in zip(op.padding, more, strict=True)]
    if max(attrs["padding"]) > _LARGEST_PADDING:
        return False
    with rewriter.before(op):
        made = Conv2D.create(pad.x, op.operands[1], result_types=[op.results[0].type], **attrs)
    return rewriter.replace(op, made)


def _undoes(op: Quantize, source: Dequantize) -> bool:
    """Whether integers come out again: by the same scalars, in floats that tell them apart."""
    same = (op.scale, op.zero_point) == (source.scale, source.zero_point) and not TensorInfo.of(op.scale).rank
    stored, real = TensorInfo.of(source.x).dtype, TensorInfo.of(source.result).dtype
    exact = isinstance(real, ir.F32Type) and ir.IntegerType(stored).width <= _TOLD_APART
    return same and exact and not TensorInfo.of(op.zero_point).rank and TensorInfo.of(op.result).dtype == stored


#: Those of one class are tried in this order.
PATTERNS: Patterns = [
    (PermuteDims, drop_identity_permute),
    (PermuteDims, merge_permutes),
    (Quantize, drop_quantize_of_dequantize),
    (Conv2D, merge_pad_into_convolution),
    *((kind, drop_if_type_stays) for kind in (Squeeze, ExpandDims, AsType, MatchCast)),
    *((kind, drop_if_shape_stays) for kind in (Reshape, BroadcastTo)),
    (Reshape, merge_into_reshape),
    (BroadcastTo, merge_broadcasts),
    (Squeeze, drop_squeeze_of_expand),
    (ExpandDims, drop_expand_of_squeeze),
    (AsType, merge_casts),
    *((kind, drop_double_inverse) for kind in (Negative, BitwiseNot, LogicalNot)),
    *((kind, drop_second) for kind in (Abs, Relu)),
    (Abs, drop_sign_under_abs),
    *((kind, drop_if_operands_equal) for kind in (Maximum, Minimum)),
    (Where, drop_where_of_equal),
    (Flip, drop_double_flip),
    (Repeat, drop_single_repeat),
    (Tile, drop_single_tile),
    (Split, drop_split_into_one),
    (StridedSlice, drop_full_slice),
    (ToVDevice, drop_copy_to_same_device),
]

"""ONNX operators that change shape or order, and sizes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from ....dialect import ops
from ....dialect.bindings import ir
from ....dialect.errors import RelaxError
from ....dialect.inference import boolean
from ....dialect.symbolic import Dim, Expr
from ....weights.onnx_tensors import dense_tensor, tensor_array
from ...emit import (
    alike,
    cast,
    concat,
    cut,
    emit,
    expand,
    full,
    info_of,
    integer,
    multiply_all,
    permute,
    require_different,
    reshape,
    sequence,
    slice_axis,
    squeeze,
    tile,
    unsqueeze,
)  # fmt: skip
from ...padding import padded_by_edges, padded_by_number
from ..caches import grown
from ..equal_sizes import expanded_to, with_one
from ..node import Node, handles
from ..size_expressions import OTHER_RANK
from ..tensors import element_dtype
from ..values import known_value, numbers_array, relax_dtype, require_places

#: The most elements that are known one by one.
_MOST_FILLED = 1024


@handles("Shape")
def _shape(node: Node) -> Any:
    shape = node.operand(0).shape
    rank = len(shape)
    start, end = node.attribute("start", 0), node.attribute("end", rank)
    first, last = (min(max(v + rank if v < 0 else v, 0), rank) for v in (start, end))
    if any(d is None for d in shape[first:last]):
        raise RelaxError("expected sizes that are known or symbolic")
    return known_value(node.outputs[0], numbers_array(shape[first:last]), integer())


@handles("Size")
def _size(node: Node) -> Any:
    count = multiply_all(node.operand(0).shape)
    if count is None:
        raise RelaxError("expected sizes that are known or symbolic")
    return known_value(node.outputs[0], numbers_array([count], ()), integer())


@handles("Constant")
def _constant(node: Node) -> Any:
    for name, value in node.attributes.items():
        if name == "value":
            return node.scope.conversion.weights.constant(node.scope.prefix + node.outputs[0], value)
        if name == "sparse_value":
            return node.scope.conversion.weights.constant(node.scope.prefix + node.outputs[0], dense_tensor(value))
        if name in ("value_float", "value_floats"):
            return np.array(value, np.float32)
        if name in ("value_int", "value_ints"):
            return np.array(value, np.int64)
    raise RelaxError(f"expected a constant tensor of numbers, got {', '.join(node.attributes) or 'nothing'}")


@handles("ConstantOfShape")
def _constant_of_shape(node: Node) -> Any:
    """Small ones are numbers: shapes are made of them."""
    value = node.attribute("value")
    array = np.zeros(1, np.float32) if value is None else tensor_array(value)
    if array.size != 1:
        raise RelaxError(f"expected one number as value, got {array.size}")
    shape = node.numbers(0)
    if all(isinstance(d, int) for d in shape) and math.prod(shape) <= _MOST_FILLED:
        return np.broadcast_to(array.reshape(()), shape).copy()
    return full(array.reshape(-1)[0].item(), relax_dtype(array.dtype), shape)


@handles("Reshape")
def _reshape(node: Node) -> ir.Value:
    shape = node.listed("shape", 1)
    assert shape is not None
    before = node.operand(0).shape
    if not node.attribute("allowzero", 0):
        shape = [before[i] if isinstance(s, int) and s == 0 and i < len(before) else s for i, s in enumerate(shape)]
    return reshape(node.tensor(0), completed(before, shape))


def completed(before: Sequence[Dim], shape: Sequence[Dim]) -> list[Dim]:
    """The shape with its -1 replaced by what the number of elements leaves."""
    holes = [i for i, d in enumerate(shape) if isinstance(d, int) and d == -1]
    if not holes:
        return list(shape)
    if len(holes) > 1:
        raise RelaxError(f"expected at most one size of -1, got {list(shape)}")
    known = [d for i, d in enumerate(shape) if i != holes[0]]
    total, rest = multiply_all(_uncommon(before, known)), multiply_all(_uncommon(known, before))
    if total is None or rest is None:
        raise RelaxError("expected sizes that are known or symbolic beside -1")
    if isinstance(rest, int) and rest == 0:
        raise RelaxError("expected sizes other than 0 beside -1")
    missing = total // rest
    return [missing if i == holes[0] else d for i, d in enumerate(shape)]


def _uncommon(dims: Sequence[Dim], others: Sequence[Dim]) -> list[Dim]:
    """The sizes without those symbolic ones that are among the others, too: a quotient of both need not name them."""
    left = list(others)
    found: list[Dim] = []
    for dim in dims:
        if isinstance(dim, Expr) and dim in left:
            left.remove(dim)
        else:
            found.append(dim)
    return found


@handles("Flatten")
def _flatten(node: Node) -> ir.Value:
    shape = node.operand(0).shape
    axis = node.attribute("axis", 1)
    axis = axis + len(shape) if axis < 0 else axis
    return reshape(node.tensor(0), (multiply_all(shape[:axis]), multiply_all(shape[axis:])))


@handles("Squeeze")
def _squeeze(node: Node) -> ir.Value:
    """A size that a call tells is taken to be 1, as that of ``x[k : k + 1]``, which tf2onnx writes for ``x[k]``."""
    axes = node.listed("axes", 1)
    shape = node.operand(0).shape
    if axes is None:
        for size in (d for d in shape if isinstance(d, Expr)):
            require_different(size, 1, f"expected {size} other than 1, {OTHER_RANK}")
    given = [i for i, d in enumerate(shape) if d == 1] if axes is None else node.axes(axes, len(shape))
    return squeeze(with_one(node.tensor(0), *sorted(given)), *sorted(given))


@handles("Unsqueeze")
def _unsqueeze(node: Node) -> ir.Value:
    axes = node.listed("axes", 1) or []
    return unsqueeze(node.tensor(0), *sorted(node.axes(axes, node.rank(0) + len(axes))))


@handles("Transpose")
def _transpose(node: Node) -> ir.Value:
    axes = node.attribute("perm")
    rank = node.rank(0)
    return permute(node.tensor(0), list(range(rank))[::-1] if axes is None else node.axes(axes, rank))


@handles("Concat")
def _concat(node: Node) -> ir.Value:
    """New tokens behind those of a cache, or anything else."""
    axis = node.axis(None, node.rank(0))
    if len(node.operands) == 2:
        return grown(node.operand(0), node.tensor(1), axis)
    return concat(alike(node.tensors(), axis), axis)


@handles("Split")
def _split(node: Node) -> list[ir.Value]:
    x, axis = node.tensor(0), node.axis(0, node.rank(0))
    sizes = node.listed("split", 1)
    if sizes is None:
        count = node.attribute("num_outputs", len(node.outputs))
        size = node.size(0, axis)
        if not isinstance(size, int):
            part = (size + count - 1) // count
            sizes = [part] * (count - 1) + [size - part * (count - 1)]
        else:
            part = -(-size // count)
            sizes = [max(min(part, size - part * i), 0) for i in range(count)]
    return cut(x, axis, sizes)


@handles("Expand")
def _expand(node: Node) -> ir.Value:
    return expanded_to(node.tensor(0), node.numbers(1))


@handles("Tile")
def _tile(node: Node) -> ir.Value:
    x, repeats = node.tensor(0), node.numbers(1)
    return tile(x, repeats)


@handles("Pad")
def _pad(node: Node) -> ir.Value:
    """Amounts of all axes, or of those that the last operand lists; negative ones take away."""
    mode, amounts = node.attribute("mode", "constant"), node.listed("pads", 1)
    assert amounts is not None
    rank = node.rank(0)
    axes = node.axes(node.numbers(3) if node.has(3) else None, rank)
    pads = list(zip(axes, amounts, amounts[len(axes) :], strict=False))
    x = node.tensor(0)
    if mode == "constant" and node.has(2) and node.operand(2).known is None and node.operand(2).load is None:
        return _padded_by_element(x, pads, reshape(node.tensor(2), ()))
    value = node.attribute("value", 0.0) if node.version < 11 else node.number(2, 0)
    return _padded(x, pads, mode, value)


def _padded(x: ir.Value, pads: Sequence[tuple[int, Any, Any]], mode: str, value: Any) -> ir.Value:
    for axis, before, after in pads:
        x = padded(x, axis, before, after, mode, value)
    return x


def _padded_by_element(x: ir.Value, pads: Sequence[tuple[int, Any, Any]], value: ir.Value) -> ir.Value:
    """By a number that is computed: ones, padded by zeros, say where it is not."""
    inside = _padded(full(1, integer(8), info_of(x).shape), pads, "constant", 0)
    return emit(ops.Where, cast(inside, boolean()), _padded(x, pads, "constant", 0), value)


def padded(x: ir.Value, axis: int, before: Any, after: Any, mode: str, value: Any = 0) -> ir.Value:
    """A dimension with more elements, or fewer, at its ends: a number, or elements of the tensor itself."""
    if mode not in _MODES:
        raise RelaxError(f"expected a mode among {', '.join(_MODES)}, got '{mode}'")
    lost = [min(n, 0) if isinstance(n, int) else 0 for n in (before, after)]
    before, after = before - lost[0], after - lost[1]
    if any(lost):
        size = info_of(x).shape[axis]
        if size is None:
            raise RelaxError("expected to crop a dimension whose size is known or symbolic")
        x = slice_axis(x, axis, -lost[0], size + lost[1])
    if not before and not after:
        return x
    if mode == "constant":
        return _padded_by_number(x, axis, before, after, value)
    size = info_of(x).shape[axis]
    if not isinstance(size, int) or not isinstance(before, int) or not isinstance(after, int):
        return padded_by_edges(x, axis, before, after, _MODES[mode])
    require_places(size + before + after)
    how: Any = {"mode": mode}
    places = np.pad(np.arange(size), (before, after), **how)
    return emit(ops.Take, x, known_value("places", places.astype(np.int64)).value, axis=axis)


def _padded_by_number(x: ir.Value, axis: int, before: Any, after: Any, value: Any) -> ir.Value:
    if not isinstance(before, int) or not isinstance(after, int):
        return padded_by_number(x, axis, before, after, value)
    amounts = [[n if a == axis else 0 for a in range(info_of(x).rank)] for n in (before, after)]
    return emit(ops.Pad, x, before=amounts[0], after=amounts[1], value=value)


#: What PyTorch calls them.
_MODES = {"constant": "constant", "reflect": "reflect", "edge": "replicate", "wrap": "circular"}


@handles("DepthToSpace")
def _depth_to_space(node: Node) -> ir.Value:
    block = node.attribute("blocksize")
    n, c, h, w = (node.size(0, i) for i in range(4))
    part = c // (block * block)
    if node.attribute("mode", "DCR") == "DCR":
        apart, axes = (n, block, block, part, h, w), [0, 3, 4, 1, 5, 2]
    else:
        apart, axes = (n, part, block, block, h, w), [0, 1, 4, 2, 5, 3]
    return reshape(permute(reshape(node.tensor(0), apart), axes), (n, part, h * block, w * block))


@handles("SpaceToDepth")
def _space_to_depth(node: Node) -> ir.Value:
    block = node.attribute("blocksize")
    n, c, h, w = (node.size(0, i) for i in range(4))
    apart = reshape(node.tensor(0), (n, c, h // block, block, w // block, block))
    axes = [0, 3, 5, 1, 2, 4] if node.attribute("mode", "DCR") == "DCR" else [0, 1, 3, 5, 2, 4]
    return reshape(permute(apart, axes), (n, c * block * block, h // block, w // block))


@handles("Trilu", "com.microsoft.Trilu")
def _trilu(node: Node) -> ir.Value:
    """Which diagonal it is may be known, a size, or computed."""
    x, is_upper = node.tensor(0), bool(node.attribute("upper", 1))
    known = node.operand(1).known if node.has(1) else np.zeros((), np.int64)
    if known is None or known.dtype == object:
        return _triangle(x, reshape(cast(node.tensor(1), integer()), ()), is_upper)
    k = min(max(int(known.reshape(-1)[0]), -(2**31)), 2**31 - 1)
    return emit(ops.Triu if is_upper else ops.Tril, x, k=k)


def _triangle(x: ir.Value, k: ir.Value, is_upper: bool) -> ir.Value:
    rows, columns = (sequence(0, size) for size in info_of(x).shape[-2:])
    diagonal = emit(ops.Subtract, unsqueeze(columns, 0), unsqueeze(rows, 1))
    kept = emit(ops.GreaterEqual if is_upper else ops.LessEqual, diagonal, k)
    return emit(ops.Where, kept, x, full(0, info_of(x).dtype))


@handles("EyeLike")
def _eye_like(node: Node) -> ir.Value:
    dtype = element_dtype(node.attribute("dtype")) if "dtype" in node.attributes else node.dtype()
    k = node.attribute("k", 0)
    rows, columns = (sequence(0, node.size(0, i), 1) for i in range(2))
    return cast(emit(ops.Equal, emit(ops.Add, unsqueeze(rows, 1), full(k, integer())), unsqueeze(columns, 0)), dtype)


@handles("com.microsoft.ExpandDims")
def _expand_dims(node: Node) -> ir.Value:
    return unsqueeze(node.tensor(0), *node.axes([node.number(1)], node.rank(0) + 1))


@handles("Range", "com.microsoft.Range")
def _range(node: Node) -> ir.Value:
    start, end, step = (node.number(i) for i in range(3))
    if not isinstance(step, int):
        raise RelaxError(f"expected a range of integers where its bounds are symbolic, got step {step}")
    return sequence(start, end, step, node.dtype())


@handles("CenterCropPad")
def _center_crop_pad(node: Node) -> ir.Value:
    """Source: https://onnx.ai/onnx/operators/onnx__CenterCropPad.html."""
    x, wanted = node.tensor(0), node.numbers(1)
    for axis, size in zip(node.axes(node.attribute("axes"), node.rank(0)), wanted, strict=True):
        had = info_of(x).shape[axis]
        if not isinstance(had, int) or not isinstance(size, int):
            raise RelaxError("expected dimensions of known sizes")
        if size < had:
            begin = (had - size) // 2
            x = slice_axis(x, axis, begin, begin + size)
        else:
            before = (size - had) // 2
            x = padded(x, axis, before, size - had - before, "constant", 0)
    return x


@handles("ReverseSequence")
def _reverse_sequence(node: Node) -> ir.Value:
    """Of each row its first elements backwards: element ``i`` is that at ``length - 1 - i`` where ``i < length``."""
    time, batch = node.axis(0, 2, "time_axis"), node.axis(1, 2, "batch_axis")
    x, lengths = node.tensor(0), cast(node.tensor(1), integer())
    shape = info_of(x).shape
    places = sequence(0, node.size(0, time), 1)
    length, place = unsqueeze(lengths, time), unsqueeze(places, batch)
    mirrored = emit(ops.Subtract, emit(ops.Subtract, length, full(1, integer())), place)
    index = emit(ops.Where, emit(ops.Less, place, length), mirrored, place)
    for axis in range(2, len(shape)):
        index = unsqueeze(index, axis)
    return emit(ops.GatherElements, x, expand(index, shape), axis=time)

"""torch ops that change shape or order and compute nothing."""

from __future__ import annotations

from ...dialect import ops
from ...dialect.bindings import ir
from ...dialect.errors import RelaxError
from ...dialect.inference import normalize_axis
from ...dialect.symbolic import Dim, Expr
from ..emit import (
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
    reshape,
    sequence,
    slice_axis,
    squeeze,
    tile,
    unsqueeze,
)
from ..ranges import at_least, at_most
from ..torch_op import TorchOp, handles


def sizes(op: TorchOp, index: int) -> tuple[Dim, ...]:
    """An operand that is a list of sizes; one -1 may stand for what torch declares at that place of the result."""
    found = op.number(index, [])
    declared = op.info.shape
    if len(found) != len(declared):
        raise RelaxError(f"expected {len(declared)} sizes, got {len(found)}")
    return tuple(d if isinstance(s, int) and s == -1 else s for s, d in zip(found, declared, strict=True))


@handles("aten.view", "aten.reshape", "aten._unsafe_view", "aten._reshape_alias")
def _view(op: TorchOp) -> ir.Value:
    x = op.tensor(0)
    return reshape(x, _without_unknown(sizes(op, 1), multiply_all(info_of(x).shape)))


def _without_unknown(shape: tuple[Dim, ...], count: Dim) -> tuple[Dim, ...]:
    """Fills the one size that is still unknown from the number of elements."""
    unknown = [i for i, d in enumerate(shape) if d is None]
    rest = multiply_all([d for d in shape if d is not None])
    if len(unknown) != 1 or count is None or rest is None or rest == 0:
        return shape
    return tuple(count // rest if d is None else d for d in shape)


@handles("aten.flatten.using_ints")
def _flatten(op: TorchOp) -> ir.Value:
    x = op.tensor(0)
    shape = info_of(x).shape
    if not shape:
        return reshape(x, (1,))
    first, last = (normalize_axis(op.integer(i, "axis", d), len(shape)) for i, d in ((1, 0), (2, -1)))
    return reshape(x, (*shape[:first], multiply_all(shape[first : last + 1]), *shape[last + 1 :]))


@handles("aten.unflatten.int")
def _unflatten(op: TorchOp) -> ir.Value:
    x, parts = op.tensor(0), op.number(2)
    shape = info_of(x).shape
    axis = op.axis(1, len(shape))
    filled = _without_unknown(tuple(None if p == -1 else p for p in parts), shape[axis])
    return reshape(x, (*shape[:axis], *filled, *shape[axis + 1 :]))


@handles("aten.unsqueeze")
def _unsqueeze(op: TorchOp) -> ir.Value:
    x = op.tensor(0)
    return unsqueeze(x, op.axis(1, info_of(x).rank + 1))


@handles("aten.squeeze", "aten.squeeze.dim", "aten.squeeze.dims")
def _squeeze(op: TorchOp) -> ir.Value:
    """torch leaves a dimension alone that is not of size one."""
    x = op.tensor(0)
    shape = info_of(x).shape
    wanted = op.number(1)
    axes = range(len(shape)) if wanted is None else [wanted] if isinstance(wanted, int) else wanted
    return squeeze(x, *sorted({normalize_axis(a, max(len(shape), 1)) for a in axes if shape and shape[a] == 1}))


@handles("aten.expand", "aten.broadcast_to")
def _expand(op: TorchOp) -> ir.Value:
    return expand(op.tensor(0), sizes(op, 1))


@handles("aten.expand_as")
def _expand_as(op: TorchOp) -> ir.Value:
    return expand(op.tensor(0), info_of(op.tensor(1)).shape)


@handles("aten.permute")
def _permute(op: TorchOp) -> ir.Value:
    x = op.tensor(0)
    return permute(x, [normalize_axis(a, info_of(x).rank) for a in op.number(1)])


@handles("aten.transpose.int", "aten.t", "aten.numpy_T", "aten.mT")
def _transpose(op: TorchOp) -> ir.Value:
    x = op.tensor(0)
    rank = info_of(x).rank
    axes = list(range(rank))
    if op.key == "aten.numpy_T":
        return permute(x, axes[::-1])
    if rank < 2:
        return x
    first, second = (op.axis(1, rank), op.axis(2, rank)) if op.key == "aten.transpose.int" else (rank - 2, rank - 1)
    axes[first], axes[second] = axes[second], axes[first]
    return permute(x, axes)


@handles("aten.movedim.int")
def _movedim(op: TorchOp) -> ir.Value:
    x = op.tensor(0)
    rank = info_of(x).rank
    source, target = op.axis(1, rank), op.axis(2, rank)
    axes = [a for a in range(rank) if a != source]
    axes.insert(target, source)
    return permute(x, axes)


@handles("aten.cat")
def _cat(op: TorchOp) -> ir.Value:
    """A one-dimensional tensor of no elements fits everywhere in torch, and adds nothing."""
    parts = [cast(p, op.dtype) for p in op.tensors(0)]
    kept = [p for p in parts if info_of(p).shape != (0,)] or parts[:1]
    axis = op.axis(1, info_of(kept[0]).rank)
    return concat(alike(kept, axis), axis)


@handles("aten.stack")
def _stack(op: TorchOp) -> ir.Value:
    parts = [cast(p, op.dtype) for p in op.tensors(0)]
    axis = op.axis(1, info_of(parts[0]).rank + 1)
    return concat(alike([unsqueeze(p, axis) for p in parts], axis), axis)


@handles("aten.repeat")
def _repeat(op: TorchOp) -> ir.Value:
    x, repeats = op.tensor(0), op.number(1)
    shape = info_of(x).shape
    x = reshape(x, (*[1] * (len(repeats) - len(shape)), *shape))
    return tile(x, repeats)


@handles("aten.repeat_interleave.self_int")
def _repeat_interleave(op: TorchOp) -> ir.Value:
    x, repeats = op.tensor(0), op.integer(1, "number of repeats")
    if op.number(2) is None:
        x = reshape(x, (multiply_all(info_of(x).shape),))
    return emit(ops.Repeat, x, repeats=repeats, axis=op.axis(2, info_of(x).rank) if op.number(2) is not None else 0)


@handles("aten.flip")
def _flip(op: TorchOp) -> ir.Value:
    x = op.tensor(0)
    for axis in op.number(1):
        x = emit(ops.Flip, x, axis=normalize_axis(axis, info_of(x).rank))
    return x


@handles("aten.roll")
def _roll(op: TorchOp) -> ir.Value:
    x, shifts, axes = op.tensor(0), op.number(1), op.number(2, [])
    shape = info_of(x).shape
    if not axes:
        flat = reshape(x, (multiply_all(shape),))
        return reshape(_rolled(op, flat, shifts[0], 0), shape)
    for shift, axis in zip(shifts, axes, strict=True):
        x = _rolled(op, x, shift, normalize_axis(axis, len(shape)))
    return x


def _rolled(op: TorchOp, x: ir.Value, shift: Dim, axis: int) -> ir.Value:
    """Two parts exchanged; where a size may be smaller than the shift, each element is looked up."""
    size = info_of(x).shape[axis]
    if size is None or shift is None:
        raise RelaxError("expected a shift along a dimension whose size is known or symbolic")
    cut = _cut_of(op, shift, size)
    if cut is None:
        places = emit(ops.Subtract, sequence(0, size), full(shift, integer()))
        return emit(ops.Take, x, emit(ops.Mod, places, full(size, integer())), axis=axis)
    if cut in (0, size):
        return x
    return concat([slice_axis(x, axis, cut, size), slice_axis(x, axis, 0, cut)], axis)


def _cut_of(op: TorchOp, shift: int | Expr, size: int | Expr) -> Dim:
    """Which element comes first, from 0 to ``size``; None when that is another expression for some sizes."""
    ranges = op.values.ranges
    if isinstance(shift, int) and isinstance(size, int):
        return -shift % size if size else 0
    if at_least(shift, 0, ranges) and at_least(size - shift, 0, ranges):
        return size - shift
    if at_most(shift, 0, ranges) and at_least(size + shift, 0, ranges):
        return -shift
    return None


@handles("prim.ListUnpack")
def _unpack(op: TorchOp) -> list[ir.Value | None]:
    return list(op.optionals(0))


@handles("aten.unbind.int")
def _unbind(op: TorchOp) -> list[ir.Value | None]:
    x = op.tensor(0)
    axis = op.axis(1, info_of(x).rank)
    size = info_of(x).shape[axis]
    if not isinstance(size, int):
        raise RelaxError(f"expected a dimension of known size, got {size}")
    return [squeeze(slice_axis(x, axis, i, i + 1), axis) for i in range(size)]


#: No model splits into more parts of a symbolic size.
_MOST_PARTS = 64


def _equal_parts(op: TorchOp, size: Dim, wanted: Dim) -> list[Dim]:
    """The sizes of parts of one symbolic size, such as two of ``h`` for ``2 * h``.

    Args:
        op: the operator.
        size: of the whole.
        wanted: how many parts (chunk), or the size of each.

    Raises:
        RelaxError: how many parts there are is not known.
    """
    is_chunk = op.key == "aten.chunk"
    if isinstance(size, Expr) and wanted is not None:
        for count in [wanted] if is_chunk and isinstance(wanted, int) else range(1, _MOST_PARTS):
            part = size // count if is_chunk else wanted
            if part * count == size:
                return [part] * count
    if isinstance(size, Expr) and is_chunk and isinstance(wanted, int):
        # As torch, which makes so many parts of the example, and asks for as many in each call.
        part = -(-size // wanted)
        return [*[part] * (wanted - 1), size - part * (wanted - 1)]
    raise RelaxError(f"expected to split a dimension of known size, got {size}")


@handles("aten.split.Tensor", "aten.split_with_sizes", "aten.chunk")
def _split(op: TorchOp) -> list[ir.Value | None]:
    x = op.tensor(0)
    axis = op.axis(2, info_of(x).rank) if len(op.operands) > 2 else 0
    size = info_of(x).shape[axis]
    wanted = op.number(1)
    if isinstance(wanted, list):
        return list(cut(x, axis, wanted))
    if not isinstance(size, int) or not isinstance(wanted, int):
        return list(cut(x, axis, _equal_parts(op, size, wanted)))
    part = -(-size // wanted) if op.key == "aten.chunk" else wanted
    return list(cut(x, axis, [min(part, size - i) for i in range(0, size, part)] if part and size else [size]))

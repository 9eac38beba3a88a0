"""Changes of shape and order: views where elements stay in order, else index maps on the operand, which fuse with readers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from ...dialect.bindings import ir
from ...dialect.inference import normalize_axes, normalize_axis
from ...dialect.op import attrs_of, op_class
from ...dialect.ops import Concat
from ...dialect.symbolic import Dim
from .builder import ZERO, LinalgBuilder, Size, Tensor, read, value_type
from .registry import Source, lowering
from .reshaping import drop_axes, reshape, restore_axes
from .scalar import Scalar
from .slicing import insert_slice

__all__ = ["permutation", "slice_axis", "sliced"]


@lowering("relax.permute_dims")
def _lower_permute_dims(b: LinalgBuilder, source: Source) -> ir.Value:
    (x,) = source.operands
    if x.order:
        return x.value
    axes, sizes = permutation(source.attrs["axes"], x.rank), b.sizes(x)
    return b.movement(x.value, [axes.index(i) for i in range(x.rank)], [sizes[a] for a in axes])


def permutation(axes: Sequence[int] | None, rank: int) -> tuple[int, ...]:
    """The axes of ``relax.permute_dims``, counted from the first one; absent, all in reverse."""
    return tuple(range(rank))[::-1] if axes is None else tuple(normalize_axis(a, rank, "axes") for a in axes)


@lowering("relax.reshape")
def _lower_reshape(b: LinalgBuilder, source: Source) -> Tensor:
    (x,) = source.operands
    return replace(x, value=reshape(b, x, source.result.shape))


@lowering("relax.expand_dims")
def _lower_expand_dims(b: LinalgBuilder, source: Source) -> Tensor:
    (x,) = source.operands
    axes = normalize_axes(source.attrs["axis"], source.result.rank)
    return replace(x, value=restore_axes(b, x.value, axes))


@lowering("relax.squeeze")
def _lower_squeeze(b: LinalgBuilder, source: Source) -> Tensor:
    (x,) = source.operands
    given = source.attrs["axis"]
    axes = [i for i, d in enumerate(x.shape) if d == 1] if given is None else normalize_axes(given, x.rank)
    return replace(x, value=drop_axes(b, x.value, axes))


@lowering("relax.broadcast_to")
def _lower_broadcast_to(b: LinalgBuilder, source: Source) -> Tensor:
    (x,) = source.operands
    result = source.result
    first = result.rank - x.rank
    sizes = [b.evaluate_or(d, x, i - first) if i >= first else b.evaluate(d) for i, d in enumerate(result.shape)]
    return replace(x, value=b.movement(x.value, b.broadcast_exprs(x, result), sizes))


#: Insertions into one destination; of more parts groups are destinations of their own. MLIR's analysis of what insertions alias
#: takes their number squared: 1,200 parts compiled in 135 s without this, and in 11 s with it (EPYC, Zen 5).
_MOST_PARTS = 64


@lowering("relax.concat")
def _lower_concat(b: LinalgBuilder, source: Source) -> ir.Value | Tensor:
    """A chain becomes one destination that every part is inserted into; only the last op of the chain emits anything."""
    axis = normalize_axis(source.attrs["axis"], source.result.rank)
    parts = [part for x in source.operands for part in (x.parts or (x,))]
    if _feeds_concat(source.op, axis):
        return Tensor(parts[0].value, source.result, parts=tuple(parts))
    return _concatenated(b, parts, source, axis)


def _feeds_concat(op: ir.OpView, axis: int) -> bool:
    """Whether the only use is another concatenation along the axis, in the same block."""
    uses = list(op.results[0].uses)
    if len(uses) != 1:
        return False
    user = uses[0].owner
    if op_class(user) is not Concat or user.operation.block != op.operation.block:
        return False
    return normalize_axis(attrs_of(user)["axis"], value_type(op.results[0]).rank) == axis


def _concatenated(b: LinalgBuilder, parts: Sequence[Tensor], source: Source, axis: int) -> ir.Value:
    if len(parts) > _MOST_PARTS:
        groups = [parts[i : i + _MOST_PARTS] for i in range(0, len(parts), _MOST_PARTS)]
        return _concatenated(b, [_group(b, g, source, axis) for g in groups], source, axis)
    return _joined(b, parts, source, axis)


def _group(b: LinalgBuilder, parts: Sequence[Tensor], source: Source, axis: int) -> Tensor:
    length: Dim = 0
    for size in (p.info.shape[axis] for p in parts):
        length = None if length is None or size is None else length + size
    shape = [length if i == axis else d for i, d in enumerate(parts[0].info.shape)]
    return Tensor(_joined(b, parts, source, axis), parts[0].info.with_(shape=shape))


def _joined(b: LinalgBuilder, parts: Sequence[Tensor], source: Source, axis: int) -> ir.Value:
    lengths = [b.size(p, axis) for p in parts]
    offsets: list[Size] = [0]
    for length in lengths:
        offsets.append(b.arith("addi", offsets[-1], length))
    sizes = [b.evaluate_or(dim, parts[0], i) if i != axis else offsets.pop() for i, dim in enumerate(source.result.shape)]
    result = b.empty(sizes, value_type(parts[0].value).element_type)
    for part, offset, length in zip(parts, offsets, lengths, strict=True):
        where: list[Size] = [offset if i == axis else 0 for i in range(len(sizes))]
        extent = [length if i == axis else s for i, s in enumerate(sizes)]
        result = insert_slice(b, part.value, result, where, extent)
    return result


@lowering("relax.split")
def _lower_split(b: LinalgBuilder, source: Source) -> list[ir.Value]:
    (x,) = source.operands
    axis, sections = normalize_axis(source.attrs["axis"], x.rank), source.attrs["sections"]
    size = b.size(x, axis)
    part = b.arith("divsi", size, sections)
    sizes = b.sizes(x)
    sizes[axis] = part
    return [slice_axis(b, x.value, axis, b.arith("muli", part, i), sizes) for i in range(sections)]


def slice_axis(b: LinalgBuilder, value: ir.Value, axis: int, begin: Size, sizes: Sequence[Size], stride: int = 1) -> ir.Value:
    """``value`` from ``begin`` on along an axis, every ``stride``-th element; ``sizes`` are the result's."""
    loops: list[int | ir.AffineExpr] = list(range(len(sizes)))
    expr = sliced(axis, begin, stride, sizes[axis], value_type(value).shape[axis])
    if expr is not None:
        loops[axis] = expr
        return b.movement(value, loops, sizes)
    first = Scalar(b.as_index(begin))
    return _moved_along(b, value, axis, sizes, lambda i: i * stride + first if stride != 1 else i + first)


def sliced(axis: int, begin: Size, stride: int, size: Size, whole: Size) -> int | ir.AffineExpr | None:
    """The index along an axis at which a slice of ``size`` of ``whole`` elements is read; None if no index map says it.

    That of a prefix would be the plain dimension, by which the operand is as long as the result. The remainder changes
    nothing, but does not say that.
    """
    if not isinstance(begin, int):
        return None
    if begin or stride != 1:
        return ir.AffineExpr.get_dim(axis) * stride + begin
    if size is whole or size == whole:
        return axis
    if not isinstance(size, int) or not isinstance(whole, int) or not 0 < size <= whole:
        return None
    return ir.AffineExpr.get_dim(axis) % whole


def _moved_along(
    b: LinalgBuilder, value: ir.Value, axis: int, sizes: Sequence[Size], position: Callable[[Scalar], Scalar]
) -> ir.Value:  # fmt: skip
    """A tensor whose index along an axis is a function of the loop's that no index map expresses."""

    def element(loops: list[Scalar]) -> ir.Value:
        return read(value, [position(i) if d == axis else i for d, i in enumerate(loops)])

    return b.gather(sizes, value_type(value).element_type, element)


@lowering("relax.flip")
def _lower_flip(b: LinalgBuilder, source: Source) -> ir.Value:
    (x,) = source.operands
    axis = normalize_axis(source.attrs["axis"], x.rank)
    size, sizes = b.size(x, axis), b.sizes(x)
    if size == 0:
        return x.value
    if not isinstance(size, int):
        last = Scalar(b.as_index(size)) - 1
        return _moved_along(b, x.value, axis, sizes, lambda i: last - i)
    exprs: list[int | ir.AffineExpr] = list(range(x.rank))
    exprs[axis] = ir.AffineExpr.get_constant(size - 1) - ir.AffineExpr.get_dim(axis)
    return b.movement(x.value, exprs, sizes)


@lowering("relax.repeat")
def _lower_repeat(b: LinalgBuilder, source: Source) -> ir.Value:
    (x,) = source.operands
    axis, repeats = normalize_axis(source.attrs["axis"], x.rank), source.attrs["repeats"]
    sizes = b.sizes(x)
    if not repeats:
        return b.empty([0 if i == axis else size for i, size in enumerate(sizes)], value_type(x.value).element_type)
    sizes[axis] = b.arith("muli", sizes[axis], repeats)
    exprs: list[int | ir.AffineExpr] = list(range(x.rank))
    exprs[axis] = ir.AffineExpr.get_floor_div(ir.AffineExpr.get_dim(axis), repeats)
    return b.movement(x.value, exprs, sizes)


@lowering("relax.tile")
def _lower_tile(b: LinalgBuilder, source: Source) -> ir.Value:
    (x,) = source.operands
    repeats, before = source.attrs["repeats"], b.sizes(x)
    sizes = [b.arith("muli", s, r) if r else 0 for s, r in zip(before, repeats, strict=True)]
    if all(r == 1 or isinstance(s, int) for s, r in zip(before, repeats, strict=True)):
        return b.movement(x.value, [_tiled(i, s, r) for i, (s, r) in enumerate(zip(before, repeats, strict=True))], sizes)
    wholes = [Scalar(b.as_index(s)) for s in before]

    def element(loops: list[Scalar]) -> ir.Value:
        return read(x.value, [i if r == 1 else i % n for i, r, n in zip(loops, repeats, wholes, strict=True)])

    return b.gather(sizes, value_type(x.value).element_type, element)


def _tiled(axis: int, size: Size, repeats: int) -> int | ir.AffineExpr:
    if repeats == 1 or not isinstance(size, int) or size == 0:
        return axis
    return ZERO if size == 1 else ir.AffineExpr.get_dim(axis) % size

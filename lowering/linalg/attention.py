"""Attention as two matrix products around a softmax of rows: keys and values are packed, scores stay in f32."""

from __future__ import annotations

import math

from ...dialect.bindings import ir
from ...dialect.errors import RelaxError
from ...dialect.struct_info import TensorInfo
from ...dialect.symbolic import dim_text
from .builder import ZERO, Builder, Exprs, Input, Size, Tensor, index
from .contraction import Matrix, contract, pack
from .conversion import load
from .dtypes import accumulator_type, compute_type, is_boolean
from .normalization import softmax
from .registry import Source, lowering
from .scalar import Scalar, select

__all__: list[str] = []


@lowering("relax.attention")
def _lower_attention(b: Builder, source: Source) -> ir.Value:
    q, k, v = source.operands[:3]
    mask = source.operands[3] if len(source.operands) > 3 else None
    heads = source.result.with_(shape=source.result.shape[:-2])
    groups = heads.with_(shape=[*heads.shape[:-1], k.shape[-3]])
    batch = b.broadcast_sizes([_leading(t, 3) for t in (q, k, v)], heads.with_(shape=heads.shape[:-1]))
    _check_sizes(b, q, k, v)
    rows, columns = b.size(q, q.rank - 2), b.size(k, k.rank - 2)
    sizes: list[Size] = [*batch, b.size(q, q.rank - 3), rows]
    wide = accumulator_type(q.dtype)
    left = Matrix(q.value, q.dtype, b.broadcast_exprs(_leading(q, 2), heads))
    keys = Matrix(pack(b, k.value, k.dtype, b.tile, transposed=True, widen=True), k.dtype, _per_group(b, k, groups, heads))
    scores = contract(b, left, keys, [*sizes, columns], wide)
    info = heads.with_(shape=[*heads.shape, q.shape[-2], k.shape[-2]], dtype=wide)
    limited = _limited(b, Tensor(scores, info), mask, source)
    shares = softmax(b, Tensor(limited, info), info.rank - 1, wide)
    values = Matrix(pack(b, v.value, v.dtype, b.tile, widen=True), v.dtype, _per_group(b, v, groups, heads))
    every = Matrix(shares, wide, range(heads.rank))
    return contract(b, every, values, [*sizes, b.size(v, v.rank - 1)], q.dtype)


def _leading(x: Tensor, trailing: int) -> Tensor:
    """The tensor seen as if it had its leading dimensions only."""
    return Tensor(x.value, x.info.with_(shape=x.shape[: x.rank - trailing]))


def _per_group(b: Builder, x: Tensor, groups: TensorInfo, heads: TensorInfo) -> Exprs:
    """Where a key or value head is read: query head ``i`` reads head ``i // (heads / groups)``."""
    exprs: list[int | ir.AffineExpr] = list(b.broadcast_exprs(_leading(x, 2), groups))
    heads_size, groups_size = heads.shape[-1], x.shape[-3]
    if heads_size == groups_size:
        exprs[-1] = heads.rank - 1
        return exprs
    if groups_size == 1:
        exprs[-1] = ZERO
        return exprs
    ratio = None if heads_size is None or groups_size is None else heads_size // groups_size
    if not isinstance(ratio, int):
        sizes = f"{dim_text(heads_size)} and {dim_text(groups_size)}"
        raise RelaxError(f"expected a constant number of query heads per key head, got {sizes} heads")
    exprs[-1] = ir.AffineExpr.get_floor_div(ir.AffineExpr.get_dim(heads.rank - 1), ratio)
    return exprs


def _check_sizes(b: Builder, q: Tensor, k: Tensor, v: Tensor) -> None:
    """Checks what the types leave open."""
    for x, y, axis in ((q, k, -1), (k, v, -2), (k, v, -3)):
        if x.shape[axis] is None or y.shape[axis] is None:
            message = "expected query, key and value that fit together"
            b.check_equal(b.size(x, x.rank + axis), b.size(y, y.rank + axis), message)


def _limited(b: Builder, scores: Tensor, mask: Tensor | None, source: Source) -> ir.Value:
    """Scores times the scale, with -inf where a key is not seen."""
    factor = _scale(b, source)
    causal, rank, wide = source.attrs["causal"], scores.rank, compute_type(scores.dtype)
    inputs: list[Input] = [(scores.value, range(rank))]
    if mask is not None:
        _check_mask(b, scores, mask)
        inputs.append((mask.value, b.broadcast_exprs(mask, scores.info)))

    def body(*elements: ir.Value) -> ir.Value:
        score = Scalar(elements[0]) * factor
        if mask is not None:
            score = _masked(score, load(elements[1], mask.dtype), is_boolean(mask.dtype))
        if causal:
            score = select(index(rank - 1).compare("le", index(rank - 2)), score, -math.inf)
        return score.value

    return b.generic("p" * rank, inputs, b.empty(b.value_sizes(scores.value), wide), body)


def _scale(b: Builder, source: Source) -> float:
    given, depth = source.attrs["scale"], source.operands[0].shape[-1]
    if given is not None:
        return given
    if not isinstance(depth, int):
        raise RelaxError(f"expected a scale, as the size of the heads is not constant, got {dim_text(depth)}")
    return 1 / math.sqrt(depth) if depth else 0.0


def _masked(score: Scalar, mask: Scalar, boolean: bool) -> Scalar:
    return select(mask, score, -math.inf) if boolean else score + mask


def _check_mask(b: Builder, scores: Tensor, mask: Tensor) -> None:
    first = scores.rank - mask.rank
    for axis, dim in enumerate(mask.shape):
        if dim is None:
            size = b.dim(scores.value, first + axis)
            b.check_equal(b.size(mask, axis), size, "expected a mask that broadcasts to the scores")

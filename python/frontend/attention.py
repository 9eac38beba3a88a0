"""Attention that a graph writes out: softmax over products of queries and keys, as one ``relax.attention``.

::

    k' = reshape(transpose(reshape(k)))
    p = softmax(matmul(q * a, k' * b) + mask)          ->      attention(q, k, v, mask, scale = a * b)
    p = where(isnan(p), 0, p)                                  where(a key is seen, ., 0)
    y = matmul(p, v)

Exporters scale either factor or the product, transpose keys in three dimensions or in four, repeat heads that several queries
share, and write a mask of truth values as one of numbers. What only the replaced products read is left unread.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from ..dialect import ops
from ..dialect.bindings import ir
from ..dialect.inference import boolean, is_float
from ..dialect.op import attrs_of
from ..dialect.struct_info import TensorInfo
from .emit import cast, emit, full, info_of, permute, reshape
from .written_out import made_by, number_of, without_cast

__all__ = ["attention_of", "shared_heads", "zero_where_nothing_is_seen"]


def shared_heads(key: ir.Value, value: ir.Value) -> tuple[ir.Value, ir.Value]:
    """Keys and values before each head was repeated for the query heads that share it: a cache is then read where it is."""
    first = [_before_repetition(v) for v in (key, value)]
    if first[0] is None or first[1] is None or info_of(first[0]).shape[-3] != info_of(first[1]).shape[-3]:
        return key, value
    return first[0], first[1]


def _before_repetition(x: ir.Value) -> ir.Value | None:
    """``x`` of ``reshape(broadcast_to(expand_dims(x)))`` that repeats each head, as Hugging Face's ``repeat_kv`` does."""
    chain = [x]
    for op_class in (ops.Reshape, ops.BroadcastTo, ops.ExpandDims):
        owner = chain[-1].owner
        if not isinstance(owner, op_class):
            return None
        chain.append(owner.operation.operands[0])
    joined, repeated, single, source = (info_of(v).shape for v in chain)
    heads = source[-3]
    if single != (*source[:-2], 1, *source[-2:]) or heads is None or not isinstance(repeated[-3], int):
        return None
    same = repeated == (*source[:-2], repeated[-3], *source[-2:])
    return chain[-1] if same and joined == (*source[:-3], heads * repeated[-3], *source[-2:]) else None


def zero_where_nothing_is_seen(result: ir.Value, mask: ir.Value) -> ir.Value:
    """Attention with zeros for a query whose mask hides every key, where relax.attention gives NaN."""
    rank = info_of(mask).rank
    if info_of(mask).dtype == boolean():
        seen = cast(emit(ops.Max, cast(mask, ir.IntegerType.get_signless(8)), axis=[rank - 1], keepdims=True), boolean())
    else:
        largest = emit(ops.Max, mask, axis=[rank - 1], keepdims=True)
        seen = emit(ops.Greater, largest, full(float("-inf"), info_of(mask).dtype))
    return emit(ops.Where, seen, result, full(0, info_of(result).dtype))


@dataclass
class _Scores:
    """The product of ``query * scale`` and keys that are transposed, plus a mask."""

    query: ir.Value
    turned: ir.Value
    scale: float
    mask: ir.Value | None


def attention_of(probabilities: ir.Value, value: ir.Value) -> ir.Value | None:
    """The product of these, where the first is what attention makes of scores; None where it is not.

    A query that sees no key gives NaN, or 0 where ``where(isnan(p), 0, p)`` says so. NaN that comes from queries and keys stays
    NaN in that case, too, as it does in torch, whose attention exporters write like this.
    """
    plain = _without_nan(probabilities)
    weights = without_cast(probabilities if plain is None else plain)
    softmax = made_by(weights, ops.Softmax)
    rank = info_of(weights).rank
    if softmax is None or rank < 3 or attrs_of(softmax)["axis"] not in (-1, rank - 1):
        return None
    scores = _scores(without_cast(softmax.operands[0]))
    if scores is None:
        return None
    key = _turned_back(scores.turned)
    if not _fit(info_of(scores.query), info_of(key), info_of(value)):
        return None
    key, value = shared_heads(key, value)
    result = emit(ops.Attention, scores.query, key, value, scores.mask, scale=scores.scale)
    if plain is None or scores.mask is None or _hides_nothing(scores.mask):
        return result
    return zero_where_nothing_is_seen(result, scores.mask)


def _fit(query: TensorInfo, key: TensorInfo, value: TensorInfo) -> bool:
    """Whether these are heads of one number, of the same batches."""
    same_rank = query.rank == key.rank == value.rank and query.rank >= 3
    leading = query.shape[:-2]
    known = None not in leading and is_float(query.dtype)
    return same_rank and known and leading == key.shape[:-2] == value.shape[:-2] and query.dtype == key.dtype == value.dtype


def _without_nan(x: ir.Value) -> ir.Value | None:
    """``p`` of ``where(isnan(p), 0, p)``."""
    where = made_by(x, ops.Where)
    if where is None or number_of(where.operands[1]) != 0:
        return None
    test = made_by(where.operands[0], ops.IsNan)
    return where.operands[2] if test is not None and test.operands[0] == where.operands[2] else None


def _scores(x: ir.Value) -> _Scores | None:
    whole = info_of(x)
    x, mask = _without_mask(x)
    x, scale = _without_factor(x)
    product = made_by(x, ops.MatMul)
    if product is None or info_of(x).shape != whole.shape:
        return None
    query, turned = product.operands
    query, of_query = _without_factor(query)
    turned, of_key = _without_factor(turned)
    total = scale * of_query * of_key
    return _Scores(query, turned, total, mask) if math.isfinite(total) else None


def _without_mask(x: ir.Value) -> tuple[ir.Value, ir.Value | None]:
    """The scores, and what is added to them: a mask of numbers, or of truth values where that is what the numbers say."""
    added = made_by(x, ops.Add)
    if added is None:
        return x, None
    a, b = added.operands
    scores, mask = (a, b) if _is_product(a) else (b, a)
    if not _is_product(scores) or not 0 < info_of(mask).rank <= info_of(scores).rank:
        return x, None
    return scores, _truth(mask)


def _is_product(x: ir.Value) -> bool:
    return made_by(_without_factor(x)[0], ops.MatMul) is not None


def _truth(mask: ir.Value) -> ir.Value:
    """``m`` of ``where(m, 0, -inf)``."""
    where = made_by(mask, ops.Where)
    if where is None:
        return mask
    condition, kept, hidden = where.operands
    says_so = number_of(kept) == 0 and number_of(hidden) == -math.inf
    return condition if says_so and info_of(condition).shape == info_of(mask).shape else mask


def _hides_nothing(mask: ir.Value) -> bool:
    """Whether it is one of two finite numbers: where all keys have the smaller one, each is seen as much as another."""
    where = made_by(mask, ops.Where)
    numbers = [None] if where is None else [number_of(n) for n in where.operands][1:]
    return all(n is not None and math.isfinite(n) for n in numbers)


def _without_factor(x: ir.Value) -> tuple[ir.Value, float]:
    """``y`` and ``c`` of ``y * c``, ``c * y`` or ``y / c``."""
    product, quotient = made_by(x, ops.Multiply), made_by(x, ops.Divide)
    found = product or quotient
    if found is None:
        return x, 1.0
    a, b = found.operands
    if product is not None and number_of(a) is not None:
        a, b = b, a
    number = number_of(b)
    if number is None or info_of(a).shape != info_of(x).shape or (quotient is not None and not number):
        return x, 1.0
    return a, number if product is not None else 1 / number


def _turned_back(x: ir.Value) -> ir.Value:
    """Keys before they were transposed, which exporters also do with all leading dimensions joined."""
    outer = made_by(x, ops.Reshape)
    turn = made_by(x if outer is None else outer.operands[0], ops.PermuteDims)
    *leading, depth, keys = info_of(x).shape
    if outer is not None and turn is not None and list(attrs_of(turn)["axes"]) == [0, 2, 1]:
        joined = turn.operands[0]
        inner = made_by(joined, ops.Reshape)
        if info_of(joined).shape[1:] == (keys, depth):
            return reshape(joined if inner is None else inner.operands[0], (*leading, keys, depth))
    rank = info_of(x).rank
    return permute(x, [*range(rank - 2), rank - 1, rank - 2])

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

from ..dialect import ops
from ..dialect.bindings import ir
from ..dialect.inference import boolean, is_float
from ..dialect.op import attrs_of
from .attention_scores import Scores, Shape, hides_no_row, keeps_rows, leading_of, scores_of
from .emit import emit, extreme_flag, full, info_of, permute, reshape
from .written_out import made_by, number_of

__all__ = ["attention_or_product", "shared_heads", "zero_where_nothing_is_seen"]


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
        seen = extreme_flag(ops.Max, mask, axis=[rank - 1], keepdims=True)
    else:
        largest = emit(ops.Max, mask, axis=[rank - 1], keepdims=True)
        seen = emit(ops.Greater, largest, full(float("-inf"), info_of(mask).dtype))
    return emit(ops.Where, seen, result, full(0, info_of(result).dtype))


def attention_or_product(a: ir.Value, b: ir.Value) -> ir.Value:
    """The matrix product of floats, as attention where it is the second one of that."""
    return _attention_of(a, b) or emit(ops.MatMul, a, b)


def _attention_of(probabilities: ir.Value, value: ir.Value) -> ir.Value | None:
    """The product of these, where the first is what attention makes of scores; None where it is not.

    A query that sees no key gives NaN, or 0 where ``where(isnan(p), 0, p)`` says so. NaN that comes from queries and keys stays
    NaN in that case, too, as it does in torch, whose attention exporters write like this.
    """
    weights, later = _behind(probabilities)
    plain = _without_nan(weights)
    weights, before = _behind(weights if plain is None else plain)
    softmax = made_by(weights, ops.Softmax)
    rank = info_of(weights).rank
    if softmax is None or min(rank, info_of(value).rank) < 3 or attrs_of(softmax)["axis"] not in (-1, rank - 1):
        return None
    scores = scores_of(softmax.operands[0], [*before, *later])
    heads = None if scores is None else _heads(scores, value, leading_of(probabilities))
    if scores is None or heads is None:
        return None
    query, key, value = heads
    result = emit(ops.Attention, query, *shared_heads(key, value), scores.mask, scale=scores.scale)
    if plain is not None and scores.mask is not None and not hides_no_row(scores.mask):
        result = zero_where_nothing_is_seen(result, scores.mask)
    return reshape(result, [*leading_of(probabilities), *info_of(result).shape[-2:]])


def _behind(x: ir.Value) -> tuple[ir.Value, list[Shape]]:
    """``x`` before casts and reshapes that keep its rows, and the leading dimensions on the way."""
    later: list[Shape] = []
    while isinstance(x.owner, ops.Reshape | ops.AsType) and keeps_rows(x.owner.operation):
        later.append(leading_of(x))
        x = x.owner.operation.operands[0]
    return x, later


def _heads(scores: Scores, value: ir.Value, of_value: Shape) -> tuple[ir.Value, ir.Value, ir.Value] | None:
    """Queries, keys and values under the scores' leading dimensions; None where they do not fit together.

    Queries may share one head of keys and values.
    """
    own, leading = leading_of(scores.product), scores.leading
    key = _turned_back(scores.turned)
    given = [(scores.query, own), (key, own), (value, of_value)]
    dtypes = {info_of(v).dtype for v, _ in given}
    if len(dtypes) > 1 or not is_float(*dtypes) or not _fits(scores.mask, *dtypes):
        return None
    if all(leading_of(v) == shape for v, shape in given):
        query, key, value = (_reshaped(v, (*leading, *info_of(v).shape[-2:])) for v, _ in given)
        return _scaled(query, scores.factors), key, value
    one = (*leading[:-1], 1)
    shared = leading_of(scores.query) == own == of_value == leading and leading_of(key) == leading_of(value) == one
    return (_scaled(scores.query, scores.factors), key, value) if shared else None


def _scaled(query: ir.Value, factors: list[ir.Value]) -> ir.Value:
    for factor in factors:
        query = emit(ops.Multiply, query, factor)
    return query


def _fits(mask: ir.Value | None, dtype: ir.Type) -> bool:
    """Whether attention takes such a mask: of truth values, in its own dtype, or in f32 for a narrower one."""
    found = boolean() if mask is None else info_of(mask).dtype
    return found in (boolean(), dtype) or (found == ir.F32Type.get() and dtype.width < 32)


def _without_nan(x: ir.Value) -> ir.Value | None:
    """``p`` of ``where(isnan(p), 0, p)``, or of the same with rows of scores that are all -inf: torch's safe softmax."""
    where = made_by(x, ops.Where)
    if where is None or number_of(where.operands[1]) != 0:
        return None
    condition, _, weights = where.operands
    test = made_by(condition, ops.IsNan)
    if test is not None:
        return weights if test.operands[0] == weights else None
    softmax = made_by(weights, ops.Softmax)
    return weights if softmax is not None and _all_hidden(condition, softmax.operands[0]) else None


def _all_hidden(condition: ir.Value, scores: ir.Value) -> bool:
    """Whether the condition is that a row of the scores is -inf everywhere."""
    least = made_by(_before_cast(condition), ops.Min)
    equal = None if least is None else made_by(_before_cast(least.operands[0]), ops.Equal)
    if least is None or equal is None or equal.operands[0] != scores or number_of(equal.operands[1]) != -math.inf:
        return False
    return list(attrs_of(least)["axis"] or []) in ([-1], [info_of(scores).rank - 1]) and bool(attrs_of(least)["keepdims"])


def _before_cast(x: ir.Value) -> ir.Value:
    made = made_by(x, ops.AsType)
    return x if made is None else made.operands[0]


def _turned_back(x: ir.Value) -> ir.Value:
    """Keys before they were transposed, which exporters also do with all leading dimensions joined."""
    shape, inner = info_of(x).shape, x
    while isinstance(inner.owner, ops.Reshape) and keeps_rows(inner.owner.operation):
        inner = inner.owner.operation.operands[0]
    axes = list(range(info_of(inner).rank))
    axes[-2:] = axes[:-3:-1]
    turn = made_by(inner, ops.PermuteDims)
    back = turn.operands[0] if turn is not None and list(attrs_of(turn)["axes"]) == axes else permute(inner, axes)
    return _reshaped(back, (*shape[:-2], shape[-1], shape[-2]))


def _reshaped(x: ir.Value, shape: Shape) -> ir.Value:
    """``x`` under another shape: where it had that one before, what it was made of."""
    source = x
    while info_of(source).shape != shape:
        made = made_by(source, ops.Reshape)
        if made is None:
            return reshape(x, shape)
        source = made.operands[0]
    return source

"""Attention of com.microsoft, as ONNX Runtime's optimizer, its model builder and exporters write it, with caches and masks.

Source: https://github.com/microsoft/onnxruntime/blob/main/docs/ContribOperators.md.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any

from ....dialect import ops
from ....dialect.bindings import ir
from ....dialect.errors import RelaxError
from ....dialect.inference import boolean
from ....dialect.symbolic import Dim, Expr
from ...emit import (  # fmt: skip
    cast,
    concat,
    emit,
    expand,
    full,
    info_of,
    integer,
    multiply_all,
    permute,
    require_at_least,
    reshape,
    sequence,
    slice_axis,
    squeeze,
    unsqueeze,
)
from ...ranges import at_least
from ..caches import grown
from ..node import Node, handles
from ..values import GraphValue
from .fused import rotate
from .indexing import place_in

_DOMAIN = "com.microsoft"


@handles(f"{_DOMAIN}.Attention")
def _attention(node: Node) -> list[ir.Value]:
    """Query, key and value by one product; the cache has both keys and values, ``[2, batch, heads, length, size]``."""
    if node.has(6) or node.attribute("do_rotary", 0):
        raise RelaxError("expected attention without rotary embeddings, and with a cache that has no unused room")
    heads = node.attribute("num_heads")
    x = emit(ops.MatMul, node.tensor(0), node.tensor(1))
    x = emit(ops.Add, x, node.tensor(2)) if node.has(2) else x
    width = node.known_size(1, 1)
    sizes = node.attribute("qkv_hidden_sizes") or [width // 3] * 3
    parts: list[ir.Value] = []
    start = 0
    for size in sizes:
        parts.append(_by_heads(slice_axis(x, 2, start, start + size), heads))
        start += size
    query, key, value = parts
    past: Dim = 0
    if node.has(4):
        past = node.size(4, 3)
        old = [squeeze(slice_axis(node.tensor(4), 0, i, i + 1), 0) for i in range(2)]
        key, value = (concat([o, new], 2) for o, new in zip(old, (key, value), strict=True))
    present = [concat([unsqueeze(key, 0), unsqueeze(value, 0)], 0)] if node.wants(1) else []
    return [_attended(node, query, key, value, past, masks=(3, 5)), *present]


@handles(f"{_DOMAIN}.MultiHeadAttention")
def _multi_head_attention(node: Node) -> list[ir.Value]:
    """Query, key and value of three dimensions each, and one bias for all; keys and values of other tokens have four."""
    if node.has(8) or node.wants(3):
        raise RelaxError("expected attention with a cache that has no unused room, and without scores as a result")
    heads = node.attribute("num_heads")
    parts = _separate(node)
    if node.has(3):
        bias, start = node.tensor(3), 0
        for i, part in enumerate(parts):
            info = info_of(part)
            size = info.shape[-1] if info.rank == 3 else multiply_all((heads, info.shape[-1]))
            if not isinstance(size, int):
                raise RelaxError("expected heads of known size")
            if info.rank == 3:
                parts[i] = emit(ops.Add, part, slice_axis(bias, 0, start, start + size))
            start += size
    query, key, value = (_by_heads(p, heads) if info_of(p).rank == 3 else p for p in parts)
    past: Dim = 0
    if node.has(6):
        past = node.size(6, 2)
        key, value = (grown(node.operand(i), new, 2) for i, new in ((6, key), (7, value)))
    present = [key, value][: max(len(node.outputs) - 1, 0)]
    return [_attended(node, query, key, value, past, masks=(4, 5)), *present]


def _separate(node: Node) -> list[ir.Value]:
    """Query, key and value, which may be side by side in each head: ``[batch, length, heads, 3 or 2, size]``."""
    if node.rank(0) == 5:
        return _unpacked(node.tensor(0), 3)
    if node.rank(0) != 3 or not node.has(1):
        raise RelaxError("expected query, key and value of three dimensions, or packed ones of five")
    if node.rank(1) == 5:
        return [node.tensor(0), *_unpacked(node.tensor(1), 2)]
    if not node.has(2) or node.rank(1) not in (3, 4):
        raise RelaxError("expected query, key and value of three dimensions, or packed ones of five")
    return [node.tensor(i) for i in range(3)]


def _unpacked(x: ir.Value, count: int) -> list[ir.Value]:
    """``[batch, length, hidden]`` each."""
    batch, length, heads, packed, size = info_of(x).shape
    if packed != count:
        raise RelaxError(f"expected {count} tensors side by side in each head, got {packed}")
    return [reshape(slice_axis(x, 3, i, i + 1), (batch, length, multiply_all((heads, size)))) for i in range(count)]


def _by_heads(x: ir.Value, heads: int) -> ir.Value:
    batch, length, size = info_of(x).shape
    if not isinstance(size, int):
        raise RelaxError("expected heads of known size")
    return permute(reshape(x, (batch, length, heads, size // heads)), [0, 2, 1, 3])


def _without_heads(x: ir.Value) -> ir.Value:
    batch, heads, length, size = info_of(x).shape
    return reshape(permute(x, [0, 2, 1, 3]), (batch, length, multiply_all((heads, size))))


def _attended(node: Node, query: ir.Value, key: ir.Value, value: ir.Value, past: Dim, masks: tuple[int, int]) -> ir.Value:
    """``[batch, length, hidden]``, with the operands that are a mask of keys and what is added to scores.

    A key that the mask hides gets ``mask_filter_value``, which is finite: a query that sees none sees all.
    """
    length, keys = info_of(query).shape[2], info_of(key).shape[2]
    causal = bool(node.attribute("unidirectional", 0))
    mask = node.optional(masks[1])
    if node.has(masks[0]):
        dtype = info_of(query).dtype
        kept = _mask(node, masks[0], info_of(query).shape[0], past, length, keys)
        bias = emit(ops.Where, kept, full(0, dtype), full(node.attribute("mask_filter_value", -10000.0), dtype))
        mask = bias if mask is None else emit(ops.Add, mask, bias)
    if causal and past != 0:
        places = emit(ops.Add, sequence(0, length), full(_known(past), integer()))
        mask = visible(mask, emit(ops.LessEqual, unsqueeze(sequence(0, keys), 0), unsqueeze(places, 1)))
        causal = False
    result = emit(ops.Attention, query, key, value, mask, causal=causal, scale=node.attribute("scale", 0.0) or None)
    return _without_heads(result)


def _known(dim: Dim) -> int | Expr:
    if dim is None:
        raise RelaxError("expected lengths that are known or symbolic")
    return dim


def _mask(node: Node, index: int, batch: Dim, past: Dim, length: Dim, keys: Dim) -> ir.Value:
    """Truth values that broadcast to ``[batch, heads, length, keys]``.

    A mask has an element per key, or per query and key, or says where the keys of each row end, and begin.
    """
    given = node.tensor(index)
    shape = info_of(given).shape
    if len(shape) == 1:
        return _between(given, batch, keys)
    kept = emit(ops.NotEqual, given, full(0, info_of(given).dtype))
    if len(shape) == 2:
        return unsqueeze(kept, 1, 2)
    if len(shape) == 3:
        return unsqueeze(kept, 1)
    if shape[2] != shape[3]:
        raise RelaxError(f"expected a square mask, got {info_of(given)}")
    start = _known(past)
    return slice_axis(slice_axis(kept, 2, start, start + length), 3, 0, keys)  # type: ignore[operator]


def _between(given: ir.Value, batch: Dim, keys: Dim) -> ir.Value:
    count, places = info_of(given).shape[0], unsqueeze(sequence(0, keys), 0)
    rows = _known(batch)
    if count not in (rows, rows * 2):
        raise RelaxError(f"expected a mask with where keys end, and begin, for {batch} rows each, got {count} numbers")
    ends = unsqueeze(cast(slice_axis(given, 0, 0, rows), integer()), 1)
    kept = emit(ops.Less, places, ends)
    if count != rows:
        begins = unsqueeze(cast(slice_axis(given, 0, rows, count), integer()), 1)
        kept = emit(ops.LogicalAnd, kept, emit(ops.GreaterEqual, places, begins))
    return unsqueeze(kept, 1, 2)


def visible(bias: ir.Value | None, seen: ir.Value) -> ir.Value:
    """What is added to scores, where a key is not seen minus infinity; of no bias the truth values."""
    if bias is None:
        return seen
    return emit(ops.Where, seen, bias, full(-float("inf"), info_of(bias).dtype))


@handles(f"{_DOMAIN}.GroupQueryAttention")
def _group_query_attention(node: Node) -> list[ir.Value]:
    """Grouped queries with a cache. Row ``b`` has ``seqlens_k[b] + 1`` keys, the new ones last; behind these is unused room.

    The cache that comes out is longer by the new keys, unless its length is a number that ``total_sequence_length`` fits into.
    """
    _require_plain(node)
    query, key, value = _grouped_parts(node)
    batch, _, length, _ = info_of(query).shape
    if node.has(14):
        query, key = (_normed(node, x, i, k) for x, i, k in ((query, 14, "q_norm_epsilon"), (key, 15, "k_norm_epsilon")))
    places = _places(node, _known(batch), _known(length))
    if node.attribute("do_rotary", 0):
        at = cast(node.tensor(9), integer()) if node.has(9) else places
        angles = [unsqueeze(emit(ops.Take, node.tensor(i), at, axis=0), 1) for i in (7, 8)]
        query, key = (rotate(x, angles[0], angles[1], bool(node.attribute("rotary_interleaved", 0))) for x in (query, key))
    if node.has(3):
        _require_total(node, key)
        key, value = (_stored(node, i, new, places) for i, new in ((3, key), (4, value)))
    present = [key, value]
    total = node.operand(6).known
    if node.has(3) and node.operand(3).cache is not None and total is not None:  # what is behind is read by nobody
        key, value = (slice_axis(x, 2, 0, total.item()) for x in present)
    at = places if node.attribute("causal", 1) else slice_axis(places, 1, _known(length) - 1, _known(length))
    seen = _seen(at, _known(info_of(key).shape[2]), node.attribute("local_window_size", -1))
    mask = visible(node.optional(10), seen)
    return [_without_heads(_scored(node, query, key, value, mask)), *present]


def _require_plain(node: Node) -> None:
    """Raises RelaxError for forms that have another layout of caches, or more results."""
    quantized = [k for k in ("k_quant_type", "v_quant_type") if node.attribute(k, "NONE") != "NONE"]
    wrong = [k for k in ("kv_cache_bit_width", "qk_output") if node.attribute(k, 0)] + quantized
    if node.has(16):
        wrong.append("query_seqlens")
    if wrong:
        raise RelaxError(f"expected attention without {wrong[0]}")
    if node.attribute("sliding_window_cache", 0) and (not node.has(3) or node.operand(3).cache is None):
        raise RelaxError(
            "expected attention without sliding_window_cache, or with a cache that is state, which keeps all: cache_length=..."
        )


def _normed(node: Node, x: ir.Value, index: int, name: str) -> ir.Value:
    """Each head by the root of its mean square, as Qwen3 has it."""
    epsilon = node.attribute(name, node.attribute("qk_norm_epsilon", 1e-6))
    return emit(ops.RMSNorm, x, node.tensor(index), axes=[-1], epsilon=epsilon)


def _grouped_parts(node: Node) -> list[ir.Value]:
    heads, groups = node.attribute("num_heads"), node.attribute("kv_num_heads")
    if node.has(1):
        return [_by_heads(node.tensor(i), h) for i, h in ((0, heads), (1, groups), (2, groups))]
    packed = _by_heads(node.tensor(0), heads + 2 * groups)
    bounds = (0, heads, heads + groups, heads + 2 * groups)
    return [slice_axis(packed, 1, a, b) for a, b in pairwise(bounds)]


def _places(node: Node, batch: int | Expr, length: int | Expr) -> ir.Value:
    """``[batch, length]``: where the new keys are among all of their row. A prompt that is shorter than others begins at 0."""
    i64 = integer()
    last = reshape(cast(node.tensor(5), i64), (batch,))
    before = emit(ops.Subtract, emit(ops.Add, last, full(1, i64)), full(length, i64))
    start = emit(ops.Maximum, before, full(0, i64))
    return emit(ops.Add, unsqueeze(start, 1), unsqueeze(sequence(0, length), 0))


def _stored(node: Node, index: int, new: ir.Value, places: ir.Value) -> ir.Value:
    """The cache with new keys or values ``[batch, heads, length, size]`` at their places."""
    old = node.operand(index)
    if old.cache is not None and old.cache.is_here:
        return old.cache.write(lambda room: _written(room, new, places))
    if isinstance(old.shape[2], int) and node.number(6) <= old.shape[2]:
        return _written(old.value, new, places)
    longer = concat([old.value, new], 2)
    return longer if old.shape[2] == 0 else _written(longer, new, places)


def _require_total(node: Node, new: ir.Value) -> None:
    """A check that all tokens of a cache that is state are as many as the new ones, or more."""
    length, known, cache = _known(info_of(new).shape[2]), node.operand(6).known, node.operand(3).cache
    if cache is None or not cache.is_here or (known is not None and at_least(known.item() - length, 0, {})):
        return
    total = reshape(cast(node.tensor(6), integer()), ()) if known is None else known.item()
    text = f"expected total_sequence_length of {node.name} to count new tokens, too: {length} or more"
    require_at_least(total, length, text)


def _written(room: ir.Value, new: ir.Value, places: ir.Value) -> ir.Value:
    """Rows of the flattened leading dimensions: those of each batch and head have places of their own."""
    shape, i64 = info_of(room).shape, integer()
    batch, heads, size = _known(shape[0]), _known(shape[1]), _known(shape[2])
    length = info_of(new).shape[2]
    if batch == 1:
        return emit(ops.IndexCopy, room, reshape(places, (length,)), new, axis=2)
    first = emit(ops.Multiply, reshape(sequence(0, batch * heads), (batch, heads, 1)), full(size, i64))
    rows = emit(ops.Add, first, unsqueeze(place_in(places, size, wrap=False), 1))
    flat = reshape(room, (batch * heads * size, shape[3]))
    values = reshape(new, (batch * heads * length, shape[3]))  # type: ignore[operator]
    return reshape(emit(ops.IndexCopy, flat, reshape(rows, (batch * heads * length,)), values, axis=0), shape)  # type: ignore[operator]


def _seen(places: ir.Value, keys: int | Expr, window: int) -> ir.Value:
    """``[batch, 1, length, keys]``: keys up to the query's own place, of a window the last ones."""
    at, of = unsqueeze(places, 1, 3), sequence(0, keys)
    seen = emit(ops.LessEqual, of, at)
    if window <= 0:
        return seen
    return emit(ops.LogicalAnd, seen, emit(ops.Greater, of, emit(ops.Subtract, at, full(window, integer()))))


def _scored(node: Node, query: ir.Value, key: ir.Value, value: ir.Value, mask: ir.Value) -> ir.Value:
    """One op, or, where scores go through tanh, product, softmax and product.

    Of ``softmax1`` (``smooth_softmax``) and sinks there is one more key, whose value is 0 and whose score is 0, or the sink's.
    """
    scale = node.attribute("scale", 0.0) or None
    limit = node.attribute("softcap", 0.0)
    sink = node.operands[11] if len(node.operands) > 11 else None
    if sink is not None or node.attribute("smooth_softmax", 0) == 1:
        if limit:
            raise RelaxError("expected attention with softcap, or with a sink, got both")
        key, value, mask = _with_sink(query, key, value, mask, sink)
    if not limit:
        return emit(ops.Attention, query, key, value, mask, scale=scale)
    return _limited(query, key, value, mask, scale, limit)


def _with_sink(query: ir.Value, key: ir.Value, value: ir.Value, mask: ir.Value, sink: Any) -> tuple[ir.Value, ...]:
    dtype = info_of(query).dtype
    if info_of(mask).dtype == boolean():
        mask = visible(full(0, dtype), mask)
    batch, heads, length, _ = info_of(query).shape
    score = reshape(sink.value, (1, heads, 1, 1)) if isinstance(sink, GraphValue) else full(0, dtype)
    keys = info_of(key).shape[2]
    mask = expand(mask, (batch, heads, length, keys))
    mask = concat([mask, expand(cast(score, info_of(mask).dtype), (batch, heads, length, 1))], 3)
    more = [concat([x, full(0, dtype, (*info_of(x).shape[:2], 1, info_of(x).shape[3]))], 2) for x in (key, value)]
    return more[0], more[1], mask


def _limited(query: ir.Value, key: ir.Value, value: ir.Value, mask: ir.Value, scale: float | None, limit: float) -> ir.Value:
    """Scores ``limit * tanh(score / limit)``, computed in f32."""
    dtype, f32 = info_of(query).dtype, ir.F32Type.get()
    batch, heads, length, size = info_of(query).shape
    groups, keys = info_of(key).shape[1:3]
    if not isinstance(heads, int) or not isinstance(groups, int) or not isinstance(size, int):
        raise RelaxError("expected heads of known number and size")
    each = heads // groups
    grouped = reshape(cast(query, f32), (batch, groups, multiply_all((each, length)), size))
    scores = reshape(emit(ops.MatMul, grouped, permute(cast(key, f32), [0, 1, 3, 2])), (batch, heads, length, keys))
    factor = (size**-0.5 if scale is None else scale) / limit
    scores = emit(ops.Multiply, emit(ops.Tanh, emit(ops.Multiply, scores, full(factor, f32))), full(limit, f32))
    scores = visible(scores, mask) if info_of(mask).dtype == boolean() else emit(ops.Add, scores, cast(mask, f32))
    weights = reshape(emit(ops.Softmax, scores, axis=3), (batch, groups, multiply_all((each, length)), keys))
    result = emit(ops.MatMul, weights, cast(value, f32))
    return cast(reshape(result, (batch, heads, length, info_of(value).shape[3])), dtype)

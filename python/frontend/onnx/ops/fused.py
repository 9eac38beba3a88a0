"""Operators of com.microsoft that ONNX Runtime's optimizer and exporters make of several: norms, activations, products.

Source: https://github.com/microsoft/onnxruntime/blob/main/docs/ContribOperators.md.
"""

from __future__ import annotations

from typing import Any

from ....dialect import ops
from ....dialect.bindings import ir
from ....dialect.errors import RelaxError
from ...emit import cast, emit, full, info_of, integer, permute, reshape, sequence, slice_axis, unsqueeze
from ..node import HANDLERS, Node, handles
from .linear_algebra import product

_DOMAIN = "com.microsoft"


def _sum(values: list[ir.Value | None]) -> ir.Value:
    present = [v for v in values if v is not None]
    total = present[0]
    for value in present[1:]:
        total = emit(ops.Add, total, value)
    return total


@handles(f"{_DOMAIN}.SkipLayerNormalization")
def _skip_layer_norm(node: Node) -> list[ir.Value | None]:
    """The sum is the fourth result."""
    total = _sum([node.tensor(0), node.tensor(1), node.optional(4)])
    info = info_of(total)
    shift = node.tensor(3) if node.has(3) else full(0, info.dtype, info.shape[-1:])
    result = emit(ops.LayerNorm, total, node.tensor(2), shift, axes=[-1], epsilon=node.attribute("epsilon", 1e-12))
    return [result, None, None, total]


@handles(f"{_DOMAIN}.SkipSimplifiedLayerNormalization")
def _skip_rms_norm(node: Node) -> list[ir.Value | None]:
    total = _sum([node.tensor(0), node.tensor(1), node.optional(3)])
    result = emit(ops.RMSNorm, total, node.tensor(2), axes=[-1], epsilon=node.attribute("epsilon", 1e-12))
    return [result, None, None, total]


@handles(f"{_DOMAIN}.EmbedLayerNormalization")
def _embed_layer_norm(node: Node) -> list[ir.Value | None]:
    """Words, positions and segments; the mask's index is what attention of that kind wants: how many elements each row has."""
    ids = node.tensor(0)
    length = info_of(ids).shape[1]
    if length is None:
        raise RelaxError("expected ids whose number is known or symbolic")
    words = emit(ops.Take, node.tensor(2), ids, axis=0)
    table = node.tensor(3)
    positions = emit(ops.Take, table, node.tensor(8), axis=0) if node.has(8) else slice_axis(table, 0, 0, length)
    segments = emit(ops.Take, node.tensor(4), node.tensor(1), axis=0) if node.has(1) and node.has(4) else None
    total = _sum([words, positions, segments])
    result = emit(ops.LayerNorm, total, node.tensor(5), node.tensor(6), axes=[-1], epsilon=node.attribute("epsilon", 1e-12))
    i32 = ir.IntegerType.get_signless(32)
    kept = emit(ops.Sum, cast(node.tensor(7), i32), axis=[1]) if node.has(7) else full(0, i32, info_of(ids).shape[:1])
    return [result, kept, total]


@handles(f"{_DOMAIN}.BiasGelu", f"{_DOMAIN}.Gelu", f"{_DOMAIN}.FastGelu")
def _bias_gelu(node: Node) -> ir.Value:
    x = _sum([node.tensor(0), node.optional(1)])
    return emit(ops.GeluTanh if node.key.endswith("FastGelu") else ops.Gelu, x)


@handles(f"{_DOMAIN}.QuickGelu")
def _quick_gelu(node: Node) -> ir.Value:
    x = node.tensor(0)
    scaled = emit(ops.Multiply, x, full(node.attribute("alpha", 1.702), node.dtype()))
    return emit(ops.Multiply, x, emit(ops.Sigmoid, scaled))


@handles(f"{_DOMAIN}.FusedMatMul")
def _fused_matmul(node: Node) -> ir.Value:
    """``alpha`` times the product, either operand transposed."""
    a, b = (transposed(node.tensor(i), bool(node.attribute(k, 0))) for i, k in ((0, "transA"), (1, "transB")))
    if node.attribute("transBatchA", 0) or node.attribute("transBatchB", 0):
        raise RelaxError("expected a product whose batches come first")
    alpha = node.attribute("alpha", 1.0)
    result = product(a, b)
    return result if alpha == 1 else emit(ops.Multiply, result, full(alpha, info_of(result).dtype))


def transposed(x: ir.Value, wanted: bool) -> ir.Value:
    """A tensor with its last two dimensions exchanged, where that is wanted and it has two."""
    rank = info_of(x).rank
    return permute(x, [*range(rank - 2), rank - 1, rank - 2]) if wanted and rank > 1 else x


@handles(f"{_DOMAIN}.FusedGemm", f"{_DOMAIN}.FusedConv")
def _with_activation(node: Node) -> ir.Value:
    """The plain operator, then the activation that an attribute names; the last operand of a convolution is added before."""
    result: Any = HANDLERS["Gemm" if node.key.endswith("Gemm") else "Conv"](node)
    if node.key.endswith("Conv") and node.has(3):
        result = emit(ops.Add, result, node.tensor(3))
    name = node.attribute("activation", "")
    alpha, beta = (node.attribute(k) for k in ("activation_alpha", "activation_beta"))
    params = node.attribute("activation_params") or [alpha, beta]
    plain = {"Relu": ops.Relu, "Sigmoid": ops.Sigmoid, "Tanh": ops.Tanh}
    if name in plain:
        return emit(plain[name], result)
    if name == "LeakyRelu":
        return emit(ops.LeakyRelu, result, alpha=0.01 if params[0] is None else params[0])
    if name == "Clip":
        return emit(ops.Clip, result, min=params[0], max=params[1])
    raise RelaxError(f"expected an activation among Relu, Sigmoid, Tanh, LeakyRelu and Clip, got '{name}'")


@handles(f"{_DOMAIN}.MatMulNBits")
def _matmul_n_bits(node: Node) -> ir.Value:
    """Weights of 4 or 8 bits, in blocks along the rows of ``b[n, blocks, bytes]``, the first element in the lower bits."""
    k, n, bits, block = (node.attribute(a, d) for a, d in (("K", 0), ("N", 0), ("bits", 4), ("block_size", 32)))
    if bits not in (4, 8):
        raise RelaxError(f"expected weights of 4 or 8 bits, got {bits}")
    blocks = -(-k // block)
    stored = ir.IntegerType.get_unsigned(4 if bits == 4 else 8)
    weight = _integers(reshape(node.tensor(1), (n, blocks * block * bits // 8)), stored, blocks * block)
    scale = reshape(node.tensor(2), (n, blocks))
    zero = _zero_points(node, stored, n, blocks)
    if node.has(4):
        weight = _by_groups(node, weight)
    wide = emit(ops.Dequantize, weight, scale, zero, axis=1)
    wide = slice_axis(wide, 1, 0, k)
    result = emit(ops.MatMul, node.tensor(0), permute(wide, [1, 0]))
    return emit(ops.Add, result, node.tensor(5)) if node.has(5) else result


def _integers(words: ir.Value, stored: ir.Type, size: int) -> ir.Value:
    if stored.width == 8:
        return words
    return emit(ops.UnpackNibbles, words, axis=1, dtype=stored, size=size)


def _zero_points(node: Node, stored: ir.Type, n: int, blocks: int) -> ir.Value:
    if not node.has(3):
        return full(1 << (stored.width - 1), stored)
    given = node.tensor(3)
    if info_of(given).dtype == node.dtype():
        return reshape(given, (n, blocks))
    return _integers(reshape(given, (n, -(-blocks * stored.width // 8))), stored, blocks)


def _by_groups(node: Node, weight: ir.Value) -> ir.Value:
    raise RelaxError("expected weights in the order of their rows, got an index of groups")


@handles(f"{_DOMAIN}.RotaryEmbedding")
def _rotary(node: Node) -> ir.Value:
    """``x[batch, length, hidden]`` or ``x[batch, heads, length, size]`` turned by the angles of its positions."""
    x, positions = node.tensor(0), node.tensor(1)
    heads = node.attribute("num_heads", 0)
    flat = node.rank(0) == 3
    batch, length = info_of(x).shape[0], info_of(x).shape[1 if flat else 2]
    cosine, sine = node.tensor(2), node.tensor(3)
    half = info_of(cosine).shape[1]
    if not isinstance(half, int):
        raise RelaxError("expected tables of angles of known size")
    hidden = info_of(x).shape[-1]
    if flat:
        if hidden is None:
            raise RelaxError("expected heads of known size")
        size = hidden // heads if heads else 2 * half
        x = permute(reshape(x, (batch, length, hidden // size, size)), [0, 2, 1, 3])
    turned = rotate(
        x, _angles(cosine, positions, length), _angles(sine, positions, length), bool(node.attribute("interleaved", 0))
    )
    return reshape(permute(turned, [0, 2, 1, 3]), node.operand(0).shape) if flat else turned


def _angles(table: ir.Value, positions: ir.Value, length: Any) -> ir.Value:
    """``[batch or 1, 1, length, half]``; one position is that of the first element."""
    if info_of(positions).shape == (1,):
        positions = unsqueeze(emit(ops.Add, sequence(0, length), cast(positions, integer())), 0)
    return unsqueeze(emit(ops.Take, table, positions, axis=0), 1)


def rotate(x: ir.Value, cosine: ir.Value, sine: ir.Value, interleaved: bool) -> ir.Value:
    """Pairs of elements, neighbours or half a row apart, turned by an angle each; what has no angle stays."""
    half, size = info_of(cosine).shape[-1], info_of(x).shape[-1]
    if not isinstance(half, int) or not isinstance(size, int):
        raise RelaxError("expected rotary embeddings of known size")
    last = info_of(x).rank - 1
    turned, rest = slice_axis(x, last, 0, 2 * half), None if size == 2 * half else slice_axis(x, last, 2 * half, size)
    if interleaved:
        a, b = (slice_axis(turned, last, i, 2 * half, 2) for i in range(2))
    else:
        a, b = slice_axis(turned, last, 0, half), slice_axis(turned, last, half, 2 * half)
    first = emit(ops.Subtract, emit(ops.Multiply, a, cosine), emit(ops.Multiply, b, sine))
    second = emit(ops.Add, emit(ops.Multiply, b, cosine), emit(ops.Multiply, a, sine))
    if interleaved:
        pairs = emit(ops.Concat, unsqueeze(first, last + 1), unsqueeze(second, last + 1), axis=last + 1)
        result = reshape(pairs, info_of(turned).shape)
    else:
        result = emit(ops.Concat, first, second, axis=last)
    return result if rest is None else emit(ops.Concat, result, rest, axis=last)


@handles(f"{_DOMAIN}.Attention")
def _attention(node: Node) -> ir.Value:
    """Query, key and value by one product; the mask is one per key, or how many keys each row has."""
    if node.has(4) or node.wants(1):
        raise RelaxError("expected attention without a cache")
    heads = node.attribute("num_heads")
    x = emit(ops.Add, emit(ops.MatMul, node.tensor(0), node.tensor(1)), node.tensor(2))
    width = node.known_size(1, 1)
    sizes = node.attribute("qkv_hidden_sizes") or [width // 3] * 3
    parts: list[ir.Value] = []
    start = 0
    for size in sizes:
        parts.append(_by_heads(slice_axis(x, 2, start, start + size), heads))
        start += size
    mask = _mask(node, 3, info_of(x).shape) if node.has(3) else None
    bias = node.optional(5)
    mask = bias if mask is None else mask if bias is None else _masked(bias, mask)
    causal = bool(node.attribute("unidirectional", 0))
    result = emit(ops.Attention, *parts, mask, causal=causal, scale=node.attribute("scale", 0.0) or None)
    return _without_heads(result)


def _by_heads(x: ir.Value, heads: int) -> ir.Value:
    batch, length, size = info_of(x).shape
    if not isinstance(size, int):
        raise RelaxError("expected heads of known size")
    return permute(reshape(x, (batch, length, heads, size // heads)), [0, 2, 1, 3])


def _without_heads(x: ir.Value) -> ir.Value:
    batch, heads, length, size = info_of(x).shape
    return reshape(permute(x, [0, 2, 1, 3]), (batch, length, heads * size))  # pyright: ignore[reportOperatorIssue]


def _mask(node: Node, index: int, shape: Any) -> ir.Value:
    """A truth value per key, ``[batch, 1, 1, keys]``, or per query and key."""
    given = node.tensor(index)
    rank = info_of(given).rank
    if rank == 1:
        keys = sequence(0, shape[1])
        return unsqueeze(emit(ops.Less, unsqueeze(keys, 0), unsqueeze(cast(given, integer()), 1)), 1, 2)
    kept = emit(ops.NotEqual, given, full(0, info_of(given).dtype))
    return unsqueeze(kept, 1, 2) if rank == 2 else unsqueeze(kept, 1) if rank == 3 else kept


def _masked(bias: ir.Value, kept: ir.Value) -> ir.Value:
    dtype = info_of(bias).dtype
    return emit(ops.Where, kept, bias, full(-float("inf"), dtype))


@handles(f"{_DOMAIN}.MultiHeadAttention")
def _multi_head_attention(node: Node) -> ir.Value:
    """Query, key and value of three dimensions each, and one bias for all."""
    if node.has(6) or node.wants(1):
        raise RelaxError("expected attention without a cache")
    heads = node.attribute("num_heads")
    if not node.has(1) or not node.has(2) or node.rank(1) != 3 or node.rank(2) != 3:
        raise RelaxError("expected query, key and value of three dimensions")
    parts = [node.tensor(i) for i in range(3)]
    if node.has(3):
        bias, start = node.tensor(3), 0
        for i, part in enumerate(parts):
            size = info_of(part).shape[-1]
            if not isinstance(size, int):
                raise RelaxError("expected heads of known size")
            parts[i] = emit(ops.Add, part, slice_axis(bias, 0, start, start + size))
            start += size
    query, key, value = (_by_heads(p, heads) for p in parts)
    mask = _mask(node, 4, info_of(parts[1]).shape) if node.has(4) else None
    bias = node.optional(5)
    mask = bias if mask is None else mask if bias is None else _masked(bias, mask)
    causal = bool(node.attribute("unidirectional", 0))
    result = emit(ops.Attention, query, key, value, mask, causal=causal, scale=node.attribute("scale", 0.0) or None)
    return _without_heads(result)


@handles(f"{_DOMAIN}.GroupQueryAttention")
def _group_query_attention(node: Node) -> list[ir.Value]:
    """Grouped queries with a cache that grows: what was there, then the new keys and values, all of which are in use.

    ``seqlens_k`` and ``total_sequence_length`` say the same of caches without unused room, which is what is taken here.
    """
    heads, groups = node.attribute("num_heads"), node.attribute("kv_num_heads")
    for name in ("softcap", "smooth_softmax"):
        if node.attribute(name, 0):
            raise RelaxError(f"expected attention without {name}")
    if not node.has(1) or not node.has(2):
        raise RelaxError("expected query, key and value of their own")
    query, key, value = (_by_heads(node.tensor(i), h) for i, h in ((0, heads), (1, groups), (2, groups)))
    length = info_of(query).shape[2]
    past = info_of(node.tensor(3)).shape[2] if node.has(3) else 0
    if length is None or past is None:
        raise RelaxError("expected queries and a cache whose lengths are known or symbolic")
    places = emit(ops.Add, sequence(0, length), full(past, integer()))
    if node.attribute("do_rotary", 0):
        angles = [unsqueeze(emit(ops.Take, node.tensor(i), places, axis=0), 0, 1) for i in (7, 8)]
        interleaved = bool(node.attribute("rotary_interleaved", 0))
        query, key = (rotate(x, angles[0], angles[1], interleaved) for x in (query, key))
    if node.has(3):
        key, value = (emit(ops.Concat, node.tensor(i), new, axis=2) for i, new in ((3, key), (4, value)))
    keys = sequence(0, past + length)
    seen = emit(ops.LessEqual, unsqueeze(keys, 0), unsqueeze(places, 1))
    window = node.attribute("local_window_size", -1)
    if window > 0:
        near = emit(ops.Greater, unsqueeze(keys, 0), emit(ops.Subtract, unsqueeze(places, 1), full(window, integer())))
        seen = emit(ops.LogicalAnd, seen, near)
    mask = _masked(node.tensor(10), seen) if node.has(10) else seen
    result = emit(ops.Attention, query, key, value, mask, scale=node.attribute("scale", 0.0) or None)
    return [_without_heads(result), key, value]

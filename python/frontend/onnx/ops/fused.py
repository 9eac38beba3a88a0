"""Operators of com.microsoft that ONNX Runtime's optimizer and exporters make of several: norms, activations, products.

Source: https://github.com/microsoft/onnxruntime/blob/main/docs/ContribOperators.md.
"""

from __future__ import annotations

from typing import Any

from ....dialect import ops
from ....dialect.bindings import ir
from ....dialect.errors import RelaxError
from ...emit import cast, emit, full, info_of, integer, permute, reshape, sequence, slice_axis, unsqueeze
from ..equal_sizes import agreed_operands
from ..node import HANDLERS, Node, handles
from .linear_algebra import product

_DOMAIN = "com.microsoft"


def _sum(values: list[ir.Value | None]) -> ir.Value:
    total, *others = agreed_operands(*(v for v in values if v is not None))
    for value in others:
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
    """``alpha`` times the product, either operand transposed; its batches may be between its two dimensions."""
    a, b = (_factor(node, i, side) for i, side in enumerate("AB"))
    alpha = node.attribute("alpha", 1.0)
    result = product(a, b)
    return result if alpha == 1 else emit(ops.Multiply, result, full(alpha, info_of(result).dtype))


def _factor(node: Node, index: int, side: str) -> ir.Value:
    x, rank = node.tensor(index), node.rank(index)
    if node.attribute(f"transBatch{side}", 0) and rank > 2:
        x = permute(x, [*range(1, rank - 1), 0, rank - 1])
    return transposed(x, bool(node.attribute(f"trans{side}", 0)))


def transposed(x: ir.Value, wanted: bool) -> ir.Value:
    """A tensor with its last two dimensions exchanged, where that is wanted and it has two."""
    rank = info_of(x).rank
    return permute(x, [*range(rank - 2), rank - 1, rank - 2]) if wanted and rank > 1 else x


@handles(f"{_DOMAIN}.FusedGemm", f"{_DOMAIN}.FusedConv")
def _with_activation(node: Node) -> ir.Value:
    """The plain operator, then the activation that an attribute names; the last operand of a convolution is added before."""
    result: Any = HANDLERS["Gemm" if node.key.endswith("Gemm") else "Conv"](node)
    if node.key.endswith("Conv") and node.has(3):
        result = emit(ops.Add, *agreed_operands(result, node.tensor(3)))
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

"""Operators of com.microsoft on weights of 2, 4 or 8 bits in blocks: products and embeddings.

Source: https://github.com/microsoft/onnxruntime/blob/main/docs/ContribOperators.md.
"""

from __future__ import annotations

from ....dialect import ops
from ....dialect.bindings import ir
from ....dialect.errors import RelaxError
from ....dialect.inference import is_float
from ...emit import (
    cast,
    concat,
    emit,
    full,
    info_of,
    integer,
    multiply_all,
    permute,
    plus_bias,
    reshape,
    slice_axis,
    unrounded,
    unsqueeze,
)
from ..node import Node, handles
from .indexing import place_in
from .quantize import per_block

_DOMAIN = "com.microsoft"
#: The ``accuracy_level`` of MatMulNBits that has rows in eight bits.
_INT8_ROWS = 4
# The least scale of rows: blocks of zeros have it, and quotients stay finite.
_LEAST = 1e-30


@handles(f"{_DOMAIN}.MatMulNBits")
def _matmul_n_bits(node: Node) -> ir.Value:
    """Blocks are along the rows of ``b[n, blocks, bytes]``; or an index says which block's scale an element has.

    With ``accuracy_level`` 4 the rows are rounded to eight bits in the same blocks, as ONNX Runtime does.
    """
    k, n, bits, block = (node.attribute(a, d) for a, d in (("K", 0), ("N", 0), ("bits", 4), ("block_size", 32)))
    blocks = -(-k // block)
    weight = _integers(reshape(node.tensor(1), (n, blocks * block * bits // 8)), bits, blocks * block)
    scale = reshape(node.tensor(2), (n, blocks))
    zero = _zero_points(node, bits, n, blocks)
    if node.attribute("accuracy_level", 0) == _INT8_ROWS and not node.has(4) and not is_float(info_of(zero).dtype):
        return _with_bias(node, _product_of_rounded(node, weight, scale, zero, block))
    if node.has(4):
        groups = slice_axis(node.tensor(4), 0, 0, k)
        weight = slice_axis(weight, 1, 0, k)
        scale, zero = (emit(ops.Take, p, groups, axis=1) if info_of(p).rank else p for p in (scale, zero))
    wide = slice_axis(emit(ops.Dequantize, weight, scale, zero, axis=1), 1, 0, k)
    out_dtype = unrounded(info_of(node.tensor(0)).dtype) if node.has(5) else None
    return _with_bias(node, emit(ops.MatMul, node.tensor(0), permute(wide, [1, 0]), out_dtype=out_dtype))


def _with_bias(node: Node, product: ir.Value) -> ir.Value:
    dtype = info_of(node.tensor(0)).dtype
    return plus_bias(product, node.tensor(5), dtype) if node.has(5) else cast(product, dtype)


def _product_of_rounded(node: Node, weight: ir.Value, scale: ir.Value, zero: ir.Value, block: int) -> ir.Value:
    """The product in f32, of rows rounded to eight bits; what the last block lacks of the rows is zeros."""
    f32, x = ir.F32Type.get(), node.tensor(0)
    rank, blocks = info_of(x).rank, info_of(scale).shape[1]
    assert isinstance(blocks, int)
    lacks = blocks * block - node.attribute("K", 0)
    padded = emit(ops.Pad, x, before=[0] * rank, after=[0] * (rank - 1) + [lacks], value=0.0) if lacks else x
    wide = emit(ops.Dequantize, weight, cast(scale, f32), zero, axis=1)
    return emit(ops.MatMul, _rounded(cast(padded, f32), blocks, block), permute(wide, [1, 0]))


def _rounded(rows: ir.Value, blocks: int, block: int) -> ir.Value:
    """Rows as integers from -127 to 127 times a scale for each block, the largest magnitude over 127.

    Source: ONNX Runtime's ``onnxruntime/core/mlas/lib/sqnbitgemm_kernel_avx512_int8_blklen32.h``.
    """
    f32, byte = ir.F32Type.get(), integer(8)
    *outer, _ = info_of(rows).shape
    magnitude = emit(ops.Max, emit(ops.Abs, reshape(rows, (*outer, blocks, block))), axis=[-1])
    scale = emit(ops.Multiply, emit(ops.Maximum, magnitude, full(127 * _LEAST, f32)), full(1 / 127, f32))
    zero = full(0, byte)
    return emit(ops.Dequantize, emit(ops.Quantize, rows, scale, zero, dtype=byte), scale, zero)


def _integers(words: ir.Value, bits: int, size: int) -> ir.Value:
    """Elements of the last dimension of bytes, the first in the lower bits."""
    last, ui8 = info_of(words).rank - 1, ir.IntegerType.get_unsigned(8)
    if bits == 8:
        return words
    if bits == 4:
        return emit(ops.UnpackNibbles, words, axis=last, dtype=ir.IntegerType.get_unsigned(4), size=size)
    if bits != 2:
        raise RelaxError(f"expected weights of 2, 4 or 8 bits, got {bits}")
    parts = [emit(ops.Mod, emit(ops.Divide, words, full(4**i, ui8)), full(4, ui8)) for i in range(4)]
    together = concat([unsqueeze(p, last + 1) for p in parts], last + 1)
    shape = info_of(words).shape
    return slice_axis(reshape(together, (*shape[:-1], multiply_all((shape[-1], 4)))), last, 0, size)


def _middle(bits: int) -> ir.Value:
    return full(1 << (bits - 1), ir.IntegerType.get_unsigned(4 if bits == 4 else 8))


def _zero_points(node: Node, bits: int, n: int, blocks: int) -> ir.Value:
    if not node.has(3):
        return _middle(bits)
    given = node.tensor(3)
    if is_float(info_of(given).dtype):  # in steps of the scale, where relax's are a shift
        scale = node.tensor(2)
        return emit(ops.Multiply, cast(reshape(given, (n, blocks)), info_of(scale).dtype), reshape(scale, (n, blocks)))
    return _integers(reshape(given, (n, -(-blocks * bits // 8))), bits, blocks)


@handles(f"{_DOMAIN}.GatherBlockQuantized")
def _gather_blocks(node: Node) -> ir.Value:
    """Parts of a table along one axis, with blocks along any; a byte may hold several elements of the last dimension."""
    rank, block = node.rank(0), node.attribute("block_size", 128)
    axis, along = node.axis(0, rank, "gather_axis"), node.axis(1, rank, "quantize_axis")
    is_packed = node.dtype().width == 8
    if is_packed and (axis != 0 or along != rank - 1):
        raise RelaxError("expected rows of a table of bytes, with blocks along its last dimension")
    bits = node.attribute("bits", 4) if is_packed else node.dtype().width
    places = of_blocks = node.tensor(1)
    if axis == along:
        places = place_in(places, node.size(0, axis))
        of_blocks = emit(ops.Divide, places, full(block, integer()))
    data = emit(ops.Take, node.tensor(0), places, axis=axis)
    scale, *zeros = (emit(ops.Take, node.tensor(i), of_blocks, axis=axis) for i in (2, 3) if node.has(i))
    last = info_of(data).rank - 1
    zero = zeros[0] if zeros else _middle(bits) if is_packed else full(0, node.dtype())
    if is_packed:
        data = _integers(data, bits, node.known_size(0, rank - 1) * 8 // bits)
        zero = _integers(zero, bits, node.known_size(2, rank - 1)) if zeros else zero
    at = along if along < axis else along + node.rank(1) - 1
    if axis != along:
        size = info_of(data).shape[at]
        scale = per_block(scale, at, block, size)
        zero = per_block(zero, at, block, size) if zeros else zero
    return emit(ops.Dequantize, data, scale, zero, axis=last)

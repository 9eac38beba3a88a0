"""Multiplies bytes in f32 where exact sums of their products, in f64, become f32 anyway.

Before::

    %0 = "relax.dequantize"(%a, %one, %za) : (tensor<?x768xui8>, tensor<f64>, tensor<ui8>) -> tensor<?x768xf64>
    %1 = "relax.dequantize"(%b, %one, %zb) : (tensor<768x3072xi8>, tensor<f64>, tensor<i8>) -> tensor<768x3072xf64>
    %2 = "relax.matmul"(%0, %1)
    %3 = "relax.astype"(%2) {dtype = i32}
    %4 = "relax.astype"(%3) {dtype = f32}

after::

    %0 = "relax.dequantize"(%a, %one, %za) : (tensor<?x768xui8>, tensor<f32>, tensor<ui8>) -> tensor<?x768xf32>
    %1 = "relax.dequantize"(%b, %one, %zb) : (tensor<768x3072xi8>, tensor<f32>, tensor<i8>) -> tensor<768x3072xf32>
    %4 = "relax.matmul"(%0, %1)

ONNX has such products. The scale is 1, so factors are integers of at most nine bits, exact in f32; sums
are rounded like those of floats. ``relax-quantize-activations`` makes such products those of integers again.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from ...bindings import ir
from ...functions import functions
from ...inference import is_float
from ...op import attrs_of
from ...ops import AsType, Conv2D, Dequantize, Full, MatMul
from ...passes.base import Pass
from ...passes.rewriting import Patterns, Rewriter, walk
from ...struct_info import TensorInfo
from .given_integers import full

__all__ = ["RoundExactProducts"]


@dataclass(frozen=True)
class RoundExactProducts(Pass):
    """Rewrites casts to f32 of matrix products and convolutions."""

    name: ClassVar[str] = "relax-round-exact-products"

    def run(self, op: ir.Operation) -> None:
        for function in functions(op):
            walk(function, _PATTERNS)


def _multiply_in_f32(op: AsType, rewriter: Rewriter) -> bool:
    product = _exact_product(op)
    if product is None:
        return False
    factors = [f.owner for f in product.operands]
    if not all(isinstance(f, Dequantize) and _is_integer(f) for f in factors):
        return False
    rewriter.discard(op.x.owner, product, *factors)
    with rewriter.before(op):
        attrs = {key: value for key, value in attrs_of(product).items() if key in product.attributes}
        return rewriter.replace(op, type(product).create(*(_in_f32(f) for f in factors), **attrs))


def _exact_product(op: AsType) -> MatMul | Conv2D | None:
    """The product in f64 whose sums are made i32, and then f32."""
    integers = op.x.owner
    if not isinstance(TensorInfo.of(op.result).dtype, ir.F32Type) or not isinstance(integers, AsType):
        return None
    product = integers.x.owner
    if str(TensorInfo.of(op.x).dtype) != "i32" or not isinstance(product, MatMul | Conv2D):
        return None
    return product if product.out_dtype is None and str(TensorInfo.of(integers.x).dtype) == "f64" else None


def _is_integer(factor: Dequantize) -> bool:
    """Whether elements are differences of bytes."""
    bits = [TensorInfo.of(v).dtype for v in (factor.x, factor.zero_point)]
    small = all(isinstance(b, ir.IntegerType) and b.width <= 8 for b in bits)
    scale = factor.scale.owner
    return small and isinstance(scale, Full) and scale.value == 1 and is_float(TensorInfo.of(factor.scale).dtype)


def _in_f32(factor: Dequantize) -> ir.Value:
    one = full(1.0, ir.F32Type.get(), list(TensorInfo.of(factor.scale).shape))
    return Dequantize.create(factor.x, one, factor.zero_point, axis=factor.axis).result


_PATTERNS: Patterns = [(AsType, _multiply_in_f32)]

"""Has what is quantized scaled with one factor, where it was scaled with two: a product's own, and one over the quantization's.

Before::

    %1 = "relax.multiply"(%0, %scale)              // %0: sums of integers, as f32; %scale: tensor<16x1x1xf32>
    %2 = "relax.add"(%1, %bias)
    %3 = "relax.quantize"(%2, %s, %zero)           // divides each element by %s: tensor<f32>

after::

    %1 = "relax.multiply"(%0, "relax.divide"(%scale, %s))
    %2 = "relax.add"(%1, "relax.divide"(%bias, %s))
    %3 = "relax.quantize"(%2, 1.0, %zero)

What is known when weights are prepared is divided there, once, and elements are no longer. So it is for a sum of what is
dequantized with scales that are known, as a residual connection adds it. What was infinite in between need not be. ONNX Runtime
and OpenVINO scale integers the same way.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from ...analysis.weight_flow import FlowRules, WeightFlow
from ...bindings import ir
from ...functions import functions, num_input
from ...inference import is_float
from ...op import attrs_of
from ...ops import Add, AsType, Dequantize, Divide, Full, Multiply, Quantize, Subtract
from ...passes.base import Pass
from ...passes.rewriting import Patterns, Rewriter, walk
from ...struct_info import TensorInfo
from .given_integers import full

__all__ = ["FoldScales"]


@dataclass(frozen=True)
class FoldScales(Pass):
    """Folds in functions that have ``relax.num_input``, by scales that are known ahead."""

    name: ClassVar[str] = "relax-fold-scales"
    rounding: ClassVar[float] = 1e-6  # a quotient of scales is rounded, and the product with it, where a quotient of both was

    def run(self, op: ir.Operation) -> None:
        rules = FlowRules.of(op)
        for function in functions(op):
            if num_input(function) is not None:
                flow = rules.flow(function)
                walk(function, _Folding(flow).patterns(), flow)


class _Folding:
    """Folds in one function."""

    def __init__(self, flow: WeightFlow):
        self._flow = flow

    def patterns(self) -> Patterns:
        return [(Quantize, self._fold)]

    def _fold(self, op: Quantize, rewriter: Rewriter) -> bool:
        scale = op.scale
        if TensorInfo.of(scale).rank or not self._flow.is_ahead(scale) or _is_one(scale) or self._flow.is_known(op.x):
            return False
        if not all(_is_f32(v) for v in (op.x, scale)) or not self._scales(op.x):
            return False
        with rewriter.before(op):
            x, one = self._divided(op.x, scale, rewriter), full(1.0, ir.F32Type.get(), [])
            return rewriter.replace(op, Quantize.create(x, one, op.zero_point, **attrs_of(op)))

    def _scales(self, value: ir.Value) -> bool:
        """Whether a value is a sum of products of integers with scales that are known ahead, and of what is known itself."""
        if self._flow.is_ahead(value):
            return True
        op: Any = None if isinstance(value.owner, ir.Block) else value.owner
        if not _is_f32(value):
            return False
        if isinstance(op, Add | Subtract):
            return _is_read_once(value) and self._scales(op.lhs) and self._scales(op.rhs)
        if isinstance(op, Multiply):
            return _is_read_once(value) and any(_is_integer(a) and self._flow.is_ahead(b) for a, b in _turns(op))
        return isinstance(op, Dequantize) and self._flow.is_ahead(op.scale) and not is_float(TensorInfo.of(op.zero_point).dtype)

    def _divided(self, value: ir.Value, by: ir.Value, rewriter: Rewriter) -> ir.Value:
        """The value that :meth:`_scales`, over a scale."""
        if self._flow.is_ahead(value):
            return Divide.create(value, by).result
        op: Any = value.owner
        rewriter.discard(op)
        if isinstance(op, Add | Subtract):
            return type(op).create(*(self._divided(v, by, rewriter) for v in (op.lhs, op.rhs))).result
        if isinstance(op, Multiply):
            integers, scale = next((a, b) for a, b in _turns(op) if _is_integer(a) and self._flow.is_ahead(b))
            return Multiply.create(integers, Divide.create(scale, by).result).result
        scale = op.scale if _is_f32(op.scale) else AsType.create(op.scale, dtype=ir.F32Type.get()).result
        return Dequantize.create(op.x, Divide.create(scale, by).result, op.zero_point, axis=op.axis).result


def _turns(op: Multiply) -> list[tuple[ir.Value, ir.Value]]:
    return [(op.lhs, op.rhs), (op.rhs, op.lhs)]


def _is_integer(value: ir.Value) -> bool:
    op: Any = None if isinstance(value.owner, ir.Block) else value.owner
    return isinstance(op, AsType) and isinstance(TensorInfo.of(op.x).dtype, ir.IntegerType)


def _is_f32(value: ir.Value) -> bool:
    return isinstance(TensorInfo.of(value).dtype, ir.F32Type)


def _is_one(scale: ir.Value) -> bool:
    return isinstance(scale.owner, Full) and scale.owner.value == 1


def _is_read_once(value: ir.Value) -> bool:
    return len(list(value.uses)) == 1

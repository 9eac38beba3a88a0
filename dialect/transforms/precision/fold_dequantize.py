"""Makes one ``dequantize`` of a quantized weight that is spelled out: cast, minus its zero point, times its scale.

Before::

    %0 = "relax.astype"(%q) {dtype = f32} : (tensor<24x32x3072xi4>) -> tensor<24x32x3072xf32>
    %1 = "relax.astype"(%z) {dtype = f32} : (tensor<24x1x3072xi4>) -> tensor<24x1x3072xf32>
    %2 = "relax.subtract"(%0, %1)
    %3 = "relax.multiply"(%2, %scale)                             // tensor<24x1x3072xf32>

after::

    %3 = "relax.dequantize"(%q, %scale, %z) : (...) -> tensor<24x32x3072xf32>

Results are bit for bit the same: integers of up to eight bits, and differences of two, are exact in every float of 16 bits or
more. As one op the weight can be moved as integers (``relax-sink-growth``), and grows in the kernel that reads it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from ...analysis.weight_flow import FlowRules, WeightFlow
from ...bindings import ir
from ...functions import functions, num_input
from ...inference import boolean, is_float
from ...ops import AsType, BroadcastTo, Dequantize, Full, Multiply, Subtract
from ...passes.base import Pass
from ...passes.rewriting import Patterns, Rewriter, walk
from ...struct_info import TensorInfo
from ...symbolic import Dim, same
from ..packing.block_movement import reshaped

__all__ = ["FoldDequantize"]


@dataclass(frozen=True)
class FoldDequantize(Pass):
    """Folds in functions that have ``relax.num_input``, on values that come from weights."""

    name: ClassVar[str] = "relax-fold-dequantize"

    def run(self, op: ir.Operation) -> None:
        rules = FlowRules.of(op)
        for function in functions(op):
            if num_input(function) is not None:
                flow = rules.flow(function)
                walk(function, _Folding(flow).patterns(), flow)


@dataclass(frozen=True)
class _Quantized:
    """Integers that a float tensor is a cast of, and the zero point that was subtracted; ``spelled`` are the ops of that."""

    x: ir.Value
    zero_point: ir.Value | None
    spelled: list[ir.Value]


class _Folding:
    """Folds in one function."""

    def __init__(self, flow: WeightFlow):
        self._flow = flow

    def patterns(self) -> Patterns:
        return [(Multiply, self._fold_product_with_scale)]

    def _fold_product_with_scale(self, op: Multiply, rewriter: Rewriter) -> bool:
        if not self._flow.once_from_weights(op.result):
            return False
        for value, scale in ((op.lhs, op.rhs), (op.rhs, op.lhs)):
            found = _quantized(value)
            if found is None or not _fits(op, found, scale):
                continue
            # What spelled the weight out goes, where nothing else reads it.
            rewriter.discard(*(v.owner for v in (*found.spelled, scale) if not isinstance(v, ir.BlockArgument)))
            with rewriter.before(op):
                return rewriter.replace(op, _dequantize(op, found, scale))
        return False


def _quantized(value: ir.Value) -> _Quantized | None:
    op: Any = value.owner
    x = _integers(value)
    if x is not None:
        return _Quantized(x, None, [value])
    if not isinstance(op, Subtract):
        return None
    x, zero_point = _integers(op.lhs), _integers(_narrowest(op.rhs))
    if x is None or zero_point is None or TensorInfo.of(x).dtype != TensorInfo.of(zero_point).dtype:
        return None
    return _Quantized(x, zero_point, [_narrowest(op.rhs), op.rhs, op.lhs, value])


def _integers(value: ir.Value) -> ir.Value | None:
    """The small integers that a value is a cast of."""
    op: Any = value.owner
    if not isinstance(op, AsType):
        return None
    source, result = TensorInfo.of(op.x).dtype, TensorInfo.of(value).dtype
    small = isinstance(source, ir.IntegerType) and source.width <= 8 and source != boolean()
    return op.x if small and is_float(result) and result.width >= 16 else None  # pyright: ignore[reportAttributeAccessIssue]


def _narrowest(value: ir.Value) -> ir.Value:
    """What was broadcast to the value."""
    op: Any = value.owner
    return _narrowest(op.x) if isinstance(op, BroadcastTo) else value


def _fits(op: Multiply, found: _Quantized, scale: ir.Value) -> bool:
    """Whether the integers have the result's shape, and the parameters one element for each or for all along every axis."""
    shape, parameters = TensorInfo.of(op.results[0]).shape, [_narrowest(scale), found.zero_point]
    own = TensorInfo.of(found.x).shape
    if len(own) != len(shape) or not all(same(a, b) for a, b in zip(own, shape, strict=True)):
        return False
    counts = [_counts(p, len(shape)) for p in parameters if p is not None]
    return all(c == 1 or same(c, d) for each in counts for c, d in zip(each, shape, strict=True))


def _counts(parameter: ir.Value, rank: int) -> Sequence[Dim]:
    own = TensorInfo.of(parameter).shape
    return [1] * (rank - len(own)) + list(own)


def _dequantize(op: Multiply, found: _Quantized, scale: ir.Value) -> ir.Operation:
    """What stands for the product."""
    rank = TensorInfo.of(found.x).rank
    scale = _parameter(_narrowest(scale), rank)
    zero_point = _zero(found.x) if found.zero_point is None else _parameter(found.zero_point, rank)
    return Dequantize.create(found.x, scale, zero_point, result_types=[op.results[0].type])


def _parameter(value: ir.Value, rank: int) -> ir.Value:
    return reshaped(value, _counts(value, rank)) if TensorInfo.of(value).rank else value


def _zero(x: ir.Value) -> ir.Value:
    scalar = TensorInfo.of(x).with_(shape=[])
    return Full.create(value=0, result_types=[scalar.type]).result

"""Moves ops that make a weight bigger behind the ops that move its data: the small weight is moved, and grows at its use.

Before::

    %w = "relax.dequantize"(%q, %scale, %zero)                      // tensor<768x3072xi8> to tensor<768x3072xf32>
    %p = "relax.pack_weight"(%w) {layout = "tile 32"} : (tensor<768x3072xf32>) -> tensor<96x768x32xf32>
    %y = "relax.packed_matmul"(%x, %p) {layout = "tile 32", n = 3072 : i64}

after::

    %0 = "relax.pack_weight"(%q) {layout = "tile 32"} : (tensor<768x3072xi8>) -> tensor<96x768x32xi8>
    %1 = "relax.pack_weight"(%scale) {layout = "tile 32"} : (tensor<24x3072xf32>) -> tensor<96x24x32xf32>
    %p = "relax.dequantize"(%0, %1, %zero)                          // tensor<96x768x32xi8> to tensor<96x768x32xf32>
    %y = "relax.packed_matmul"(%x, %p) {layout = "tile 32", n = 3072 : i64}

What grows is an ``astype`` to wider elements, a ``dequantize``, a ``look_up``, a ``broadcast_to``. Lifting can then move the
data when weights are prepared, and leave the growth to inference, where the consumer's kernel does it. What moves a value that
``relax.lift`` always lifts is always lifted, too. Elements are the same bit for bit; of a packed weight only those that are
columns of the matrix, when nothing but products reads it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from ...analysis.weight_flow import FlowRules, WeightFlow
from ...bindings import func, ir
from ...errors import RelaxError
from ...functions import functions, num_input
from ...inference import normalize_axis
from ...lift_override import ALWAYS, LIFT, override_of
from ...op import attrs_of, grows_from
from ...ops import AsType, BroadcastTo, Concat, Dequantize, LookUp, PackedGroupedMatMul, PackedMatMul, PackWeight, Reshape, Take
from ...passes.base import Pass
from ...passes.rewriting import Patterns, Rewriter, budget_for, walk
from ...struct_info import TensorInfo
from ...symbolic import Dim, same
from ...traversal import outermost
from .block_movement import MOVES, per_index, reshaped

__all__ = ["SinkGrowth"]


@dataclass(frozen=True)
class SinkGrowth(Pass):
    """Moves growth of weights behind movement, in functions that have ``relax.num_input``; a sweep per growth in a row."""

    name: ClassVar[str] = "relax-sink-growth"

    def run(self, op: ir.Operation) -> None:
        rules = FlowRules.of(op)
        for function in functions(op):
            if num_input(function) is not None:
                _sink_in(function, rules)


def _sink_in(function: func.FuncOp, rules: FlowRules) -> None:
    """Sweeps until nothing sinks any more: what is moved after one sweep may have grown before."""
    budget = budget_for(function.operation, 1, 1)  # growth in a row takes a sweep each
    for _ in range(budget):
        flow = rules.flow(function)
        if not walk(function, _Sinking(flow).patterns(), flow).rewrites:
            return
    raise RelaxError(f"expected growth of weights to sink within {budget} sweeps, got more", function.location)


class _Sinking:
    """One sweep over a function: growth sinks behind every op that moves it."""

    def __init__(self, flow: WeightFlow):
        self._flow = flow

    def patterns(self) -> Patterns:
        return [(kind, self._sink_behind) for kind in (*MOVES, Concat)]

    def _sink_behind(self, op: ir.OpView, rewriter: Rewriter) -> bool:
        # In a branch or loop look-ups alone: anything else would grow again and again.
        if not isinstance(op, Take) and outermost(op.operation) != op.operation:
            return False
        grown = _growths(op, self._flow)
        with rewriter.before(op):
            made = _sunk(op, grown) if grown else None
        if made is None:
            return False
        rewriter.discard(*(growth.value.owner for growth in grown))
        return rewriter.replace(op, made)


@dataclass(frozen=True)
class _Parameter:
    """A tensor of one element per block of another; ``counts`` is its shape at that one's rank, None for what never moves."""

    value: ir.Value
    counts: list[Dim] | None

    def blocks(self) -> ir.Value:
        return self.value if self.counts is None else reshaped(self.value, self.counts)


@dataclass(frozen=True)
class _Growth:
    """How a value is made bigger.

    Attributes:
        value: the value, the only result of the op that does it.
        x: what is made bigger element by element; None when parameters alone are.
        parameters: what belongs to blocks of elements.
    """

    value: ir.Value
    x: ir.Value | None
    parameters: list[_Parameter]

    @property
    def kind(self) -> tuple[object, ...]:
        """Equal for growths that can be one."""
        tensors = [self.value, *([] if self.x is None else [self.x]), *(p.value for p in self.parameters)]
        op: Any = self.value.owner
        return (type(op), *(TensorInfo.of(v).dtype for v in tensors), *([op.table] if isinstance(op, LookUp) else []))

    def again(self, x: ir.Value | None, parameters: Sequence[ir.Value], result: ir.Type) -> ir.Value:
        """The same growth of other tensors."""
        op: Any = self.value.owner
        operands = [*([] if x is None else [x]), *parameters]
        attrs = {"out_dtype": op.out_dtype} if isinstance(op, Dequantize) else attrs_of(op)
        made = type(op).create(*operands, result_types=[result], **attrs)
        if LIFT in op.attributes:
            made.attributes[LIFT] = op.attributes[LIFT]
        return made.result


def _growths(op: ir.OpView, flow: WeightFlow) -> list[_Growth]:
    """How the operands that an op moves got their size; empty when one of them did not grow."""
    found = [_growth_of(v, flow) for v in (op.operands if isinstance(op, Concat) else [op.operands[0]])]
    return [] if None in found else [growth for growth in found if growth is not None]


def _growth_of(value: ir.Value, flow: WeightFlow) -> _Growth | None:
    if not flow.once_from_weights(value) or isinstance(value, ir.BlockArgument):
        return None
    op: Any = value.owner
    if isinstance(op, AsType):
        return _Growth(value, op.x, []) if _bits(op.x) < _bits(value) else None
    shape = TensorInfo.of(value).shape
    if isinstance(op, Dequantize):
        return _Growth(value, op.x, [_parameter(p, op.axis, shape) for p in (op.scale, op.zero_point)])
    if isinstance(op, LookUp):
        return _Growth(value, op.codes, [_Parameter(op.table, None)])
    if isinstance(op, BroadcastTo):
        own = TensorInfo.of(op.x).shape
        return _Growth(value, None, [_Parameter(op.x, [1] * (len(shape) - len(own)) + list(own))])
    return None


def _parameter(value: ir.Value, axis: int, shape: Sequence[Dim]) -> _Parameter:
    own = TensorInfo.of(value).shape
    if not own:
        return _Parameter(value, None)
    if len(own) == len(shape):
        return _Parameter(value, list(own))
    axis = normalize_axis(axis, len(shape))
    return _Parameter(value, [own[0] if i == axis else 1 for i in range(len(shape))])


def _bits(value: ir.Value) -> int:
    width: int = TensorInfo.of(value).dtype.width  # pyright: ignore[reportAttributeAccessIssue]
    return width


def _sunk(op: Any, grown: Sequence[_Growth]) -> list[ir.Value] | None:
    """What an op's results are when its operands grow after it; None, and nothing emitted, when that cannot be."""
    if isinstance(op, Concat):
        return _concatenated(op, *grown)
    (growth,) = grown
    plans = [None if p.counts is None else MOVES[type(op)](op, p.counts) for p in growth.parameters]
    if any(plan is None and p.counts is not None for plan, p in zip(plans, growth.parameters, strict=True)):
        return None
    if growth.x is None and isinstance(op, Reshape):  # elements that were repeated need be no dimension of their own
        return None
    if isinstance(op, PackWeight) and not _pads_rightly(op, growth):
        return None
    count = len(op.results)
    results = [
        [p.value] * count if plan is None else _lifted_alike(p.value, plan(p.blocks()))
        for plan, p in zip(plans, growth.parameters, strict=True)
    ]
    moved = [None] * count if growth.x is None else _lifted_alike(growth.x, _moved(op, growth.x))
    return [
        growth.again(x, [r[i] for r in results], result.type)
        for i, (x, result) in enumerate(zip(moved, op.results, strict=True))
    ]


def _lifted_alike(source: ir.Value, moved: list[ir.Value]) -> list[ir.Value]:
    """What was moved, to be lifted always where its source is."""
    if isinstance(source.owner, ir.Block) or override_of(source.owner.attributes) != ALWAYS:
        return moved
    for value in moved:
        value.owner.attributes[LIFT] = ir.StringAttr.get(ALWAYS)
    return moved


def _moved(op: Any, x: ir.Value) -> list[ir.Value]:
    """The op's results, of another operand."""
    dtype = TensorInfo.of(x).dtype
    types = [TensorInfo.of(r).with_(dtype=dtype).type for r in op.results]
    names = [item if isinstance(item, str) else item.name for item in op.attributes]
    given = {name: op.attributes[name] for name in names}
    return list(ir.Operation.create(op.operation.name, types, [x, *list(op.operands)[1:]], given).results)


def _pads_rightly(op: PackWeight, growth: _Growth) -> bool:
    """Whether the zeros that a packed weight has beyond its last row and column stay zeros, or nothing reads them."""
    rows, columns = TensorInfo.of(op.x).shape
    if isinstance(columns, int) and columns % op.layout.tile == 0 and isinstance(rows, int) and rows % op.layout.rows == 0:
        return True
    if all(p.counts is not None and p.counts[1] != 1 for p in growth.parameters):
        return True
    return _is_for_products(op.results[0])


def _is_for_products(value: ir.Value) -> bool:
    """Whether nothing but products reads a packed weight, or what is made of it element by element."""
    readers = [use.owner for use in value.uses]
    return all(
        isinstance(r, PackedMatMul | PackedGroupedMatMul) or (grows_from(r) is not None and _is_for_products(r.results[0]))
        for r in readers
    )


def _concatenated(op: Concat, left: _Growth, right: _Growth) -> list[ir.Value] | None:
    """One growth of both tensors, when they grow alike."""
    result = TensorInfo.of(op.results[0])
    axis = normalize_axis(op.axis, result.rank)
    if left.kind != right.kind:
        return None
    pairs = list(zip(left.parameters, right.parameters, strict=True))
    if not all(_alike(p, q, axis, result.rank) for p, q in pairs):
        return None
    sizes = [TensorInfo.of(v).shape[axis] for v in op.operands]
    if left.parameters and not all(isinstance(size, int) for size in sizes):
        return None
    parameters = [_concatenated_parameter(p, q, axis, sizes, result.rank) for p, q in pairs]
    if left.x is None or right.x is None:
        return [left.again(None, parameters, op.results[0].type)]
    dtype = TensorInfo.of(left.x).dtype
    x = Concat.create(left.x, right.x, axis=axis, result_types=[result.with_(dtype=dtype).type]).result
    return [left.again(x, parameters, op.results[0].type)]


def _alike(left: _Parameter, right: _Parameter, axis: int, rank: int) -> bool:
    """Whether parameters agree in their blocks but for an axis; one for all elements is a block of all."""
    pairs = zip(left.counts or [1] * rank, right.counts or [1] * rank, strict=True)
    return all(same(a, b) for i, (a, b) in enumerate(pairs) if i != axis)


def _concatenated_parameter(left: _Parameter, right: _Parameter, axis: int, sizes: Sequence[Dim], rank: int) -> ir.Value:
    """One parameter where both tensors share it, else one per index of the axis."""
    shared = left.counts is None or left.counts[axis] == 1
    if left.value == right.value and shared:
        return left.blocks()
    wide = [
        per_index(reshaped(p.value, p.counts or [1] * rank), axis, size) for p, size in zip((left, right), sizes, strict=True)
    ]
    return Concat.create(*wide, axis=axis).result

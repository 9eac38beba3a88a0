"""Stores weights of matrix products as small integers with a scale per group; products read them through ``dequantize``.

Before::

    %y = "relax.matmul"(%x, %w) : (tensor<?x768xf32, {sym = ["n"]}>, tensor<768x3072xf32>) -> tensor<?x3072xf32, {sym = ["n"]}>

with ``bits=4 group=32``, after::

    %s = ...                                                       // tensor<24x3072xf32>: a scale per 32 rows of a column
    %q = "relax.quantize"(%w, %s, %zero) {dtype = i4} : (...) -> tensor<768x3072xi4>
    %v = "relax.dequantize"(%q, %s, %zero) {relax.lift = "never"} : (...) -> tensor<768x3072xf32>
    %y = "relax.matmul"(%x, %v)

Scales and integers come from the weight alone, so lifting computes them once, when weights are prepared. Of eight bits a scale
is the group's largest magnitude over 127: a rounding is off by half a scale, 1/254 of that. Of four bits it is the element of
largest magnitude over -8, which makes that one exact and uses all 16 integers (as llama.cpp's Q4_0 does): others are off by
half a scale, and those within half a scale of the opposite end by up to a whole one, 1/8. A group of zeros has the smallest
scale there is: what kernels round of its zero points is then nothing.
With ``scale=f16`` or ``scale=bf16`` scales are stored so, half as large, and integers are made with these: kernels read fewer
bytes. f16 is what formats of others have; a number of bf16 has the range of f32, and is less exact.

A product of narrower floats becomes one of f32, with casts around it: its sums are in f32 anyway.

A weight of fewer columns than rows whose products are sorted, or searched for the largest, stays as it is: the router of a
mixture of experts, in which a rounding sends tokens to other experts, and which is small beside what it chooses from.
"""

from __future__ import annotations

from dataclasses import dataclass
from fnmatch import fnmatchcase
from math import inf, prod
from typing import ClassVar

import ml_dtypes

from ...analysis.weight_flow import FlowRules, WeightFlow
from ...bindings import func, ir
from ...dtypes import numpy_dtype
from ...errors import RelaxError
from ...functions import argument_names, functions, name_of, num_input
from ...inference import is_integer, normalize_axes
from ...lift_override import LIFT, NEVER
from ...op import is_elementwise
from ...ops import (
    Abs,
    ArgMax,
    ArgMin,
    ArgSort,
    AsType,
    Clip,
    Dequantize,
    Equal,
    Full,
    GreaterEqual,
    GroupedMatMul,
    LogSoftmax,
    MatMul,
    Max,
    Min,
    Multiply,
    Negative,
    PermuteDims,
    Quantize,
    Reshape,
    Softmax,
    Squeeze,
    StridedSlice,
    Where,
)
from ...passes.base import Pass
from ...passes.rewriting import Patterns, Rewriter, walk
from ...reports import report
from ...reports.weights import NarrowWeight, QuantizedWeights, WideWeight
from ...struct_info import TensorInfo
from ...traversal import nested_operations, outermost
from ..emit import cast
from ..packing.block_movement import reshaped
from ..products.axis_moves import axis_before

__all__ = ["QuantizeWeights"]

#: By how much a scale is off, as a part of it, by the dtype that scales are stored in.
_EPSILON = {"f32": 0.0, "f16": 2.0**-11, "bf16": 2.0**-8}
_HALF_MAX = 65504.0


@dataclass(frozen=True)
class QuantizeWeights(Pass):
    """Quantizes right-hand sides that come from weights alone, in functions that have ``relax.num_input``.

    Attributes:
        bits: 8 or 4.
        group: elements of a column that share a scale; 0: all of them.
        keep: weights by name or pattern (``lm_head.*``) that stay, with all that is computed from them.
        scale: what scales are stored as: f32, f16 or bf16.
    """

    name: ClassVar[str] = "relax-quantize-weights"
    rounding: ClassVar[float] = inf
    bits: int = 8
    group: int = 0
    keep: tuple[str, ...] = ()
    scale: str = "f32"

    def run(self, op: ir.Operation) -> None:
        if self.bits not in (4, 8):
            raise RelaxError(f"expected 4 or 8 bits, got {self.bits}")
        if self.group < 0:
            raise RelaxError(f"expected a group of 0 or more, got {self.group}")
        if self.scale not in _EPSILON:
            raise RelaxError(f"expected a scale of {', '.join(_EPSILON)}, got '{self.scale}'")
        names = [name for function in functions(op) for name in _weight_names(function)]
        for pattern in self.keep:
            if not any(fnmatchcase(name, pattern) for name in names):
                raise RelaxError(f"expected a weight to keep, got '{pattern}'")
        rules = FlowRules.of(op)
        for function in functions(op):
            if num_input(function) is None:
                continue
            found = _Quantizing(self, rules.flow(function), _choosing(function))
            walk(function, found.patterns())
            if found.narrow or found.kept:
                told = tuple(found.narrow), tuple(found.kept.values())
                report.add(QuantizedWeights(name_of(function), *told, self.bound))

    @property
    def bound(self) -> float:
        """By how much an element can be off, as a part of the largest of its group.

        Of four bits that is one at the opposite end, whose integer is 7 where 8 would be right: seven scales are off, too.
        """
        epsilon = _EPSILON[self.scale]
        return (1 + epsilon) / 254 if self.bits == 8 else (1 + 7 * epsilon) / 8

    def refusal(self, weight: ir.Value, sources: tuple[str, ...]) -> str | None:
        """Why a weight stays as it is, None when it does not."""
        info = TensorInfo.of(weight)
        if any(fnmatchcase(name, pattern) for name in sources for pattern in self.keep):
            return "as 'keep' says"
        if info.rank != 2 or not all(isinstance(d, int) and d > 0 for d in info.shape):
            return "no matrix of static size"
        if not isinstance(info.dtype, (ir.F32Type, ir.BF16Type, ir.F16Type)):
            return f"its elements are {info.dtype}"
        if self.group and _rows(weight) % self.group:
            return f"{_rows(weight)} rows are no multiple of {self.group}"
        return None

    def quantized(self, weight: ir.Value, sources: tuple[str, ...]) -> tuple[ir.Value, NarrowWeight]:
        """The weight through integers."""
        group = self.group or _rows_of_one(weight)
        dtype = ir.IntegerType.get_signless(self.bits)
        scale = self._scale(cast(weight, ir.F32Type.get()), group)
        zero = _number(0, TensorInfo.of(weight), dtype)
        stored = Quantize.create(weight, scale, zero, dtype=dtype).result
        wide = Dequantize.create(stored, scale, zero, out_dtype=self._wide(scale)).result
        # Of a small weight, lifting would think the wide one worth the memory.
        wide.owner.attributes[LIFT] = ir.StringAttr.get(NEVER)
        after = _bytes(weight) * self.bits // _bits(weight) + _bytes(scale)
        moved = _group_axis(weight, group) if len(sources) == 1 else None
        entry = NarrowWeight(sources, self.bits, group, _bytes(weight), after, moved, self.scale)
        return wide, entry

    def _scale(self, weight: ir.Value, group: int) -> ir.Value:
        """A scale per group of rows, ``[k / group, n]``."""
        info = TensorInfo.of(weight)
        rows, columns = info.shape
        assert isinstance(rows, int)
        groups = reshaped(weight, [rows // group, group, columns])
        if self.bits == 8:
            extreme = Max.create(Abs.create(groups).result, axis=[1]).result
        else:
            high, low = Max.create(groups, axis=[1]).result, Min.create(groups, axis=[1]).result
            is_high = GreaterEqual.create(high, Negative.create(low).result).result
            extreme = Where.create(is_high, high, low).result
        factor = _number(1 / 127 if self.bits == 8 else -1 / 8, info, info.dtype)
        scale = Multiply.create(extreme, factor).result
        if self.scale == "f16":
            scale = Clip.create(scale, min=-_HALF_MAX, max=_HALF_MAX).result
        if self.scale != "f32":
            scale = cast(scale, ir.F16Type.get() if self.scale == "f16" else ir.BF16Type.get())
        dtype = TensorInfo.of(scale).dtype
        is_zero = Equal.create(scale, _number(0, info, dtype)).result
        smallest = float(ml_dtypes.finfo(numpy_dtype(dtype)).smallest_normal)
        return Where.create(is_zero, _number(smallest, info, dtype), scale).result

    def _wide(self, scale: ir.Value) -> ir.Type | None:
        """What elements are made of integers: f32, which scales of that say themselves."""
        return None if isinstance(TensorInfo.of(scale).dtype, ir.F32Type) else ir.F32Type.get()


class _Quantizing:
    """What is quantized in one function: a weight that several products read once, before the first, and outside of loops.

    Attributes:
        narrow, kept: what the report tells.
    """

    def __init__(self, options: QuantizeWeights, flow: WeightFlow, choosing: set[ir.Value]):
        self._options, self._flow, self._choosing = options, flow, choosing
        self._made: dict[ir.Value, ir.Value] = {}
        self.narrow: list[NarrowWeight] = []
        self.kept: dict[ir.Value, WideWeight] = {}

    def patterns(self) -> Patterns:
        return [(MatMul, self._read_integers), (GroupedMatMul, self._read_integers)]

    def _read_integers(self, op: MatMul | GroupedMatMul, rewriter: Rewriter) -> bool:
        weight, flow = op.rhs, self._flow
        if flow.comes_from_weights(op.result) or not flow.once_from_weights(weight):
            return False
        if weight in self.kept or _is_quantized(weight):
            return False
        if weight not in self._made and not self._quantize(weight, op):
            return False
        return _read(op, self._made[weight], rewriter)

    def _quantize(self, weight: ir.Value, op: MatMul | GroupedMatMul) -> bool:
        """Puts the weight through integers; False where it is kept."""
        sources = self._flow.sources(weight)
        reason = self._options.refusal(weight, sources)
        if reason is None and op.result in self._choosing and _is_narrow(weight):
            reason = "what is computed with it is sorted, or searched for the largest"
        if reason is not None:
            self.kept[weight] = WideWeight(sources, _bytes(weight), reason)
            return False
        with ir.InsertionPoint(outermost(op.operation)), op.location:
            self._made[weight], entry = self._options.quantized(weight, sources)
        self.narrow.append(entry)
        return True


def _choosing(function: func.FuncOp) -> set[ir.Value]:
    """Values of which the order decides something, and those that they are computed from element by element, up to products."""
    searches = [op for op in nested_operations(function.operation) if isinstance(op.opview, ArgSort | ArgMax | ArgMin)]
    pending, found = [op.operands[0] for op in searches], set[ir.Value]()
    while pending:
        value = pending.pop()
        if value in found:
            continue
        found.add(value)
        owner = value.owner
        if isinstance(owner, ir.Block):
            continue
        if is_elementwise(owner) or isinstance(owner.opview, Softmax | LogSoftmax | Reshape):
            pending += owner.operands
    return found


def _is_narrow(weight: ir.Value) -> bool:
    """Whether it has fewer columns than rows: the last matrix of a language model, whose best token is searched, has more."""
    rows, columns = TensorInfo.of(weight).shape
    assert isinstance(rows, int)
    assert isinstance(columns, int)
    return columns < rows


def _read(op: MatMul | GroupedMatMul, weight: ir.Value, rewriter: Rewriter) -> bool:
    """Makes a product read a weight in f32."""
    if TensorInfo.of(op.lhs).dtype == TensorInfo.of(weight).dtype:
        op.operands[1] = weight
        return True
    result = TensorInfo.of(op.result)
    wide = ir.F32Type.get()
    with rewriter.before(op):
        types = [result.with_(dtype=wide).type]
        product = type(op).create(cast(op.lhs, wide), weight, *list(op.operands)[2:], result_types=types)
        made = cast(product.results[0], result.dtype)
    return rewriter.replace(op, [made])


def _is_quantized(value: ir.Value) -> bool:
    """Whether a weight is quantized already: a product of a product's factor is not rounded twice."""
    pending, seen = [value], set[ir.Value]()
    while pending:
        owner = pending.pop().owner
        if isinstance(owner, ir.Block):
            continue
        if isinstance(owner, Dequantize) or (isinstance(owner, AsType) and is_integer(TensorInfo.of(owner.x).dtype)):
            return True
        fresh = [v for v in owner.operands if v not in seen]
        seen.update(fresh)
        pending += fresh
    return False


def _weight_names(function: func.FuncOp) -> list[str]:
    inputs = num_input(function)
    return [] if inputs is None else [name for name in argument_names(function)[inputs:] if name is not None]


def _group_axis(weight: ir.Value, group: int) -> int | None:
    """The axis of a raw weight along which groups of so many are; None where what is quantized is computed from it."""
    axis: int | None = 0
    while not isinstance(weight.owner, ir.Block):
        op = weight.owner.opview
        if axis is None or not isinstance(op, PermuteDims | Reshape | Squeeze | StridedSlice):
            return None
        if isinstance(op, Reshape):
            axis = _unshaped_axis(op, axis, group)
        elif not isinstance(op, StridedSlice):
            axis = axis_before(op, axis)
        elif axis in normalize_axes(op.axes, TensorInfo.of(op.x).rank):
            return None
        weight = op.operands[0]
    return axis


def _unshaped_axis(op: Reshape, axis: int, group: int) -> int | None:
    """Which dimension of the operand has the groups of an axis of the result, alone or as the inner one of several."""
    before, after = (TensorInfo.of(v).shape for v in (op.x, op.results[0]))
    size, inner = after[axis], list(after[axis + 1 :])
    for i, d in enumerate(before):
        if list(before[i + 1 :]) == inner and isinstance(d, int) and isinstance(size, int):
            return i if d == size or (size % d == 0 and d % group == 0) else None
    return None


def _rows_of_one(weight: ir.Value) -> int:
    """The rows of a matrix; of several, one above the other, those of one: experts have scales of their own."""
    owner = weight.owner
    if isinstance(owner, Reshape):
        before, after = (TensorInfo.of(v).shape for v in (owner.x, weight))
        if len(before) == 3 and before[2] == after[1] and isinstance(before[1], int):
            return before[1]
    return _rows(weight)


def _rows(weight: ir.Value) -> int:
    rows = TensorInfo.of(weight).shape[0]
    assert isinstance(rows, int)
    return rows


def _bits(value: ir.Value) -> int:
    width: int = TensorInfo.of(value).dtype.width  # pyright: ignore[reportAttributeAccessIssue]
    return width


def _bytes(value: ir.Value) -> int:
    return prod(d for d in TensorInfo.of(value).shape if isinstance(d, int)) * _bits(value) // 8


def _number(number: float, like: TensorInfo, dtype: ir.Type) -> ir.Value:
    return Full.create(value=number, result_types=[like.with_(shape=[], dtype=dtype).type]).result

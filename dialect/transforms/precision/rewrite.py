"""The rewrite of ``relax-to-mixed-precision`` on one function, in place, in program order."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import ml_dtypes
import numpy as np

from ...analysis.weight_flow import WeightFlow
from ...bindings import func, ir
from ...dtypes import numpy_dtype
from ...elements import to_numpy
from ...op import Narrow, op_class
from ...ops import AsType, Attention, Constant, Full
from ...passes.rewriting import Patterns, Rewriter, walk
from ...struct_info import TensorInfo, is_tensor
from ...traversal import nested_operations

__all__ = ["PrecisionRewrite"]


class PrecisionRewrite:
    """Makes ops narrow as it meets them, and casts where an op reads what has another dtype than it wants.

    A value is f32 until its op is made narrow. Sums that a product returns in f32 stand for narrow values, too: an op that
    follows reads them rounded, any other as they are.
    """

    def __init__(self, dtype: ir.Type, keeps_sums: bool, kept_ops: set[str], kept_weights: set[ir.Value]):
        self._dtype, self._wide = dtype, ir.F32Type.get()
        self._keeps_sums, self._kept_ops, self._kept = keeps_sums, kept_ops, kept_weights
        self._narrow: set[ir.Value] = set()
        self._sums: set[ir.Value] = set()
        self._casts: dict[tuple[ir.Value, bool], ir.Value] = {}

    def apply(self, function: func.FuncOp, flow: WeightFlow) -> None:
        """Rewrites a function; its signature stays, and so does what comes from weights alone."""
        self._flow = flow
        ops = {op.name: op for op in nested_operations(function.operation)}
        for op in nested_operations(function.operation):
            if self._is_weight_math(op):
                self._keep_derived(op)
        walk(function, self.patterns(ops))

    def patterns(self, ops: Mapping[str, ir.Operation]) -> Patterns:
        """What is tried on ops of these names, one of each of which is given."""
        return [
            *((name, self._compute_narrow) for name, op in ops.items() if _kind(op) is Narrow.ALWAYS),
            *((name, self._follow) for name, op in ops.items() if _kind(op) is Narrow.FOLLOWS),
            *((name, self._read_f32) for name in ops),
        ]

    def _compute_narrow(self, op: ir.OpView, rewriter: Rewriter) -> bool:
        fits = not self._is_weight_math(op.operation) and self._reads_f32(op.operation) and self._can_be_narrow(op.operation)
        if fits:
            self._make_always(op.operation)
        return fits

    def _follow(self, op: ir.OpView, rewriter: Rewriter) -> bool:
        fits = not self._is_weight_math(op.operation) and self._can_be_narrow(op.operation) and self._all_narrow(op.operation)
        if fits:
            self._make_narrow(op.operation, op.operands)
        return fits

    def _read_f32(self, op: ir.OpView, rewriter: Rewriter) -> bool:
        if self._is_weight_math(op.operation):
            return False
        return self._set_operands(op.operation, [self._in_f32(v) for v in op.operands])

    def _is_weight_math(self, op: ir.Operation) -> bool:
        return len(op.results) > 0 and self._flow.is_known(op.results[0])

    def _keep_derived(self, op: ir.Operation) -> None:
        """What is computed from a weight that stays in f32 does, too; and so does a number that only f32 holds.

        The lowest f32, which masks are made of, would be -inf.
        """
        if self._overflows(op) or not self._kept.isdisjoint(op.operands):
            self._kept.update(op.results)

    def _overflows(self, op: ir.Operation) -> bool:
        """Whether an op makes a number that is finite in f32 alone."""
        if not isinstance(op.opview, Full | Constant) or not _is_float(op.results[0]):
            return False
        numbers = np.asarray(op.opview.value if isinstance(op.opview, Full) else to_numpy(op.opview.value), np.float64)
        largest = float(ml_dtypes.finfo(numpy_dtype(self._dtype)).max)
        return bool((np.isfinite(numbers) & (np.abs(numbers) > largest)).any())

    def _reads_f32(self, op: ir.Operation) -> bool:
        """Whether an op, as it was written, reads f32: one that reads narrow values was made to."""
        first = op.operands[0]
        return first in self._narrow or TensorInfo.of(first).dtype == self._wide

    def _can_be_narrow(self, op: ir.Operation) -> bool:
        """Whether an op computes on f32 and nothing that it reads, or it itself, is to stay so."""
        if op.name in self._kept_ops or not self._kept.isdisjoint(op.operands):
            return False
        floats = [TensorInfo.of(v).dtype for v in (*op.operands, *op.results) if _is_float(v)]
        return len(floats) > 1 and all(d in (self._wide, self._dtype) for d in floats)

    def _all_narrow(self, op: ir.Operation) -> bool:
        """Whether all floats that an op reads at run time are narrow, and there are some."""
        read = [v for v in op.operands if _is_float(v) and not self._flow.is_known(v)]
        return bool(read) and all(v in self._narrow or v in self._sums for v in read)

    def _make_always(self, op: ir.Operation) -> None:
        # Scores are f32, so a mask can be; rounded, the lowest f32 that masks are made of would be -inf.
        read = list(op.operands)[: 3 if isinstance(op.opview, Attention) else 2]
        self._make_narrow(op, read, keeps_sums=self._keeps_sums and _has_out_dtype(op))

    def _make_narrow(self, op: ir.Operation, read: Iterable[ir.Value], keeps_sums: bool = False) -> None:
        narrow = [self._in_narrow(v) for v in read]
        rest = [self._in_f32(v) for v in list(op.operands)[len(narrow) :]]
        self._set_operands(op, [*narrow, *rest])
        for result in op.results:
            info = TensorInfo.of(result)
            if info.dtype == self._wide and keeps_sums:
                self._sums.add(result)
            elif info.dtype == self._wide:
                result.set_type(info.with_(dtype=self._dtype).type)
                self._narrow.add(result)
            if _has_out_dtype(op):
                op.attributes["out_dtype"] = ir.TypeAttr.get(TensorInfo.of(result).dtype)

    def _set_operands(self, op: ir.Operation, values: list[ir.Value]) -> bool:
        """Makes an op read values; whether it did not."""
        changed = [(i, value) for i, value in enumerate(values) if op.operands[i] != value]
        for position, value in changed:
            op.operands[position] = value
        return bool(changed)

    def _in_narrow(self, value: ir.Value) -> ir.Value:
        if not _is_float(value) or TensorInfo.of(value).dtype == self._dtype:
            return value
        producer = value.owner
        if isinstance(producer, AsType) and TensorInfo.of(producer.x).dtype == self._dtype:
            return producer.x  # every narrow value is an f32: there and back changes nothing
        return self._cast(value, self._dtype)

    def _in_f32(self, value: ir.Value) -> ir.Value:
        return self._cast(value, self._wide) if value in self._narrow else value

    def _cast(self, value: ir.Value, dtype: ir.Type) -> ir.Value:
        """The value in another dtype, cast once, right behind where it is made."""
        key = (value, dtype == self._wide)
        if key not in self._casts:
            owner = value.owner
            block = isinstance(owner, ir.Block)
            where = ir.InsertionPoint.at_block_begin(owner) if block else ir.InsertionPoint.after(owner)
            with where, value.location if block else owner.location:
                self._casts[key] = AsType.create(value, dtype=dtype).results[0]
        return self._casts[key]


def _kind(op: ir.Operation) -> Narrow:
    cls = op_class(op)
    return Narrow.NEVER if cls is None else cls.narrow


def _has_out_dtype(op: ir.Operation) -> bool:
    """Whether an op can return its f32 sums though it reads a narrower dtype."""
    cls = op_class(op)
    return cls is not None and "out_dtype" in cls.attrs


def _is_float(value: ir.Value) -> bool:
    return is_tensor(value) and isinstance(value.type.element_type, ir.FloatType)

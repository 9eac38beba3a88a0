"""A function in, an estimate of the work of one run out: arithmetic operations and bytes moved, for all sizes of its symbols.

Operations are additions, multiplications and function values (an exponential is one), of any dtype. Bytes are what ops read and
write when each runs on its own; views (reshapes, slices of unit steps, splits) move nothing, gathers read what they pick. The
estimate compares two forms of one model; it does not predict time.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ..bindings import func, ir
from ..call_graph import CallGraph, callee_of
from ..functions import body_of, functions, is_private, name_of, transform_targets
from ..layouts import reordered
from ..op import Op, attrs_of
from ..ops import (
    AdaptiveAvgPool2D,
    Attention,
    BatchNorm,
    Constant,
    Conv2D,
    GatherElements,
    GatherND,
    LayerNorm,
    LogSoftmax,
    MatMul,
    PackedConv2D,
    PackedMatMul,
    PackedTake,
    RMSNorm,
    Softmax,
    StridedSlice,
    Take,
)  # fmt: skip
from ..reports import report
from ..reports.work import WorkSection
from ..struct_info import TensorInfo, is_tensor
from ..symbolic import Dim, Expr, dim_text, substitute
from ..traversal import Nested, blocks_of, operations, run_nested

__all__ = ["Size", "Work", "elements", "product_flops", "run_time_work", "tell_work", "work"]

#: A number that may depend on symbols.
Size = int | Expr

# What moves nothing: lowering gives these a view of their operand's buffer, or none at all.
_VIEWS = frozenset(
    f"relax.{name}"
    for name in ("expand_dims", "hint_on_device", "match_cast", "reshape", "split", "squeeze", "stop_lift_params")
)
# What moves elements and computes nothing.
_MOVES = frozenset(
    f"relax.{name}"
    for name in (
        "arange", "astype", "broadcast_to", "concat", "constant", "flip", "full", "gather_elements", "gather_nd", "index_copy",
        "pack_nibbles", "pack_weight", "packed_take",
        "pad", "permute_dims", "repeat", "shape_value", "strided_slice", "take", "tile", "to_vdevice", "tril", "triu",
        "unpack_nibbles",
    )
)  # fmt: skip
# Operations per element of the operand, where it is not one.
_PER_ELEMENT: Mapping[type[Op], int] = {Softmax: 5, LogSoftmax: 5, LayerNorm: 7, RMSNorm: 4, BatchNorm: 4}
_SOFTMAX = 5
_GATHERS = (Take, PackedTake, GatherElements, GatherND)


class _UnknownSizeError(Exception):
    """A dimension is unknown."""


@dataclass(frozen=True)
class Work:
    """What one run costs.

    Attributes:
        flops: arithmetic operations.
        bytes: bytes read and written by ops.
        notes: what makes this less exact, sorted: loops counted as one iteration, branches counted all, ops not counted.
    """

    flops: Size = 0
    bytes: Size = 0
    notes: tuple[str, ...] = ()

    def __add__(self, other: Work) -> Work:
        notes = self.notes if self.notes == other.notes else tuple(sorted({*self.notes, *other.notes}))
        return Work(self.flops + other.flops, self.bytes + other.bytes, notes)

    def at(self, sizes: Mapping[str, int | Expr]) -> Work:
        """The work with symbols replaced; others stay."""
        return Work(_sized(self.flops, sizes), _sized(self.bytes, sizes), self.notes)

    def __str__(self) -> str:
        text = f"{dim_text(self.flops)} operations, {dim_text(self.bytes)} bytes"
        return f"{text} ({', '.join(self.notes)})" if self.notes else text


def work(function: func.FuncOp) -> Work:
    """The work of a function, calls included: a call has the types of what it calls, so symbols are the same on both sides.

    Bodies of loops count once and all branches of an ``scf.if`` count; :attr:`Work.notes` says so where there are any.
    """
    return _Counter(function.operation.parent.operation).of_function(function)


def run_time_work(module: ir.Operation) -> dict[str, Work]:
    """The work of each public function with a body that prepares no weights, by name."""
    counter = _Counter(module)
    found = [f for f in functions(module) if not is_private(f) and body_of(f) is not None and not transform_targets(f)]
    return {name_of(f): counter.of_function(f) for f in found}


def tell_work(before: Mapping[str, Work], module: ir.Operation) -> None:
    """Reports the functions whose work is another one than it was."""
    for name, after in run_time_work(module).items():
        was = before.get(name, after)
        if (was.flops, was.bytes) != (after.flops, after.bytes):
            texts = (dim_text(d) for d in (was.flops, after.flops, was.bytes, after.bytes))
            report.add(WorkSection(name, *texts))


def product_flops(lhs: TensorInfo, rhs: TensorInfo) -> Size | None:
    """The operations of a matrix product of tensors that fit; None when a dimension is unknown."""
    result = MatMul.infer([lhs, rhs], {"out_dtype": None})
    if None in result.shape or lhs.shape[-1] is None:
        return None
    return 2 * _product([*result.shape, lhs.shape[-1]])


def elements(info: TensorInfo) -> Size | None:
    """How many elements a tensor has; None when a dimension is unknown."""
    return None if None in info.shape else _product(info.shape)


class _Counter:
    """Counts for the functions of one module; a called function is counted once."""

    def __init__(self, module: ir.Operation):
        self.graph = CallGraph(module)
        self._functions: dict[str, Work] = {}

    def of_function(self, function: func.FuncOp) -> Work:
        block = body_of(function)
        return Work() if block is None else run_nested(self._of_block(block))

    def _of_block(self, block: ir.Block) -> Nested:
        flops: list[Size] = []
        moved: list[Size] = []
        notes: set[str] = set()
        for op in operations(block):
            nested = self._nested(op)
            found = self._of_op(op) if nested is None else (yield nested)
            flops.append(found.flops)
            moved.append(found.bytes)
            notes.update(found.notes)
        return Work(sum(flops), sum(moved), tuple(sorted(notes)))

    def _nested(self, op: ir.Operation) -> Nested | None:
        """What counts an op that has others inside, or calls some; None for any other op."""
        if op.name == "func.call":
            return self._of_call(op)
        return self._of_regions(op) if op.name.startswith("scf.") and len(op.regions) else None

    def _of_op(self, op: ir.Operation) -> Work:
        if isinstance(op.opview, Op):
            try:
                return _of_relax_op(op)
            except _UnknownSizeError:
                return Work(notes=(f"{op.name} of unknown size not counted",))
        if any(is_tensor(r) for r in op.results):
            return Work(notes=(f"{op.name} not counted",))
        return Work()

    def _of_regions(self, op: ir.Operation) -> Nested:
        inner: list[Work] = []
        for block in blocks_of(op):
            inner.append((yield self._of_block(block)))
        note = "all branches of scf.if counted" if op.name == "scf.if" else f"{op.name} counted as one iteration"
        return sum(inner, Work(notes=(note,)))

    def _of_call(self, call: ir.Operation) -> Nested:
        name = callee_of(call)
        callee = self.graph.function(name)
        block = None if callee is None or name in self.graph.recursive else body_of(callee)
        if block is None:
            return Work(notes=(f"call of @{name} not counted",))
        if name not in self._functions:
            self._functions[name] = yield self._of_block(block)
        return self._functions[name]


def _of_relax_op(op: ir.Operation) -> Work:
    if _is_view(op):
        return Work()
    inputs = [TensorInfo.of(v) for v in op.operands if is_tensor(v)]
    results = [TensorInfo.of(r) for r in op.results if is_tensor(r)]
    return Work(_flops(op, inputs, results), _bytes(op, inputs, results))


def _is_view(op: ir.Operation) -> bool:
    if op.name == StridedSlice.OPERATION_NAME:
        return all(s == 1 for s in attrs_of(op)["strides"] or ())
    return op.name in _VIEWS


def _flops(op: ir.Operation, inputs: Sequence[TensorInfo], results: Sequence[TensorInfo]) -> Size:
    if op.name in _MOVES or not results:
        return 0
    view, size = op.opview, _count(results[0])
    if isinstance(view, MatMul | PackedMatMul):
        return 2 * size * _known(inputs[0].shape[-1])
    if isinstance(view, Conv2D):
        return 2 * size * _product(reordered(inputs[1].shape, view.kernel_layout, "OIHW")[1:])
    if isinstance(view, PackedConv2D):
        return 2 * size * _known(inputs[1].shape[1])
    if isinstance(view, Attention):
        scores = _product([*results[0].shape[:-1], inputs[1].shape[-2]])
        return scores * (2 * _known(inputs[0].shape[-1]) + 2 * _known(inputs[2].shape[-1]) + _SOFTMAX)
    if "pool_size" in view.attrs:
        return size * math.prod(view.pool_size)
    if inputs and (isinstance(view, AdaptiveAvgPool2D) or "keepdims" in view.attrs):
        return _count(inputs[0])
    return size * _PER_ELEMENT.get(type(view), 1)


def _bytes(op: ir.Operation, inputs: Sequence[TensorInfo], results: Sequence[TensorInfo]) -> Size:
    if isinstance(op.opview, Constant):
        return 0
    written = sum(_data(r) for r in results)
    if isinstance(op.opview, _GATHERS):
        return 2 * written + _data(inputs[1])
    return written + sum(_data(i) for i in inputs)


def _data(info: TensorInfo) -> Size:
    """Bytes of a tensor in memory; a truth value takes one, narrower integers are packed."""
    bits = 8 if info.dtype == ir.IntegerType.get_signless(1, info.dtype.context) else info.dtype.width
    count = _count(info)
    return count * (bits // 8) if bits % 8 == 0 else (count * bits + 7) // 8


def _count(info: TensorInfo) -> Size:
    return _product(info.shape)


def _product(shape: Sequence[Dim]) -> Size:
    total: Size = 1
    for dim in shape:
        total = total * _known(dim)
    return total


def _known(dim: Dim) -> Size:
    if dim is None:
        raise _UnknownSizeError
    return dim


def _sized(size: Size, values: Mapping[str, int | Expr]) -> Size:
    found = substitute(size, values)
    assert found is not None
    return found

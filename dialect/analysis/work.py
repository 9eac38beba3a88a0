"""A function in, an estimate of the work of one run out: arithmetic operations and bytes moved, for all sizes of its symbols.

What each op costs its class says (:mod:`..op_costs`); views (reshapes, slices of unit steps, splits) move nothing, gathers read
what they pick. The estimate compares two forms of one model; it does not predict time.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ..bindings import func, ir
from ..call_graph import CallGraph, callee_of
from ..functions import body_of, functions, is_private, name_of, transform_targets
from ..op import Op, op_class
from ..op_costs import Size, UnknownSizeError, product
from ..ops import MatMul
from ..reports import report
from ..reports.work import WorkSection
from ..struct_info import TensorInfo, is_tensor
from ..symbolic import Expr, dim_text, substitute
from ..traversal import Nested, blocks_of, operations, run_nested

__all__ = ["Work", "elements", "op_work", "product_flops", "run_time_work", "tell_work", "work"]


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
    return 2 * product([*result.shape, lhs.shape[-1]])


def elements(info: TensorInfo) -> Size | None:
    """How many elements a tensor has; None when a dimension is unknown."""
    return None if None in info.shape else product(info.shape)


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
            found = op_work(op) if nested is None else (yield nested)
            flops.append(found.flops)
            moved.append(found.bytes)
            notes.update(found.notes)
        return Work(sum(flops), sum(moved), tuple(sorted(notes)))

    def _nested(self, op: ir.Operation) -> Nested | None:
        """What counts an op that has others inside, or calls some; None for any other op."""
        if op.name == "func.call":
            return self._of_call(op)
        return self._of_regions(op) if op.name.startswith("scf.") and len(op.regions) else None

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


def op_work(op: ir.Operation) -> Work:
    """What one op costs, without what is in its regions; nothing, with a note, where that is not known."""
    if isinstance(op.opview, Op):
        try:
            return _of_relax_op(op)
        except UnknownSizeError:
            return Work(notes=(f"{op.name} of unknown size not counted",))
    if any(is_tensor(r) for r in op.results):
        return Work(notes=(f"{op.name} not counted",))
    return Work()


def _of_relax_op(op: ir.Operation) -> Work:
    cls = op_class(op)
    assert cls is not None
    inputs = [TensorInfo.of(v) for v in op.operands if is_tensor(v)]
    results = [TensorInfo.of(r) for r in op.results if is_tensor(r)]
    return Work(cls.cost.flops(inputs, results, op.opview), cls.cost.bytes(inputs, results, op.opview))


def _sized(size: Size, values: Mapping[str, int | Expr]) -> Size:
    found = substitute(size, values)
    assert found is not None
    return found

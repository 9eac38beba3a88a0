"""Puts every linalg op on tensors into a private kernel function in destination-passing style; equal kernels become one.

Before::

    %e = tensor.empty(%n) : tensor<?x64xf32>
    %y = linalg.generic {...} ins(%x : tensor<?x64xf32>) outs(%e : tensor<?x64xf32>) {...}

after::

    %e = tensor.empty(%n) : tensor<?x64xf32>
    %y = call @kernel_0(%x, %e) : (tensor<?x64xf32>, tensor<?x64xf32>) -> tensor<?x64xf32>
    func.func private @kernel_0(%a: tensor<?x64xf32>, %out: tensor<?x64xf32> {bufferization.writable = true}) ... {relax.kernel}

A contraction arrives as a kernel already. The elementwise op that is the only user of its result, and reads it as it was
written, moves into it as an epilogue: the kernel template then applies it to the accumulators, and the intermediate tensor is
never stored. What widens a weight that it reads moves into it as a prologue, see :mod:`.weight_prologue`. What is only
inserted into another tensor, as a part of a concatenation is, a kernel computes there. Slices that differ in nothing but their
place are views (:mod:`.view_slices`). Ops on the same rows (a softmax, a norm)
become one kernel, see :mod:`.row_groups`. Compile time grows with distinct kernels, not with layers.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from ...dialect.analysis.weight_flow import FlowRules
from ...dialect.bindings import func, ir
from ...dialect.call_graph import callee_of
from ...dialect.functions import body_of, functions, is_private, name_of
from ...dialect.traversal import clone_with
from ..kernel_function import mark_kernel, mark_writable
from ..lowering_pass import LoweringPass
from ..marks import CONTRACTION, CUDA_TARGET, KERNEL
from .linalg_queries import (
    captured,
    captures_tensors,
    destinations,
    index_maps,
    is_empty,
    is_fill,
    is_parallel,
    is_scalar_constant,
)
from .row_groups import RowGroup, find_row_groups
from .separate_beginnings import separate_beginnings
from .tensors import empty_like
from .view_slices import view_slices
from .weight_prologue import fuse_prologues

__all__ = ["OutlineKernels", "outline_kernels"]


@dataclass(frozen=True)
class OutlineKernels(LoweringPass):
    """Puts each linalg op, and what goes with it, into a private function.

    Attributes:
        rows: whether ops on the same rows become one kernel.
    """

    name: ClassVar[str] = "relax-outline-kernels"
    rows: bool = True

    def run(self, op: ir.Operation) -> None:
        outline_kernels(op, self.rows)


def outline_kernels(module: ir.Operation, rows: bool = True) -> None:
    """Outlines in every function of the module that is not a kernel itself; in place, linear in the number of ops.

    Args:
        module: linalg on tensors.
        rows: whether ops on the same rows become one kernel.
    """
    kernels, rules = _Kernels(module), FlowRules.of(module)
    for function in functions(module):
        if KERNEL in function.attributes or body_of(function) is None:
            continue
        separate_beginnings(function)
        fuse_prologues(function, kernels.by_name, kernels.add, rules)
        ops = _linalg_ops(function)
        # On a GPU each copy of a view would be a launch.
        _outline_all(ops if CUDA_TARGET in module.attributes else view_slices(ops), kernels, rows)
    _drop_unused_kernels(module)


class _Kernels:
    """The kernels of a module by content."""

    def __init__(self, module: ir.Operation):
        self.module = module
        self.by_name = {name_of(f): f for f in functions(module) if KERNEL in f.attributes}
        self.by_text: dict[str, str] = {_text(f): name for name, f in self.by_name.items()}

    def add(self, function: func.FuncOp) -> str:
        """Names a new kernel, or erases it and returns the name of an equal one."""
        text = _text(function)
        if text in self.by_text:
            function.operation.erase()
            return self.by_text[text]
        name = f"kernel_{len(self.by_name)}"
        while name in self.by_name:
            name += "_"
        function.attributes["sym_name"] = ir.StringAttr.get(name)
        self.by_name[name], self.by_text[text] = function, name
        return name


def _text(function: func.FuncOp) -> str:
    text = function.operation.get_asm(enable_debug_info=False, use_local_scope=True, assume_verified=True)
    return text[text.index("(") :]


def _linalg_ops(function: func.FuncOp) -> list[ir.Operation]:
    found: list[ir.Operation] = []

    def visit(op: ir.Operation) -> ir.WalkResult:
        if op.name.startswith("linalg.") and op.name not in ("linalg.yield", "linalg.index", "linalg.fill"):
            found.append(op)
            return ir.WalkResult.SKIP
        return ir.WalkResult.ADVANCE

    function.operation.walk(visit, ir.WalkOrder.PRE_ORDER)
    return found


def _outline_all(ops: list[ir.Operation], kernels: _Kernels, rows: bool) -> None:
    groups = find_row_groups(ops, lambda op: _epilogue_producer(op, kernels) is not None) if rows else []
    by_last = {group.last.results[0]: group for group in groups}
    members = {op.results[0] for group in groups for op in group.ops}
    for op in ops:
        result = op.results[0] if len(op.results) else None
        if result in by_last:
            _outline_rows(by_last[result], kernels)
        elif result not in members:
            _outline(op, kernels)


def _outline_rows(group: RowGroup, kernels: _Kernels) -> None:
    operands, function = group.operands(), group.build(kernels.module)
    _mark(function, operands, 1)
    name, last = kernels.add(function), group.last
    with ir.InsertionPoint(last), last.location:
        call = func.CallOp([last.results[0].type], ir.FlatSymbolRefAttr.get(name), operands)
    last.results[0].replace_all_uses_with(call.results[0])
    for op in reversed(group.ops):
        _erase(op)


def _erase(op: ir.Operation) -> None:
    """Erases an op, and the fills of its destinations that nothing else uses."""
    fills = [v.owner.operation for v in destinations(op) if is_fill(v)]
    op.erase()
    for fill in fills:
        if not any(True for _ in fill.results[0].uses):
            fill.erase()


def _outline(op: ir.Operation, kernels: _Kernels) -> None:
    producer = _epilogue_producer(op, kernels)
    group = _Group(op, kernels.by_name[callee_of(producer)] if producer is not None else None, producer)
    name = kernels.add(group.build(kernels.module))
    with ir.InsertionPoint(group.insertion or op), op.location:
        call = func.CallOp([r.type for r in group.results], ir.FlatSymbolRefAttr.get(name), group.operands)
    for old, new in zip(group.results, call.results, strict=True):
        old.replace_all_uses_with(new)
    if group.insertion is not None:
        group.insertion.erase()
    _erase(op)
    if producer is not None:
        producer.erase()


class _Group:
    """One kernel in the making: the ops it holds, and the caller's values it takes."""

    def __init__(self, op: ir.Operation, producer_kernel: func.FuncOp | None, producer: ir.Operation | None):
        self.op, self.producer_kernel, self.producer = op, producer_kernel, producer
        self.insertion = _insertion_of(op) if producer is None else None
        self.results = list((self.insertion or op).results)
        self.outs = [self.insertion.operands[1]] if self.insertion else [_unfilled(v) for v in destinations(op)]
        self.operands = [*self._inputs(), *self.outs]

    def _inputs(self) -> list[ir.Value]:
        """What the kernel reads from outside, each once, in order of first use; constants are cloned instead."""
        seen: dict[ir.Value, None] = {}
        made = set(self.producer.results) if self.producer is not None else set()
        if self.producer is not None:
            seen |= dict.fromkeys(list(self.producer.operands)[:-1])
        outs = len(destinations(self.op))
        places = list(self.insertion.operands)[2:] if self.insertion is not None else []
        for value in [*list(self.op.operands)[:-outs], *captured(self.op), *places]:
            if value not in made and not is_scalar_constant(value):
                seen[value] = None
        return list(seen)

    def build(self, module: ir.Operation) -> func.FuncOp:
        """The function at the end of the module, not yet named."""
        types = [v.type for v in self.operands]
        with ir.InsertionPoint(module.regions[0].blocks[0]), self.op.location:
            function = func.FuncOp("kernel", (types, [r.type for r in self.results]), visibility="private")
        block = function.add_entry_block(arg_locs=[ir.Location.unknown()] * len(types))
        values = dict(zip(self.operands, block.arguments, strict=True))
        outs = list(block.arguments)[len(types) - len(self.outs) :]
        with ir.InsertionPoint(block):
            if self.producer_kernel is not None:
                self._clone_producer(values)
            self._clone_op(values, outs)
        _mark(function, self.operands, len(outs))
        return function

    def _clone_producer(self, values: dict[ir.Value, ir.Value]) -> None:
        """The contraction, into a tensor of its own: the template keeps it in registers."""
        assert self.producer is not None
        assert self.producer_kernel is not None
        block = body_of(self.producer_kernel)
        assert block is not None
        arguments, operands = list(block.arguments), list(self.producer.operands)
        inner: dict[ir.Value, ir.Value] = {a: values[v] for a, v in zip(arguments[:-1], operands[:-1], strict=True)}
        inner[arguments[-1]] = empty_like(values[self.outs[0]], arguments[-1].type)
        here = ir.InsertionPoint.current
        for op in block.operations:
            if op.operation.name == "func.return":
                values[self.producer.results[0]] = inner[op.operands[0]]
                continue
            clone_with(op.operation, inner, here)

    def _clone_op(self, values: dict[ir.Value, ir.Value], outs: list[ir.Value]) -> None:
        places = list(self.insertion.operands)[2:] if self.insertion is not None else []
        for value in [*self.op.operands, *captured(self.op), *places]:
            if value not in values and is_scalar_constant(value):
                values[value] = value.owner.clone().results[0]
        parts = outs if self.insertion is None else [_part_of(outs[0], self.insertion, values)]
        filled = [self._filled(v, part, values) for v, part in zip(destinations(self.op), parts, strict=True)]
        clone = clone_with(self.op, values, ir.InsertionPoint.current)
        first = len(self.op.operands) - len(outs)
        for i, destination in enumerate(filled):
            clone.operands[first + i] = destination
        results: list[ir.Value] = list(clone.results)
        if self.insertion is not None:
            inner = values | {self.insertion.operands[0]: results[0], self.insertion.operands[1]: outs[0]}
            results = [clone_with(self.insertion, inner, ir.InsertionPoint.current).results[0]]
        func.ReturnOp(results)

    def _filled(self, destination: ir.Value, out: ir.Value, values: dict[ir.Value, ir.Value]) -> ir.Value:
        """The kernel's output, filled first when the op's destination was."""
        if not is_fill(destination):
            return out
        fill = destination.owner.operation
        scalar = fill.operands[0]
        if scalar not in values:
            values[scalar] = scalar.owner.clone().results[0]
        mapping = {scalar: values[scalar], fill.operands[1]: out}
        return clone_with(fill, mapping, ir.InsertionPoint.current).results[0]


def _mark(function: func.FuncOp, operands: list[ir.Value], outs: int) -> None:
    """A function as a kernel that writes to its last arguments."""
    inputs = operands[: len(operands) - outs]
    mark_writable(function, [*(False if isinstance(v.type, ir.RankedTensorType) else None for v in inputs), *[True] * outs])
    mark_kernel(function)


def _epilogue_producer(op: ir.Operation, kernels: _Kernels) -> ir.Operation | None:
    """The call of a contraction kernel whose only use is this elementwise op, which reads it element by element."""
    if op.name != "linalg.generic" or len(op.results) != 1 or not is_parallel(op):
        return None
    maps = index_maps(op)
    identity = ir.AffineMap.get_identity(len(maps[-1].results))
    if maps[-1] != identity:
        return None
    for value, map_ in zip(list(op.operands)[:-1], maps[:-1], strict=True):
        call = value.owner
        if map_ != identity or not isinstance(call, ir.OpView) or not _is_contraction(call.operation, kernels):
            continue
        if sum(1 for _ in value.uses) == 1 and call.operation.block == op.block and not captures_tensors(op):
            return call.operation
    return None


def _is_contraction(op: ir.Operation, kernels: _Kernels) -> bool:
    kernel = kernels.by_name.get(callee_of(op)) if op.name == "func.call" else None
    if kernel is None or len(op.results) != 1:
        return False
    block = body_of(kernel)
    inner = [op.operation for op in block.operations] if block is not None else []
    return any(CONTRACTION in o.attributes for o in inner) and is_empty(op.operands[len(op.operands) - 1])


def _insertion_of(op: ir.Operation) -> ir.Operation | None:
    """The insertion at known places that is all that reads an op's result: the kernel writes it there."""
    uses = list(op.results[0].uses) if len(op.results) == 1 else []
    user = uses[0].owner.operation if len(uses) == 1 and uses[0].operand_number == 0 else None
    if user is None or user.name != "tensor.insert_slice" or user.block != op.block:
        return None
    known = ir.ShapedType.get_dynamic_size() not in list(ir.DenseI64ArrayAttr(user.attributes["static_offsets"]))
    part, whole = user.operands[0], user.operands[1]
    return user if known and part.type.rank == whole.type.rank and whole not in op.operands else None


def _part_of(whole: ir.Value, insertion: ir.Operation, values: Mapping[ir.Value, ir.Value]) -> ir.Value:
    """The part of a tensor that an insertion writes; ``values`` are its sizes where they are not constant."""
    names = ("static_offsets", "static_sizes", "static_strides")
    attributes = {name: insertion.attributes[name] for name in names}
    sizes = [values[v] for v in list(insertion.operands)[2:]]
    attributes["operandSegmentSizes"] = ir.DenseI32ArrayAttr.get([1, 0, len(sizes), 0])
    return ir.Operation.create("tensor.extract_slice", [insertion.operands[0].type], [whole, *sizes], attributes).result


def _unfilled(value: ir.Value) -> ir.Value:
    return value.owner.operands[1] if is_fill(value) else value


def _drop_unused_kernels(module: ir.Operation) -> None:
    used: set[str] = set()

    def visit(op: ir.Operation) -> ir.WalkResult:
        if op.name == "func.call":
            used.add(callee_of(op))
        return ir.WalkResult.ADVANCE

    module.walk(visit)
    for function in functions(module):
        if KERNEL in function.attributes and is_private(function) and name_of(function) not in used:
            function.operation.erase()

"""Who frees buffers whose sizes data decides: those that control flow hands on get one owner each.

Before::

    %r = scf.if %c -> (memref<?xf32>) { %a = memref.alloc(%n); ...; yield %a } else { yield %x }
    %s = scf.for ... iter_args(%q = %r) { %b = memref.alloc(%m); ...; yield %b }

after::

    %r = scf.if %c -> (memref<?xf32>) { %a = memref.alloc(%n); ...; yield %a } else { %y = a copy of %x; yield %y }
    %p = a copy of %r
    %s = scf.for ... iter_args(%q = %p) { %b = memref.alloc(%m); ...; memref.dealloc %q; yield %b }

``%r`` and ``%s`` then are allocations themselves, freed after their last use; ``%a`` and ``%b`` are not freed any more.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from ...dialect.bindings import func, ir
from ...dialect.traversal import nested_operations, operations
from ..marks import HOST
from .trace import SizeTracer

__all__ = ["Owners", "in_arena", "take_ownership"]


@dataclass
class Owners:
    """What is freed by whom.

    Attributes:
        owned: results of control flow that are allocations of their own.
        moved: allocations, or such results, that control flow hands on, so that they are not freed.
    """

    owned: dict[ir.Value, None] = field(default_factory=dict)
    moved: set[ir.Value] = field(default_factory=set)


def take_ownership(function: func.FuncOp, tracer: SizeTracer) -> Owners:
    """Rewrites the control flow of a function on buffers in place, where it hands on some of a size that is not known.

    Loops that write to what they carry are left alone.
    """
    found = Owners()
    flow = [op for op in nested_operations(function.operation) if op.name in ("scf.if", "scf.for", "scf.while")]
    for op in reversed(flow):
        {"scf.if": _own_branches, "scf.for": _own_carried, "scf.while": _own_while}[op.name](op, tracer, found)
    return found


def _own_branches(op: ir.Operation, tracer: SizeTracer, found: Owners) -> None:
    for position, result in enumerate(op.results):
        ends = [operations(region.blocks[0])[-1] for region in op.regions if len(region.blocks)]
        if not _is_buffer(result) or all(_outlives(end.operands[position], tracer, found) for end in ends):
            continue
        for end in ends:
            end.operands[position] = _handed_on(end.operands[position], end, found)
        found.owned[result] = None


def _own_carried(op: ir.Operation, tracer: SizeTracer, found: Owners) -> None:
    block = op.regions[0].blocks[0]
    end = operations(block)[-1]
    for position, argument in enumerate(list(block.arguments)[1:]):
        if not _is_buffer(argument) or end.operands[position] == argument:
            continue
        op.operands[3 + position] = _copy(op.operands[3 + position], op, found)
        end.operands[position] = _handed_on(end.operands[position], end, found)
        _free(argument, end)
        found.owned[op.results[position]] = None


def _own_while(op: ir.Operation, tracer: SizeTracer, found: Owners) -> None:
    before, after = (region.blocks[0] for region in op.regions)
    condition, end = operations(before)[-1], operations(after)[-1]
    passed = list(condition.operands)[1:]
    if _stays(list(before.arguments), passed, list(after.arguments), list(end.operands)):
        return
    for position, argument in enumerate(before.arguments):
        if _is_buffer(argument):
            op.operands[position] = _copy(op.operands[position], op, found)
            end.operands[position] = _handed_on(end.operands[position], end, found)
    for position, value in enumerate(passed):
        if _is_buffer(value):
            condition.operands[1 + position] = _handed_on(value, condition, found)
            found.owned[op.results[position]] = None
    for argument, last in [*((a, condition) for a in before.arguments), *((a, end) for a in after.arguments)]:
        if _is_buffer(argument):
            _free(argument, last)


def _outlives(value: ir.Value, tracer: SizeTracer, found: Owners) -> bool:
    """Whether the memory of a buffer is not freed after the block that hands it on: it is the arena's, or from outside."""
    if isinstance(value, ir.BlockArgument):
        return True
    op = value.owner.operation
    if op.name == "arith.select":
        return all(_outlives(v, tracer, found) for v in op.operands[1:])
    if op.name.startswith("memref.") and op.name not in ("memref.alloc", "memref.get_global"):
        return _outlives(op.operands[0], tracer, found)
    return value not in found.owned and (op.name != "memref.alloc" or in_arena(op, tracer))


def in_arena(op: ir.Operation, tracer: SizeTracer) -> bool:
    """Whether an allocation gets its memory from the arena: it has a size that is known, and is where the arena is."""
    return HOST not in op.attributes and tracer.shape(op.results[0]) is not None


def _stays(before: Sequence[ir.Value], passed: Sequence[ir.Value], after: Sequence[ir.Value], end: Sequence[ir.Value]) -> bool:
    """Whether every buffer that a loop carries is the one that it started with, and it makes none to pass on."""
    carried = [(a, v) for a, v in zip(before, end, strict=True) if _is_buffer(a)]
    origin = dict(zip(after, passed, strict=True))
    kept = all(v in origin and origin[v] == a for a, v in carried)
    block = before[0].owner if before else None
    return kept and all(v in before or _block_of(v) != block for v in passed if _is_buffer(v))


def _block_of(value: ir.Value) -> ir.Block:
    return value.owner if isinstance(value, ir.BlockArgument) else value.owner.operation.block


def _is_buffer(value: ir.Value) -> bool:
    return isinstance(value.type, ir.MemRefType)


def _handed_on(value: ir.Value, end: ir.Operation, found: Owners) -> ir.Value:
    """What a terminator hands on: an allocation of its block as it is, once; a copy of anything else."""
    if isinstance(value, ir.BlockArgument) or value.owner.operation.block != end.block or value in found.moved:
        return _copy(value, end, found)
    if value.owner.name != "memref.alloc" and value not in found.owned:
        return _copy(value, end, found)
    found.moved.add(value)
    return value


def _copy(value: ir.Value, before: ir.Operation, found: Owners) -> ir.Value:
    """A copy of a buffer, of the same type, that is handed on."""
    kind, index = ir.MemRefType(value.type), ir.IndexType.get(before.context)
    with ir.InsertionPoint(before), before.location:
        sizes: list[ir.Value] = []
        for axis in range(kind.rank):
            if kind.is_dynamic_dim(axis):
                number = ir.Operation.create("arith.constant", [index], attributes={"value": ir.IntegerAttr.get(index, axis)})
                sizes.append(ir.Operation.create("memref.dim", [index], [value, number.result]).result)
        plain = ir.MemRefType.get(kind.shape, kind.element_type)
        segments = {"operandSegmentSizes": ir.DenseI32ArrayAttr.get([len(sizes), 0])}
        made = ir.Operation.create("memref.alloc", [plain], sizes, segments).result
        ir.Operation.create("memref.copy", [], [value, made])
        found.moved.add(made)
        return made if plain == kind else ir.Operation.create("memref.cast", [kind], [made]).result


def _free(value: ir.Value, end: ir.Operation) -> None:
    with ir.InsertionPoint(end), end.location:
        ir.Operation.create("memref.dealloc", [], [value])

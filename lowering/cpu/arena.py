"""One arena for all buffers of a function: who lives when, and at which offset, decided at compile time.

Buffer sizes are integers or symbolic expressions. Those with the same symbolic part (``n * 2304`` and ``n * 768`` share
``n``) are packed together by their coefficients, first fit by size, so the plan holds for every value of the symbols.
Offsets are multiples of 64. Where rounding a coefficient up to that would cost much, as of a vector of ``n`` bytes, the
symbolic part is rounded instead: such buffers share ``(n + 63) // 64``::

    %h = memref.alloc(%n) : memref<?x64xf32>     ->     %h = memref.view %arena[%offset][%n] : memref<?xi8> to memref<?x64xf32>

A buffer whose only purpose is to be copied to an output at the end becomes that output.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from math import gcd

from ...dialect.array_spec import ALIGNMENT, aligned
from ...dialect.bindings import func, ir
from ...dialect.errors import RelaxError
from ...dialect.functions import body_of, name_of
from ...dialect.symbolic import Expr, require_bounded
from ...dialect.symbolic_arith import emit_index
from ...dialect.traversal import nested_operations, operations
from ..arena import Arena, ArenaPlan, PlacedBuffer, told_plans
from .ownership import in_arena, take_ownership
from .trace import SizeTracer

__all__ = ["plan_arena"]

# Rounding up a coefficient is left alone while it adds at most one part in so many: what is rounded instead takes up to 63
# times the coefficient, whatever the symbols are.
_WORTH = 16

_VIEWS = ("cast", "collapse_shape", "expand_shape", "reinterpret_cast", "reshape", "subview", "transpose", "view")


@dataclass(eq=False)
class _Buffer:
    """An allocation: first and last top-level op that may touch it, and its size as unit times coefficient, to be rounded."""

    op: ir.Operation
    first: int
    last: int
    unit: int | Expr
    size: int
    offset: int = 0


def plan_arena(
    function: func.FuncOp,
    shapes: Mapping[ir.Value, list[int | Expr]],
    outputs: Iterable[ir.Value],
    arena: ir.Value,
    symbols: Mapping[str, ir.Value],
    reserved: int = 0,
) -> Arena:
    """Replaces every allocation whose size the symbols determine; others are freed after their last use (:mod:`.ownership`).

    Args:
        function: an entry function on buffers.
        shapes: the dimensions of its arguments.
        outputs: the arguments that are results.
        arena: the ``memref<?xi8>`` argument to carve from.
        symbols: the ``index`` argument of each symbol.
        reserved: bytes at the beginning that no buffer gets; a multiple of the alignment.
    """
    block = body_of(function)
    assert block is not None
    tracer = SizeTracer(shapes)
    _forward_outputs(block, set(outputs))
    owners = take_ownership(function, tracer)
    lifetimes = _Lifetimes(block)
    buffers: list[_Buffer] = []
    for value in owners.owned:
        if value not in owners.moved:
            _free(value, lifetimes)
    for op in lifetimes.allocations:
        if op.results[0] in owners.moved:
            continue
        size = tracer.size_in_bytes(op.results[0]) if in_arena(op, tracer) else None
        first, last = lifetimes.of(op.results[0])
        if size is None:
            _free(op.results[0], lifetimes)
            continue
        unit, coefficient = _split(size)
        buffers.append(_Buffer(op, first, last, unit, coefficient))
    plan = Arena(reserved=reserved)
    alike: dict[int | Expr, list[_Buffer]] = {}
    for buffer in sorted(buffers, key=lambda b: (isinstance(b.unit, Expr), str(b.unit))):
        alike.setdefault(buffer.unit, []).append(buffer)
    for unit, members in alike.items():
        for part, extent in _placed(unit, members).items():
            _append(plan, part, extent, [b for b in members if b.unit == part])
    _check_size(plan, function)
    told = told_plans()
    if told is not None:
        told.append(_told(name_of(function), buffers, plan, lifetimes))
    _replace(buffers, plan, block, arena, symbols)
    return plan


def _append(plan: Arena, unit: int | Expr, extent: int, buffers: Iterable[_Buffer]) -> None:
    """Puts buffers behind those that share their symbolic part: rounding one part may give another one that there is."""
    before = plan.groups.get(unit, 0)
    for buffer in buffers:
        buffer.offset += before
    plan.groups[unit] = before + extent


def _check_size(plan: Arena, function: func.FuncOp) -> None:
    """Offsets are numbers of 64 bits."""
    try:
        require_bounded(plan.size)
    except RelaxError:
        text = f"expected less than 2**63 bytes of scratch memory for each size, got {plan.size}"
        raise RelaxError(text, function.location) from None


def _split(size: int | Expr) -> tuple[int | Expr, int]:
    """A size as (symbolic part, coefficient), both 0 or more: ``-((-n) // 8)``, which rounds up, keeps its minus."""
    if isinstance(size, int):
        return 1, size
    if len(size.terms) == 1:
        ((monomial, coefficient),) = size.terms
        return Expr({monomial: 1 if coefficient > 0 else -1}), abs(coefficient)
    lines = (size + (ALIGNMENT - 1)) // ALIGNMENT
    return (lines, ALIGNMENT) if isinstance(lines, Expr) else (1, lines * ALIGNMENT)


def _placed(unit: int | Expr, buffers: list[_Buffer]) -> dict[int | Expr, int]:
    """Gives buffers of one symbolic part sizes and offsets that are multiples of 64; the extents, by symbolic part."""
    exact = [b.size for b in buffers]
    for buffer in buffers:
        buffer.size = aligned(buffer.size)
    together = _first_fit(buffers)
    small = [b for b, size in zip(buffers, exact, strict=True) if (b.size - size) * _WORTH > size]
    if not small or isinstance(unit, int):
        return {unit: together}
    sizes = [size for b, size in zip(buffers, exact, strict=True) if b in small]
    count = ALIGNMENT // gcd(ALIGNMENT, *sizes)
    for buffer, size in zip(small, sizes, strict=True):
        buffer.size = size * count
    apart, others = _first_fit(small), _first_fit([b for b in buffers if b not in small])
    rounded = (unit + (count - 1)) // count
    assert isinstance(rounded, Expr)
    if apart + others * count < together * count:
        for buffer in small:
            buffer.unit = rounded
        return {unit: others, rounded: apart} if others else {rounded: apart}
    for buffer in small:
        buffer.size = aligned(buffer.size // count)
    _first_fit(buffers)
    return {unit: together}


def _first_fit(buffers: list[_Buffer]) -> int:
    """Assigns offsets, large buffers first, each at the lowest place that is free during its life; returns the extent."""
    placed: list[_Buffer] = []
    extent = 0
    for buffer in sorted(buffers, key=lambda b: (-b.size, b.first)):
        busy = sorted((b for b in placed if b.first <= buffer.last and buffer.first <= b.last), key=lambda b: b.offset)
        offset = 0
        for other in busy:
            if offset + buffer.size <= other.offset:
                break
            offset = max(offset, other.offset + other.size)
        buffer.offset = offset
        placed.append(buffer)
        extent = max(extent, offset + buffer.size)
    return extent


def _bases(plan: Arena) -> dict[int | Expr, int | Expr]:
    """Where the buffers of each symbolic part begin."""
    bases: dict[int | Expr, int | Expr] = {}
    base: int | Expr = plan.reserved
    for unit, extent in plan.groups.items():
        bases[unit] = base
        base = base + unit * extent
    return bases


def _told(name: str, buffers: list[_Buffer], plan: Arena, lifetimes: _Lifetimes) -> ArenaPlan:
    """The same for people, in numbers of calls."""
    bases, calls, numbers = _bases(plan), list[str](), list[int]()
    for op in lifetimes.operations:
        numbers.append(len(calls))
        if op.name == "func.call":
            calls.append(str(op.attributes["callee"].value))
        elif len(op.regions) and any(inner.name == "func.call" for inner in nested_operations(op)):
            calls.append(op.name)
    places = ((bases[b.unit] + b.unit * b.offset, b.unit * b.size) for b in buffers)
    lives = ((numbers[b.first], numbers[b.last]) for b in buffers)
    placed = [PlacedBuffer(*p, *n) for p, n in zip(places, lives, strict=True)]
    return ArenaPlan(name, tuple(calls), tuple(placed))


def _replace(buffers: list[_Buffer], plan: Arena, block: ir.Block, arena: ir.Value, symbols: Mapping[str, ir.Value]) -> None:
    bases = _bases(plan)
    offsets: dict[str, ir.Value] = {}
    with ir.InsertionPoint.at_block_begin(block), ir.Location.unknown():
        for buffer in buffers:
            offset = bases[buffer.unit] + buffer.unit * buffer.offset
            if str(offset) not in offsets:
                offsets[str(offset)] = emit_index(offset, symbols)
    for buffer in buffers:
        offset = bases[buffer.unit] + buffer.unit * buffer.offset
        old = buffer.op.results[0]
        with ir.InsertionPoint(buffer.op), buffer.op.location:
            view = ir.Operation.create("memref.view", [old.type], [arena, offsets[str(offset)], *buffer.op.operands])
        old.replace_all_uses_with(view.result)
        buffer.op.erase()


class _Lifetimes:
    """When each allocation of a block is in use, in positions of the block's own ops; nested uses count for the op around."""

    def __init__(self, block: ir.Block):
        self.operations = operations(block)
        self.allocations: list[ir.Operation] = []
        self._last: dict[ir.Value, int] = {}
        self._first: dict[ir.Value, int] = {}
        self._root: dict[ir.Value, set[ir.Value]] = {}
        for position, op in enumerate(self.operations):
            op.walk(lambda inner, p=position: self._visit(inner, p), ir.WalkOrder.PRE_ORDER)

    def of(self, value: ir.Value) -> tuple[int, int]:
        """The first and the last op that may touch what a value may point to."""
        roots = self._root[value]
        return min(self._first[r] for r in roots), max(self._last[r] for r in roots)

    def _visit(self, op: ir.Operation, position: int) -> ir.WalkResult:
        for value in op.operands:
            for root in self._root.get(value, ()):
                self._last[root] = max(self._last[root], position)
        if op.name == "memref.alloc":
            self.allocations.append(op)
            value = op.results[0]
            self._root[value] = {value}
            self._first[value] = self._last[value] = position
            return ir.WalkResult.ADVANCE
        self._alias(op)
        return ir.WalkResult.ADVANCE

    def _alias(self, op: ir.Operation) -> None:
        """What an op's results and region arguments may point to: anything its operands or its region's yields do."""
        if op.name == "arith.select" or (op.name.startswith("memref.") and op.name[7:] in _VIEWS):
            self._join(op.results, op.operands)
        elif op.name.startswith("scf."):
            inner = [v for r in op.regions for b in r.blocks for v in b.arguments]
            self._join(inner, op.operands)
            self._join(op.results, op.operands)
        if op.name in ("scf.yield", "scf.condition") and op.parent is not None:
            self._join(op.parent.results, op.operands)

    def _join(self, results: Iterable[ir.Value], operands: Iterable[ir.Value]) -> None:
        roots = set().union(*(self._root.get(v, set()) for v in operands))
        for result in results:
            if roots and isinstance(result.type, ir.MemRefType):
                self._root[result] = self._root.get(result, set()) | roots


def _forward_outputs(block: ir.Block, outputs: set[ir.Value]) -> None:
    """A buffer that is copied whole to an output, and not changed after, is that output."""
    siblings = operations(block)
    for position, op in enumerate(siblings):
        if op.name != "memref.copy" or op.operands[1] not in outputs or isinstance(op.operands[0], ir.BlockArgument):
            continue
        source, target = op.operands[0], op.operands[1]
        made = source.owner.operation
        others = sum(1 for _ in target.uses)
        if made.name != "memref.alloc" or made.block != block or source.type != target.type or others != 1:
            continue
        if any(_position(use.owner.operation, block, siblings) > position for use in source.uses):
            continue
        op.erase()
        source.replace_all_uses_with(target)
        made.erase()
        _forward_outputs(block, outputs - {target})
        return


def _position(op: ir.Operation, block: ir.Block, siblings: list[ir.Operation]) -> int:
    while op.block != block:
        op = op.parent.operation
    return next(i for i, o in enumerate(siblings) if o == op)


def _free(value: ir.Value, lifetimes: _Lifetimes) -> None:
    """Frees a buffer of data-dependent size after the last op that may touch it; inside of control flow, at a block's end."""
    op = value.owner.operation
    outermost = op.block == lifetimes.operations[0].block
    last = lifetimes.operations[lifetimes.of(value)[1]] if outermost else operations(op.block)[-1]
    with ir.InsertionPoint.after(last) if outermost else ir.InsertionPoint(last), op.location:
        ir.Operation.create("memref.dealloc", [], [value])

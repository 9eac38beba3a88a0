"""Run-time checks that need nothing but sizes come first: a call that they refuse has computed and written nothing.

Before::

    func.func @main(%x: tensor<?xf32>, ...) {
      %0 = linalg.generic ...
      %n = tensor.dim %x, %c0
      %ok = arith.cmpi eq, %n, %c1000
      call @relax_check(%ok, %c3)

after::

    func.func @main(%x: tensor<?xf32>, ...) {
      %n = tensor.dim %x, %c0
      %ok = arith.cmpi eq, %n, %c1000
      call @relax_check(%ok, %c4294967299)
      %0 = linalg.generic ...

The number says so, too. The same in regions, whose checks are made each time that control gets there, and no sooner.

A check that needs values is made as soon as there are these, and in the order of checks: what it is about must not have begun.
Upstream folds the cast to a checked size into what has been computed, which then reads as much as the type says.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

from ..dialect.bindings import ir
from ..dialect.functions import functions
from ..dialect.struct_info import is_tensor
from ..dialect.traversal import operations
from .lowering_pass import LoweringPass

__all__ = ["CHECK", "EARLY", "MoveChecksFirst", "is_check", "move_checks_first"]

CHECK = "relax_check"

#: Added to the number of a check that is made before its function does anything else.
EARLY = 1 << 32


@dataclass(frozen=True)
class MoveChecksFirst(LoweringPass):
    """Moves run-time checks of sizes to where their blocks begin, others to what they need."""

    name: ClassVar[str] = "relax-move-checks-first"

    def run(self, op: ir.Operation) -> None:
        move_checks_first(op)


def move_checks_first(module: ir.Operation) -> None:
    """Moves checks, and what they are computed from, as far up as what they need lets them, in their order; in place."""
    for function in functions(module):
        for block in _blocks(function.operation):
            _move(block)


def is_check(op: ir.Operation) -> bool:
    """Whether an op is a run-time check."""
    return op.name == "func.call" and ir.FlatSymbolRefAttr(op.attributes["callee"]).value == CHECK


def _blocks(op: ir.Operation) -> Iterator[ir.Block]:
    """All blocks inside of an op, outer ones first; those of scalar code, as in a generic, have no checks."""
    for region in op.regions:
        for block in region.blocks:
            yield block
            for inner in operations(block):
                if len(inner.regions) and not inner.name.startswith("linalg."):
                    yield from _blocks(inner)


def _move(block: ir.Block) -> None:
    ops = operations(block)
    checks = [op for op in ops if is_check(op)]
    if not checks:
        return
    place = {result: i for i, op in enumerate(ops) for result in op.results}
    moved: set[int] = set()
    with ir.InsertionPoint.at_block_begin(block), ir.Location.unknown(block.owner.context):
        index = ir.IndexType.get()
        first = ir.Operation.create("arith.constant", [index], attributes={"value": ir.IntegerAttr.get(index, 0)})
    late = list[tuple[ir.Operation, _Needed]]()
    for check in checks:
        needed = _needed(check, ops, place)
        if needed.behind >= 0:
            late.append((check, needed))
            continue
        for i in sorted(needed.scalars - moved):
            ops[i].move_before(first)
        moved |= needed.scalars
        check.move_before(first)
        if block.owner.operation.name == "func.func":
            _mark_early(check)
    first.erase()
    _move_late(late, ops, moved)


def _move_late(checks: Sequence[tuple[ir.Operation, _Needed]], ops: Sequence[ir.Operation], moved: set[int]) -> None:
    """Moves checks of values to right behind what these come from, but not past each other."""
    behind, last = -1, None
    for check, needed in checks:
        if last is None or needed.behind > behind:
            behind, last = needed.behind, ops[needed.behind]
        for op in (*(ops[i] for i in sorted(needed.scalars - moved) if i > behind), check):
            op.move_after(last)
            last = op
        moved |= {i for i in needed.scalars if i > behind}


def _mark_early(check: ir.Operation) -> None:
    number = check.operands[1].owner
    assert isinstance(number, ir.Operation | ir.OpView)
    value = ir.IntegerAttr(number.operation.attributes["value"])
    if value.value < EARLY:
        new = {"value": ir.IntegerAttr.get(value.type, value.value + EARLY)}
        with ir.InsertionPoint(check), check.location:
            check.operands[1] = ir.Operation.create("arith.constant", [value.type], attributes=new).result
        if not any(True for _ in number.results[0].uses):
            number.operation.erase()


@dataclass(frozen=True)
class _Needed:
    """What a check is computed from, by places in its block.

    Attributes:
        scalars: ops that take and make nothing but sizes, and what comes of ``behind``.
        behind: the last of the other ops; -1 if there is none.
    """

    scalars: set[int]
    behind: int


def _needed(check: ir.Operation, ops: Sequence[ir.Operation], place: Mapping[ir.Value, int]) -> _Needed:
    found, behind = set[int](), -1
    pending = list(check.operands)
    while pending:
        position = place.get(pending.pop())
        if position is None or position in found:
            continue
        if _is_scalar(ops[position]):
            found.add(position)
            pending += ops[position].operands
        else:
            behind = max(behind, position)
    return _Needed(found, behind)


def _is_scalar(op: ir.Operation) -> bool:
    """Whether an op computes a number from numbers, or asks for a size."""
    return (op.name.startswith("arith.") and not any(is_tensor(v) for v in op.results)) or op.name == "tensor.dim"

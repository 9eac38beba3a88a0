"""The checks of a block so far, so that none is made twice: by what their conditions are computed from, whoever wrote them."""

from __future__ import annotations

from collections import deque

from ..dialect.bindings import ir
from ..dialect.traversal import free_values, is_unused, operations

__all__ = ["Asserted", "computed_alike", "erase_computation"]

#: As many checks as are looked at, which bounds the cost for each op; the checks of one op are far fewer.
_RECENT = 64


class Asserted:
    """The last checks of a block. A text says nothing: a check counts where its condition is computed alike."""

    def __init__(self) -> None:
        self._conditions = deque[ir.Value](maxlen=_RECENT)

    def note(self, op: ir.Operation) -> None:
        """Takes a ``cf.assert`` of the block."""
        self._conditions.append(op.operands[0])

    def require(self, condition: ir.Value, text: str) -> None:
        """Asserts a condition that was just computed, at the insertion point; erases it where it is asserted already."""
        if any(computed_alike(known, condition) for known in self._conditions):
            erase_computation(condition)
            return
        with condition.location:
            self.note(ir.Operation.create("cf.assert", [], [condition], {"msg": ir.StringAttr.get(text)}))


def computed_alike(a: ir.Value, b: ir.Value, known: dict[ir.Value, ir.Value] | None = None) -> bool:
    """Whether two values are one, or equal operations compute them from values of which that holds.

    Args:
        a: a value.
        b: another one, computed by few operations without effects.
        known: what stands for what in the regions around them.
    """
    known = {} if known is None else known
    if a == b or (a in known and known[a] == b):
        return True
    if isinstance(a.owner, ir.Block) or isinstance(b.owner, ir.Block):
        return False
    return ir.OpResult(a).result_number == ir.OpResult(b).result_number and _alike(a.owner.operation, b.owner.operation, known)


def _alike(a: ir.Operation, b: ir.Operation, known: dict[ir.Value, ir.Value]) -> bool:
    if a.name != b.name or dict(a.attributes.items()) != dict(b.attributes.items()) or len(a.operands) != len(b.operands):
        return False
    if [r.type for r in a.results] != [r.type for r in b.results] or len(a.regions) != len(b.regions):
        return False
    pairs = zip(a.operands, b.operands, strict=True)
    return all(computed_alike(x, y, known) for x, y in pairs) and all(
        _regions_alike(x, y, known) for x, y in zip(a.regions, b.regions, strict=True)
    )


def _regions_alike(a: ir.Region, b: ir.Region, known: dict[ir.Value, ir.Value]) -> bool:
    """Of regions of one block."""
    (first,), (second,) = a.blocks, b.blocks
    left, right = operations(first), operations(second)
    if [x.type for x in first.arguments] != [x.type for x in second.arguments] or len(left) != len(right):
        return False
    known = known | dict(zip(first.arguments, second.arguments, strict=True))
    for x, y in zip(left, right, strict=True):
        if not _alike(x, y, known):
            return False
        known |= dict(zip(x.results, y.results, strict=True))
    return True


def erase_computation(value: ir.Value) -> None:
    """Erases what computes a value that nothing uses, and what only that has used; nothing of it has effects."""
    pending = {value}
    while (unused := next((v for v in pending if _is_erasable(v)), None)) is not None:
        op = unused.owner.operation
        pending = (pending - set(op.results)) | set(free_values(op))
        op.erase()


def _is_erasable(value: ir.Value) -> bool:
    return not isinstance(value.owner, ir.Block) and is_unused(value.owner.operation)

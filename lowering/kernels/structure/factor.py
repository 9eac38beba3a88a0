"""One factor of the products that a contraction sums."""

from __future__ import annotations

from dataclasses import dataclass

from ....dialect.bindings import ir
from .nest import Operand

__all__ = ["Factor"]


@dataclass(frozen=True)
class Factor:
    """One factor of the products: its value in the body, and the operands and operations that compute it."""

    value: ir.Value
    operands: tuple[Operand, ...]
    operations: tuple[ir.Operation, ...]

    def dims(self) -> set[int]:
        """The loop dimensions its value depends on."""
        indexed = {ir.IntegerAttr(op.attributes["dim"]).value for op in self.operations if op.name == "linalg.index"}
        return indexed.union(*(o.offset.dims() for o in self.operands))

    def part(self, value: ir.Value) -> Factor:
        """What computes one of its values."""
        needed, found = {value}, list[ir.Operation]()
        for op in reversed(self.operations):
            if op.results[0] in needed:
                found.append(op)
                needed.update(op.operands)
        return Factor(value, tuple(o for o in self.operands if o.argument in needed), tuple(reversed(found)))

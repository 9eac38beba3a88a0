"""A factor of a product at a point of its loops: what it reads, and the operations that compute it, for one thread."""

from __future__ import annotations

from collections.abc import Sequence

from ....dialect.bindings import ir
from ...kernels.emit.memory import Memory, Point
from ...kernels.emit.scalar_body import Body, Environment
from ...kernels.structure.factor import Factor

__all__ = ["FactorCode"]


class FactorCode:
    """Builds values of one factor; of its operations those that are given, which compute the value that is asked for."""

    def __init__(self, memory: Memory, factor: Factor, operations: Sequence[ir.Operation] | None = None):
        self._memory, self._factor = memory, factor
        self._operations = factor.operations if operations is None else operations
        self._body = Body(memory.emitter, memory, self._operations)

    def at(self, point: Point, known: Environment | None = None, value: ir.Value | None = None) -> ir.Value:
        """The factor, or one of its values: a vector where the point has lanes; arguments that are known are not read."""
        found = dict(known or {})
        for operand in self._factor.operands:
            if operand.argument in found:
                continue
            if operand.buffer is None:
                found[operand.argument] = self._memory.outside(operand.value)
            else:
                found[operand.argument] = self._memory.load(operand.buffer, operand.offset, point)
        for operation in self._operations:
            self._body.evaluate(operation, found, point)
        item = self._body.item(self._factor.value if value is None else value, found)
        return self._memory.emitter.broadcast(self._body.value(item, point), point.width)

"""Where a contraction's sums start and where they go: the accumulation buffer, or through the epilogue fused with it."""

from __future__ import annotations

from typing import Protocol

from ....dialect.bindings import ir
from ..structure.match import MatchedGroup, plain_dims
from ..structure.nest import Nest
from .emitter import Emitter
from .memory import Lanes, Memory, Point
from .scalar_body import Body, Environment

__all__ = ["Epilogue", "Summed"]


class Summed(Protocol):
    """Sums whose loop over ``n`` runs in vectors."""

    @property
    def nest(self) -> Nest:
        """All loops."""
        ...

    @property
    def n(self) -> int:
        """The loop over neighbours of the result."""
        ...


class Epilogue:
    """Builds first and last values of the sums of one contraction, vector by vector."""

    def __init__(self, contraction: Summed, epilogue: Nest | None, group: MatchedGroup, emitter: Emitter, memory: Memory):
        self.contraction, self.epilogue, self.group = contraction, epilogue, group
        self.emitter, self.memory = emitter, memory
        self.output = contraction.nest.outputs[0]
        self._scalars = dict[ir.Value, ir.Value]()
        self.body = None if epilogue is None else Body(emitter, memory, epilogue.body()[0], epilogue.dropped)

    def read_scalars(self) -> None:
        """Reads here, in front of all loops, inputs of one element: behind each store of a tile they would be read again.

        ResNet-50 and MobileNetV2 in int8, whose epilogues read up to six scales and zero points, Zen 5, one thread: 1.008 and
        1.015 times as long without.
        """
        for operand in () if self.epilogue is None else self.epilogue.inputs:
            if operand.buffer is not None and operand.used and not operand.offset.dims() and operand.value != self.output.value:
                self._scalars[operand.argument] = self.memory.load(operand.buffer, operand.offset, Point())

    def initial(self, point: Point) -> ir.Value:
        """What sums start from: what was filled in, or what is there."""
        if self.group.fill is not None:
            return self.emitter.broadcast(self.memory.outside(self.group.fill.operands[0]), point.width)
        assert self.output.buffer is not None
        return self.memory.load(self.output.buffer, self.output.offset, point)

    def store(self, total: ir.Value, point: Point) -> None:
        """Writes sums, or what the epilogue makes of them."""
        if self.epilogue is None or self.body is None:
            assert self.output.buffer is not None
            self.memory.store(total, self.output.buffer, self.output.offset, point)
            return
        inner = self.inside(point)
        environment: Environment = dict(self._scalars)
        for operand in self.epilogue.operands:
            if operand.argument in environment:
                continue
            if operand.value == self.output.value:
                environment[operand.argument] = total
            elif operand.buffer is None:
                environment[operand.argument] = self.memory.outside(operand.value)
            elif operand.used:
                environment[operand.argument] = self.memory.load(operand.buffer, operand.offset, inner)
        operations, yielded = self.epilogue.body()
        for operation in operations:
            self.body.evaluate(operation, environment, inner)
        for operand, value in zip(self.epilogue.outputs, yielded, strict=True):
            assert operand.buffer is not None
            result = self.body.value(self.body.item(value, environment), inner)
            self.memory.store(result, operand.buffer, operand.offset, inner)

    def inside(self, point: Point) -> Point:
        """The same point in the epilogue's own loop dimensions."""
        assert self.group.epilogue is not None
        assert point.lanes is not None
        produced = plain_dims(self.group.contraction, len(self.group.contraction.operands) - 1) or []
        place = list(self.group.epilogue.operands).index(self.output.value)
        consumed = plain_dims(self.group.epilogue, place) or []
        zero = self.emitter.number(0)
        variables = {e: point.variables.get(c, zero) for c, e in zip(produced, consumed, strict=True)}
        lane = consumed[produced.index(self.contraction.n)]
        lanes = Lanes(lane, point.lanes.width, point.lanes.mask)
        return Point(variables, lanes, {lane: point.lanes.width})

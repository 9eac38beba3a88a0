"""Where a contraction's sums start and where they go: the accumulation buffer, or through the epilogue fused with it."""

from __future__ import annotations

from collections.abc import Sequence

from .....dialect.bindings import ir
from ....kernels.emit.emitter import Emitter
from ....kernels.emit.memory import Lanes, Memory, Point
from ....kernels.emit.scalar_body import Body, Environment
from ....kernels.structure.match import Contraction, MatchedGroup, plain_dims
from ....kernels.structure.nest import Nest
from ..nest.vector_plan import element_bits
from .tuning import LINE

__all__ = ["Epilogue"]


class Epilogue:
    """Builds first and last values of the sums of one contraction, vector by vector."""

    def __init__(self, contraction: Contraction, epilogue: Nest | None, group: MatchedGroup, emitter: Emitter, memory: Memory):
        self.contraction, self.epilogue, self.group = contraction, epilogue, group
        self.emitter, self.memory = emitter, memory
        self.output = contraction.nest.outputs[0]
        self.body = None if epilogue is None else Body(emitter, memory, epilogue.body()[0], epilogue.dropped)

    def initial(self, point: Point) -> ir.Value:
        """What sums start from: what was filled in, or what is there."""
        if self.group.fill is not None:
            return self.emitter.broadcast(self.group.fill.operands[0], point.width)
        assert self.output.buffer is not None
        return self.memory.load(self.output.buffer, self.output.offset, point)

    def fetch(self, points: Sequence[Point], vectors: int) -> None:
        """Asks for what the epilogue will read of rows, of which each has that many vectors.

        A product of 3136 x 64 x 256 with a residual, Zen 4: 0.95 of the time without.
        """
        for operand in () if self.epilogue is None else self.epilogue.inputs:
            if operand.buffer is None or not operand.used or operand.value == self.output.value:
                continue
            inner = self._epilogue_point(points[0])
            assert inner.lanes is not None
            lane, size = inner.lanes.dim, element_bits(operand.buffer.element) // 8
            if operand.offset.factor(lane).static != 1 or operand.offset.dims() <= {lane}:
                continue
            vectors_per_line = max(1, LINE // (inner.lanes.width * size))
            for point in (p for i, p in enumerate(points) if i % vectors % vectors_per_line == 0):
                self.emitter.prefetch(operand.buffer.flat, self.memory.index(operand.offset, self._epilogue_point(point)))

    def store(self, total: ir.Value, point: Point) -> None:
        """Writes sums, or what the epilogue makes of them."""
        if self.epilogue is None or self.body is None:
            assert self.output.buffer is not None
            self.memory.store(total, self.output.buffer, self.output.offset, point)
            return
        inner = self._epilogue_point(point)
        environment: Environment = {}
        for operand in self.epilogue.operands:
            if operand.value == self.output.value:
                environment[operand.argument] = total
            elif operand.buffer is None:
                environment[operand.argument] = operand.value
            elif operand.used:
                environment[operand.argument] = self.memory.load(operand.buffer, operand.offset, inner)
        operations, yielded = self.epilogue.body()
        for operation in operations:
            self.body.evaluate(operation, environment, inner)
        for operand, value in zip(self.epilogue.outputs, yielded, strict=True):
            assert operand.buffer is not None
            result = self.body.value(self.body.item(value, environment), inner)
            self.memory.store(result, operand.buffer, operand.offset, inner)

    def _epilogue_point(self, point: Point) -> Point:
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

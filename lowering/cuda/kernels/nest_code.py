"""The body of a loop nest at one point: what it reads, its operations, and what it writes, for one thread."""

from __future__ import annotations

from collections.abc import Mapping

from ....dialect.bindings import func, ir
from ....dialect.errors import RelaxError
from ....dialect.functions import body_of
from ....dialect.traversal import nested_operations
from ...kernels.emit.buffers import Buffers
from ...kernels.emit.emitter import Emitter
from ...kernels.emit.lane_math import Item
from ...kernels.emit.memory import Memory, Point
from ...kernels.emit.scalar_body import Body
from ...kernels.structure.combiners import COMBINERS, combiners
from ...kernels.structure.nest import Nest, Operand, collapse, read_nest

__all__ = ["Combined", "NestCode", "Terms", "is_plain", "plain_operations", "read"]


def read(operation: ir.Operation, memory: Buffers, rows: int = 0) -> Nest:
    """The nest of an operation; loops over dimensions below ``rows`` stay as they are."""
    return collapse(read_nest(operation, memory), range(rows))


def is_plain(operation: ir.Operation) -> bool:
    """Whether a ``linalg.generic`` is on buffers of numbers and has a body of arithmetic, which is at most told where it is."""
    if operation.name != "linalg.generic" or len(operation.results):
        return False
    body = [op.operation for op in operation.regions[0].blocks[0].operations][:-1]
    return all(map(_is_number, operation.operands)) and all(map(_is_arithmetic, body))


def plain_operations(function: func.FuncOp) -> list[ir.Operation]:
    """The linalg operations of a function that has no others on elements, but allocations."""
    block = body_of(function)
    top = [] if block is None else [op.operation for op in block.operations]
    found = [op for op in nested_operations(function.operation) if op.name.startswith(("linalg.generic", "memref.", "scf."))]
    found = [op for op in found if op.name not in ("memref.dim", "memref.alloc", "memref.dealloc")]
    return found if all(op in top and is_plain(op) for op in found) else []


def _is_number(value: ir.Value) -> bool:
    kind = ir.MemRefType(value.type).element_type if isinstance(value.type, ir.MemRefType) else value.type
    is_scalar = not isinstance(value.type, ir.MemRefType)
    return isinstance(kind, (ir.IntegerType, ir.FloatType)) and (is_scalar or kind.width >= 8)


def _is_arithmetic(op: ir.Operation) -> bool:
    known = op.name.startswith(("arith.", "math.")) and len(op.results) == 1 and not len(op.regions)
    return known or op.name in ("linalg.index", "affine.apply")


class NestCode:
    """Builds the points of one nest."""

    def __init__(self, em: Emitter, nest: Nest, memory: Memory):
        self.em, self.nest, self.memory = em, nest, memory
        self.operations, self.yielded = nest.body()
        self.body = Body(em, memory, self.operations, nest.dropped)

    def load(self, operand: Operand, point: Point) -> ir.Value:
        """An operand at a point: of a vector where lanes differ."""
        if operand.buffer is None:
            return self.memory.outside(operand.value)
        return self.memory.load(operand.buffer, operand.offset, point)

    def store(self, value: ir.Value, operand: Operand, point: Point) -> None:
        """Writes an output at a point."""
        if operand.buffer is None:
            raise RelaxError("expected a buffer to write to", self.nest.operation.location)
        self.memory.store(value, operand.buffer, operand.offset, point)

    def values(self, point: Point, known: Mapping[ir.Value, Item]) -> list[ir.Value]:
        """What the body yields; arguments that are not known are read, if it uses them."""
        environment = dict(known)
        for operand in self.nest.operands:
            if operand.used and operand.argument not in environment:
                environment[operand.argument] = self.load(operand, point)
        for operation in self.operations:
            self.body.evaluate(operation, environment, point)
        return [self.em.broadcast(self.body.value(self.body.item(v, environment), point), point.width) for v in self.yielded]


class Combined:
    """How a nest with one result reduces: ``element`` is the type of its sums, ``neutral`` what they begin with."""

    def __init__(self, code: NestCode):
        found = combiners(code.nest)
        assert found is not None
        ((self._operation, term),) = found
        self._em, self.element = code.em, code.nest.outputs[0].argument.type
        self.terms = Terms(code, self._operation, term)
        self.neutral = COMBINERS[self._operation.name].neutral_of(self.element)

    def combine(self, a: ir.Value, b: ir.Value) -> ir.Value:
        """Two sums, or vectors of them, as one."""
        return self._em.clone(self._operation, [a, b], a.type)


class Terms:
    """What a reduction combines its result with, at a point."""

    def __init__(self, code: NestCode, operation: ir.Operation, term: ir.Value):
        self.code, self.term = code, term
        self.operations = [op for op in code.operations if op != operation]

    def build(self, point: Point, known: dict[ir.Value, Item]) -> ir.Value:
        code, environment = self.code, dict(known)
        for operand in code.nest.inputs:
            if operand.used and operand.argument not in environment:
                environment[operand.argument] = code.load(operand, point)
        for operation in self.operations:
            code.body.evaluate(operation, environment, point)
        value = code.body.value(code.body.item(self.term, environment), point)
        return code.em.broadcast(value, point.width)

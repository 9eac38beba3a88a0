"""A linalg operation on buffers one point at a time: indices of its parallel loops in, code that computes what they determine.

Reductions are loops around the body, with sums in registers.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from ....dialect.bindings import ir
from ....dialect.errors import RelaxError
from ....dialect.traversal import clone_with, free_values, nested_operations, operations
from ...kernels.emit.emitter import Emitter

__all__ = ["Points", "delinearized"]

#: What a value of the host is where code is built.
Lookup = Callable[[ir.Value], ir.Value]

Indices = Mapping[int, ir.Value]
Step = Callable[[Indices, Sequence[ir.Value]], Sequence[ir.Value]]


@dataclass(frozen=True)
class Points:
    """A ``linalg.generic`` read into plain data.

    Attributes:
        operation: the operation.
        values: its operands, inputs first.
        maps: where each of these is read or written, by the loops' indices.
        inputs: how many are inputs.
        parallel: the loops whose iterations are independent and write different elements.
        serial: the others, in order.
    """

    operation: ir.Operation
    values: tuple[ir.Value, ...]
    maps: tuple[ir.AffineMap, ...]
    inputs: int
    parallel: tuple[int, ...]
    serial: tuple[int, ...]

    @staticmethod
    def of(operation: ir.Operation) -> Points:
        """Reads an operation. Raises RelaxError when it is none on buffers, or has a loop that indexes nothing directly."""
        if operation.name != "linalg.generic" or len(operation.results):
            raise RelaxError(f"'{operation.name}' op has no kernel template", operation.location)
        maps = tuple(ir.AffineMapAttr(a).value for a in ir.ArrayAttr(operation.attributes["indexing_maps"]))
        kinds = ["parallel" in str(k) for k in ir.ArrayAttr(operation.attributes["iterator_types"])]
        inputs = ir.DenseI32ArrayAttr(operation.attributes["operandSegmentSizes"])[0]
        written = [{_dimension(e) for e in m.results} for m in maps[inputs:]]
        parallel = tuple(d for d, free in enumerate(kinds) if free and all(d in w for w in written))
        serial = tuple(d for d in range(len(kinds)) if d not in parallel)
        return Points(operation, tuple(operation.operands), maps, inputs, parallel, serial)

    def extent(self, em: Emitter, dim: int, value_of: Lookup) -> ir.Value:
        """How many iterations a loop has."""
        pairs = zip(self.values, self.maps, strict=True)
        places = [(v, i) for v, m in pairs for i, e in enumerate(m.results) if _dimension(e) == dim]
        if not places:
            raise RelaxError(f"expected loop d{dim} to index some operand directly", self.operation.location)
        static = next((p for p in places if not ir.MemRefType(p[0].type).is_dynamic_dim(p[1])), None)
        if static is not None:
            return em.number(ir.MemRefType(static[0].type).shape[static[1]])
        value, axis = places[0]
        return em.op("memref.dim", [value_of(value), em.number(axis)], em.index)

    def extents(self, em: Emitter, dims: Sequence[int], value_of: Lookup) -> list[ir.Value]:
        """Those of several loops."""
        return [self.extent(em, d, value_of) for d in dims]

    def build(self, em: Emitter, indices: Indices, known: Mapping[ir.Value, ir.Value], value_of: Lookup) -> None:
        """Builds what one point does.

        Args:
            em: where to.
            indices: of the parallel loops.
            known: what values that the body reads from outside of the operation are.
            value_of: what any value of the host is.
        """
        _Point(self, em, known, value_of).build(indices)

    def outputs_stay(self) -> bool:
        """Whether the serial loops write to the same elements throughout, so that these may be in registers."""
        serial = set(self.serial)
        return not any(_dimensions(e) & serial for m in self.maps[self.inputs :] for e in m.results)


class _Point:
    """One point of an operation, as it is built."""

    def __init__(self, points: Points, em: Emitter, known: Mapping[ir.Value, ir.Value], value_of: Lookup):
        self.points, self.em, self.known, self.value_of = points, em, known, value_of
        self.block = points.operation.regions[0].blocks[0]
        self.buffers = [value_of(v) for v in points.values]
        self.outputs = range(points.inputs, len(self.buffers))

    def build(self, indices: Indices) -> None:
        """In registers, where the serial loops leave the outputs where they are; else each step reads and writes memory."""
        if not self.points.outputs_stay():
            self._each(self.points.serial, indices, (), lambda at, _: self._store(at, self._body(at, {})))
            return
        arguments = list(self.block.arguments)
        used = bool(self.points.serial) or any(next(iter(arguments[i].uses), None) is not None for i in self.outputs)
        start = [self._load(i, indices) for i in self.outputs] if used else []
        self._store(indices, self._each(self.points.serial, indices, start, self._step))

    def _each(self, dims: Sequence[int], indices: Indices, carried: Sequence[ir.Value], body: Step) -> Sequence[ir.Value]:
        if not dims:
            return body(indices, carried)
        upper = self.points.extent(self.em, dims[0], self.value_of)
        return self.em.loop(
            self.em.number(0), upper, 1, lambda i, c: self._each(dims[1:], {**indices, dims[0]: i}, c, body), carried
        )

    def _step(self, indices: Indices, carried: Sequence[ir.Value]) -> list[ir.Value]:
        arguments = list(self.block.arguments)
        return self._body(indices, dict(zip(arguments[self.points.inputs :], carried, strict=False)))

    def _place(self, position: int, indices: Indices) -> list[ir.Value]:
        return [_index(self.em, e, indices) for e in self.points.maps[position].results]

    def _load(self, position: int, indices: Indices) -> ir.Value:
        buffer = self.buffers[position]
        if not isinstance(buffer.type, ir.MemRefType):
            return buffer
        element = ir.MemRefType(buffer.type).element_type
        return self.em.op("memref.load", [buffer, *self._place(position, indices)], element)

    def _store(self, indices: Indices, values: Sequence[ir.Value]) -> tuple[ir.Value, ...]:
        for position, value in zip(self.outputs, values, strict=True):
            self.em.effect("memref.store", [value, self.buffers[position], *self._place(position, indices)])
        return ()

    def _body(self, indices: Indices, carried: Mapping[ir.Value, ir.Value]) -> list[ir.Value]:
        """What the body yields; elements that are not carried are read if it does."""
        mapping = {**self.known, **carried}
        for position, argument in enumerate(self.block.arguments):
            if argument not in carried and next(iter(argument.uses), None) is not None:
                mapping[argument] = self._load(position, indices)
        *body, end = operations(self.block)
        for op in body:
            self._clone(op, mapping, indices)
        return [self._found(v, mapping) for v in end.operands]

    def _found(self, value: ir.Value, mapping: Mapping[ir.Value, ir.Value]) -> ir.Value:
        known = mapping.get(value)
        return self.value_of(value) if known is None else known

    def _clone(self, op: ir.Operation, mapping: dict[ir.Value, ir.Value], indices: Indices) -> None:
        if op.name == "linalg.index":
            mapping[op.results[0]] = indices[_dim_of(op)]
            return
        for value in free_values(op):
            mapping[value] = self._found(value, mapping)
        made = clone_with(op, mapping, self.em.point)
        for inner in [o for o in nested_operations(made) if o.name == "linalg.index"] if len(made.regions) else ():
            inner.results[0].replace_all_uses_with(indices[_dim_of(inner)])
            inner.erase()


def delinearized(em: Emitter, number: ir.Value, extents: Sequence[ir.Value]) -> list[ir.Value]:
    """The indices of loops, the last one fastest, out of a number below the product of their extents."""
    one = em.number(1)
    counted = [i for i, e in enumerate(extents) if e != one]
    found, rest = [em.number(0)] * len(extents), number
    for i in reversed(counted[1:]):
        quotient = em.op("arith.divui", [rest, extents[i]], em.index)
        found[i] = em.sub(rest, em.mul(quotient, extents[i]))
        rest = quotient
    if counted:
        found[counted[0]] = rest
    return found


def _index(em: Emitter, expr: ir.AffineExpr, indices: Indices) -> ir.Value:
    """An index expression at a point."""
    if isinstance(expr, ir.AffineDimExpr):
        return indices[expr.position]
    if isinstance(expr, ir.AffineConstantExpr):
        return em.number(expr.value)
    dims = max(_dimensions(expr), default=-1) + 1
    values = [indices.get(d, em.number(0)) for d in range(dims)]
    return em.op("affine.apply", values, em.index, {"map": ir.AffineMapAttr.get(ir.AffineMap.get(dims, 0, [expr], em.context))})


def _dim_of(op: ir.Operation) -> int:
    return ir.IntegerAttr(op.attributes["dim"]).value


def _dimension(expr: ir.AffineExpr) -> int | None:
    """The loop whose index an expression is."""
    return expr.position if isinstance(expr, ir.AffineDimExpr) else None


def _dimensions(expr: ir.AffineExpr) -> set[int]:
    """The loops whose indices an expression reads."""
    if isinstance(expr, ir.AffineDimExpr):
        return {expr.position}
    if isinstance(expr, ir.AffineBinaryExpr):
        return _dimensions(expr.lhs) | _dimensions(expr.rhs)
    return set()

"""A linalg.generic on buffers read into plain data: loop extents, one linear offset per operand, and the scalar body."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from ....dialect.bindings import ir
from ....dialect.errors import RelaxError
from ...marks import CONTRACTION, WINOGRAD
from ..emit.buffers import Buffer, Buffers
from ..emit.linear_index import NOWHERE, Linear, Size, from_affine

__all__ = ["Nest", "Operand", "collapse", "read_nest"]


@dataclass(frozen=True)
class Operand:
    """What one block argument of the body stands for: an element of a buffer, or a scalar when ``buffer`` is None."""

    argument: ir.Value
    value: ir.Value
    buffer: Buffer | None = None
    offset: Linear = NOWHERE

    @property
    def used(self) -> bool:
        return next(iter(self.argument.uses), None) is not None

    def with_offset(self, offset: Linear) -> Operand:
        return Operand(self.argument, self.value, self.buffer, offset)


@dataclass(frozen=True)
class Nest:
    """The loops over ``extents`` (dimension -> size, in order), some of them reductions, around a body.

    ``dropped`` dimensions have one iteration (or were merged into another) and occur in no offset.
    """

    operation: ir.Operation
    extents: dict[int, Size]
    reductions: frozenset[int]
    inputs: tuple[Operand, ...]
    outputs: tuple[Operand, ...]
    dropped: frozenset[int] = frozenset()

    @property
    def block(self) -> ir.Block:
        return self.operation.regions[0].blocks[0]

    @property
    def operands(self) -> tuple[Operand, ...]:
        return self.inputs + self.outputs

    def body(self) -> tuple[list[ir.Operation], list[ir.Value]]:
        """The operations of the body without its terminator, and the values yielded."""
        operations = [op.operation for op in self.block.operations]
        return operations[:-1], list(operations[-1].operands)

    def sizes(self) -> set[Size]:
        """Every run-time size that code for this nest may need."""
        found = set(self.extents.values())
        for operand in self.operands:
            found |= {operand.offset.constant, *(factor for _, factor in operand.offset.terms)}
        return found


def read_nest(operation: ir.Operation, memory: Buffers) -> Nest:
    """Reads a linalg.generic; loops of one iteration are dropped.

    Raises:
        RelaxError: it has tensors, or a loop dimension that indexes no operand directly.
    """
    maps = [ir.AffineMapAttr(a).value for a in ir.ArrayAttr(operation.attributes["indexing_maps"])]
    indices = [[from_affine(e) for e in m.results] for m in maps]
    kinds = ["reduction" in str(k) for k in ir.ArrayAttr(operation.attributes["iterator_types"])]
    values = list(operation.operands)
    if len(operation.results):
        raise RelaxError("expected linalg.generic on buffers, got tensors", operation.location)
    extents = _extents(operation, values, indices, len(kinds), memory)
    arguments = list(operation.regions[0].blocks[0].arguments)
    operands = [
        _operand(argument, value, index, extents, memory)
        for argument, value, index in zip(arguments, values, indices, strict=True)
    ]
    count = ir.DenseI32ArrayAttr(operation.attributes["operandSegmentSizes"])[0]
    reductions = frozenset(d for d, is_reduction in enumerate(kinds) if is_reduction)
    if not {CONTRACTION, WINOGRAD} & set(operation.attributes.keys()):  # their templates know packed operands by floordivs
        static = {d: size.static for d, size in extents.items() if size.static}
        operands = [o.with_offset(o.offset.bounded(static)) for o in operands]
    nest = Nest(operation, extents, reductions, tuple(operands[:count]), tuple(operands[count:]))
    return _without(nest, {d for d, size in extents.items() if size.static == 1}, {})


def collapse(nest: Nest, kept: Iterable[int] = ()) -> Nest:
    """Merges neighbouring loops over which every operand is contiguous (or constant), so that vectors get longer.

    The loops over the dimensions ``kept`` stay.
    """
    indexed = _indexed_dims(nest).union(kept)
    merged = True
    while merged:
        merged = False
        dims = list(nest.extents)
        for outer, inner in zip(dims[-2::-1], dims[:0:-1], strict=True):
            if not {outer, inner} & indexed and _mergeable(nest, outer, inner):
                nest = _without(nest, {outer}, {inner: nest.extents[outer] * nest.extents[inner]})
                merged = True
                break
    return nest


def _extents(
    operation: ir.Operation, values: Sequence[ir.Value], indices: Sequence[Sequence[Linear]], rank: int, memory: Buffers
) -> dict[int, Size]:
    found: dict[int, list[tuple[ir.Value, int]]] = {d: [] for d in range(rank)}
    dims = {Linear.dim(d): d for d in range(rank)}
    for value, index in zip(values, indices, strict=True):
        for position, expression in enumerate(index):
            if expression in dims:
                found[dims[expression]].append((value, position))
    missing = [d for d, places in found.items() if not places]
    if missing:
        raise RelaxError(f"expected loop d{missing[0]} to index some operand directly", operation.location)
    return {d: _extent(places, d, memory) for d, places in found.items()}


def _extent(places: Sequence[tuple[ir.Value, int]], dim: int, memory: Buffers) -> Size:
    static = next((p for p in places if not ir.MemRefType(p[0].type).is_dynamic_dim(p[1])), places[0])
    return memory.extent(static[0], static[1], (0, dim))


def _operand(
    argument: ir.Value, value: ir.Value, indices: Sequence[Linear], extents: dict[int, Size], memory: Buffers
) -> Operand:
    if not isinstance(value.type, ir.MemRefType):
        return Operand(argument, value)
    known = {Linear.dim(d): size for d, size in extents.items()}
    owner = memory.next_owner()
    shape = [known.get(index) or memory.extent(value, i, (owner, i)) for i, index in enumerate(indices)]
    buffer = memory.buffer(value, shape)
    return Operand(argument, value, buffer, buffer.linear(indices))


def _without(nest: Nest, dims: set[int], changed: dict[int, Size]) -> Nest:
    """The nest without the loops over ``dims``, which stay at 0, and with other extents for ``changed``."""
    if not dims:
        return nest

    def pinned(dim: int) -> Linear:
        return Linear(()) if dim in dims else Linear.dim(dim)

    return Nest(
        nest.operation,
        {d: changed.get(d, size) for d, size in nest.extents.items() if d not in dims},
        nest.reductions - dims,
        tuple(o.with_offset(o.offset.substituted(pinned)) for o in nest.inputs),
        tuple(o.with_offset(o.offset.substituted(pinned)) for o in nest.outputs),
        nest.dropped | dims,
    )


def _indexed_dims(nest: Nest) -> set[int]:
    """The dimensions whose index the body reads, and those inside floordivs."""
    operations, _ = nest.body()
    found = {ir.IntegerAttr(op.attributes["dim"]).value for op in operations if op.name == "linalg.index"}
    for operand in nest.operands:
        for floor in operand.offset.floors():
            found |= floor.inner.dims()
    return found


def _mergeable(nest: Nest, outer: int, inner: int) -> bool:
    if (outer in nest.reductions) != (inner in nest.reductions):
        return False
    extent = nest.extents[inner]
    return all(o.offset.factor(outer) == o.offset.factor(inner) * extent for o in nest.operands)

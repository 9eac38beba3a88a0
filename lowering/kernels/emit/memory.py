"""Reads and writes buffers at a point of a loop nest: one element, or one vector of neighbouring loop iterations.

Every buffer is seen flat (one dimension, unit stride) and every access is one linear offset. How that offset changes along
the vector's lanes decides the instruction: not at all is a scalar load, by one a vector load, anything else a gather.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from ....dialect.bindings import ir
from .buffers import Buffer, Buffers, row_major
from .emitter import Emitter
from .linear_index import ZERO, FloorDivision, LaneForm, Linear, Ragged, Size, Symbol

__all__ = ["Buffer", "Lanes", "Memory", "Point"]


@dataclass(frozen=True)
class Lanes:
    """The vector: ``width`` iterations of loop ``dim`` from the point on; ``active`` of them count when it is given."""

    dim: int
    width: int
    mask: ir.Value | None = None


@dataclass(frozen=True)
class Point:
    """Where in the nest code is being built: the loop variables in nest order, and the vector lanes if there are any.

    ``multiples`` are known divisors of loop variables.
    """

    variables: Mapping[int, ir.Value] = field(default_factory=dict[int, ir.Value])
    lanes: Lanes | None = None
    multiples: Mapping[int, int] = field(default_factory=dict[int, int])

    @property
    def width(self) -> int:
        return self.lanes.width if self.lanes else 0

    def at(self, dim: int, value: ir.Value, multiple: int = 1) -> Point:
        """Inside the loop over ``dim``."""
        return Point({**self.variables, dim: value}, self.lanes, {**self.multiples, dim: multiple})

    def masked(self, emitter: Emitter, mask: ir.Value) -> Point:
        """With only those lanes active that are in the mask too."""
        assert self.lanes is not None
        if self.lanes.mask is not None:
            mask = emitter.op("arith.andi", [self.lanes.mask, mask], mask.type)
        return self.with_lanes(Lanes(self.lanes.dim, self.lanes.width, mask))

    def without_mask(self) -> Point:
        return self.with_lanes(Lanes(self.lanes.dim, self.lanes.width)) if self.lanes else self

    def with_lanes(self, lanes: Lanes | None) -> Point:
        return Point(self.variables, lanes, self.multiples)


class Memory(Buffers):
    """The buffers and run-time sizes of one kernel, and the code that accesses them.

    ``row_buffers`` are memrefs of which one row exists at a time: where it is, and how many first dimensions are rows.
    """

    def __init__(self, emitter: Emitter, row_buffers: Mapping[ir.Value, tuple[ir.Value, int]] | None = None):
        super().__init__(emitter.location)
        self.emitter = emitter
        self._row_buffers = row_buffers or {}
        self._symbols: dict[Symbol, ir.Value] = {}
        self._sizes: dict[Size, ir.Value] = {}
        self._captured: dict[ir.Value, Buffer] = {}

    # -- sizes -----------------------------------------------------------------------------------------------------

    def _bind(self, symbol: Symbol, value: ir.Value, position: int) -> None:
        if symbol not in self._symbols:
            self._symbols[symbol] = self._run_time_extent(value, ir.MemRefType(value.type), position)

    def _run_time_extent(self, value: ir.Value, kind: ir.MemRefType, position: int) -> ir.Value:
        owner = value.owner
        if not isinstance(owner, ir.Block) and owner.name in ("memref.alloc", "memref.alloca"):
            # Its operand, because a fused temporary disappears.
            return owner.operands[sum(kind.is_dynamic_dim(i) for i in range(position))]
        return self.emitter.op("memref.dim", [value, self.emitter.number(position)], self.emitter.index)

    def bind(self, symbol: Symbol, value: ir.Value) -> None:
        """Says what a size is that no memref has."""
        self._symbols[symbol] = value

    def prepare(self, sizes: Iterable[Size]) -> None:
        """Computes sizes here once; code built later in nested loops uses the results."""
        for size in sizes:
            if size.static is None and size not in self._sizes:
                self._sizes[size] = self._product_sum(size)

    def size(self, size: Size) -> ir.Value:
        """A size as an index value."""
        static = size.static
        if static is not None:
            return self.emitter.number(static)
        return self._sizes[size] if size in self._sizes else self._product_sum(size)

    def _product_sum(self, size: Size) -> ir.Value:
        em, total = self.emitter, None
        for symbols, factor in size.terms:
            term = em.number(factor)
            for symbol in symbols:
                term = self._symbols[symbol] if term == em.number(1) else em.mul(term, self._symbols[symbol])
            total = term if total is None else em.add(total, term)
        return em.number(0) if total is None else total

    def outside(self, value: ir.Value) -> ir.Value:
        """What a value that a body takes from outside is where code is built: itself, in a function."""
        return value

    # -- buffers ---------------------------------------------------------------------------------------------------

    def buffer(self, value: ir.Value, shape: Sequence[Size] | None = None) -> Buffer:
        """As :meth:`Buffers.buffer`; of a memref that exists row by row, the row."""
        if value not in self._row_buffers:
            return super().buffer(value, shape)
        kind, owner = ir.MemRefType(value.type), self.next_owner()
        shape = shape or [self.extent(value, i, (owner, i)) for i in range(kind.rank)]
        flat, rows = self._row_buffers[value]
        flat, stored = self._as_stored(flat)
        return Buffer(flat, kind.element_type, stored, (ZERO,) * rows + row_major(shape[rows:]), ZERO)

    def captured(self, value: ir.Value) -> Buffer:
        """The flat view of a memref that a body reads; the first call must be outside the loops."""
        if value not in self._captured:
            buffer = self.buffer(value)
            self.prepare([*buffer.strides, buffer.offset])
            self._captured[value] = buffer
        return self._captured[value]

    def _bind_layout(self, value: ir.Value, symbols: Mapping[int, Symbol]) -> None:
        """Binds the strides and the offset of a memref at run time, by number."""
        em, kind = self.emitter, ir.MemRefType(value.type)
        base = ir.MemRefType.get([], kind.element_type, memory_space=kind.memory_space, loc=em.location)
        results = em.several("memref.extract_strided_metadata", [value], [base, *[em.index] * (1 + 2 * kind.rank)])
        values = [*results[2 + kind.rank :], results[1]]
        self._symbols.update({symbol: values[i] for i, symbol in symbols.items()})

    def _flat(self, value: ir.Value, shape: Sequence[Size], strides: Sequence[Size], offset: Size) -> tuple[ir.Value, ir.Type]:
        em, extent, kind = self.emitter, offset + Size.of(1), ir.MemRefType(value.type)
        for size, stride in zip(shape, strides, strict=True):
            extent += (size + Size.of(-1)) * stride
        static = extent.static
        dynamic = ir.ShapedType.get_dynamic_size()
        flat = ir.MemRefType.get(
            [dynamic if static is None else static], kind.element_type, None, kind.memory_space, loc=em.location
        )
        sizes = [self.size(extent)] if static is None else []
        return self._as_stored(em.op("memref.reinterpret_cast", [value, *sizes], flat, em.flat_view(len(sizes), static)))

    def _as_stored(self, flat: ir.Value) -> tuple[ir.Value, ir.Type]:
        kind = ir.MemRefType(flat.type)
        if not isinstance(kind.element_type, (ir.BF16Type, ir.F16Type)):
            return flat, kind.element_type
        em, bits = self.emitter, self.emitter.integer(16)
        same = ir.MemRefType.get(kind.shape, bits, None, kind.memory_space, loc=em.location)
        # Both become one pointer in the LLVM dialect, where this cast disappears.
        return em.op("builtin.unrealized_conversion_cast", [flat], same), bits

    def _flat_words(self, flat: ir.Value, word: ir.Type, count: int) -> ir.Value:
        kind = ir.MemRefType(flat.type)
        words = ir.MemRefType.get([kind.shape[0] // count], word, None, kind.memory_space, loc=self.emitter.location)
        # Both are one pointer and one size in the LLVM dialect, where this cast disappears.
        return self.emitter.op("builtin.unrealized_conversion_cast", [flat], words)

    # -- addresses -------------------------------------------------------------------------------------------------

    def index(self, linear: Linear, point: Point) -> ir.Value:
        """The value of an expression at the point (its first lane); outer loops' terms are added first."""
        em = self.emitter
        rank = {dim: i for i, dim in enumerate(point.variables)}
        terms = linear.terms
        if len(terms) > 1:
            terms = sorted(terms, key=lambda t: max((rank[d] for d in _dims(t[0])), default=-1))
        total = None if linear.constant == ZERO and terms else self.size(linear.constant)
        for atom, factor in terms:
            value = point.variables[atom] if isinstance(atom, int) else self._floor(atom, point)
            value = value if factor.static == 1 else em.mul(value, self.size(factor))
            total = value if total is None else em.add(total, value)
        return em.number(0) if total is None else total

    def row_index(self, linear: Linear, point: Point, inner: int) -> ir.Value:
        """As :meth:`index`, in a loop over ``inner``: all else is added up in front of it, once for rows that begin alike.

        LLVM is not shown how: its loop strength reduction weighs all ways to share these sums, for each access. ResNet-50
        takes 1.2 instead of 1.7 s of code generation; inner loops have as many instructions or two less, those around less.
        """
        em, dims = self.emitter, linear.dims() - {inner}
        if not em.in_loop or not all(em.is_outside_of_loop(point.variables[d]) for d in dims):
            return self.index(linear, point)
        variables = dict(point.variables)
        for dim in dims:
            base, constant = em.split(variables[dim])
            if base is not None:
                linear = linear.shifted(dim, constant, {dim: em.divisor(base)})
                variables[dim] = base
        along = [t for t in linear.terms if inner in _dims(t[0])]
        outer = [t for t in linear.terms if inner not in _dims(t[0])]
        place = replace(point, variables=variables)
        with em.before_loop():
            row = em.opaque(self.index(Linear(tuple(outer)), place))
        return em.add(row, self.index(Linear(tuple(along), linear.constant), place))

    def _floor(self, floor: FloorDivision, point: Point) -> ir.Value:
        return self.floor_divide(self.index(floor.inner, point), floor.divisor, _never_negative(floor.inner))

    def floor_divide(self, value: ir.Value, divisor: int, positive: bool) -> ir.Value:
        """``value floordiv divisor`` of a scalar or vector, for a positive constant divisor."""
        em = self.emitter
        if divisor & (divisor - 1) == 0:
            return em.op("arith.shrsi", [value, em.constant(divisor.bit_length() - 1, value.type)], value.type)
        by = em.constant(divisor, value.type)
        if positive:
            return em.op("arith.divui", [value, by], value.type)
        quotient = em.op("arith.divsi", [value, by], value.type)
        negative = em.compare("slt", em.sub(value, em.mul(quotient, by)), em.constant(0, value.type))
        return em.op("arith.select", [negative, em.sub(quotient, em.constant(1, value.type)), quotient], value.type)

    def lane_offsets(self, form: LaneForm, point: Point) -> ir.Value:
        """Offsets of all lanes from the first, as a vector of i32 where they fit, else of index."""
        em, width = self.emitter, point.width
        step = form.step.static
        bound = _largest_offset(form, width)
        if bound is None or bound >= 2**31:
            element, total = (
                em.index,
                em.mul(em.lane_constant(range(width), em.index), em.broadcast(self.size(form.step), width)),
            )
        else:
            element, total = em.i32, em.lane_constant([(step or 0) * i for i in range(width)], em.i32)
        for part in form.ragged:
            quotient = self.lane_quotients(part, point)
            quotient = self._resized(quotient, total.type)
            if element == em.index:
                factor = em.broadcast(self.size(part.factor), width)
            else:
                factor = em.constant(part.factor.static or 0, total.type)
            total = em.add(total, em.mul(quotient, factor))
        return total

    def lane_quotients(self, part: Ragged, point: Point) -> ir.Value:
        """By how much each lane's floordiv differs from the first lane's, as a vector of i32 where they fit, else of index."""
        em, width, divisor = self.emitter, point.width, part.divisor
        low, high = part.inside(width)
        element = em.i32 if high - low + divisor < 2**31 else em.index
        first = self.index(part.inner, point)
        remainder = em.sub(first, em.mul(self.floor_divide(first, divisor, _never_negative(part.inner)), em.number(divisor)))
        # What may be less than the first is lifted by whole divisors: the vector division below is one of non-negative numbers.
        lift = -low // divisor + 1 if low < 0 else 0
        remainder = remainder if element == em.index else em.op("arith.index_cast", [remainder], element)
        lanes = em.lane_constant([lift * divisor + part.step * i for i in range(width)], element)
        lanes = em.add(em.broadcast(remainder, width), lanes)
        for inner in part.parts:
            quotient = self._resized(self.lane_quotients(inner, point), lanes.type)
            lanes = em.add(lanes, em.mul(quotient, em.constant(inner.factor.static or 0, lanes.type)))
        quotient = self.floor_divide(lanes, divisor, positive=True)
        return em.sub(quotient, em.constant(lift, quotient.type)) if lift else quotient

    def _resized(self, vector: ir.Value, kind: ir.Type) -> ir.Value:
        return vector if vector.type == kind else self.emitter.op("arith.index_cast", [vector], kind)

    # -- loads and stores ------------------------------------------------------------------------------------------

    def form(self, linear: Linear, point: Point) -> LaneForm:
        """How an offset changes over the lanes at the point."""
        if point.lanes is None:
            return LaneForm(ZERO, ())
        return linear.lanes(point.lanes.dim, point.lanes.width, point.multiples)

    def load(self, buffer: Buffer, linear: Linear, point: Point) -> ir.Value:
        """A scalar where all lanes read the same element, else a vector; lanes that are not active hold zero."""
        return self.load_from(self.index(linear, point), buffer, linear, point)

    def load_from(self, start: ir.Value, buffer: Buffer, linear: Linear, point: Point) -> ir.Value:
        """The same, where the offset of the first lane is there already."""
        form = self.form(linear, point)
        if form.uniform:
            return self.load_element(buffer, start)
        if form.reversed and point.lanes is not None and point.lanes.mask is None:
            first = self.emitter.sub(start, self.emitter.number(point.width - 1))
            return self.retyped(self.emitter.backwards(self.load_stored(buffer, first, None, point)), buffer.element)
        offsets = None if form.contiguous else self.lane_offsets(form, point)
        return self.load_lanes(buffer, start, offsets, point)

    def load_element(self, buffer: Buffer, at: ir.Value) -> ir.Value:
        """One element."""
        return self.retyped(self.emitter.op("memref.load", [buffer.flat, at], buffer.stored), buffer.element)

    def load_lanes(self, buffer: Buffer, start: ir.Value, offsets: ir.Value | None, point: Point) -> ir.Value:
        """A vector from ``start`` on, of neighbours, or gathered at offsets."""
        return self.retyped(self.load_stored(buffer, start, offsets, point), buffer.element)

    def load_stored(self, buffer: Buffer, start: ir.Value, offsets: ir.Value | None, point: Point) -> ir.Value:
        """The same as it is in memory."""
        em, mask = self.emitter, point.lanes.mask if point.lanes else None
        kind = em.vector(point.width, buffer.stored)
        if offsets is None and mask is None:
            return em.op("vector.load", [buffer.flat, start], kind)
        zero = em.constant(0, kind)
        if offsets is None and mask is not None:
            return em.op("vector.maskedload", [buffer.flat, start, mask, zero], kind)
        assert offsets is not None
        mask = em.constant(True, em.vector(point.width, em.i1)) if mask is None else mask
        return em.op("vector.gather", [buffer.flat, start, offsets, mask, zero], kind)

    def retyped(self, value: ir.Value, element: ir.Type) -> ir.Value:
        """A scalar or vector with elements of another type of the same bits."""
        kind = value.type
        wanted = self.emitter.vector(kind.shape[0], element) if isinstance(kind, ir.VectorType) else element
        return value if wanted == kind else self.emitter.op("arith.bitcast", [value], wanted)

    def store(self, value: ir.Value, buffer: Buffer, linear: Linear, point: Point) -> None:
        """Writes a scalar or a vector; only active lanes are written."""
        em, start = self.emitter, self.index(linear, point)
        value = self.retyped(value, buffer.stored)
        if point.lanes is None:
            em.effect("memref.store", [value, buffer.flat, start])
            return
        value, mask = em.broadcast(value, point.width), point.lanes.mask
        form = self.form(linear, point)
        if form.contiguous and mask is None:
            em.effect("vector.store", [value, buffer.flat, start])
        elif form.contiguous and mask is not None:
            em.effect("vector.maskedstore", [buffer.flat, start, mask, value])
        elif mask is None and not form.ragged and form.step.static is not None and _is_narrow(buffer.stored):
            self._store_each(value, buffer, start, form.step.static)
        else:
            mask = em.constant(True, em.vector(point.width, em.i1)) if mask is None else mask
            em.effect("vector.scatter", [buffer.flat, start, self.lane_offsets(form, point), mask, value])

    def _store_each(self, value: ir.Value, buffer: Buffer, start: ir.Value, step: int) -> None:
        """Lanes one by one, at places that are known from the first: no instruction scatters elements of less than 32 bits, and
        what LLVM writes instead takes each address out of a vector.

        An image of 3 channels, quantized from NCHW to NHWC, Zen 5, one thread: 0.63 of the time.
        """
        em = self.emitter
        for lane in range(ir.VectorType(value.type).shape[0]):
            place = em.add(start, em.number(lane * step)) if lane else start
            em.effect("memref.store", [em.lane(value, lane), buffer.flat, place])


def _is_narrow(kind: ir.Type) -> bool:
    return isinstance(kind, ir.IntegerType) and kind.width < 32


def _dims(atom: int | FloorDivision) -> set[int]:
    return atom.inner.dims() if isinstance(atom, FloorDivision) else {atom}


def _never_negative(linear: Linear) -> bool:
    """Loop variables are not negative, so an expression without negative factors is not either."""
    sizes = [linear.constant, *(factor for _, factor in linear.terms)]
    return all((size.static or 0) >= 0 for size in sizes) and all(_never_negative(f.inner) for f in linear.floors())


def _largest_offset(form: LaneForm, width: int) -> int | None:
    """A bound of the offsets' absolute values, None when a factor is known at run time only."""
    total = 0
    parts = [(form.step, width)] + [(p.factor, max(map(abs, p.reach(width)))) for p in form.ragged]
    for factor, most in parts:
        static = factor.static
        if static is None:
            return None
        total += abs(static) * most
    return total

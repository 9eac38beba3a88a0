"""A factor from global memory to shared memory, a stage at a time: by ``cp.async``, or through registers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from .....dialect.bindings import ir
from ....kernels.emit.memory import Lanes, Point
from ....kernels.structure.factor import Factor
from ..device_memory import DeviceMemory
from ..factor_code import FactorCode
from .plan import ProductPlan
from .shared_tile import PIECE, SharedTile
from .tile_order import RowsOfTile
from .warp_code import WarpCode

__all__ = ["AsyncCopies", "Copier", "Depth", "ValueCopies"]


@dataclass(frozen=True)
class Depth:
    """Steps of k: of the innermost sum, and what offset the other sums and these add.

    Attributes:
        dim: the loop dimension of k.
        count: how many steps the innermost sum has; static: the same, if it is known.
    """

    dim: int
    count: ir.Value
    static: int | None


class Copier(Protocol):
    """Brings one factor."""

    def start(self, step: Mapping[int, ir.Value], stage: ir.Value) -> object:
        """Begins with a stage, whose first step of k, and indices of other sums, are given; the last ones may be cut off."""
        ...

    def finish(self, started: object) -> None:
        """What is left to do when its place in shared memory is free and time has passed."""
        ...


class _Chunks:
    """How threads share the lines of a tile, in pieces of so many bytes.

    Attributes:
        places: line and first byte of each piece that a thread has; of a thread without any that of another one.
        is_used: whether a thread has any, where there are fewer pieces than threads.
    """

    def __init__(
        self, code: WarpCode, tile: SharedTile, threads: int, thread: ir.Value, bytes_: int, *, lines_first: bool = False
    ):
        per_line = tile.line_bytes // bytes_
        inner = tile.lines if lines_first else per_line
        outer = per_line if lines_first else tile.lines
        rest, number = code.divide(thread, inner)
        at_once = threads // inner
        self.is_used = code.em.compare("ult", rest, code.number(outer)) if at_once > outer else None
        if self.is_used is not None:  # what a tile has not may be behind the factor's end
            rest = code.em.op("arith.minui", [rest, code.number(outer - 1)], code.em.i32)
        numbers = [code.add(rest, i) for i in range(0, outer, at_once)]
        pairs = [(number, n) if lines_first else (n, number) for n in numbers]
        self.places = [(line, code.mul(piece, bytes_)) for line, piece in pairs]


class AsyncCopies:
    """Elements as they are, by ``cp.async``: what is outside of the factor becomes zeros."""

    def __init__(
        self, code: WarpCode, memory: DeviceMemory, factor: Factor, tile: SharedTile, plan: ProductPlan, bytes_: int,
        place: RowsOfTile, depth: Depth, thread: ir.Value,
    ):  # fmt: skip
        self.code, self.memory, self.tile, self.bytes, self.depth = code, memory, tile, bytes_, depth
        (self.operand,) = factor.operands
        em = code.em
        self.chunks = _Chunks(code, tile, plan.threads, thread, bytes_)
        self.targets = [tile.address(code, line, byte) for line, byte in self.chunks.places]
        size = em.number(tile.bytes)
        assert self.operand.buffer is not None
        address = em.op("memref.extract_aligned_pointer_as_index", [self.operand.buffer.flat], em.index)
        zero = em.number(0)
        starts = {depth.dim: zero} | dict.fromkeys(self._outer(), zero)
        self.valid, self.steps, self.sources = list[ir.Value | None](), list[ir.Value](), list[ir.Value]()
        for line, byte in self.chunks.places:
            neighbour = code.index(code.divide(byte, tile.bytes)[0])
            row, step = (code.index(line), neighbour) if tile.along_k else (neighbour, code.index(line))
            at, inside = self._inside(place, em.add(place.first, row))
            offset = memory.index(self.operand.offset, Point(starts | place.variables(em, at)))
            self.sources.append(em.add(address, em.mul(offset, size)))
            self.steps.append(step)
            self.valid.append(inside)

    def _outer(self) -> set[int]:
        return self.operand.offset.dims()

    def _inside(self, place: RowsOfTile, row: ir.Value) -> tuple[ir.Value, ir.Value | None]:
        """A row that exists, and how many bytes of the copy do; None for all."""
        em, code, rows = self.code.em, self.code, self.tile.rows
        if place.static is not None and place.static % rows == 0:
            return row, None
        exists = em.compare("ult", row, place.count)
        at = em.op("arith.select", [exists, row, em.number(0)], em.index)
        whole, none = code.number(self.bytes), code.number(0)
        elements = self.bytes // self.tile.bytes
        if self.tile.along_k or (place.static is not None and place.static % elements == 0):
            return at, em.op("arith.select", [exists, whole, none], em.i32)
        return at, self._bytes_left(place.count, row)

    def _bytes_left(self, count: ir.Value, at: ir.Value) -> ir.Value:
        """How many bytes of a copy exist, where so many elements do in all."""
        em, code = self.code.em, self.code
        left = code.narrow(em.op("arith.minsi", [em.sub(count, at), em.number(self.bytes // self.tile.bytes)], em.index))
        return code.mul(em.op("arith.maxsi", [left, code.number(0)], em.i32), self.tile.bytes)

    def start(self, step: Mapping[int, ir.Value], stage: ir.Value) -> None:
        em = self.code.em
        moved = em.number(0)
        for dim, variable in step.items():
            moved = em.add(moved, em.mul(variable, self.memory.size(self.operand.offset.factor(dim))))
        moved = em.mul(moved, em.number(self.tile.bytes))
        k = step[self.depth.dim]
        for target, source, own, valid in zip(self.targets, self.sources, self.steps, self.valid, strict=True):
            factor = self.memory.size(self.operand.offset.factor(self.depth.dim))
            at = em.add(em.add(source, moved), em.mul(em.mul(own, factor), em.number(self.tile.bytes)))
            bytes_ = self._valid_at(em.add(k, own), valid)
            self._copy(self.code.add(stage, target), at, bytes_)

    def _copy(self, target: ir.Value, source: ir.Value, valid: ir.Value | None) -> None:
        def build() -> None:
            self.code.copy(target, self.code.global_pointer(source), self.bytes, valid)

        if self.chunks.is_used is None:
            build()
        else:
            self.code.em.only_when(self.chunks.is_used, build)

    def _valid_at(self, k: ir.Value, valid: ir.Value | None) -> ir.Value | None:
        em, code = self.code.em, self.code
        static = self.depth.static
        if static is not None and static % self.tile.depth == 0:
            return valid
        if self.tile.along_k and not (static is not None and static % (self.bytes // self.tile.bytes) == 0):
            left = self._bytes_left(self.depth.count, k)
            return left if valid is None else em.op("arith.minui", [left, valid], em.i32)
        exists = em.compare("ult", k, self.depth.count)
        return em.op("arith.select", [exists, code.number(self.bytes) if valid is None else valid, code.number(0)], em.i32)

    def finish(self, started: object) -> None:
        del started


class ValueCopies:
    """Values that are computed, or are too narrow to be copied: read early, and written when their place is free.

    What is outside of the factor is read at its last element, and is zero in shared memory.
    """

    def __init__(
        self, code: WarpCode, memory: DeviceMemory, factor: Factor, tile: SharedTile, plan: ProductPlan,
        place: RowsOfTile, depth: Depth, thread: ir.Value, neighbours_along_k: bool, *, in_vectors: bool = False,
    ):  # fmt: skip
        self.code, self.memory, self.factor, self.tile, self.plan, self.depth = code, memory, factor, tile, plan, depth
        em = code.em
        self.element = ir.Type.parse(plan.instruction.element, em.context)
        self.values = FactorCode(memory, factor, self._narrow_operations())
        self.chunks = _Chunks(code, tile, plan.threads, thread, PIECE, lines_first=not neighbours_along_k)
        self.targets = [tile.address(code, line, byte) for line, byte in self.chunks.places]
        self.rows, self.steps = list[tuple[dict[int, ir.Value], ir.Value | None]](), list[ir.Value]()
        for line, byte in self.chunks.places:
            row = em.add(place.first, code.index(line))
            exists = None
            if place.static is None or place.static % tile.rows:
                exists = em.compare("ult", row, place.count)
                row = em.op("arith.minui", [row, em.sub(place.count, em.number(1))], em.index)
            self.rows.append((place.variables(em, row), exists))
            self.steps.append(code.index(code.divide(byte, tile.bytes)[0]))
        self.width = self._width(neighbours_along_k or in_vectors)

    def _width(self, in_vectors: bool) -> int:
        """How many steps of k are read as a vector."""
        most, static = PIECE // self.tile.bytes, self.depth.static
        return most if in_vectors and static is not None and static % most == 0 else 1

    def start(self, step: Mapping[int, ir.Value], stage: ir.Value) -> list[tuple[ir.Value, ir.Value]]:
        found = list[tuple[ir.Value, ir.Value]]()
        for target, (variables, exists), own in zip(self.targets, self.rows, self.steps, strict=True):
            parts = [
                self._values({**variables, **step}, exists, own, i) for i in range(0, PIECE // self.tile.bytes, self.width)
            ]
            found.append((self.code.add(stage, target), self._joined(parts)))
        return found

    def finish(self, started: object) -> None:
        assert isinstance(started, list)
        for target, values in started:
            if self.chunks.is_used is None:
                self.code.store(values, target, PIECE)
            else:
                self.code.em.only_when(self.chunks.is_used, lambda v=values, t=target: self.code.store(v, t, PIECE))

    def _joined(self, parts: Sequence[ir.Value]) -> ir.Value:
        em = self.code.em
        if len(parts) == 1:
            return parts[0]
        return em.op("vector.from_elements", list(parts), em.vector(len(parts), self.element))

    def _values(self, variables: Mapping[int, ir.Value], exists: ir.Value | None, own: ir.Value, at: int) -> ir.Value:
        em, k, width = self.code.em, self.depth.dim, self.width
        place = em.add(em.add(variables[k], own), em.number(at))
        inside = exists
        if self.depth.static is None or self.depth.static % self.tile.depth:
            there = em.compare("ult", place, self.depth.count)
            inside = there if exists is None else em.op("arith.andi", [there, exists], em.i1)
            place = em.op("arith.minui", [place, em.sub(self.depth.count, em.number(width))], em.index)
        lanes = Lanes(k, width) if width > 1 else None
        value = self._value(Point({**variables, k: place}, lanes, {k: width}))
        if inside is None:
            return value
        return em.op("arith.select", [inside, value, em.constant(0, value.type)], value.type)

    def _value(self, point: Point) -> ir.Value:
        return self._rounded(self.values.at(point, value=self._source()))

    def _rounded(self, value: ir.Value) -> ir.Value:
        """A float in the instruction's type, which has it."""
        em, width = self.code.em, self.width
        kind = em.vector(width, self.element) if width > 1 else self.element
        return value if value.type == kind else em.op("arith.truncf", [value], kind)

    def _narrow_operations(self) -> Sequence[ir.Operation]:
        """What computes the value before it is widened to be summed."""
        return self.factor.operations[:-1] if self._is_widened() else self.factor.operations

    def _is_widened(self) -> bool:
        if not self.factor.operations or self.factor.operations[-1].name not in ("arith.extf", "arith.extsi", "arith.extui"):
            return False
        return self.factor.operations[-1].operands[0].type == self.element

    def _source(self) -> ir.Value:
        return self.factor.operations[-1].operands[0] if self._is_widened() else self.factor.value

"""Loops with a running value read into what a kernel needs: a line's elements, and what is written once sums are known.

Two forms come out of ``relax.cumsum``, with other operations of ``cumprod``, ``cummax`` and ``cummin``.
One has a number that the innermost loop carries::

    scf.for %i { scf.for %j iter_args(%s = 0) { %t = add %s, (of loads at %i, %j); store (of %s or %t) at %i, %j; yield %t } }

the other a buffer of them, which the innermost loop updates as a whole::

    scf.for %i { fill %s with 0; scf.for %j { generic %s += (of in[%i, %j, ...]); generic out[%i, %j, ...] = (of %s) } }
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass

from ....dialect.bindings import ir
from ....dialect.traversal import clone_with, operations
from ...kernels.emit.emitter import Emitter
from .device_code import DeviceCode
from .nest_code import is_plain

__all__ = ["Scan", "scan_of"]

# What combines elements, and what changes none of them: the loops have to begin with it. Sums of floats begin with 0, not -0.
_NEUTRAL: dict[str, float] = {
    "arith.addf": 0, "arith.addi": 0, "arith.mulf": 1, "arith.muli": 1, "arith.maximumf": -math.inf,
    "arith.minimumf": math.inf,
}  # fmt: skip
_COMBINING = (*_NEUTRAL, "arith.maxsi", "arith.minsi", "arith.maxui", "arith.minui")
_INSIDE = ("arith.", "math.", "memref.load", "memref.store", "memref.subview")

Mapping = dict[ir.Value, ir.Value]


@dataclass(frozen=True)
class Scan(ABC):
    """A nest of loops with a running sum, product or extreme.

    Attributes:
        replaced: the operations of the function that it is, last of them the outermost loop.
        outer: the loops over lines, outermost first.
        inner: the loop along a line.
        start: what results begin with, a constant that changes nothing that it is combined with.
        combining: the operation that combines the result so far with an element.
    """

    replaced: tuple[ir.Operation, ...]
    outer: tuple[ir.Operation, ...]
    inner: ir.Operation
    start: ir.Value
    combining: ir.Operation

    @property
    def kind(self) -> ir.Type:
        """The results' type."""
        return self.start.type

    @property
    def extent(self) -> ir.Value:
        """How long a line is, a value of the host."""
        return self.inner.operands[1]

    @property
    @abstractmethod
    def is_contiguous(self) -> bool:
        """Whether the elements of a line are neighbours, rather than those of neighbouring lines."""

    def lines(self, em: Emitter) -> list[ir.Value]:
        """How many lines there are in each direction, on the host."""
        del em
        return [loop.operands[1] for loop in self.outer]

    def line_extents(self, device: DeviceCode) -> list[ir.Value]:
        """The same for the kernel: values of the host, or of the kernel."""
        return [device.value(v) for v in self.lines(device.em)]

    def combine(self, em: Emitter, a: ir.Value, b: ir.Value) -> ir.Value:
        """One value of two, as the loop makes it."""
        return em.clone(self.combining, [a, b], a.type)

    @abstractmethod
    def element(self, device: DeviceCode, line: Sequence[ir.Value], place: ir.Value) -> ir.Value:
        """What is combined at a place of a line."""

    @abstractmethod
    def write(
        self, device: DeviceCode, line: Sequence[ir.Value], place: ir.Value, before: ir.Value, after: ir.Value
    ) -> None:  # fmt: skip
        """Writes results at a place of a line, given those without and with its element."""

    def _at(self, line: Sequence[ir.Value], place: ir.Value) -> Mapping:
        loops = [*self.outer, self.inner]
        return {
            loop.regions[0].blocks[0].arguments[0]: i for loop, i in zip(loops, [*line[: len(self.outer)], place], strict=True)
        }


def scan_of(ops: Sequence[ir.Operation]) -> Scan | None:
    """The scan that the operations of a kernel function are, None where they are something else."""
    replaced = tuple(op for op in ops if not op.name.startswith(("arith.", "memref.dim")))
    outer, body = list[ir.Operation](), list(replaced)
    while len(body) == 1 and body[0].name == "scf.for" and not len(body[0].results):
        outer.append(body[0])
        body = operations(_block(body[0]))[:-1]
    if not body or body[-1].name != "scf.for":
        return None
    if len(body) == 1:
        return _scan_of_numbers(replaced, outer, body[0])
    return _scan_of_rows(replaced, outer, body[-1], body[:-1])


def _block(loop: ir.Operation) -> ir.Block:
    return loop.regions[0].blocks[0]


def _are_counted(loops: Sequence[ir.Operation]) -> bool:
    """Whether loops are from 0 on, one by one, to ends that are known before the first."""
    around = loops[0].block
    return all(
        _constant(loop.operands[0]) == 0 and _constant(loop.operands[2]) == 1 and _is_from(loop.operands[1], around)
        for loop in loops
    )


def _is_from(value: ir.Value, block: ir.Block) -> bool:
    return (value.owner if isinstance(value, ir.BlockArgument) else value.owner.operation.block) == block


def _constant(value: ir.Value) -> float | None:
    if isinstance(value, ir.BlockArgument) or value.owner.name != "arith.constant":
        return None
    number = value.owner.attributes["value"]
    return ir.FloatAttr(number).value if isinstance(value.type, ir.FloatType) else ir.IntegerAttr(number).value


def _begins_neutral(combining: ir.Operation, start: ir.Value) -> bool:
    """Whether a constant changes nothing that it is combined with."""
    name, number = combining.name, _constant(start)
    if number is None:
        return False
    if not isinstance(start.type, ir.IntegerType) or name in _NEUTRAL:
        return number == _NEUTRAL.get(name)
    values = 1 << start.type.width
    neutral = {"arith.maxsi": values // 2, "arith.minsi": values // 2 - 1, "arith.maxui": 0, "arith.minui": values - 1}
    return number % values == neutral[name]


def _depend_on(ops: Sequence[ir.Operation], values: Sequence[ir.Value]) -> list[ir.Operation]:
    """Those operations of a block that compute from some values, directly or not."""
    known, found = set(values), list[ir.Operation]()
    for op in ops:
        if any(v in known for v in op.operands):
            known.update(op.results)
            found.append(op)
    return found


def _combined(combining: ir.Operation, carried: ir.Value) -> ir.Value | None:
    """What an operation combines a value with; None where it is no such operation."""
    if combining.name not in _COMBINING or list(combining.operands).count(carried) != 1:
        return None
    first, second = combining.operands
    return second if first == carried else first


# -- a number that is carried ----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _OfNumbers(Scan):
    """``before`` are the operations that compute an element, ``after`` those that have to know the sum."""

    before: tuple[ir.Operation, ...]
    after: tuple[ir.Operation, ...]

    @property
    def is_contiguous(self) -> bool:
        stores = [op for op in self.after if op.name == "memref.store"]
        place = _block(self.inner).arguments[0]
        return all(list(op.operands)[-1] == place for op in stores)

    def element(self, device: DeviceCode, line: Sequence[ir.Value], place: ir.Value) -> ir.Value:
        mapping = self._at(line, place)
        _clone(device, self.before, mapping)
        element = _combined(self.combining, _block(self.inner).arguments[1])
        assert element is not None
        return _found(device, element, mapping)

    def write(
        self, device: DeviceCode, line: Sequence[ir.Value], place: ir.Value, before: ir.Value, after: ir.Value
    ) -> None:  # fmt: skip
        carried = _block(self.inner).arguments[1]
        _clone(device, self.after, {**self._at(line, place), carried: before, self.combining.results[0]: after})


def _scan_of_numbers(
    replaced: tuple[ir.Operation, ...], outer: Sequence[ir.Operation], inner: ir.Operation
) -> Scan | None:  # fmt: skip
    body = operations(_block(inner))
    carried, (*ops, end) = list(_block(inner).arguments)[1:], body
    if len(carried) != 1 or not _are_counted([*outer, inner]) or not all(op.name.startswith(_INSIDE) for op in ops):
        return None
    found = end.operands[0].owner
    if isinstance(found, ir.Block) or found.operation not in ops or not _is_from(inner.operands[3], replaced[0].block):
        return None
    combining = found.operation
    element, later = _combined(combining, carried[0]), _depend_on(ops, carried)
    if element is None or not _begins_neutral(combining, inner.operands[3]):
        return None
    if any(op.results[0] == element for op in later if len(op.results)):
        return None
    if any(op.name == "memref.load" for op in later) or any(op.name == "memref.store" and op not in later for op in ops):
        return None
    before = tuple(op for op in ops if op not in later)
    after = tuple(op for op in later if op != combining)
    # What both need is made again where sums are written: places, of subviews for example.
    needed = tuple(op for op in before if op.name.startswith(("arith.", "memref.subview")) and _is_used_by(op, after))
    return _OfNumbers(replaced, tuple(outer), inner, inner.operands[3], combining, before, (*needed, *after))


def _is_used_by(op: ir.Operation, users: Sequence[ir.Operation]) -> bool:
    return any(use.owner.operation in users for use in op.results[0].uses)


# -- a buffer of sums ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _OfRows(Scan):
    """``update`` adds a row to the buffer of sums, ``result`` writes what becomes of them; ``views`` are of these two."""

    views: tuple[ir.Operation, ...]
    update: ir.Operation
    result: ir.Operation

    @property
    def is_contiguous(self) -> bool:
        return False

    def lines(self, em: Emitter) -> list[ir.Value]:
        return [*super().lines(em), *(_extent(em, self._sums, i) for i in range(ir.MemRefType(self._sums.type).rank))]

    def line_extents(self, device: DeviceCode) -> list[ir.Value]:
        em, sums = device.em, self._sums
        kind = ir.MemRefType(sums.type)
        outer = [device.value(loop.operands[1]) for loop in self.outer]
        return [*outer, *(_extent(em, device.value(sums) if kind.is_dynamic_dim(i) else sums, i) for i in range(kind.rank))]

    @property
    def _sums(self) -> ir.Value:
        return self.update.operands[len(self.update.operands) - 1]

    def element(self, device: DeviceCode, line: Sequence[ir.Value], place: ir.Value) -> ir.Value:
        mapping = self._at(line, place)
        _clone(device, self.views, mapping)
        *inputs, total = self.update.regions[0].blocks[0].arguments
        for argument, value in zip(inputs, self.update.operands, strict=False):
            mapping[argument] = self._load(device, _found(device, value, mapping), line)
        body = operations(self.update.regions[0].blocks[0])[:-1]
        _clone(device, [op for op in body if op != self.combining], mapping)
        element = _combined(self.combining, total)
        assert element is not None
        return _found(device, element, mapping)

    def _load(self, device: DeviceCode, buffer: ir.Value, line: Sequence[ir.Value]) -> ir.Value:
        return device.em.op("memref.load", [buffer, *line[len(self.outer) :]], ir.MemRefType(buffer.type).element_type)

    def write(
        self, device: DeviceCode, line: Sequence[ir.Value], place: ir.Value, before: ir.Value, after: ir.Value
    ) -> None:  # fmt: skip
        del before
        mapping, (*body, end) = self._at(line, place), operations(self.result.regions[0].blocks[0])
        mapping[self.result.regions[0].blocks[0].arguments[0]] = after
        _clone(device, [*self.views, *body], mapping)
        buffer = _found(device, self.result.operands[1], mapping)
        value = _found(device, end.operands[0], mapping)
        device.em.effect("memref.store", [value, buffer, *line[len(self.outer) :]])


def _scan_of_rows(
    replaced: tuple[ir.Operation, ...], outer: Sequence[ir.Operation], inner: ir.Operation, first: Sequence[ir.Operation]
) -> Scan | None:
    ops = operations(_block(inner))[:-1]
    work = [op for op in ops if op.name == "linalg.generic"]
    views = tuple(op for op in ops if op not in work)
    if len(first) != 1 or len(work) != 2 or len(inner.results) or not _are_counted([*outer, inner]):
        return None
    if not all(op.name.startswith(("arith.", "memref.subview")) for op in views) or not all(
        map(_is_pointwise, [*first, *work])
    ):
        return None
    (fill,), (update, result) = first, work
    sums = update.operands[len(update.operands) - 1]
    if fill.operands[1] != sums or result.operands[0] != sums or len(result.operands) != 2 or len(fill.operands) != 2:
        return None
    body, total = operations(update.regions[0].blocks[0]), list(update.regions[0].blocks[0].arguments)[-1]
    found = body[-1].operands[0].owner
    if isinstance(found, ir.Block) or _combined(found.operation, total) is None or len(_depend_on(body[:-1], [total])) != 1:
        return None
    start = fill.operands[0]
    if isinstance(start.type, ir.MemRefType) or not _is_from(start, replaced[0].block) or not _yields_its_input(fill):
        return None
    if not _begins_neutral(found.operation, start):
        return None
    return _OfRows(replaced, tuple(outer), inner, start, found.operation, views, update, result)


def _is_pointwise(op: ir.Operation) -> bool:
    """Whether an operation computes each element of what it writes out of those at the same place."""
    if not is_plain(op) or any("parallel" not in str(k) for k in ir.ArrayAttr(op.attributes["iterator_types"])):
        return False
    maps = [ir.AffineMapAttr(a).value for a in ir.ArrayAttr(op.attributes["indexing_maps"])]
    pairs = zip(op.operands, maps, strict=True)
    rank = maps[-1].n_dims
    same = ir.AffineMap.get_identity(rank, op.context)
    has_index = any(o.name == "linalg.index" for o in operations(op.regions[0].blocks[0]))
    return not has_index and all(m == same for v, m in pairs if isinstance(v.type, ir.MemRefType))


def _yields_its_input(op: ir.Operation) -> bool:
    block = op.regions[0].blocks[0]
    return operations(block)[-1].operands[0] == block.arguments[0]


def _extent(em: Emitter, value: ir.Value, axis: int) -> ir.Value:
    kind = ir.MemRefType(value.type)
    if not kind.is_dynamic_dim(axis):
        return em.number(kind.shape[axis])
    return em.op("memref.dim", [value, em.number(axis)], em.index)


# -- operations of the host in a kernel ------------------------------------------------------------------------------------


def _clone(device: DeviceCode, ops: Sequence[ir.Operation], mapping: Mapping) -> None:
    """The same operations in the kernel, on what a mapping and the kernel's parameters have for their operands."""
    for op in ops:
        for value in op.operands:
            mapping[value] = _found(device, value, mapping)
        clone_with(op, mapping, device.em.point)


def _found(device: DeviceCode, value: ir.Value, mapping: Mapping) -> ir.Value:
    known = mapping.get(value)
    return device.value(value) if known is None else known

"""The template of running sums, products and extremes: blocks of threads scan what loops combine one element after the other.

Before::

    scf.for %i { scf.for %j iter_args(%s = 0) { %t = %s + in[%i, %j]; out[%i, %j] = %t; yield %t } }

after, one launch, of a block for each ``i``, whose threads have 256 neighbours at a time::

    carry = 0
    for start = 0 to columns step 256 {
      x = in[i, start + thread];  s = sum of x of the threads up to this one;  out[i, start + thread] = carry + s
      carry = carry + sum of all x }

Threads without an element have the value that sums begin with, which changes none: 0, or 1 of products, -inf of largest ones.

Where a line's elements are not neighbours, 32 lines that are neighbours have a block, and its 8 rows of threads have 4 elements
of each line, one after the other, at a time: reads and writes are of neighbours both ways. A line is the work of one block.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ....dialect.bindings import func, ir
from ....dialect.functions import body_of
from ....dialect.traversal import operations
from ...kernels.emit.emitter import Emitter
from ..cuda_target import CudaTarget
from .device_code import DeviceCode
from .host_code import HostCode
from .points import delinearized
from .scan_body import Scan, scan_of
from .warp_scan import WARP, up_to

__all__ = ["ScanPlan", "build_scan", "plan_scan"]

# Threads of a block, where a line is long.
_MOST_THREADS = 256
# Of a block of neighbouring lines: how many lines, rows of threads, and elements of a line that a thread has at a time.
_LINES, _ROWS, _HELD = 32, 8, 4


@dataclass(frozen=True)
class ScanPlan:
    """How running values are computed.

    Attributes:
        scan: what is combined, and what becomes of the results.
        threads: of a block for one line; None: a block has neighbouring lines.
    """

    scan: Scan
    threads: int | None

    def __str__(self) -> str:
        return f"scan lines={_LINES} rows={_ROWS}" if self.threads is None else f"scan threads={self.threads}"


def plan_scan(function: func.FuncOp, target: CudaTarget) -> ScanPlan | None:
    """The plan of a kernel function that is one nest of loops with a running value, None for others."""
    del target
    block = body_of(function)
    scan = None if block is None else scan_of(operations(block)[:-1])
    if scan is None:
        return None
    return ScanPlan(scan, _threads(scan.extent) if scan.is_contiguous else None)


def _threads(extent: ir.Value) -> int:
    if isinstance(extent, ir.BlockArgument) or extent.owner.name != "arith.constant":
        return _MOST_THREADS
    length = ir.IntegerAttr(extent.owner.attributes["value"]).value
    return next(t for t in (WARP, 2 * WARP, 4 * WARP, _MOST_THREADS) if t >= min(length, _MOST_THREADS))


def build_scan(code: HostCode, plan: ScanPlan, target: CudaTarget) -> None:
    """Puts the launch in the place of the loops."""
    del target
    scan, em = plan.scan, code.em
    with em.before(scan.replaced[-1]):
        lines = _product(em, scan.lines(em))
        if plan.threads is None:
            blocks = em.op("arith.ceildivui", [lines, em.number(_LINES)], em.index)
            code.launch([blocks], [_LINES, _ROWS], lambda device: _Columns(device, scan).build())
        else:
            threads = plan.threads
            code.launch([lines], [threads], lambda device: _Line(device, scan, threads).build())
    for op in scan.replaced:
        op.erase()


def _product(em: Emitter, extents: Sequence[ir.Value]) -> ir.Value:
    total = em.number(1)
    for extent in extents:
        total = em.mul(total, extent)
    return total


class _Line:
    """A block of threads that scans one line: each has one element of a part of it."""

    def __init__(self, device: DeviceCode, scan: Scan, threads: int):
        self.device, self.em, self.scan, self.threads = device, device.em, scan, threads

    def build(self) -> None:
        em, device, scan = self.em, self.device, self.scan
        extent, warps = device.value(scan.extent), self.threads // WARP
        shared = device.shared(ir.MemRefType.get([warps], scan.kind, loc=em.location)) if warps > 1 else None
        line = delinearized(em, device.block(), scan.line_extents(device))
        neutral = device.value(scan.start)

        def part(start: ir.Value, carried: Sequence[ir.Value]) -> list[ir.Value]:
            place = em.add(start, device.thread())
            exists = em.compare("ult", place, extent)
            (element,) = em.when(exists, lambda: [scan.element(device, line, place)], lambda: [neutral], [scan.kind])
            before, after, total = up_to(device, scan.combine, element, neutral, carried[0], shared)
            em.only_when(exists, lambda: scan.write(device, line, place, before, after))
            return [total]

        em.loop(em.number(0), extent, self.threads, part, [neutral])


class _Columns:
    """A block of threads that scans neighbouring lines: each thread has some elements of one line, one after the other."""

    def __init__(self, device: DeviceCode, scan: Scan):
        self.device, self.em, self.scan = device, device.em, scan
        self.line, self.row, self.neutral = device.thread(0), device.thread(1), device.value(scan.start)
        self.shared = device.shared(ir.MemRefType.get([_ROWS, _LINES], scan.kind, loc=self.em.location))

    def build(self) -> None:
        em, device, scan = self.em, self.device, self.scan
        extents = scan.line_extents(device)
        number = em.add(em.mul(device.block(), em.number(_LINES)), self.line)
        inside = em.compare("ult", number, _product(em, extents))
        line = delinearized(em, number, extents)
        extent = device.value(scan.extent)

        def part(start: ir.Value, carried: Sequence[ir.Value]) -> list[ir.Value]:
            first = em.add(start, em.mul(self.row, em.number(_HELD)))
            places = [em.add(first, em.number(i)) for i in range(_HELD)]
            exist = [em.op("arith.andi", [inside, em.compare("ult", p, extent)], em.i1) for p in places]
            elements = [self._element(line, p, e) for p, e in zip(places, exist, strict=True)]
            before, total = self._rows(elements, carried[0])
            for place, exists, element in zip(places, exist, elements, strict=True):
                after = scan.combine(em, before, element)
                em.only_when(exists, lambda p=place, b=before, a=after: scan.write(device, line, p, b, a))
                before = after
            return [total]

        em.loop(em.number(0), extent, _ROWS * _HELD, part, [self.neutral])

    def _element(self, line: Sequence[ir.Value], place: ir.Value, exists: ir.Value) -> ir.Value:
        em, scan = self.em, self.scan
        return em.when(exists, lambda: [scan.element(self.device, line, place)], lambda: [self.neutral], [scan.kind])[0]

    def _rows(self, elements: Sequence[ir.Value], carry: ir.Value) -> tuple[ir.Value, ir.Value]:
        """The result of what is in front of a thread's elements, and of all that the block has by now."""
        em, scan = self.em, self.scan
        own = elements[0]
        for element in elements[1:]:
            own = scan.combine(em, own, element)
        em.effect("memref.store", [own, self.shared, self.row, self.line])
        self.device.barrier()
        before = total = carry
        for i in range(_ROWS):
            of_row = em.op("memref.load", [self.shared, em.number(i), self.line], scan.kind)
            is_before = em.compare("ult", em.number(i), self.row)
            before = scan.combine(em, before, em.op("arith.select", [is_before, of_row, self.neutral], scan.kind))
            total = scan.combine(em, total, of_row)
        self.device.barrier()
        return before, total

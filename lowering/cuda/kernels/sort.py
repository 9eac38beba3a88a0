"""The template of sorting: all elements of all rows at once, each of which looks for its own place.

One launch sorts runs of 32: an element counts which of its run come before it. Each further one merges neighbouring runs: an
element's place is that in its run, and how many of the other run come before it, by bisection. Of equals the left one is
first. Passes come in pairs, to memory beside and back. Elements are read through their positions; only these are moved.

A row of n elements takes ``1 + ceil(log2(n / 32))`` launches, each thread of which reads up to 32, or ``log2 n`` elements.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from ....dialect.bindings import func, ir
from ....dialect.functions import body_of
from ....dialect.traversal import operations
from ...kernels.emit.emitter import Emitter
from ...linalg.element_order import precedes
from ...marks import SORT
from ..cuda_target import CudaTarget
from .device_code import DeviceCode
from .host_code import HostCode
from .loop_code import touches_memory
from .points import delinearized

__all__ = ["SortPlan", "build_sort", "plan_sort"]

# Threads of a block, as on the general path; elements that are compared each with each: as many as a warp reads at once.
_THREADS, _RUN = 128, 32
_RUN_BITS = _RUN.bit_length() - 1


@dataclass(frozen=True)
class SortPlan:
    """How rows are sorted.

    Attributes:
        x: the elements.
        order: where their positions go.
        axis: along which rows are.
        dtype: of the elements, which memory does not say.
        descending: whether the largest is first.
        work: the operations that the launches replace.
    """

    x: ir.Value
    order: ir.Value
    axis: int
    dtype: ir.Type
    descending: bool
    work: tuple[ir.Operation, ...]

    def __str__(self) -> str:
        return f"sort run={_RUN} threads={_THREADS}"

    @property
    def length(self) -> int | None:
        """Of a row, where it is known."""
        kind = ir.MemRefType(self.x.type)
        return None if kind.is_dynamic_dim(self.axis) else kind.shape[self.axis]


def plan_sort(function: func.FuncOp, target: CudaTarget) -> SortPlan | None:
    """The plan of a kernel function that sorts, None for others."""
    del target
    block = body_of(function)
    if block is None or SORT not in function.attributes:
        return None
    mark = ir.DictAttr(function.attributes[SORT])
    *_, order = arguments = list(block.arguments)
    return SortPlan(
        arguments[0],
        order,
        ir.IntegerAttr(mark["axis"]).value,
        ir.TypeAttr(mark["dtype"]).value,
        ir.BoolAttr(mark["descending"]).value,
        _work(block),
    )


def _work(block: ir.Block) -> tuple[ir.Operation, ...]:
    """What a kernel does from the first op on that reads or writes elements. Of one row what is compared is in no loop."""
    ops = operations(block)[:-1]
    return tuple(ops[next(i for i, op in enumerate(ops) if touches_memory(op)) :])


def build_sort(code: HostCode, plan: SortPlan, target: CudaTarget) -> None:
    """Puts the launches in the place of the loops."""
    del target
    em = code.em
    with em.before(plan.work[0]):
        rank = ir.MemRefType(plan.x.type).rank
        sizes = [em.op("memref.dim", [plan.x, em.number(i)], em.index) for i in range(rank)]
        threads = _product(em, sizes)
        blocks = em.op("arith.ceildivui", [threads, em.number(_THREADS)], em.index)
        code.launch([blocks], [_THREADS], lambda device: _Element(device, plan, sizes).start())
        if plan.length is None or plan.length > _RUN:
            _launch_passes(code, plan, sizes, blocks)
    for op in reversed(plan.work):
        op.erase()


def _launch_passes(code: HostCode, plan: SortPlan, sizes: Sequence[ir.Value], blocks: ir.Value) -> None:
    em = code.em
    kind = ir.MemRefType(plan.order.type)
    with em.location:
        there = ir.MemRefType.get(kind.shape, kind.element_type)
    unknown = [size for i, size in enumerate(sizes) if kind.is_dynamic_dim(i)]
    segments = {"operandSegmentSizes": ir.DenseI32ArrayAttr.get([len(unknown), 0], em.context)}
    beside = em.op("memref.alloc", unknown, there, segments)

    def pair(number: ir.Value, _: Sequence[ir.Value]) -> Sequence[ir.Value]:
        twice = em.mul(number, em.number(2))
        for source, target, more in ((plan.order, beside, 0), (beside, plan.order, 1)):
            run = em.op("arith.shli", [em.number(_RUN << more), twice], em.index)

            def merge(device: DeviceCode, source: ir.Value = source, target: ir.Value = target, run: ir.Value = run) -> None:
                _Element(device, plan, sizes).merge(source, target, run)

            code.launch([blocks], [_THREADS], merge)
        return ()

    em.loop(em.number(0), _pairs(em, plan, sizes), 1, pair)


def _pairs(em: Emitter, plan: SortPlan, sizes: Sequence[ir.Value]) -> ir.Value:
    """How often a run has to become four times as long until it is a row."""
    if plan.length is not None:
        return em.number((((plan.length - 1) >> _RUN_BITS).bit_length() + 1) // 2)
    last = em.sub(em.op("arith.maxui", [sizes[plan.axis], em.number(1)], em.index), em.number(1))
    wide = em.op("arith.index_cast", [em.op("arith.shrui", [last, em.number(_RUN_BITS)], em.index)], em.integer(64))
    zeros = em.op("arith.index_cast", [em.op("math.ctlz", [wide], em.integer(64))], em.index)
    return em.op("arith.divui", [em.sub(em.number(65), zeros), em.number(2)], em.index)


def _product(em: Emitter, values: Sequence[ir.Value]) -> ir.Value:
    total = em.number(1)
    for value in values:
        total = em.mul(total, value)
    return total


class _Element:
    """Builds what a thread does, for one element of the result."""

    def __init__(self, device: DeviceCode, plan: SortPlan, sizes: Sequence[ir.Value]):
        """Args: device: the kernel; plan: how rows are sorted; sizes: of the elements, of the host."""
        self.device, self.em, self.plan = device, device.em, plan
        self.sizes = [device.value(size) for size in sizes]
        self.length = self.sizes[plan.axis]
        self.number = self.em.add(self.em.mul(device.block(), self.em.number(_THREADS)), device.thread())
        self.at = delinearized(self.em, self.number, self.sizes)
        self.place = self.at[plan.axis]

    def start(self) -> None:
        """Its place in its run of 32: the number of those that come before it."""
        em, device = self.em, self.device

        def find() -> None:
            own = self._element(self.place)
            first = em.op("arith.andi", [self.place, em.number(-_RUN)], em.index)
            end = em.op("arith.minui", [em.add(first, em.number(_RUN)), self.length], em.index)

            def count(i: ir.Value, before: list[ir.Value]) -> list[ir.Value]:
                left = em.compare("ult", i, self.place)
                return [em.add(before[0], self._as_index(self._is_before(self._element(i), own, left)))]

            (place,) = em.loop(first, end, 1, count, [first])
            position = em.op("arith.index_cast", [self.place], em.integer(64))
            em.effect("memref.store", [position, device.value(self.plan.order), *self._along(place)])

        self._where_it_exists(find)

    def merge(self, source: ir.Value, target: ir.Value, run: ir.Value) -> None:
        """Its place in two neighbouring runs of which it is in one."""
        em, device = self.em, self.device
        order, merged, run = device.value(source), device.value(target), device.value(run)

        def find() -> None:
            both = em.mul(run, em.number(2))
            begin = em.sub(self.place, em.op("arith.remui", [self.place, both], em.index))
            middle, end = (em.op("arith.minui", [em.add(begin, n), self.length], em.index) for n in (run, both))
            is_right = em.compare("uge", self.place, middle)
            position = em.op("memref.load", [order, *self._along(self.place)], em.integer(64))
            own = self._element(em.op("arith.index_cast", [position], em.index))
            low, high = self._chosen(is_right, begin, middle), self._chosen(is_right, middle, end)
            found = self._bisected(order, own, is_right, low, high)
            em.effect("memref.store", [position, merged, *self._along(em.add(em.sub(self.place, middle), found))])

        self._where_it_exists(find)

    def _bisected(
        self, order: ir.Value, own: ir.Value, is_right: ir.Value, low: ir.Value, high: ir.Value
    ) -> ir.Value:  # fmt: skip
        """The first of a run's places, from one to another, of whose element ``own`` comes before it."""
        em = self.em

        def go_on(low: ir.Value, high: ir.Value) -> ir.Value:
            return em.compare("ult", low, high)

        def halve(low: ir.Value, high: ir.Value) -> list[ir.Value]:
            half = em.op("arith.divui", [em.add(low, high), em.number(2)], em.index)
            position = em.op("memref.load", [order, *self._along(half)], em.integer(64))
            element = self._element(em.op("arith.index_cast", [position], em.index))
            before = self._is_before(element, own, is_right)
            return [self._chosen(before, em.add(half, em.number(1)), low), self._chosen(before, high, half)]

        return self._while(go_on, halve, low, high)

    def _while(
        self,
        condition: Callable[..., ir.Value],
        body: Callable[..., list[ir.Value]],
        low: ir.Value,
        high: ir.Value,
    ) -> ir.Value:
        em, types = self.em, [self.em.index] * 2
        made = em.nested("scf.while", [low, high], types, None, 2)
        before, after = (region.blocks.append(*types, arg_locs=[em.location] * 2) for region in made.regions)
        with em.inside(before):
            em.effect("scf.condition", [condition(*before.arguments), *before.arguments])
        with em.inside(after):
            em.effect("scf.yield", body(*after.arguments))
        return made.results[0]

    def _is_before(self, other: ir.Value, own: ir.Value, is_left: ir.Value) -> ir.Value:
        """Whether another element comes before this one: of equals the left one does."""
        em = self.em
        one, two = self._chosen(is_left, own, other), self._chosen(is_left, other, own)
        with em.location, em.point:
            found = precedes(one, two, self.plan.dtype, descending=self.plan.descending).value
        return em.op("arith.xori", [found, is_left], em.i1)

    def _element(self, place: ir.Value) -> ir.Value:
        x = self.device.value(self.plan.x)
        return self.em.op("memref.load", [x, *self._along(place)], ir.MemRefType(x.type).element_type)

    def _along(self, place: ir.Value) -> list[ir.Value]:
        """The indices of a place of this element's row."""
        return [place if axis == self.plan.axis else index for axis, index in enumerate(self.at)]

    def _chosen(self, condition: ir.Value, one: ir.Value, other: ir.Value) -> ir.Value:
        return self.em.op("arith.select", [condition, one, other], one.type)

    def _as_index(self, truth: ir.Value) -> ir.Value:
        return self.em.op("arith.index_castui", [truth], self.em.index)

    def _where_it_exists(self, build: Callable[[], None]) -> None:
        self.em.only_when(self.em.compare("ult", self.number, _product(self.em, self.sizes)), build)

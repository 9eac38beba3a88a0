"""The template of copies to places that indices say: a block for each of them, or several, all at once.

Before::

    scf.for %i { %p = (of indices[%i]); linalg.generic: out[..., %p, ...] = values[..., %i, ...] }

after, one launch of ``indices x parts of a slice`` blocks::

    p = (of indices[block.x]);  if (of indices[j]) != p for all j > block.x { out[..., p, ...] = values[..., block.x, ...] }

The loop lets the last one of equal indices have its way, and so does this: the threads of a block look at all later indices
before they write. ``out`` is written in place. Of a single index there may be no loop, as in the step of a decoder.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ....dialect.bindings import func, ir
from ....dialect.functions import body_of
from ....dialect.traversal import clone_with, erase_unused, operations
from ...kernels.emit.emitter import Emitter
from ..cuda_target import CudaTarget
from .device_code import DeviceCode
from .host_code import HostCode
from .points import Points, delinearized

__all__ = ["IndexCopyPlan", "build_index_copy", "plan_index_copy"]

# Threads of a block, and the elements of a slice that each of them copies.
_THREADS, _HELD = 128, 4
_UNKNOWN = ir.ShapedType.get_dynamic_size()


@dataclass(frozen=True)
class IndexCopyPlan:
    """How slices are copied.

    Attributes:
        loop: over the indices; None: there is one.
        place: the number of the slice that an iteration writes.
        found: the operations that compute it, in order.
        views: those that make the slices.
        copy: the operation that copies one.
        threads: of a block.
    """

    loop: ir.Operation | None
    place: ir.Value
    found: tuple[ir.Operation, ...]
    views: tuple[ir.Operation, ...]
    copy: ir.Operation
    threads: int = _THREADS

    def __str__(self) -> str:
        return f"index-copy threads={self.threads}"


def plan_index_copy(function: func.FuncOp, target: CudaTarget) -> IndexCopyPlan | None:
    """The plan of a kernel function that is one loop over indices which copies a slice each time, None for others."""
    del target
    block = body_of(function)
    body = [] if block is None else operations(block)[:-1]
    loops = [op for op in body if op.name == "scf.for"]
    if loops:
        around = [op for op in body if op not in loops and not op.name.startswith(("arith.", "memref.dim"))]
        if around or len(loops) != 1 or len(loops[0].results):
            return None
        body = operations(loops[0].regions[0].blocks[0])[:-1]
    return _planned(loops[0] if loops else None, body)


def _planned(loop: ir.Operation | None, body: Sequence[ir.Operation]) -> IndexCopyPlan | None:
    """The plan, given what is done for an index."""
    copies = [op for op in body if op.name == "linalg.generic"]
    views = tuple(op for op in body if op.name == "memref.subview")
    found = tuple(op for op in body if op.name in ("memref.load", "memref.dim") or op.name.startswith("arith."))
    if len(copies) != 1 or len(views) not in (1, 2) or len(found) + len(views) + 1 != len(body) or not _copies(copies[0]):
        return None
    place = _place(copies[0].operands[1], copies[0].operands[0], [op for op in found if op.name == "memref.load"])
    if place is None or (loop is not None and len(views) != 2):
        return None
    return IndexCopyPlan(loop, place, found, views, copies[0])


def _copies(op: ir.Operation) -> bool:
    """Whether an operation writes its one input, point by point, and nothing else."""
    block = op.regions[0].blocks[0]
    (end, *more) = operations(block)[::-1]
    parallel = all("parallel" in str(k) for k in ir.ArrayAttr(op.attributes["iterator_types"]))
    return parallel and not more and len(op.operands) == 2 and end.operands[0] == block.arguments[0]


def _place(target: ir.Value, source: ir.Value, reads: Sequence[ir.Operation]) -> ir.Value | None:
    """What numbers the slice that is written, where that is one of a whole buffer which nothing reads."""
    if isinstance(target, ir.BlockArgument) or target.owner.name != "memref.subview":
        return None
    view = target.owner
    offsets, sizes = (list(ir.DenseI64ArrayAttr(view.attributes[f"static_{n}"])) for n in ("offsets", "sizes"))
    moved = [axis for axis, offset in enumerate(offsets) if offset == _UNKNOWN]
    if len(moved) != 1 or sizes[moved[0]] != 1:
        return None
    read = {_buffer(source), *(op.operands[0] for op in reads)}
    return None if view.operands[0] in read or not reads else view.operands[1]


def _buffer(value: ir.Value) -> ir.Value:
    """What a value is a view of."""
    if isinstance(value, ir.BlockArgument) or value.owner.name != "memref.subview":
        return value
    return value.owner.operands[0]


def build_index_copy(code: HostCode, plan: IndexCopyPlan, target: CudaTarget) -> None:
    """Puts the launch in the place of the loop."""
    del target
    em, points = code.em, Points.of(plan.copy)
    with em.before(plan.loop or plan.copy):
        total = _product(em, _extents(em, plan))
        parts = em.op("arith.ceildivui", [total, em.number(plan.threads * _HELD)], em.index)
        count = em.number(1) if plan.loop is None else em.sub(plan.loop.operands[1], plan.loop.operands[0])
        code.launch([count, parts], [plan.threads], lambda device: _Block(device, plan, points).build())
    if plan.loop is not None:
        plan.loop.erase()
        return
    plan.copy.erase()
    erase_unused([*plan.found, *plan.views])


def _product(em: Emitter, extents: Sequence[ir.Value]) -> ir.Value:
    total = em.number(1)
    for extent in extents:
        total = em.mul(total, extent)
    return total


def _extents(em: Emitter, plan: IndexCopyPlan) -> list[ir.Value]:
    """The sizes of a slice, on the host: those of the view that is written."""
    view = next(op for op in plan.views if op.results[0] == plan.copy.operands[1])
    given, sizes = list(view.operands)[2:], list[ir.Value]()
    for size in ir.DenseI64ArrayAttr(view.attributes["static_sizes"]):
        sizes.append(given.pop(0) if size == _UNKNOWN else em.number(size))
    return sizes


class _Block:
    """Builds what a block does."""

    def __init__(self, device: DeviceCode, plan: IndexCopyPlan, points: Points):
        self.device, self.em, self.plan, self.points = device, device.em, plan, points

    def build(self) -> None:
        loop = self.plan.loop
        if loop is None:
            self._copy(self._found({}))
            return
        em, device = self.em, self.device
        variable, upper = loop.regions[0].blocks[0].arguments[0], device.value(loop.operands[1])
        number = em.add(device.value(loop.operands[0]), device.block(0))
        mapping = self._found({variable: number})
        last = device.shared(ir.MemRefType.get([self.plan.threads], em.i32, loc=em.location))
        em.effect("memref.store", [self._is_again(variable, number, upper, mapping[self.plan.place]), last, device.thread()])
        device.barrier()
        em.only_when(em.compare("eq", self._any(last), em.constant(0, em.i32)), lambda: self._copy(mapping))

    def _found(self, mapping: dict[ir.Value, ir.Value]) -> dict[ir.Value, ir.Value]:
        """What the operations that find the place give, with their operands."""
        self._clone(self.plan.found, mapping)
        return mapping

    def _clone(self, ops: Sequence[ir.Operation], mapping: dict[ir.Value, ir.Value]) -> None:
        for op in ops:
            for value in op.operands:
                if value not in mapping:
                    mapping[value] = self.device.value(value)
            clone_with(op, mapping, self.em.point)

    def _is_again(self, variable: ir.Value, number: ir.Value, upper: ir.Value, place: ir.Value) -> ir.Value:
        """Whether a later index that this thread looks at is of the same place, as 0 or 1."""
        em = self.em

        def look(i: ir.Value, carried: Sequence[ir.Value]) -> list[ir.Value]:
            same = em.compare("eq", self._found({variable: i})[self.plan.place], place)
            return [em.op("arith.ori", [carried[0], em.op("arith.extui", [same], em.i32)], em.i32)]

        first = em.add(em.add(number, em.number(1)), self.device.thread())
        return em.loop(first, upper, self.plan.threads, look, [em.constant(0, em.i32)])[0]

    def _any(self, last: ir.Value) -> ir.Value:
        """What all threads found."""
        em = self.em

        def one(i: ir.Value, carried: Sequence[ir.Value]) -> list[ir.Value]:
            return [em.op("arith.ori", [carried[0], em.op("memref.load", [last, i], em.i32)], em.i32)]

        return em.loop(em.number(0), em.number(self.plan.threads), 1, one, [em.constant(0, em.i32)])[0]

    def _copy(self, mapping: dict[ir.Value, ir.Value]) -> None:
        em, device, points = self.em, self.device, self.points
        self._clone(self.plan.views, mapping)

        def value_of(value: ir.Value) -> ir.Value:
            return mapping[value] if value in mapping else device.value(value)

        extents = points.extents(em, points.parallel, value_of)
        total = _product(em, extents)
        start = em.mul(device.block(1), em.number(self.plan.threads * _HELD))
        for part in range(_HELD):
            number = em.add(em.add(start, em.number(part * self.plan.threads)), device.thread())

            def point(number: ir.Value = number) -> None:
                indices = dict(zip(points.parallel, delinearized(em, number, extents), strict=True))
                points.build(em, indices, {}, value_of)

            em.only_when(em.compare("ult", number, total), point)

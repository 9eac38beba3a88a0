"""Loops over linalg operations as code of one block: all its threads run the loops, and share what each operation does.

A barrier follows whatever touches memory, so that threads read what others have written, and write what others have read.
A loop that only reads and writes elements, one after the other, is one thread's, with one barrier behind it.
Buffers of constant size that a loop works in are in shared memory.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ....dialect.bindings import ir
from ....dialect.errors import RelaxError
from ....dialect.traversal import clone_with, free_values, is_unused, nested_operations, operations
from ..cuda_target import CudaTarget
from .device_code import DeviceCode
from .points import Points, delinearized

__all__ = ["LoopCode", "touches_memory"]

_MEMORY = ("linalg.", "memref.load", "memref.store", "memref.copy")
#: What all threads of a block take part in.
_SHARED = ("linalg.", "memref.copy", "memref.alloc", "memref.dealloc")


def touches_memory(op: ir.Operation) -> bool:
    """Whether an op, or one inside of it, reads or writes elements of buffers."""
    if op.name.startswith(_MEMORY):
        return True
    return bool(len(op.regions)) and any(inner.name.startswith(_MEMORY) for inner in nested_operations(op))


class LoopCode:
    """Builds the code of a block of threads."""

    def __init__(self, device: DeviceCode, threads: int, target: CudaTarget):
        """Args: device: the kernel; threads: of a block; target: says how much shared memory a block may have."""
        self.device, self.em, self.threads, self.target = device, device.em, threads, target

    def build(self, ops: Sequence[ir.Operation]) -> None:
        """Builds some operations of the host's function, in order, but for what ends their block."""
        for op in ops:
            self._build(op)

    def _build(self, op: ir.Operation) -> None:
        handler = _HANDLERS.get(op.name)
        if _is_serial(op):
            self._alone(lambda: self._clone(op))
            self.device.barrier()
        elif handler is not None and (op.name.startswith("memref.") or touches_memory(op)):
            handler(self, op)
        elif op.name.startswith("linalg."):
            self._share(op)
        else:
            self._clone(op)

    def _clone(self, op: ir.Operation) -> None:
        known = self.device.known
        for value in free_values(op):
            self.device.value(value)
        clone_with(op, known, self.em.point)

    def _share(self, op: ir.Operation) -> None:
        """The points of an operation, each computed by one thread."""
        em, value_of = self.em, self.device.value
        points = Points.of(op)
        extents = points.extents(em, points.parallel, value_of)
        total = em.number(1)
        for extent in extents:
            total = em.mul(total, extent)

        def point(number: ir.Value) -> None:
            indices = dict(zip(points.parallel, delinearized(em, number, extents), strict=True))
            points.build(em, indices, {}, value_of)

        if not points.parallel:
            self._alone(lambda: point(em.number(0)))
        else:
            em.loop(self.device.thread(), total, self.threads, lambda i, _: point(i) or ())
        self.device.barrier()

    def _alone(self, body: Callable[[], object]) -> None:
        """One thread of the block."""
        first = self.em.compare("eq", self.device.thread(), self.em.number(0))
        self.em.only_when(first, body)

    def _store(self, op: ir.Operation) -> None:
        self._alone(lambda: self._clone(op))
        self.device.barrier()

    def _load(self, op: ir.Operation) -> None:
        self._clone(op)
        self.device.barrier()

    def _allocate(self, op: ir.Operation) -> None:
        kind = ir.MemRefType(op.results[0].type)
        if not kind.has_static_shape:
            raise RelaxError(
                f"'{op.name}' op expected a buffer of constant size in a loop of a kernel, got {kind}", op.location
            )
        self.device.known[op.results[0]] = self.device.local(kind, self.target.architecture.shared_per_block)

    def _free(self, op: ir.Operation) -> None:
        """Nothing to do: it is the block's until the kernel ends."""

    def _nest(self, op: ir.Operation) -> None:
        """The same control flow around the code of what is inside."""
        known, em = self.device.known, self.em
        attributes = {name: op.attributes[name] for name in op.attributes if not name.startswith("relax.")}
        operands, results = [self.device.value(v) for v in op.operands], [r.type for r in op.results]
        made = em.nested(op.name, operands, results, attributes, len(op.regions))
        for region, copy in zip(op.regions, made.regions, strict=True):
            for block in region.blocks:
                types = [a.type for a in block.arguments]
                inside = copy.blocks.append(*types, arg_locs=[em.location] * len(types))
                known.update(zip(block.arguments, inside.arguments, strict=True))
                with em.inside(inside):
                    self.build(operations(block)[:-1])
                    self._clone(operations(block)[-1])
        known.update(zip(op.results, made.results, strict=True))


def _is_serial(op: ir.Operation) -> bool:
    """Whether an op is a loop over single elements whose results nothing reads: other threads have nothing to do in it."""
    if op.name not in ("scf.for", "scf.while") or not is_unused(op) or not touches_memory(op):
        return False
    return not any(inner.name.startswith(_SHARED) for inner in nested_operations(op))


_HANDLERS: dict[str, Callable[[LoopCode, ir.Operation], None]] = {
    "memref.alloc": LoopCode._allocate,
    "memref.dealloc": LoopCode._free,
    "memref.load": LoopCode._load,
    "memref.store": LoopCode._store,
    "scf.for": LoopCode._nest,
    "scf.if": LoopCode._nest,
    "scf.while": LoopCode._nest,
}

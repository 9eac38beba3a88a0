"""The general path: any function of linalg operations, and of loops over them, as launches. Slower than a template, and right.

An operation is a launch with a thread for each point of its parallel loops; one that reduces much to little has blocks for each
result (``reduction.py``). A loop whose iterations are independent
(``relax.shared``) is a launch with a block for each; its threads share each operation inside. Any other loop, and all of a
kernel that reads elements on its way, is a launch of one block. What is around that decides by sizes alone stays on the host.
"""

from __future__ import annotations

from collections.abc import Sequence

from ....dialect.bindings import func, ir
from ....dialect.functions import body_of
from ....dialect.traversal import blocks_of, erase_unused, is_unused, operations
from ...kernels.emit.emitter import Emitter
from ...marks import HOST, KERNEL, SHARED
from ..cuda_target import CudaTarget
from .device_code import DeviceCode
from .host_code import HostCode
from .loop_code import LoopCode, touches_memory
from .points import Points, delinearized
from .reduction import ReductionPlan, fills, launch_reduction, reduction_of

__all__ = ["lower_generally"]

# Threads of a block, where points or loops are independent: enough of them hide the time that loads take, and small operations
# still have several blocks.
THREADS = 128

_LOOPS = ("scf.for", "scf.while")
_ALLOCATIONS = ("memref.alloc", "memref.dealloc")


def lower_generally(function: func.FuncOp, module: ir.Operation, target: CudaTarget) -> None:
    """Replaces all that touches memory in a function by launches, but for reads of single elements; in place."""
    block = body_of(function)
    if block is None:
        return
    code = _General(HostCode(function, module), target, KERNEL in function.attributes)
    if code.is_kernel and _reads_elements(block):
        code.alone(operations(block)[:-1])
    else:
        code.block(block)


def _reads_elements(block: ir.Block) -> bool:
    """Whether what a kernel does outside of its loops depends on elements that it reads, there or in one of these."""
    for op in operations(block):
        if op.name == "memref.load" or (op.name in _LOOPS and not is_unused(op)):
            return True
        if op.name not in _LOOPS and not op.name.startswith("linalg.") and any(map(_reads_elements, blocks_of(op))):
            return True
    return False


class _General:
    """Lowers one function."""

    def __init__(self, code: HostCode, target: CudaTarget, is_kernel: bool):
        self.code, self.em, self.target, self.is_kernel = code, code.em, target, is_kernel

    def block(self, block: ir.Block) -> None:
        """Lowers what is in a block of the host."""
        ops = operations(block)
        plans = [self._reduction(op) for op in ops]
        for i, op in enumerate(ops):
            following, before = (plans[i + 1] if i + 1 < len(ops) else None), (ops[i - 1] if i else None)
            if following is not None and fills(op, following.operation):
                continue  # its number is what the reduction begins with
            plan = plans[i]
            if plan is None:
                self._lower(op)
            else:
                launch_reduction(self.code, plan, before if before is not None and fills(before, op) else None)

    def _reduction(self, op: ir.Operation) -> ReductionPlan | None:
        return None if op.name != "linalg.generic" or HOST in op.attributes else reduction_of(op)

    def alone(self, ops: Sequence[ir.Operation]) -> None:
        """Some operations as one kernel of one block."""
        inside = [op for op in ops if op.name not in _ALLOCATIONS]
        with self.em.before(inside[-1]):
            self.code.launch([1], [THREADS], lambda device: LoopCode(device, THREADS, self.target).build(inside))
        erase_unused(inside)

    def _lower(self, op: ir.Operation) -> None:
        if HOST in op.attributes:
            return
        if op.name.startswith("linalg."):
            self._launch_points(op)
        elif op.name == "memref.store":
            self._launch_alone(op)
        elif not len(op.regions) or not touches_memory(op):
            return
        elif op.name == "scf.for" and SHARED in op.attributes:
            self._launch_iterations(op)
        elif op.name in _LOOPS and self.is_kernel:
            self._launch_alone(op)
        else:
            for block in blocks_of(op):
                self.block(block)

    def _launch_points(self, op: ir.Operation) -> None:
        points = Points.of(op)
        with self.em.before(op):
            total = _product(self.em, points.extents(self.em, points.parallel, lambda v: v))
            blocks = self._blocks(total)

            def build(device: DeviceCode) -> None:
                em = device.em
                number = em.add(em.mul(device.block(), em.number(THREADS)), device.thread())
                extents = points.extents(em, points.parallel, device.value)

                def point() -> None:
                    indices = dict(zip(points.parallel, delinearized(em, number, extents), strict=True))
                    points.build(em, indices, {}, device.value)

                em.only_when(em.compare("slt", number, _product(em, extents)), point)

            self.code.launch([blocks], [THREADS], build)
        op.erase()

    def _launch_iterations(self, loop: ir.Operation) -> None:
        lower, upper, _ = list(loop.operands)[:3]
        with self.em.before(loop):
            count = self.em.sub(upper, lower)

            def build(device: DeviceCode) -> None:
                body = loop.regions[0].blocks[0]
                device.known[body.arguments[0]] = device.em.add(device.value(lower), device.block())
                LoopCode(device, THREADS, self.target).build(operations(body)[:-1])

            self.code.launch([count], [THREADS], build)
        loop.erase()

    def _launch_alone(self, op: ir.Operation) -> None:
        self.alone([op])

    def _blocks(self, total: ir.Value) -> ir.Value:
        em = self.em
        return em.op("arith.divui", [em.add(total, em.number(THREADS - 1)), em.number(THREADS)], em.index)


def _product(em: Emitter, extents: Sequence[ir.Value]) -> ir.Value:
    total = em.number(1)
    for extent in extents:
        total = em.mul(total, extent)
    return total

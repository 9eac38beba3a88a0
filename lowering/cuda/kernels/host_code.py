"""Host code of one function whose buffers are in device memory: kernels are made, and launched, where their work was.

Before::

    linalg.generic ... ins(%x : memref<?x64xf32>) outs(%y : memref<?x64xf32>) { ... }

after, where ``%p`` and ``%q`` point to the buffers' first elements::

    gpu.launch_func @device::@kernel_0 blocks in (%blocks, %c1, %c1) threads in (%c128, %c1, %c1) args(%p, %n, %q : ...)
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ....dialect.bindings import func, ir
from ....dialect.functions import body_of, name_of
from ...kernels.emit.emitter import Emitter
from ...marks import OPS
from .device_code import DeviceCode

__all__ = ["MODULE", "HostCode", "device_module"]

#: The symbol of the module that holds all kernels.
MODULE = "device"


class HostCode:
    """Builds launches in one function.

    Attributes:
        function: what the launches are in.
        em: builds host operations; templates put it in front of what they replace (``with code.em.before(op)``).
    """

    def __init__(self, function: func.FuncOp, module: ir.Operation):
        block = body_of(function)
        assert block is not None
        self.function, self._module = function, module
        for dialect in ("gpu", "nvvm"):
            module.context.get_dialect_descriptor(dialect)
        self.em = Emitter(block)

    def launch(
        self,
        blocks: Sequence[ir.Value | int],
        threads: Sequence[int],
        body: Callable[[DeviceCode], None],
        name: str | None = None,
        resident: int | None = None,
    ) -> ir.Operation:
        """Makes a kernel and launches it at the emitter's place.

        Args:
            blocks: how many in each direction, up to three; a launch of none does nothing.
            threads: of a block in each direction, up to three.
            body: builds the kernel's code, for one thread.
            name: what the kernel is called, by default as the function; a number follows where that is taken.
            resident: how many blocks a multiprocessor is to have at once, at least. Where nothing is said, the assembler spills
                some registers to have more blocks.

        Returns:
            The ``gpu.func``, for attributes that its template wants.
        """
        em = self.em
        kernels = device_module(self._module)
        kernel = _function(kernels, name or name_of(self.function), threads, em.location)
        counts = [em.number(n) if isinstance(n, int) else n for n in (*blocks, 1, 1)[:3]]
        device = DeviceCode(kernel, em, counts[0])
        with device.em.before(device.end):
            body(device)
        device.finish()
        if resident is not None:
            kernel.attributes["nvvm.minctasm"] = ir.IntegerAttr.get(em.i32, resident)
        if OPS in self.function.attributes:
            kernel.attributes[OPS] = self.function.attributes[OPS]
        counts += [em.number(n) for n in (*threads, 1, 1)[:3]]
        shared = [em.constant(device.shared_bytes, em.i32)] if device.shared_bytes else []
        symbol = ir.StringAttr(kernel.attributes["sym_name"]).value
        segments = [0, *[1] * 6, 0, 0, 0, len(shared), len(device.operands), 0]
        attributes: dict[str, ir.Attribute] = {
            "kernel": ir.SymbolRefAttr.get([MODULE, symbol], em.context),
            "operandSegmentSizes": ir.DenseI32ArrayAttr.get(segments, em.context),
        }
        em.effect("gpu.launch_func", [*counts, *shared, *device.operands], attributes)
        return kernel


def device_module(module: ir.Operation) -> ir.Operation:
    """The ``gpu.module`` that holds a module's kernels, made where there is none."""
    block = module.regions[0].blocks[0]
    for op in block.operations:
        if op.operation.name == "gpu.module":
            return op.operation
    with module.context, ir.Location.unknown():
        attributes = {"sym_name": ir.StringAttr.get(MODULE)}
        made = ir.Operation.create("gpu.module", attributes=attributes, regions=1, ip=ir.InsertionPoint.at_block_begin(block))
        made.regions[0].blocks.append()
        module.attributes["gpu.container_module"] = ir.UnitAttr.get()
    return made


def _function(kernels: ir.Operation, stem: str, threads: Sequence[int], location: ir.Location) -> ir.Operation:
    """An empty kernel with a name of its own."""
    block = kernels.regions[0].blocks[0]
    taken = {ir.StringAttr(op.attributes["sym_name"]).value for op in block.operations}
    name = next(n for n in (stem, *(f"{stem}_{i}" for i in range(1, len(taken) + 2))) if n not in taken)
    with kernels.context, location:
        size = ir.DenseI32ArrayAttr.get([*threads, 1, 1][:3])
        attributes = {
            "sym_name": ir.StringAttr.get(name),
            "function_type": ir.TypeAttr.get(ir.FunctionType.get([], [])),
            "kernel": ir.UnitAttr.get(),
            "known_block_size": size,
        }
        made = ir.Operation.create("gpu.func", attributes=attributes, regions=1, ip=ir.InsertionPoint(block))
        made.regions[0].blocks.append()
    return made

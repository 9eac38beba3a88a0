"""A kernel function on buffers -> its template -> PTX -> the emulator, called with arrays; the host's part is interpreted."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from relaxir.dialect.bindings import ir
from relaxir.dialect.context import new_context
from relaxir.dialect.functions import functions
from relaxir.lowering.cuda.cuda_target import CudaTarget
from relaxir.lowering.cuda.emulator import Machine, Options, TensorMap
from relaxir.lowering.cuda.kernels.host_code import HostCode
from relaxir.lowering.cuda.kernels.templates import TEMPLATES
from relaxir.lowering.cuda.ptx import device_code
from relaxir.lowering.cuda.tensor_map_call import DIMENSIONS, TENSOR_MAP
from support.kept_kernels import kept

Array = np.ndarray[Any, Any]

_NUMBERS: Mapping[str, Callable[..., int]] = {
    "arith.addi": operator.add,
    "arith.subi": operator.sub,
    "arith.muli": operator.mul,
    "arith.divui": operator.floordiv,
    "arith.minui": min,
    "arith.maxsi": max,
}
_SAME = ("arith.index_cast", "llvm.inttoptr")


@dataclass(frozen=True)
class Buffer:
    """An array in the device's memory."""

    address: int
    shape: tuple[int, ...]


class Launched:
    """One kernel function of a module, lowered by the first template that takes it.

    Attributes:
        plan: what the template said.
        ptx: of its kernels.
    """

    def __init__(self, text: str, target: str):
        chosen = CudaTarget.parse(target)
        with new_context(), ir.Location.unknown():
            module = ir.Module.parse(text)
            (function,) = functions(module.operation)
            planned = ((t, t.plan(function, chosen)) for t in TEMPLATES)
            template, self.plan = next((t, p) for t, p in planned if p is not None)
            template.build(HostCode(function, module.operation), self.plan, chosen)
            module.operation.verify()
            device = next(op.operation for op in module.body.operations if op.operation.name == "gpu.module")
            with kept():
                self.ptx = device_code(device, chosen)
            self._function, self._module = function, module
        self._machine = Machine(chosen.architecture.name, Options())

    def __call__(self, inputs: Sequence[Array], shape: Sequence[int], kind: Any, start: Array | None = None) -> Array:
        """The last argument, of that shape and type, from the others; ``start`` is what is in it before."""
        machine = self._machine
        held = [Buffer(machine.upload(np.ascontiguousarray(x).view(f"u{x.dtype.itemsize}")), x.shape) for x in inputs]
        size = int(np.prod(shape)) * np.dtype(kind).itemsize
        out = Buffer(machine.memory.allocate(size) if start is None else machine.upload(start), tuple(shape))
        values = _Host(self._function, [*held, out], machine)
        program = machine.load(self.ptx)
        for kernel, grid, block, shared, arguments in values.launches():
            machine.run(program, kernel, grid, block, arguments, shared)
        return machine.download(out.address, shape, f"u{np.dtype(kind).itemsize}").view(kind)


class _Host:
    """What a host function's launches are given."""

    def __init__(self, function: Any, arguments: Sequence[Buffer], machine: Machine):
        self.arguments, self.machine = arguments, machine
        self.allocated: dict[ir.Value, Buffer] = {}
        self.operations = [op.operation for op in function.body.blocks[0].operations]
        self.maps: dict[ir.Value, bytes] = {}

    def launches(self) -> list[tuple[str, list[int], list[int], int, list[Any]]]:
        found: list[tuple[str, list[int], list[int], int, list[Any]]] = []
        for op in self.operations:
            if op.name == "func.call":
                self._encode(op)
            if op.name != "gpu.launch_func":
                continue
            segments = list(ir.DenseI32ArrayAttr(op.attributes["operandSegmentSizes"]))
            first = 6 + segments[10]
            shared = self.value(op.operands[6]) if segments[10] else 0
            sizes = [self.value(v) for v in list(op.operands)[:6]]
            arguments = [self.maps.get(v) or self.value(v) for v in list(op.operands)[first:]]
            name = ir.SymbolRefAttr(op.attributes["kernel"]).value[-1]
            found.append((name, sizes[:3], sizes[3:], shared, arguments))
        return found

    def _encode(self, call: ir.Operation) -> None:
        assert ir.FlatSymbolRefAttr(call.attributes["callee"]).value == TENSOR_MAP
        place, tensor, *numbers = call.operands
        kind, rank, *rest = map(self.value, numbers)
        sizes, strides, box = rest[:DIMENSIONS], rest[DIMENSIONS : 2 * DIMENSIONS - 1], rest[2 * DIMENSIONS - 1 :]
        made = TensorMap(kind, self.value(tensor), tuple(sizes[:rank]), tuple(strides[: rank - 1]), tuple(box[:rank]))
        self.maps[place] = made.packed()

    def _buffer(self, alloc: ir.Operation) -> Buffer:
        """What an allocation gives, the same each time."""
        (result,) = alloc.results
        if result not in self.allocated:
            kind, shape = ir.MemRefType(result.type), _shape(result, [self.value(v) for v in alloc.operands])
            size = int(np.prod(shape)) * kind.element_type.width // 8
            self.allocated[result] = Buffer(self.machine.memory.allocate(size), shape)
        return self.allocated[result]

    def value(self, value: ir.Value) -> Any:
        if isinstance(value, ir.BlockArgument):
            return self.arguments[value.arg_number]
        op = value.owner.operation
        if op.name == "arith.constant":
            return ir.IntegerAttr(op.attributes["value"]).value
        if op.name == "memref.alloc":
            return self._buffer(op)
        operands = [self.value(v) for v in op.operands]
        if op.name == "memref.expand_shape":
            return Buffer(operands[0].address, _shape(value, operands[1:]))
        if op.name == "memref.extract_aligned_pointer_as_index":
            return operands[0].address
        if op.name == "memref.dim":
            return operands[0].shape[operands[1]]
        if op.name == "memref.extract_strided_metadata":
            return _metadata(operands[0])[ir.OpResult(value).result_number]
        return operands[0] if op.name in _SAME else _NUMBERS[op.name](*operands)


def _shape(value: ir.Value, sizes: Sequence[int]) -> tuple[int, ...]:
    """That of a buffer, with those of its sizes that its type does not say."""
    kind, known = ir.MemRefType(value.type), iter(sizes)
    return tuple(next(known) if kind.is_dynamic_dim(i) else size for i, size in enumerate(kind.shape))


def _metadata(buffer: Buffer) -> list[Any]:
    """Base, offset, sizes and strides of a contiguous array."""
    strides = [int(np.prod(buffer.shape[i + 1 :])) for i in range(len(buffer.shape))]
    return [buffer, 0, *buffer.shape, *strides]

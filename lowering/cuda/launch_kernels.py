"""Launches and accesses of the device's memory become calls through the driver, of which host code gets a table of functions.

Before::

    func.func @main(%x: memref<?x64xf32>, ...) -> i64 attributes {relax.device, ...} {
      call @kernel_0(%x, %y) : (memref<?x64xf32>, memref<f32>) -> ()
      %v = memref.load %y[] : memref<f32>

after::

    func.func @main(%x: memref<?x64xf32>, ..., %driver: !llvm.ptr) -> i64 attributes {relax.device, ...} {
      %status = call @kernel_0(%x, %y, %driver) : (memref<?x64xf32>, memref<f32>, !llvm.ptr) -> i64
      call @relax_check(%status == 0, -1 - %status)
      %failed = call @relaxir_cuda_read(%driver, %address, %copy, 4) : (!llvm.ptr, !llvm.ptr, !llvm.ptr, i64) -> i64
      call @relax_check(%failed == 0, %failed)
      %v = memref.load %copy[] : memref<f32>

What fails ends the call with a status that says which kernel, and the driver's result (:mod:`.driver_calls`). Kernels leave the
module for an attribute of it, so that no pass of the host's looks into them, and another one says what they are called.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from ...dialect.bindings import func, ir
from ...dialect.call_graph import callee_of, calls_in
from ...dialect.functions import body_of, functions, name_of, update_type
from ...dialect.struct_info import element_bytes
from ...dialect.traversal import nested_operations, operations
from ..cpu.lower_checks import CHECK
from ..device.descriptors import is_descriptor
from ..entries import entries_of, entry_of
from ..kernels.emit.emitter import Emitter
from ..lowering_pass import LoweringPass
from ..marks import (
    DEVICE,
    DEVICE_CHECKS,
    DEVICE_CODE,
    DEVICE_CONSTANTS,
    DEVICE_GRAPHS,
    DEVICE_HOSTS,
    DEVICE_KERNELS,
    HOST,
    ON_HOST,
)
from ..plain_attributes import to_attribute
from . import driver_calls
from .kernels.memory import address_of, buffer_at, linear_address
from .status_call import STATUS
from .tensor_map_call import TENSOR_MAP
from .transfer_call import TO_DEVICE, TO_HOST

__all__ = ["LaunchKernels", "launch_kernels"]


@dataclass(frozen=True)
class LaunchKernels(LoweringPass):
    """Makes host code of device functions call the driver."""

    name: ClassVar[str] = "relax-launch-kernels"

    def run(self, op: ir.Operation) -> None:
        if DEVICE_KERNELS not in op.attributes:
            launch_kernels(op)


def launch_kernels(module: ir.Operation) -> None:
    """Rewrites every device function of a module, and takes the kernels out of it; in place."""
    chosen = [f for f in functions(module) if DEVICE in f.attributes]
    kernels, constants = _Kernels(module), _Constants(module)
    called = {name_of(f) for f in chosen}
    with module.context, ir.Location.unknown():
        driver_calls.declare(module)
        defers = any(name_of(f) == STATUS for f in functions(module))
        for function in chosen:
            _HostFunction(function, kernels, constants, called, defers).rewrite()
        _drop_declarations(module)
        module.attributes[DEVICE_GRAPHS] = to_attribute(_only_launching(module))
        module.attributes[DEVICE_CHECKS] = to_attribute(_checking(module))
        module.attributes[DEVICE_HOSTS] = to_attribute(_on_host(module))
        module.attributes[DEVICE_KERNELS] = to_attribute(kernels.described())
        module.attributes[DEVICE_CONSTANTS] = to_attribute(constants.described())
        kernels.take_out()


def _drop_declarations(module: ir.Operation) -> None:
    """Nothing calls what has become a call of the driver."""
    for function in functions(module):
        if name_of(function) in (STATUS, TENSOR_MAP, TO_DEVICE, TO_HOST):
            function.operation.erase()


def _only_launching(module: ir.Operation) -> list[str]:
    """The entries, by symbol, that do nothing but launch: these can be recorded, and replayed.

    One with tensors of the host's works with these itself, which no recording does again.
    """
    waiting = _calling(module, {driver_calls.READ, driver_calls.WRITE, driver_calls.ALLOCATE, driver_calls.FREE})
    found = [(f, e) for f, e in entries_of(module) if not e.is_step and ON_HOST not in f.attributes]
    return [e.spec.symbol for f, e in found if name_of(f) not in waiting]


def _checking(module: ir.Operation) -> list[str]:
    """The entries, by symbol, some of whose kernels check values."""
    checking = _calling(module, {driver_calls.STATUS})
    return [e.spec.symbol for f, e in entries_of(module) if not e.is_step and name_of(f) in checking]


def _calling(module: ir.Operation, wanted: set[str]) -> set[str]:
    """The functions that call some, or call others that do."""
    found = {name_of(f): {callee_of(c) for c in calls_in(f.operation)} for f in functions(module)}
    calling = {name for name, callees in found.items() if callees & wanted}
    while more := {name for name, callees in found.items() if callees & calling} - calling:
        calling |= more
    return calling


def _on_host(module: ir.Operation) -> list[dict[str, Any]]:
    """Which tensors of entries are in the host's memory, by position."""
    found = [(f, e.spec.symbol) for f, e in entries_of(module) if ON_HOST in f.attributes]
    return [{"symbol": symbol, "tensors": list(ir.DenseI64ArrayAttr(f.attributes[ON_HOST]))} for f, symbol in found]


class _Kernels:
    """The kernels of a module by number."""

    def __init__(self, module: ir.Operation):
        self._module = module
        body = [op.operation for op in module.regions[0].blocks[0].operations]
        self._device = next((op for op in body if op.name == "gpu.module"), None)
        inside = [] if self._device is None else operations(self._device.regions[0].blocks[0])
        found = [op for op in inside if op.name == "gpu.func" and "kernel" in op.attributes]
        self.by_name = {ir.StringAttr(op.attributes["sym_name"]).value: op for op in found}
        self._numbers = {name: number for number, name in enumerate(self.by_name)}
        self._shared = dict.fromkeys(self.by_name, 0)

    def number(self, launch: ir.Operation) -> int:
        """That of the kernel that is launched, whose shared memory this notes."""
        name = ir.SymbolRefAttr(launch.attributes["kernel"]).value[-1]
        segments = list(ir.DenseI32ArrayAttr(launch.attributes["operandSegmentSizes"]))
        if segments[10]:
            owner = launch.operands[sum(segments[:10])].owner
            self._shared[name] = max(self._shared[name], ir.IntegerAttr(owner.attributes["value"]).value)
        return self._numbers[name]

    def by_reference(self, launch: ir.Operation) -> list[bool]:
        """Of each parameter, whether what is passed is a pointer to its value, as of a descriptor."""
        function = self.by_name[ir.SymbolRefAttr(launch.attributes["kernel"]).value[-1]]
        count = len(function.regions[0].blocks[0].arguments)
        if "arg_attrs" not in function.attributes:
            return [False] * count
        return [is_descriptor(a) for a in ir.ArrayAttr(function.attributes["arg_attrs"])]

    def described(self) -> list[dict[str, Any]]:
        """What the run time has to know of each."""
        return [
            {
                "name": n,
                "threads": list(ir.DenseI32ArrayAttr(op.attributes["known_block_size"])),
                "shared_bytes": self._shared[n],
            }
            for n, op in self.by_name.items()
        ]

    def take_out(self) -> None:
        """Turns the module of the kernels into an attribute."""
        if self._device is None:
            return
        self._module.attributes[DEVICE_CODE] = ir.StringAttr.get(str(self._device))
        self._device.erase()


class _Constants:
    """The constants that device functions read, by number: the run time puts them into the device's memory."""

    def __init__(self, module: ir.Operation):
        block = module.regions[0].blocks[0]
        found = [op.operation for op in block.operations if op.operation.name == "memref.global"]
        self._globals = {ir.StringAttr(op.attributes["sym_name"]).value: op for op in found}
        self._numbers: dict[str, int] = {}

    def number(self, name: str) -> int:
        return self._numbers.setdefault(name, len(self._numbers))

    def described(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = []
        for name in self._numbers:
            kind = ir.MemRefType(ir.TypeAttr(self._globals[name].attributes["type"]).value)
            size = element_bytes(kind.element_type)
            for dim in kind.shape:
                size *= dim
            self._globals[name].attributes["sym_visibility"] = ir.StringAttr.get("public")
            found.append({"symbol": name, "bytes": size})
        return found


class _HostFunction:
    """Rewrites one function."""

    def __init__(
        self, function: func.FuncOp, kernels: _Kernels, constants: _Constants, called: set[str], defers: bool
    ):  # fmt: skip
        """Args: called: the functions whose calls get the driver, too; defers: whether kernels of the module check values."""
        block = body_of(function)
        assert block is not None
        self.function, self.block, self.called = function, block, called
        self.kernels, self.constants, self.defers = kernels, constants, defers
        self.em = Emitter(block)
        self.pointer = ir.Type.parse("!llvm.ptr")
        self.i64 = self.em.integer(64)
        self.driver: ir.Value = block.add_argument(self.pointer, function.location)

    def rewrite(self) -> None:
        for op in list(nested_operations(self.function.operation)):
            handler = _HANDLERS.get(op.name)
            if handler is not None and HOST not in op.attributes:
                with self.em.before(op):
                    handler(self, op)
        update_type(self.function)
        if "arg_attrs" in self.function.attributes:
            del self.function.attributes["arg_attrs"]

    def _call(self, name: str, operands: Sequence[ir.Value]) -> None:
        """Calls a function of :mod:`.driver_calls`, and leaves when it fails."""
        attributes = {"callee": ir.FlatSymbolRefAttr.get(name)}
        failed = self.em.op("func.call", [self.driver, *operands], self.i64, attributes)
        self._check(failed, failed)

    def _check(self, status: ir.Value, number: ir.Value) -> None:
        good = self.em.compare("eq", status, self.em.constant(0, self.i64))
        self.em.effect("func.call", [good, number], {"callee": ir.FlatSymbolRefAttr.get(CHECK)})

    def _number(self, value: ir.Value) -> ir.Value:
        return self.em.op("arith.index_cast", [value], self.i64)

    def call(self, op: ir.Operation) -> None:
        if callee_of(op) == TENSOR_MAP:
            self._call(driver_calls.TENSOR_MAP, list(op.operands))
            op.erase()
            return
        if callee_of(op) in (TO_DEVICE, TO_HOST):
            self._transfer(op)
            return
        if callee_of(op) == STATUS:
            attributes = {"callee": ir.FlatSymbolRefAttr.get(driver_calls.STATUS)}
            op.results[0].replace_all_uses_with(self.em.op("func.call", [self.driver], self.pointer, attributes))
            op.erase()
            return
        if callee_of(op) not in self.called:
            return
        em = self.em
        attributes = {"callee": op.attributes["callee"]}
        status = em.op("func.call", [*op.operands, self.driver], self.i64, attributes)
        self._check(status, em.sub(em.constant(-1, self.i64), status))
        op.erase()

    def _transfer(self, op: ir.Operation) -> None:
        """A copy between the memories; what the host gets may decide how long a loop runs, as what it reads."""
        target, source, size = op.operands
        to_host = callee_of(op) == TO_HOST
        self._call(driver_calls.READ if to_host else driver_calls.WRITE, [source, target, size])
        if self.defers and to_host:
            self._call(driver_calls.FOUND, [])
        op.erase()

    def leave(self, op: ir.Operation) -> None:
        if entry_of(self.function) is None:
            self.em.effect("func.return", [self.em.constant(0, self.i64)])
            op.erase()

    def launch(self, op: ir.Operation) -> None:
        em = self.em
        segments = list(ir.DenseI32ArrayAttr(op.attributes["operandSegmentSizes"]))
        sizes = [self._number(v) for v in list(op.operands)[:6]]
        first = sum(segments[:11])
        shared = em.op("arith.extsi", [op.operands[first - 1]], self.i64) if segments[10] else em.constant(0, self.i64)
        parameters = self._parameters(list(op.operands)[first:], self.kernels.by_reference(op))
        self._call(driver_calls.LAUNCH, [em.constant(self.kernels.number(op), self.i64), *sizes, shared, parameters])
        op.erase()

    def _parameters(self, values: Sequence[ir.Value], by_reference: Sequence[bool]) -> ir.Value:
        """A C array of pointers to values."""
        em = self.em
        kind = ir.MemRefType.get([max(1, len(values))], self.i64)
        slots, pointers = em.on_stack(kind), em.on_stack(kind)
        start = em.op("arith.index_cast", [address_of(em, slots)], self.i64)
        for i, (value, is_pointer) in enumerate(zip(values, by_reference, strict=True)):
            bits = self._bits(value)
            where = bits if is_pointer else em.add(start, em.constant(8 * i, self.i64))
            em.effect("memref.store", [where, pointers, em.number(i)])
            if not is_pointer:
                em.effect("memref.store", [bits, slots, em.number(i)])
        return em.op("llvm.inttoptr", [em.op("arith.index_cast", [address_of(em, pointers)], self.i64)], self.pointer)

    def _bits(self, value: ir.Value) -> ir.Value:
        """A number as 64 bits whose first bytes are its own."""
        em, kind = self.em, value.type
        if kind == self.pointer:
            return em.op("llvm.ptrtoint", [value], self.i64)
        if isinstance(kind, ir.IndexType):
            return self._number(value)
        if isinstance(kind, ir.FloatType):
            value = em.op("arith.bitcast", [value], em.integer(kind.width))
        width = ir.IntegerType(value.type).width
        return value if width == 64 else em.op("arith.extui", [value], self.i64)

    def load(self, op: ir.Operation) -> None:
        em = self.em
        buffer, *indices = op.operands
        if not isinstance(buffer, ir.BlockArgument) and buffer.owner.name == "memref.alloca":
            return
        element = ir.MemRefType(buffer.type).element_type
        copy = em.on_stack(ir.MemRefType.get([], element))
        size = em.constant(element_bytes(element), self.i64)
        source, target = linear_address(em, buffer, indices), self._pointer(address_of(em, copy))
        self._call(driver_calls.READ, [source, target, size])
        if self.defers:  # what is read may be of what failed, and decide how long a loop runs
            self._call(driver_calls.FOUND, [])
        op.results[0].replace_all_uses_with(em.op("memref.load", [copy], element))
        op.erase()

    def _pointer(self, address: ir.Value) -> ir.Value:
        return self.em.op("llvm.inttoptr", [self._number(address)], self.pointer)

    def allocate(self, op: ir.Operation) -> None:
        em = self.em
        kind = ir.MemRefType(op.results[0].type)
        size = em.number(element_bytes(kind.element_type))
        sizes = list(op.operands)
        lengths = iter(sizes)
        for axis, dim in enumerate(kind.shape):
            size = em.mul(size, next(lengths) if kind.is_dynamic_dim(axis) else em.number(dim))
        place = em.on_stack(ir.MemRefType.get([], self.i64))
        self._call(driver_calls.ALLOCATE, [self._pointer(address_of(em, place)), self._number(size)])
        start = em.op("llvm.inttoptr", [em.op("memref.load", [place], self.i64)], self.pointer)
        op.results[0].replace_all_uses_with(buffer_at(em, start, kind, sizes))
        op.erase()

    def free(self, op: ir.Operation) -> None:
        self._call(driver_calls.FREE, [self._pointer(address_of(self.em, op.operands[0]))])
        op.erase()

    def constant(self, op: ir.Operation) -> None:
        em = self.em
        name = ir.FlatSymbolRefAttr(op.attributes["name"]).value
        number = em.constant(self.constants.number(name), self.i64)
        attributes = {"callee": ir.FlatSymbolRefAttr.get(driver_calls.CONSTANT)}
        start = em.op("func.call", [self.driver, number], self.pointer, attributes)
        op.results[0].replace_all_uses_with(buffer_at(em, start, ir.MemRefType(op.results[0].type), []))
        op.erase()


_HANDLERS = {
    "func.call": _HostFunction.call,
    "func.return": _HostFunction.leave,
    "gpu.launch_func": _HostFunction.launch,
    "memref.alloc": _HostFunction.allocate,
    "memref.dealloc": _HostFunction.free,
    "memref.get_global": _HostFunction.constant,
    "memref.load": _HostFunction.load,
}

"""Checked code of kernels: every access says whether it is inside of its buffer, and one that is not leaves the memory alone.

Before, in a kernel whose parameter ``%p`` points to the buffer ``%x``::

    %v = vector.load %x[%i] : memref<?xf32>, vector<4xf32>

after, where ``%word`` is the device's status word, a parameter more::

    %inside = address of %x[%i] - %p in 0 .. bytes of %x - 16
    %v = scf.if %inside { vector.load %x[%i] } else { the first fault is noted in %word; zeros }

A buffer is what the host passes, a part of shared memory, or an allocation; what is read through pointers (``cp.async``) is
followed back to the buffer that its address is computed of. A tensor map knows its tensor's sizes, and the hardware keeps to
them. The number of a fault's site, counted from ``FAULT`` on, is left and raised as that of a failed check of values.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar

from ...dialect.bindings import ir
from ...dialect.traversal import nested_operations, operations
from ..access_ranges import MEMORY_OPERANDS, AccessCode, element_bytes_of, ranges_of, source_extent
from ..cpu.access_sites import AccessSites
from ..kernels.emit.emitter import Emitter
from ..lowering_pass import LoweringPass
from ..marks import DEVICE_ACCESSES, OPS
from ..plain_attributes import from_attribute, to_attribute
from .kernels.host_code import MODULE
from .status_call import status_word

__all__ = ["FAULT", "CheckDeviceAccesses", "check_device_accesses"]

#: What the numbers of sites have on top, in the status word: more than any check's.
FAULT = 1 << 40

_VIEWS = (
    "memref.cast", "memref.collapse_shape", "memref.expand_shape", "memref.reinterpret_cast", "memref.subview",
    "memref.transpose",
)  # fmt: skip
#: What an address is computed by, of another one.
_ARITHMETIC = (
    "arith.addi", "arith.index_cast", "arith.index_castui", "arith.select", "arith.subi", "llvm.addrspacecast",
    "llvm.getelementptr", "llvm.inttoptr", "llvm.ptrtoint",
)  # fmt: skip
#: Accesses through pointers, by where these are among the operands.
_POINTERS = {"llvm.load": 0, "llvm.store": 1, "nvvm.cp.async.shared.global": 1}
_ADDRESS = "memref.extract_aligned_pointer_as_index"
_SHARED_SPACE, _GLOBAL_SPACE = 3, 1
_MONOTONIC = 2  # LLVM's atomic ordering: no other memory is ordered by it


@dataclass(frozen=True)
class CheckDeviceAccesses(LoweringPass):
    """Puts every access of kernels under the condition that it is inside of its buffer."""

    name: ClassVar[str] = "relax-check-device-accesses"

    def run(self, op: ir.Operation) -> None:
        if DEVICE_ACCESSES not in op.attributes:
            op.attributes[DEVICE_ACCESSES] = to_attribute(check_device_accesses(op))


def check_device_accesses(module: ir.Operation) -> list[str]:
    """Rewrites all kernels of a module and their launches; in place. Returns what each site is, with the user's place."""
    sites = AccessSites()
    kernels = [k for k in _kernels(module) if "kernel" in k.attributes]
    with module.context, ir.Location.unknown():
        for kernel in kernels:
            name = ir.StringAttr(kernel.attributes["sym_name"]).value
            ops = from_attribute(kernel.attributes[OPS]) if OPS in kernel.attributes else ()
            sites.what = ", ".join(ops) or f"@{name}"
            _Kernel(kernel, sites).rewrite()
        for launch in [op for op in nested_operations(module) if op.name == "gpu.launch_func"]:
            _pass_word(launch, module)
    return list(sites.numbers)


def _kernels(module: ir.Operation) -> Iterator[ir.Operation]:
    for op in operations(module.regions[0].blocks[0]):
        if op.name == "gpu.module" and ir.StringAttr(op.attributes["sym_name"]).value == MODULE:
            yield from (inner for inner in operations(op.regions[0].blocks[0]) if inner.name == "gpu.func")


def _pass_word(launch: ir.Operation, module: ir.Operation) -> None:
    """Launches a kernel with the status word behind its other parameters."""
    em = Emitter(launch.block)
    with em.before(launch):
        segments = list(ir.DenseI32ArrayAttr(launch.attributes["operandSegmentSizes"]))
        assert not segments[-1], "an asynchronous launch has another operand behind its parameters"
        segments[-2] += 1
        attributes = {name: launch.attributes[name] for name in launch.attributes}
        attributes["operandSegmentSizes"] = ir.DenseI32ArrayAttr.get(segments)
        em.effect("gpu.launch_func", [*launch.operands, status_word(em, module)], attributes)
    launch.erase()


@dataclass(frozen=True)
class _Bytes:
    """What an access touches, and what it may: first byte, one behind the last, the buffer's own."""

    first: ir.Value
    end: ir.Value
    start: ir.Value
    limit: ir.Value


class _Kernel:
    """Rewrites one kernel."""

    def __init__(self, kernel: ir.Operation, sites: AccessSites):
        self.kernel, self.sites, self.code = kernel, sites, AccessCode()
        self.block = kernel.regions[0].blocks[0]

    def rewrite(self) -> None:
        accesses = [op for op in nested_operations(self.kernel) if op.name in MEMORY_OPERANDS or self._is_global(op)]
        word = self.block.add_argument(ir.Type.parse("!llvm.ptr"), self.kernel.location)
        types = [a.type for a in self.block.arguments]
        self.kernel.attributes["function_type"] = ir.TypeAttr.get(ir.FunctionType.get(types, []))
        if "arg_attrs" in self.kernel.attributes:
            given = [*ir.ArrayAttr(self.kernel.attributes["arg_attrs"]), ir.DictAttr.get({})]
            self.kernel.attributes["arg_attrs"] = ir.ArrayAttr.get(given)
        for op in accesses:
            with ir.InsertionPoint(op), op.location:
                touched = self._pointed(op) if op.name in _POINTERS else self._indexed(op)
                self._guard(op, touched, word)

    def _is_global(self, op: ir.Operation) -> bool:
        if op.name not in _POINTERS:
            return False
        return str(op.operands[_POINTERS[op.name]].type) != f"!llvm.ptr<{_SHARED_SPACE}>"

    # -- what is touched -------------------------------------------------------------------------------------------

    def _indexed(self, op: ir.Operation) -> _Bytes:
        """Of an access by indices of a buffer."""
        code, memory = self.code, op.operands[MEMORY_OPERANDS[op.name]]
        kind = ir.MemRefType(memory.type)
        base = ir.MemRefType.get([], kind.element_type, memory_space=kind.memory_space)
        types = [base, *[code.index] * (1 + 2 * kind.rank)]
        parts = list(ir.Operation.create("memref.extract_strided_metadata", types, [memory]).results)
        least = largest = parts[1]
        for found, stride in zip(ranges_of(code, op), parts[2 + kind.rank :], strict=True):
            least, largest = (code.add(at, code.mul(i, stride)) for at, i in ((least, found.least), (largest, found.largest)))
        size = code.number(element_bytes_of(kind.element_type))
        start = code.op(_ADDRESS, [memory], code.index)
        first, last = (code.add(start, code.mul(at, size)) for at in (least, largest))
        return _Bytes(first, code.add(last, size), *self._limits(_root(memory)))

    def _pointed(self, op: ir.Operation) -> _Bytes:
        """Of an access through a pointer."""
        code, pointer = self.code, op.operands[_POINTERS[op.name]]
        number = code.op("llvm.ptrtoint", [pointer], code.i64)
        first = code.op("arith.index_cast", [number], code.index)
        roots = _roots(pointer)
        if len(roots) != 1:
            raise AssertionError(f"expected an address that is computed of one buffer's, got {len(roots)} at {op}")
        return _Bytes(first, code.add(first, self._size(op)), *self._limits(roots[0]))

    def _size(self, op: ir.Operation) -> ir.Value:
        """How many bytes an access through a pointer reads or writes."""
        code = self.code
        if op.name.startswith("nvvm."):
            if len(op.operands) < 3:
                return code.number(ir.IntegerAttr(op.attributes["size"]).value)
            return code.op("arith.index_cast", [op.operands[2]], code.index)
        kind = (op.results[0] if len(op.results) else op.operands[0]).type
        lanes = ir.VectorType(kind).shape[0] if isinstance(kind, ir.VectorType) else 1
        return code.number(lanes * element_bytes_of(ir.VectorType(kind).element_type if lanes > 1 else kind))

    def _limits(self, root: ir.Value) -> tuple[ir.Value, ir.Value]:
        """Where a buffer begins, and ends."""
        code = self.code
        start = code.op(_ADDRESS, [root], code.index)
        size = code.number(element_bytes_of(ir.MemRefType(root.type).element_type))
        return start, code.add(start, code.mul(source_extent(code, root), size))

    # -- the check -------------------------------------------------------------------------------------------------

    def _guard(self, op: ir.Operation, touched: _Bytes, word: ir.Value) -> None:
        """Puts an access under the condition that it is inside."""
        code = self.code
        none = code.not_(code.less(touched.first, touched.end))  # a copy of no bytes, which fills with zeros
        inside = code.not_(code.either(code.less(touched.first, touched.start), code.less(touched.limit, touched.end)))
        branch = ir.Operation.create("scf.if", [r.type for r in op.results], [code.either(none, inside)], regions=2)
        then, otherwise = (region.blocks.append() for region in branch.regions)
        for old, new in zip(op.results, branch.results, strict=True):
            old.replace_all_uses_with(new)
        then.append(op)
        with ir.InsertionPoint(then):
            ir.Operation.create("scf.yield", [], list(op.results))
        with ir.InsertionPoint(otherwise):
            self._note(self._site(op), word)
            if op.name.startswith("nvvm."):
                self._zeros(op)
            ir.Operation.create("scf.yield", [], [code.zero(r.type) for r in op.results])

    def _site(self, op: ir.Operation) -> int:
        memory = op.operands[(MEMORY_OPERANDS | _POINTERS)[op.name]]
        found = memory if op.name in MEMORY_OPERANDS else _roots(memory)[0]
        return self.sites.access(op, found)

    def _note(self, site: int, word: ir.Value) -> None:
        """Leaves the site's number in the status word, where no other one is."""
        code = self.code
        order = ir.IntegerAttr.get(code.i64, _MONOTONIC)
        operands = [word, code.number(0, code.i64), code.number(FAULT + site + 1, code.i64)]
        attributes = {"success_ordering": order, "failure_ordering": order}
        code.op("llvm.cmpxchg", operands, ir.Type.parse("!llvm.struct<(i64, i1)>"), attributes)

    def _zeros(self, op: ir.Operation) -> None:
        """What a copy to shared memory leaves there."""
        code = self.code
        size = ir.IntegerAttr(op.attributes["size"]).value
        kind = ir.VectorType.get([size], ir.IntegerType.get_signless(8))
        access = {"alignment": ir.IntegerAttr.get(code.i64, size), "ordering": ir.IntegerAttr.get(code.i64, 0)}
        ir.Operation.create("llvm.store", [], [code.zero(kind), op.operands[0]], access)


def _root(memory: ir.Value) -> ir.Value:
    """The buffer that a view is a part of: what the host passes, shared memory under its generic address, or an allocation."""
    while not isinstance(memory, ir.BlockArgument) and memory.owner.name in _VIEWS:
        source = memory.owner.operands[0]
        if not isinstance(source, ir.BlockArgument) and source.owner.name == "builtin.unrealized_conversion_cast":
            return memory
        memory = source
    return memory


def _roots(address: ir.Value) -> list[ir.Value]:
    """The buffers that an address is computed of."""
    found, seen, pending = dict[ir.Value, None](), set[ir.Value](), [address]
    while pending:
        value = pending.pop()
        if value in seen:
            continue
        seen.add(value)
        if isinstance(value, ir.BlockArgument):
            pending += _carried(value)
        elif value.owner.name == _ADDRESS:
            found[_root(value.owner.operands[0])] = None
        elif value.owner.name in _ARITHMETIC:
            pending += list(value.owner.operands)[1 if value.owner.name == "arith.select" else 0 :]
        elif value.owner.name.startswith("scf."):
            pending += _handed(value)
    return list(found)


def _carried(argument: ir.BlockArgument) -> list[ir.Value]:
    """What a loop starts with, where an argument is carried by one."""
    loop = argument.owner.owner
    position = argument.arg_number - 1
    return [loop.operands[3 + position]] if loop.name == "scf.for" and position >= 0 else []


def _handed(value: ir.Value) -> Sequence[ir.Value]:
    """What control flow may give as one of its results."""
    op = value.owner.operation
    position = list(op.results).index(value)
    ends = [operations(region.blocks[0])[-1] for region in op.regions if len(region.blocks)]
    return [end.operands[position] for end in ends if end.name == "scf.yield"]

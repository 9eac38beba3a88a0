"""Code of one kernel on the device, as it is built: what it reads of the host becomes a parameter when it is first asked for.

A buffer is passed as a pointer to its first element, with those of its sizes and strides that its type does not say; the kernel
makes the same view of them. Numbers are passed as they are, constants are made again.
"""

from __future__ import annotations

from ....dialect.array_spec import aligned
from ....dialect.bindings import ir
from ...device.descriptors import DESCRIPTOR
from ...kernels.emit.emitter import Emitter
from .memory import buffer_at, bytes_of, first_element, strides_of

__all__ = ["DeviceCode"]

_AXES = ("x", "y", "z")


class DeviceCode:
    """The body of a ``gpu.func`` under construction.

    Attributes:
        em: builds operations of the kernel, in front of its return.
        operands: host values that the launch passes, one per parameter.
        shared_bytes: bytes of shared memory that the kernel has asked for.
    """

    def __init__(self, function: ir.Operation, host: Emitter, blocks: ir.Value):
        """Starts an empty body.

        Args:
            function: a ``gpu.func`` without parameters, whose block is empty.
            host: builds what computes the parameters, in front of the launch.
            blocks: how many run, a value of the host.
        """
        self.function, self._host, self._blocks = function, host, blocks
        block = function.regions[0].blocks[0]
        self.em = Emitter(block)
        end = ir.Operation.create("gpu.return", loc=function.location, ip=ir.InsertionPoint(block))
        self._end = end
        with self.em.before(end):
            self._thread = self._id("gpu.thread_id", 0)
        self._ids: dict[tuple[str, int], ir.Value] = {("gpu.thread_id", 0): self._thread}
        self.operands: list[ir.Value] = []
        self._attributes = dict[int, ir.Attribute]()
        self.known: dict[ir.Value, ir.Value] = {}
        self.shared_bytes = 0
        self._memory: ir.Value | None = None

    # -- places ----------------------------------------------------------------------------------------------------

    def thread(self, axis: int = 0) -> ir.Value:
        """The thread's index in its block."""
        return self._found("gpu.thread_id", axis)

    def block(self, axis: int = 0) -> ir.Value:
        """The block's index in the grid."""
        return self._found("gpu.block_id", axis)

    def barrier(self) -> None:
        """Waits for all threads of the block, and for what they have written."""
        self.em.effect("gpu.barrier", [])

    def _found(self, name: str, axis: int) -> ir.Value:
        known = self._ids.get((name, axis))
        if known is None:
            with self.em.before(self._thread.owner):
                known = self._ids[name, axis] = self._id(name, axis)
        return known

    def _id(self, name: str, axis: int) -> ir.Value:
        dimension = ir.Attribute.parse(f"#gpu<dim {_AXES[axis]}>", self.em.context)
        return self.em.op(name, [], self.em.index, {"dimension": dimension})

    # -- what is read of the host ----------------------------------------------------------------------------------

    def value(self, value: ir.Value) -> ir.Value:
        """What a value of the host is in the kernel."""
        known = self.known.get(value)
        if known is None:
            known = self.known[value] = self._taken(value)
        return known

    def _taken(self, value: ir.Value) -> ir.Value:
        if isinstance(value.type, ir.MemRefType):
            with self.em.before(self._thread.owner):
                return self._view(value)
        if not isinstance(value, ir.BlockArgument) and value.owner.name == "arith.constant":
            return self.em.constant_attribute(value.owner.attributes["value"], value.type)
        return self.parameter(value)

    def parameter(self, value: ir.Value) -> ir.Value:
        """A parameter of the kernel, which gets a host value's."""
        self.operands.append(value)
        return self.function.regions[0].blocks[0].add_argument(value.type, self.function.location)

    def descriptor(self, value: ir.Value) -> ir.Value:
        """A parameter of 128 bytes that a pointer of the host points to: a tensor map, of which the kernel gets the address."""
        made = self.parameter(value)
        self._attributes[len(self.operands) - 1] = ir.Attribute.parse(DESCRIPTOR, self.em.context)
        return made

    def _view(self, value: ir.Value) -> ir.Value:
        """The buffer, of the same type: its offset, where the type does not say it, is in the pointer."""
        kind, host = ir.MemRefType(value.type), self._host
        pointer = self.parameter(first_element(host, value))
        unknown = [i for i in range(kind.rank) if kind.is_dynamic_dim(i)]
        sizes = [self.parameter(host.op("memref.dim", [value, host.number(i)], host.index)) for i in unknown]
        strides = [self.parameter(v) for v in strides_of(host, value)]
        return buffer_at(self.em, pointer, kind, sizes, strides)

    # -- shared memory ---------------------------------------------------------------------------------------------

    def shared(self, kind: ir.MemRefType) -> ir.Value:
        """A buffer of constant size in the shared memory of the block, of a type without memory space."""
        em = self.em
        start = self._shared_bytes(bytes_of(kind), 16)
        space = ir.Attribute.parse("#gpu.address_space<workgroup>", em.context)
        there = ir.MemRefType.get(kind.shape, kind.element_type, memory_space=space, loc=em.location)
        with em.before(self._thread.owner):
            view = em.op("memref.view", [self._shared_memory(), em.number(start)], there)
            return em.op("memref.memory_space_cast", [view], kind)

    def shared_pointer(self, size: int, alignment: int = 16) -> ir.Value:
        """A pointer (``!llvm.ptr<3>``) to so many bytes of shared memory, at a multiple of an alignment up to 1024."""
        em = self.em
        start = self._shared_bytes(size, alignment)
        with em.before(self._thread.owner):
            address = em.op("memref.extract_aligned_pointer_as_index", [self._shared_memory()], em.index)
            number = em.op("arith.index_cast", [em.add(address, em.number(start))], em.integer(64))
            return em.op("llvm.inttoptr", [number], ir.Type.parse("!llvm.ptr<3>", em.context))

    def _shared_bytes(self, size: int, alignment: int) -> int:
        """Where so many bytes more of shared memory begin."""
        start = -(-self.shared_bytes // alignment) * alignment
        self.shared_bytes = start + size
        return start

    def _shared_memory(self) -> ir.Value:
        em = self.em
        if self._memory is None:
            space = ir.Attribute.parse("#gpu.address_space<workgroup>", em.context)
            dynamic = [ir.ShapedType.get_dynamic_size()]
            bytes_ = ir.MemRefType.get(dynamic, em.integer(8), memory_space=space, loc=em.location)
            self._memory = em.op("gpu.dynamic_shared_memory", [], bytes_)
        return self._memory

    def local(self, kind: ir.MemRefType, limit: int) -> ir.Value:
        """A buffer of constant size for the block: in shared memory while that has ``limit`` bytes, else in global memory."""
        size = bytes_of(kind)
        if self.shared_bytes + 16 + size <= limit:
            return self.shared(kind)
        return self._global(kind, size)

    def _global(self, kind: ir.MemRefType, size: int) -> ir.Value:
        """The block's part of a buffer that the launch allocates."""
        host, em = self._host, self.em
        size = aligned(size)
        with host.context, host.location:
            there = ir.MemRefType.get([ir.ShapedType.get_dynamic_size(), size], host.integer(8))
            segments = {"operandSegmentSizes": ir.DenseI32ArrayAttr.get([1, 0], host.context)}
        memory = host.op("memref.alloc", [self._blocks], there, segments)
        pointer = self.parameter(first_element(host, memory))
        with em.before(self._thread.owner):
            offset = em.op("arith.index_cast", [em.mul(self.block(), em.number(size))], em.integer(64))
            attributes = {
                "elem_type": ir.TypeAttr.get(em.integer(8)),
                "rawConstantIndices": ir.DenseI32ArrayAttr.get([-(2**31)], em.context),
            }
            start = em.op("llvm.getelementptr", [pointer, offset], pointer.type, attributes)
            return buffer_at(em, start, kind, [])

    def finish(self) -> None:
        """Says what the function's parameters are."""
        types = [a.type for a in self.function.regions[0].blocks[0].arguments]
        kind = ir.FunctionType.get(types, [], self.em.context)
        self.function.attributes["function_type"] = ir.TypeAttr.get(kind)
        if self._attributes:
            none = ir.DictAttr.get({}, self.em.context)
            attributes = [self._attributes.get(i, none) for i in range(len(types))]
            self.function.attributes["arg_attrs"] = ir.ArrayAttr.get(attributes, self.em.context)

    @property
    def end(self) -> ir.Operation:
        """The kernel's return, in front of which its code is built."""
        return self._end

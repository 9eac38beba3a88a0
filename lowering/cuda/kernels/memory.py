"""Buffers as pointers, and pointers as buffers: what is said of memory between host, driver and kernels."""

from __future__ import annotations

import math
from collections.abc import Sequence

from ....dialect.bindings import ir
from ....dialect.struct_info import element_bytes
from ...kernels.emit.emitter import Emitter

__all__ = ["address_of", "buffer_at", "bytes_of", "first_element", "is_moved", "linear_address", "strides_of"]

_UNKNOWN = ir.ShapedType.get_dynamic_stride_or_offset()


def bytes_of(kind: ir.MemRefType) -> int:
    """Those of a buffer of static shape."""
    return math.prod(kind.shape) * element_bytes(kind.element_type)


def is_moved(kind: ir.MemRefType) -> bool:
    """Whether a type does not say where its buffers begin in what they are parts of."""
    return kind.get_strides_and_offset()[1] == _UNKNOWN


def address_of(em: Emitter, value: ir.Value) -> ir.Value:
    """Where the memory begins that a buffer is a part of, as an index."""
    return em.op("memref.extract_aligned_pointer_as_index", [value], em.index)


def first_element(em: Emitter, value: ir.Value) -> ir.Value:
    """A pointer to a buffer's first element; to that of what it is a part of, where its type says where it begins there."""
    kind = ir.MemRefType(value.type)
    address = address_of(em, value)
    if is_moved(kind):
        address = em.add(address, _scaled(em, _metadata(em, value)[1], kind))
    return _pointer(em, address)


def linear_address(em: Emitter, value: ir.Value, indices: Sequence[ir.Value]) -> ir.Value:
    """A pointer to an element of a buffer."""
    kind = ir.MemRefType(value.type)
    if not kind.rank and not is_moved(kind):
        return _pointer(em, address_of(em, value))
    found = _metadata(em, value)
    offset = found[1]
    for index, stride in zip(indices, found[2 + kind.rank :], strict=True):
        offset = em.add(offset, em.mul(index, stride))
    return _pointer(em, em.add(address_of(em, value), _scaled(em, offset, kind)))


def strides_of(em: Emitter, value: ir.Value) -> list[ir.Value]:
    """The strides of a buffer that its type does not say, in elements."""
    kind = ir.MemRefType(value.type)
    unknown = [i for i, stride in enumerate(kind.get_strides_and_offset()[0]) if stride == _UNKNOWN]
    if not unknown:
        return []
    found = _metadata(em, value)[2 + kind.rank :]
    return [found[i] for i in unknown]


def buffer_at(
    em: Emitter, pointer: ir.Value, kind: ir.MemRefType, sizes: Sequence[ir.Value], strides: Sequence[ir.Value] = ()
) -> ir.Value:  # fmt: skip
    """The buffer that :func:`first_element` gives the pointer of, with those sizes and strides that its type does not say.

    Without any, strides that a type leaves open are those of a contiguous buffer.
    """
    steps, start = kind.get_strides_and_offset()
    strides = strides or _contiguous(em, kind, steps, sizes)
    offset = [em.number(0)] if is_moved(kind) else []
    attributes: dict[str, ir.Attribute] = {
        "static_offsets": ir.DenseI64ArrayAttr.get([start], em.context),
        "static_sizes": ir.DenseI64ArrayAttr.get(list(kind.shape), em.context),
        "static_strides": ir.DenseI64ArrayAttr.get(list(steps), em.context),
        "operandSegmentSizes": ir.DenseI32ArrayAttr.get([1, len(offset), len(sizes), len(strides)], em.context),
    }
    element = _element(em, pointer, kind.element_type)
    return em.op("memref.reinterpret_cast", [element, *offset, *sizes, *strides], kind, attributes)


def _contiguous(em: Emitter, kind: ir.MemRefType, steps: Sequence[int], sizes: Sequence[ir.Value]) -> list[ir.Value]:
    """The strides that a type does not say, where the last dimension is the fastest."""
    open_, found, step = iter(reversed(sizes)), list[ir.Value](), em.number(1)
    for axis in reversed(range(kind.rank)):
        if steps[axis] == _UNKNOWN:
            found.append(step)
        step = em.mul(step, next(open_) if kind.is_dynamic_dim(axis) else em.number(kind.shape[axis]))
    return found[::-1]


def _element(em: Emitter, pointer: ir.Value, element: ir.Type) -> ir.Value:
    """The element at a pointer, as a buffer of rank 0."""
    kind = ir.Type.parse("!llvm.struct<(ptr, ptr, i64)>", em.context)
    i64 = em.integer(64)
    zero = em.op("llvm.mlir.constant", [], i64, {"value": ir.IntegerAttr.get(i64, 0)})
    made = em.op("llvm.mlir.poison", [], kind)
    for position, field in enumerate((pointer, pointer, zero)):
        at = {"position": ir.DenseI64ArrayAttr.get([position], em.context)}
        made = em.op("llvm.insertvalue", [made, field], kind, at)
    return em.op("builtin.unrealized_conversion_cast", [made], ir.MemRefType.get([], element, loc=em.location))


def _metadata(em: Emitter, value: ir.Value) -> list[ir.Value]:
    """Base, offset, sizes and strides."""
    kind = ir.MemRefType(value.type)
    base = ir.MemRefType.get([], kind.element_type, loc=em.location)
    return em.several("memref.extract_strided_metadata", [value], [base, em.index, *[em.index] * (2 * kind.rank)])


def _scaled(em: Emitter, elements: ir.Value, kind: ir.MemRefType) -> ir.Value:
    return em.mul(elements, em.number(element_bytes(kind.element_type)))


def _pointer(em: Emitter, address: ir.Value) -> ir.Value:
    number = em.op("arith.index_cast", [address], em.integer(64))
    return em.op("llvm.inttoptr", [number], ir.Type.parse("!llvm.ptr", em.context))

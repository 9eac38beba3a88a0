"""A part of a buffer becomes a copy where its reader takes buffers without gaps.

One-shot bufferization gives functions buffers without gaps, and casts what it calls them with. A cast of strides that are not
known to strides that are not known either passes for one that keeps them, whatever they are
(``castOrReallocMemRefValue``, torch-mlir 20261001), if the part begins at the beginning.

Before, where each row of the part is followed by seven of others::

    %part = memref.subview %x[0, 0, 0] [2, 1, %n] [1, 1, 1] : memref<2x8x?xf32> to memref<2x1x?xf32, strided<[?, ?, 1]>>
    %plain = memref.cast %part : memref<2x1x?xf32, strided<[?, ?, 1]>> to memref<2x1x?xf32>
    call @kernel_0(%plain, %y)

after::

    %plain = memref.alloc(%n) : memref<2x1x?xf32>
    memref.copy %part, %plain
    call @kernel_0(%plain, %y)

Parts that are proven to have no gaps, as whole rows are, stay what they are.
"""

from __future__ import annotations

from ...dialect.bindings import ir
from ...dialect.traversal import nested_operations
from .trace import SizeTracer

__all__ = ["copy_parts"]

_ALIGNMENT = 64  # of bufferization's own allocations
_RESHAPES = ("memref.cast", "memref.collapse_shape", "memref.expand_shape")
_DYNAMIC = ir.ShapedType.get_dynamic_size()


def copy_parts(function: ir.Operation, tracer: SizeTracer) -> None:
    """Replaces the casts of a function, in place."""
    for op in [o for o in nested_operations(function) if o.name == "memref.cast"]:
        source, result = op.operands[0], op.results[0]
        if _is_plain(result.type) and not _has_no_gaps(source, tracer):
            result.replace_all_uses_with(_copied(op, source, ir.MemRefType(result.type)))
            op.erase()


def _is_plain(type_: ir.Type) -> bool:
    """Whether a type says that there are no gaps."""
    return isinstance(type_, ir.MemRefType) and ir.MemRefType(type_).layout == _identity(ir.MemRefType(type_).rank)


def _identity(rank: int) -> ir.Attribute:
    return ir.AffineMapAttr.get(ir.AffineMap.get_identity(rank))


def _has_no_gaps(value: ir.Value, tracer: SizeTracer) -> bool:
    if _is_plain(value.type):
        return True
    if isinstance(value, ir.BlockArgument):
        return False
    op = value.owner.operation
    if op.name in _RESHAPES:
        return _has_no_gaps(op.operands[0], tracer)
    return op.name == "memref.subview" and _has_no_gaps(op.operands[0], tracer) and _is_of_neighbours(op, tracer)


def _is_of_neighbours(op: ir.Operation, tracer: SizeTracer) -> bool:
    """Whether a part has one place of each first dimension, some of the next, and all of the others."""
    if any(step != 1 for step in ir.DenseI64ArrayAttr(op.attributes["static_strides"])):
        return False
    whole = tracer.shape(op.operands[0])
    sizes = iter(_operands_of(op, 2))
    given = [tracer.value(next(sizes)) if n == _DYNAMIC else n for n in ir.DenseI64ArrayAttr(op.attributes["static_sizes"])]
    if whole is None:
        return all(n == 1 for n in given[:-1])
    rest = list(zip(given, whole, strict=True))
    while rest and rest[0][0] == 1:
        rest = rest[1:]
    return all(n is not None and n == all_ for n, all_ in rest[1:])


def _operands_of(op: ir.Operation, group: int) -> list[ir.Value]:
    """Of offsets, sizes and strides, groups 1 to 3, those that are values."""
    segments = list(ir.DenseI32ArrayAttr(op.attributes["operandSegmentSizes"]))
    first = sum(segments[:group])
    return list(op.operands)[first : first + segments[group]]


def _copied(op: ir.Operation, source: ir.Value, type_: ir.MemRefType) -> ir.Value:
    index = ir.IndexType.get(op.context)
    with ir.InsertionPoint(op), op.location:
        sizes = list[ir.Value]()
        for i in (i for i, size in enumerate(type_.shape) if size == _DYNAMIC):
            number = ir.Operation.create("arith.constant", [index], [], {"value": ir.IntegerAttr.get(index, i)}).result
            sizes.append(ir.Operation.create("memref.dim", [index], [source, number]).result)
        attributes = {
            "alignment": ir.IntegerAttr.get(ir.IntegerType.get_signless(64), _ALIGNMENT),
            "operandSegmentSizes": ir.DenseI32ArrayAttr.get([len(sizes), 0]),
        }
        made = ir.Operation.create("memref.alloc", [type_], sizes, attributes).result
        ir.Operation.create("memref.copy", [], [source, made])
    return made

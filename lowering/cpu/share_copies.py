"""Copies between buffers of an entry, and fills, as calls of kernels, one per types: a decoder's layers share the loops.

Before::

    memref.copy %a, %part : memref<?x64xf32> to memref<?x64xf32, strided<[128, 1]>>

after::

    call @copy_0(%a, %part)
    func.func private @copy_0(%from: memref<?x64xf32>, %to: memref<?x64xf32, strided<[128, 1]>>) {relax.kernel}

Where copies differ in where parts begin, the kernel takes parts that begin anywhere. Where fills of whole buffers differ in
sizes, it takes as many elements as there are: the frames of all convolutions are filled by one. So entries have no loops, and
are compiled in no time.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import prod
from typing import ClassVar

from ...dialect.bindings import func, ir
from ...dialect.functions import functions, name_of
from ..fusion.linalg_queries import generics_in, index_maps, owner_name
from ..kernel_function import mark_kernel
from ..kernels.structure.as_generic import copy
from ..lowering_pass import LoweringPass
from ..marks import KERNEL

__all__ = ["ShareCopies", "share_copies", "share_fills"]

#: Of what is read, and of what is written.
_Types = tuple[ir.Type, ir.Type]


@dataclass(frozen=True)
class ShareCopies(LoweringPass):
    """Makes copies between buffers, and fills, calls of kernels."""

    name: ClassVar[str] = "relax-share-copies"

    def run(self, op: ir.Operation) -> None:
        share_copies(op)
        share_fills(op)


def share_copies(module: ir.Operation) -> None:
    """Rewrites every copy of a buffer of rank 1 or more outside of kernels; in place."""
    copies = [c for f in functions(module) if KERNEL not in f.attributes for c in _copies(f.operation)]
    taken = {name_of(f) for f in functions(module)}
    kernels: dict[_Types, str] = {}
    alike: dict[_Types, set[_Types]] = {}
    found: list[tuple[ir.Operation, list[ir.Value], _Types]] = []
    for one in copies:
        with ir.InsertionPoint(one), one.location:
            buffers = _collapsed(*one.operands)
        types = (buffers[0].type, buffers[1].type)
        anywhere = (_anywhere(types[0]), _anywhere(types[1]))
        alike.setdefault(anywhere, set()).add(types)
        found.append((one, buffers, anywhere))
    for one, buffers, anywhere in found:
        key = anywhere if len(alike[anywhere]) > 1 else (buffers[0].type, buffers[1].type)
        if key not in kernels:
            kernels[key] = _kernel(module, key, taken)
        with ir.InsertionPoint(one), one.location:
            places = [_cast(b, t) for b, t in zip(buffers, key, strict=True)]
            func.CallOp([], ir.FlatSymbolRefAttr.get(kernels[key]), places)
        one.erase()


def share_fills(module: ir.Operation) -> None:
    """Rewrites every operation outside of kernels that has one number written to all elements of a buffer; in place."""
    fills = [o for f in functions(module) if KERNEL not in f.attributes for o in _fills(f.operation)]
    taken = {name_of(f) for f in functions(module)}
    kernels: dict[tuple[ir.Type, ir.Attribute], str] = {}
    for fill in fills:
        number, buffer = fill.operands
        with ir.InsertionPoint(fill), fill.location:
            place = _of_any_size(buffer)
            key = (place.type, number.owner.attributes["value"])
            if key not in kernels:
                kernels[key] = _fill_kernel(module, *key, taken)
            func.CallOp([], ir.FlatSymbolRefAttr.get(kernels[key]), [place])
        fill.erase()


def _anywhere(kind: ir.Type) -> ir.Type:
    """The type of a part of a buffer that may begin anywhere: copies of each column of a matrix, say, are alike then."""
    type_ = ir.MemRefType(kind)
    if not isinstance(type_.layout, ir.StridedLayoutAttr):
        return kind
    layout = ir.StridedLayoutAttr.get(ir.ShapedType.get_dynamic_stride_or_offset(), list(type_.layout.strides))
    return ir.MemRefType.get(type_.shape, type_.element_type, layout, type_.memory_space)


def _cast(buffer: ir.Value, kind: ir.Type) -> ir.Value:
    return buffer if buffer.type == kind else ir.Operation.create("memref.cast", [kind], [buffer]).result


def _collapsed(*buffers: ir.Value) -> list[ir.Value]:
    """Buffers in as few dimensions as their elements are that far apart; copies of one form are more often alike then."""
    types = [ir.MemRefType(b.type) for b in buffers]
    if not all(t.has_static_shape and isinstance(t.layout, ir.AffineMapAttr | ir.StridedLayoutAttr) for t in types):
        return list(buffers)
    strides = [t.get_strides_and_offset()[0] for t in types]
    groups: list[list[int]] = []
    for dim, size in enumerate(types[0].shape):
        follows = groups and all(_follows(t.shape, s, groups[-1], dim) for t, s in zip(types, strides, strict=True))
        if follows or (groups and size == 1):
            groups[-1].append(dim)
        else:
            groups.append([dim])
    if len(groups) == types[0].rank:
        return list(buffers)
    return [_collapse(b, groups, s) for b, s in zip(buffers, strides, strict=True)]


def _follows(shape: Sequence[int], strides: Sequence[int], before: Sequence[int], dim: int) -> bool:
    """Whether a dimension goes on where the ones before take one step."""
    large = [d for d in before if shape[d] != 1]
    return not large or strides[large[-1]] == strides[dim] * shape[dim]


def _collapse(buffer: ir.Value, groups: Sequence[Sequence[int]], strides: Sequence[int]) -> ir.Value:
    type_ = ir.MemRefType(buffer.type)
    shape = [prod(type_.shape[d] for d in group) for group in groups]
    layout = type_.layout
    if isinstance(layout, ir.StridedLayoutAttr):
        last = [next((d for d in reversed(group) if type_.shape[d] != 1), group[0]) for group in groups]
        layout = ir.StridedLayoutAttr.get(layout.offset, [strides[d] for d in last])
    else:
        layout = None
    made = ir.MemRefType.get(shape, type_.element_type, layout, type_.memory_space)
    i64 = ir.IntegerType.get_signless(64)
    reassociation = ir.ArrayAttr.get([ir.ArrayAttr.get([ir.IntegerAttr.get(i64, d) for d in group]) for group in groups])
    return ir.Operation.create("memref.collapse_shape", [made], [buffer], {"reassociation": reassociation}).result


def _of_any_size(buffer: ir.Value) -> ir.Value:
    """A whole buffer in one dimension, of which the type does not say how large it is; others as they are."""
    type_ = ir.MemRefType(buffer.type)
    if not isinstance(type_.layout, ir.AffineMapAttr) or not type_.has_static_shape:
        return buffer
    (buffer,) = _collapsed(buffer)
    size = ir.ShapedType.get_dynamic_size()
    return _cast(buffer, ir.MemRefType.get([size], type_.element_type, None, type_.memory_space))


def _copies(function: ir.Operation) -> list[ir.Operation]:
    found: list[ir.Operation] = []

    def visit(op: ir.Operation) -> ir.WalkResult:
        if op.name == "memref.copy" and ir.MemRefType(op.operands[0].type).rank:
            found.append(op)
        return ir.WalkResult.ADVANCE

    function.walk(visit)
    return found


def _fills(function: ir.Operation) -> list[ir.Operation]:
    """Operations of linalg that write a constant, as it is, to every element of a buffer."""
    return [o for o in generics_in(function) if len(o.operands) == 2 and _is_fill(o)]


def _is_fill(op: ir.Operation) -> bool:
    number, buffer = op.operands
    body = op.regions[0].blocks[0]
    end = next(iter(body.operations))
    return (
        owner_name(number) == "arith.constant"
        and isinstance(buffer.type, ir.MemRefType)
        and ir.MemRefType(buffer.type).rank > 0
        and end.operation.name == "linalg.yield"
        and end.operands[0] == body.arguments[0]
        and index_maps(op)[1] == ir.AffineMap.get_identity(ir.MemRefType(buffer.type).rank)
    )


def _kernel(module: ir.Operation, types: _Types, taken: set[str]) -> str:
    return _made(module, "copy", list(types), taken, lambda arguments: ir.Operation.create("memref.copy", [], arguments))


def _fill_kernel(module: ir.Operation, kind: ir.Type, number: ir.Attribute, taken: set[str]) -> str:
    element = ir.MemRefType(kind).element_type

    def fill(arguments: list[ir.Value]) -> None:
        copy(ir.Operation.create("arith.constant", [element], attributes={"value": number}).result, *arguments)

    return _made(module, "fill", [kind], taken, fill)


def _made(
    module: ir.Operation, kind: str, types: list[ir.Type], taken: set[str], body: Callable[[list[ir.Value]], object]
) -> str:
    """Has a kernel of buffers whose body is written so; returns its name."""
    name = next(f"{kind}_{n}" for n in range(len(taken) + 1) if f"{kind}_{n}" not in taken)
    taken.add(name)
    with ir.InsertionPoint(module.regions[0].blocks[0]), ir.Location.unknown():
        function = func.FuncOp(name, (types, []), visibility="private")
        mark_kernel(function)
        block = function.add_entry_block()
        with ir.InsertionPoint(block):
            body(list(block.arguments))
            func.ReturnOp([])
    return name

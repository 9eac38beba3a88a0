"""Copies between buffers of an entry as calls of kernels, one per pair of types: a decoder's layers share the loops.

Before::

    memref.copy %a, %part : memref<?x64xf32> to memref<?x64xf32, strided<[128, 1]>>

after::

    call @copy_0(%a, %part)
    func.func private @copy_0(%from: memref<?x64xf32>, %to: memref<?x64xf32, strided<[128, 1]>>) {relax.kernel}

Where copies differ in where parts begin, the kernel takes parts that begin anywhere.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import ClassVar

from ...dialect.bindings import func, ir
from ...dialect.functions import functions, name_of
from ..kernel_function import mark_kernel
from ..lowering_pass import LoweringPass
from ..marks import KERNEL

__all__ = ["ShareCopies", "share_copies"]

#: Of what is read, and of what is written.
_Types = tuple[ir.Type, ir.Type]


@dataclass(frozen=True)
class ShareCopies(LoweringPass):
    """Makes copies between buffers calls of kernels."""

    name: ClassVar[str] = "relax-share-copies"

    def run(self, op: ir.Operation) -> None:
        share_copies(op)


def share_copies(module: ir.Operation) -> None:
    """Rewrites every copy of a buffer of rank 1 or more outside of kernels; in place."""
    copies = [c for f in functions(module) if KERNEL not in f.attributes for c in _copies(f.operation)]
    taken = {name_of(f) for f in functions(module)}
    kernels: dict[_Types, str] = {}
    alike: dict[_Types, set[_Types]] = {}
    found: list[tuple[ir.Operation, list[ir.Value], _Types]] = []
    for copy in copies:
        with ir.InsertionPoint(copy), copy.location:
            buffers = _collapsed(*copy.operands)
        types = (buffers[0].type, buffers[1].type)
        anywhere = (_anywhere(types[0]), _anywhere(types[1]))
        alike.setdefault(anywhere, set()).add(types)
        found.append((copy, buffers, anywhere))
    for copy, buffers, anywhere in found:
        key = anywhere if len(alike[anywhere]) > 1 else (buffers[0].type, buffers[1].type)
        if key not in kernels:
            kernels[key] = _kernel(module, key, taken)
        with ir.InsertionPoint(copy), copy.location:
            places = [_cast(b, t) for b, t in zip(buffers, key, strict=True)]
            func.CallOp([], ir.FlatSymbolRefAttr.get(kernels[key]), places)
        copy.erase()


def _anywhere(kind: ir.Type) -> ir.Type:
    """The type of a part of a buffer that may begin anywhere: copies of each column of a matrix, say, are alike then."""
    type_ = ir.MemRefType(kind)
    if not isinstance(type_.layout, ir.StridedLayoutAttr):
        return kind
    layout = ir.StridedLayoutAttr.get(ir.ShapedType.get_dynamic_stride_or_offset(), list(type_.layout.strides))
    return ir.MemRefType.get(type_.shape, type_.element_type, layout, type_.memory_space)


def _cast(buffer: ir.Value, kind: ir.Type) -> ir.Value:
    return buffer if buffer.type == kind else ir.Operation.create("memref.cast", [kind], [buffer]).result


def _collapsed(source: ir.Value, target: ir.Value) -> list[ir.Value]:
    """Both buffers in as few dimensions as their elements are that far apart; copies of one form are more often alike then."""
    buffers = [source, target]
    types = [ir.MemRefType(b.type) for b in buffers]
    if not all(t.has_static_shape and isinstance(t.layout, ir.AffineMapAttr | ir.StridedLayoutAttr) for t in types):
        return buffers
    strides = [t.get_strides_and_offset()[0] for t in types]
    groups: list[list[int]] = []
    for dim, size in enumerate(types[0].shape):
        follows = groups and all(_follows(t.shape, s, groups[-1], dim) for t, s in zip(types, strides, strict=True))
        if follows or (groups and size == 1):
            groups[-1].append(dim)
        else:
            groups.append([dim])
    if len(groups) == types[0].rank:
        return buffers
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


def _copies(function: ir.Operation) -> list[ir.Operation]:
    found: list[ir.Operation] = []

    def visit(op: ir.Operation) -> ir.WalkResult:
        if op.name == "memref.copy" and ir.MemRefType(op.operands[0].type).rank:
            found.append(op)
        return ir.WalkResult.ADVANCE

    function.walk(visit)
    return found


def _kernel(module: ir.Operation, types: _Types, taken: set[str]) -> str:
    number = next(n for n in range(len(taken) + 1) if f"copy_{n}" not in taken)
    name = f"copy_{number}"
    taken.add(name)
    with ir.InsertionPoint(module.regions[0].blocks[0]), ir.Location.unknown():
        function = func.FuncOp(name, (list(types), []), visibility="private")
        mark_kernel(function)
        block = function.add_entry_block()
        with ir.InsertionPoint(block):
            ir.Operation.create("memref.copy", [], list(block.arguments))
            func.ReturnOp([])
    return name

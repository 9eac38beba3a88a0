"""Copies and named linalg operations on buffers become linalg.generic, which kernels are built from."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ....dialect.bindings import func, ir, passmanager
from ....dialect.errors import from_mlir_error

__all__ = ["as_generic", "copy", "linalg_operations"]


def as_generic(module: ir.Operation, chosen: Sequence[func.FuncOp]) -> list[func.FuncOp]:
    """Changes functions of a module in place, and returns those that have such operations; a second run changes nothing."""
    found = [(f, _found(f.operation, _is_copy_or_linalg)) for f in chosen]  # in one walk: kernels that are built are large
    names = {op.name for _, ops in found for op in ops} - {"memref.copy", "linalg.generic"}
    for op in (op for _, ops in found for op in ops if op.name == "memref.copy"):
        _copy_to_generic(op)
    if names:
        try:
            with module.context:
                passmanager.PassManager.parse("builtin.module(func.func(linalg-generalize-named-ops))").run(module)
        except ir.MLIRError as error:
            raise from_mlir_error(error) from error
    return [f for f, ops in found if ops]


def linalg_operations(function: ir.Operation) -> list[ir.Operation]:
    """The outermost linalg operations of a function, in order."""
    return _found(function, lambda name: name.startswith("linalg."))


def _found(function: ir.Operation, is_wanted: Callable[[str], bool]) -> list[ir.Operation]:
    found = list[ir.Operation]()

    def visit(operation: ir.Operation) -> ir.WalkResult:
        if is_wanted(operation.name):
            found.append(operation)
            return ir.WalkResult.SKIP
        return ir.WalkResult.ADVANCE

    function.walk(visit, ir.WalkOrder.PRE_ORDER)
    return found


def _is_copy_or_linalg(name: str) -> bool:
    return name == "memref.copy" or name.startswith("linalg.")


def _copy_to_generic(at: ir.Operation) -> None:
    with ir.InsertionPoint(at), at.location:
        copy(*at.operands)
    at.erase()


def copy(source: ir.Value, destination: ir.Value) -> None:
    """A ``linalg.generic`` that writes a buffer, or a number to every element, to a buffer; where ops are created now."""
    rank = ir.MemRefType(destination.type).rank
    is_buffer = isinstance(source.type, ir.MemRefType)
    identity = ir.AffineMap.get_identity(rank)
    maps = [identity if is_buffer else ir.AffineMap.get(rank, 0, []), identity]
    attributes = {
        "indexing_maps": ir.ArrayAttr.get([ir.AffineMapAttr.get(m) for m in maps]),
        "iterator_types": ir.ArrayAttr.get([ir.Attribute.parse("#linalg.iterator_type<parallel>")] * rank),
        "operandSegmentSizes": ir.DenseI32ArrayAttr.get([1, 1]),
    }
    generic = ir.Operation.create("linalg.generic", operands=[source, destination], attributes=attributes, regions=1)
    kinds = [ir.MemRefType(v.type).element_type if isinstance(v.type, ir.MemRefType) else v.type for v in (source, destination)]
    block = generic.regions[0].blocks.append(*kinds, arg_locs=[generic.location] * 2)
    ir.Operation.create("linalg.yield", operands=[block.arguments[0]], ip=ir.InsertionPoint(block))

"""Linalg operations that no template takes become MLIR's plain loops, one element at a time: slower, and right.

Such are bodies with control flow or with operations that have no vector form, numbers that are neither integers nor floats, and
truth values that MLIR, not Relax, has put into memory.
"""

from __future__ import annotations

from .....dialect.bindings import func, ir, passmanager
from .....dialect.errors import RelaxError, from_mlir_error
from .....dialect.traversal import nested_operations

__all__ = ["has_template", "lower_to_plain_loops"]

#: What bodies may have besides arith and math.
_BODY = ("memref.load", "affine.apply", "linalg.index", "linalg.yield")


def has_template(operation: ir.Operation) -> bool:
    """Whether the templates of this folder take a linalg operation on buffers."""
    if operation.name != "linalg.generic":
        return False
    values = list(operation.operands)
    body = [op.operation for op in operation.regions[0].blocks[0].operations]
    values += [op.operands[0] for op in body if op.name == "memref.load"]
    return all(map(_is_plain, values)) and all(map(_has_vector_form, body))


def _is_plain(value: ir.Value) -> bool:
    """Whether a value is a number, or a buffer of such; truth values are bytes there."""
    if not isinstance(value.type, ir.MemRefType):
        return isinstance(value.type, ir.RankedTensorType) or _is_number(value.type)
    element = ir.MemRefType(value.type).element_type
    return _is_number(element) and getattr(element, "width", 8) >= 8


def _is_number(kind: ir.Type) -> bool:
    return isinstance(kind, ir.IntegerType | ir.FloatType | ir.IndexType)


def _has_vector_form(operation: ir.Operation) -> bool:
    if operation.name in _BODY:
        return True
    known = operation.name.startswith(("arith.", "math.")) and len(operation.results) == 1 and not len(operation.regions)
    return known and _is_number(operation.results[0].type)


def lower_to_plain_loops(function: func.FuncOp) -> None:
    """Replaces every linalg operation of a function, in place.

    Raises:
        RelaxError: an operation is one on tensors, or has no loops, at its location.
    """
    try:
        passmanager.PassManager.parse("func.func(convert-linalg-to-loops)", function.context).run(function.operation)
    except ir.MLIRError as error:
        raise from_mlir_error(error) from error
    for operation in nested_operations(function.operation):
        if operation.name.startswith("linalg."):
            raise RelaxError(f"'{operation.name}' op has no kernel template", operation.location)

"""Operations on tensors without elements, away: what they write is nothing, and MLIR's verifiers take index 0 for one too many.

Before::

    %y = linalg.generic {(i, j) -> (i, j * 2), (i, j) -> (i, j)} ins(%x : tensor<4x6xf32>) outs(%e : tensor<4x0xf32>) {...}
    %c = tensor.insert_slice %y into %d[0, 0] [4, 0] [1, 1] : tensor<4x0xf32> into tensor<4x8xf32>

after, with the destinations for the results: ``%e``, ``%d``. A sum over no elements likewise is what it starts from.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from ..dialect.bindings import ir
from ..dialect.context_table import ContextTable
from ..dialect.functions import body_of, functions
from ..dialect.traversal import nested_operations
from .fusion.linalg_queries import destinations, index_maps
from .lowering_pass import LoweringPass

__all__ = ["DropEmpty", "drop_empty"]


@dataclass(frozen=True)
class DropEmpty(LoweringPass):
    """Takes operations on tensors without elements away."""

    name: ClassVar[str] = "relax-drop-empty"

    def run(self, op: ir.Operation) -> None:
        drop_empty(op)


def drop_empty(module: ir.Operation) -> None:
    """Rewrites every function of the module in place; linear in the number of ops."""
    for function in functions(module):
        if body_of(function) is None:
            continue
        for op in list(nested_operations(function.operation)):
            if op.name == "linalg.generic" and _has_no_iteration(op):
                _replace(op, destinations(op))
            elif op.name == "tensor.insert_slice" and _is_empty(op.operands[0]):
                _replace(op, [op.operands[1]])
            elif op.name == "tensor.extract_slice" and _is_empty(op.results[0]):
                _empty_slice(op)


def _replace(op: ir.Operation, values: list[ir.Value]) -> None:
    for result, value in zip(op.results, values, strict=True):
        result.replace_all_uses_with(value)
    op.erase()


def _has_no_iteration(op: ir.Operation) -> bool:
    """Whether types say that a loop of a ``linalg.generic`` ends where it starts."""
    operands = list(op.operands)
    if not any(isinstance(v.type, ir.RankedTensorType) and _is_empty(v) for v in operands):
        return False
    for value, map_ in zip(operands, index_maps(op), strict=True):
        if isinstance(value.type, ir.RankedTensorType) and _is_empty(value):
            shape = list(value.type.shape)
            if any(isinstance(e, ir.AffineDimExpr) for e, size in zip(map_.results, shape, strict=True) if size == 0):
                return True
    return False


def _is_empty(value: ir.Value) -> bool:
    return _HAVE_NO_ELEMENTS.of(value.type)


def _has_no_elements(type_: ir.Type | ir.Attribute) -> bool:
    return isinstance(type_, ir.RankedTensorType) and 0 in list(type_.shape)


_HAVE_NO_ELEMENTS = ContextTable(_has_no_elements)


def _empty_slice(op: ir.Operation) -> None:
    """A part without elements is any tensor of its sizes."""
    type_ = ir.RankedTensorType(op.results[0].type)
    sizes = list(ir.DenseI64ArrayAttr(op.attributes["static_sizes"]))
    counts = list(ir.DenseI32ArrayAttr(op.attributes["operandSegmentSizes"]))
    first = counts[0] + counts[1]
    values = iter(list(op.operands)[first : first + counts[2]])
    dynamic = ir.ShapedType.get_dynamic_size()
    given = [next(values) if size == dynamic else size for size in sizes]
    with ir.InsertionPoint(op), op.location:
        kept = _kept(given, list(type_.shape))
        made = ir.Operation.create("tensor.empty", [type_], [s for s in kept if not isinstance(s, int)]).result
    _replace(op, [made])


def _kept(sizes: list[int | ir.Value], shape: list[int]) -> list[int | ir.Value]:
    """The sizes of those dimensions that a slice of lower rank keeps, in order: it drops some of size one."""
    if len(sizes) == len(shape):
        return sizes
    found: list[int | ir.Value] = []
    for size in sizes:
        wanted = shape[len(found)] if len(found) < len(shape) else None
        if wanted is not None and (
            size == wanted or (not isinstance(size, int) and wanted == ir.ShapedType.get_dynamic_size())
        ):
            found.append(size)
    return found

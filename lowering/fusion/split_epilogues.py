"""Elementwise ops that read dimensions of a contraction's result as one compute on each of them.

Before, of a convolution in six groups of eight filters::

    %m = tensor.collapse_shape %z [[0], [1], [2, 3]] : tensor<3x4x6x8xf32> into tensor<3x4x48xf32>
    %r = linalg.generic {(h, w, c) -> (h, w, c), (h, w, c) -> (c), ...} ins(%m, %bias : ..., tensor<48xf32>)

after::

    %b = tensor.expand_shape %bias [[0, 1]] : tensor<48xf32> into tensor<6x8xf32>
    %s = linalg.generic {(h, w, g, c) -> (h, w, g, c), (h, w, g, c) -> (g, c), ...} ins(%z, %b)
    %r = tensor.collapse_shape %s [[0], [1], [2, 3]] : tensor<3x4x6x8xf32> into tensor<3x4x48xf32>
"""

from __future__ import annotations

from collections.abc import Sequence

from ...dialect.bindings import ir
from .linalg_queries import destinations, index_maps, owner_name
from .tensors import empty_like, groups_of, reassociation

__all__ = ["split", "split_maps"]


def split_maps(op: ir.Operation, merged: ir.Operation) -> list[ir.AffineMap] | None:
    """The index maps of an elementwise op whose loops are the dimensions before they were merged.

    None where one of them is of unknown size, or an operand is read in another way than by loops.
    """
    groups, shape = groups_of(merged), ir.RankedTensorType(merged.operands[0].type).shape
    if any(len(g) > 1 and ir.ShapedType.get_dynamic_size() in [shape[i] for i in g] for g in groups):
        return None
    found = list[ir.AffineMap]()
    for map_ in index_maps(op):
        if not all(isinstance(e, ir.AffineDimExpr | ir.AffineConstantExpr) for e in map_.results):
            return None
        exprs = [part for e in map_.results for part in _split_expr(e, groups)]
        found.append(ir.AffineMap.get(len(shape), 0, exprs))
    return found


def _split_expr(expr: ir.AffineExpr, groups: Sequence[Sequence[int]]) -> list[ir.AffineExpr]:
    if isinstance(expr, ir.AffineDimExpr):
        return [ir.AffineExpr.get_dim(d) for d in groups[expr.position]]
    return [ir.AffineExpr.get_constant(ir.AffineConstantExpr(expr).value)]


def split(op: ir.Operation, merged: ir.Operation, maps: Sequence[ir.AffineMap]) -> ir.Operation:
    """Puts the op on unmerged dimensions in the place of ``op``, which alone reads ``merged``; its result is merged again."""
    groups, source = groups_of(merged), merged.operands[0]
    result, shape = ir.RankedTensorType(op.results[0].type), ir.RankedTensorType(source.type).shape
    with ir.InsertionPoint(op), op.location:
        given = zip(list(op.operands)[:-1], index_maps(op), strict=False)
        operands = [source if v == merged.results[0] else _expanded(v, m, groups, shape) for v, m in given]
        type_ = ir.RankedTensorType.get(shape, result.element_type)
        operands.append(_empty(source, type_))
        made = op.clone().operation
        made.results[0].set_type(type_)
        for position, value in enumerate(operands):
            made.operands[position] = value
        made.attributes["indexing_maps"] = ir.ArrayAttr.get([ir.AffineMapAttr.get(m) for m in maps])
        kind = list(ir.ArrayAttr(op.attributes["iterator_types"]))[:1]
        made.attributes["iterator_types"] = ir.ArrayAttr.get(kind * len(shape))
        attributes = {"reassociation": merged.attributes["reassociation"]}
        again = ir.Operation.create("tensor.collapse_shape", [result], [made.results[0]], attributes).result
    op.results[0].replace_all_uses_with(again)
    op.erase()
    merged.erase()
    return made


def _empty(source: ir.Value, type_: ir.RankedTensorType) -> ir.Value:
    """A destination. Its sizes are those that a reshape was given: asking the value for them would be another use of it."""
    if owner_name(source) == "tensor.expand_shape":
        return ir.Operation.create("tensor.empty", [type_], list(source.owner.operands)[1:]).result
    return empty_like(destinations(source.owner.operation)[0], type_)


def _expanded(value: ir.Value, map_: ir.AffineMap, groups: Sequence[Sequence[int]], shape: Sequence[int]) -> ir.Value:
    """An operand with the dimensions of the loops it is read by."""
    if not isinstance(value.type, ir.RankedTensorType):
        return value
    loops = [list(groups[e.position]) if isinstance(e, ir.AffineDimExpr) else [] for e in map_.results]
    if all(len(each) <= 1 for each in loops):
        return value
    if owner_name(value) == "tensor.collapse_shape" and _is_of(value.owner.operation, loops, shape):
        return value.owner.operands[0]
    type_ = ir.RankedTensorType(value.type)
    sizes = [[shape[d] for d in each] if len(each) > 1 else [type_.shape[i]] for i, each in enumerate(loops)]
    index, dynamic, open_sizes = ir.IndexType.get(), ir.ShapedType.get_dynamic_size(), list[ir.Value]()
    for axis, of_axis in enumerate(sizes):
        if of_axis == [dynamic]:
            which = ir.Operation.create("arith.constant", [index], attributes={"value": ir.IntegerAttr.get(index, axis)})
            open_sizes.append(ir.Operation.create("tensor.dim", [index], [value, which.result]).result)
    flat = [size for of_axis in sizes for size in of_axis]
    starts = [sum(map(len, sizes[:i])) for i in range(len(sizes))]
    attributes = {
        "reassociation": reassociation([range(s, s + len(of)) for s, of in zip(starts, sizes, strict=True)]),
        "static_output_shape": ir.DenseI64ArrayAttr.get(flat),
    }
    expanded = ir.RankedTensorType.get(flat, type_.element_type)
    return ir.Operation.create("tensor.expand_shape", [expanded], [value, *open_sizes], attributes).result


def _is_of(merged: ir.Operation, loops: Sequence[Sequence[int]], shape: Sequence[int]) -> bool:
    """Whether a merged value was of these dimensions before."""
    given = ir.RankedTensorType(merged.operands[0].type).shape
    of = [[given[i] for i in group] for group in groups_of(merged)]
    return all(
        len(sizes) == max(1, len(each)) and (len(each) < 2 or sizes == [shape[d] for d in each])
        for sizes, each in zip(of, loops, strict=True)
    )

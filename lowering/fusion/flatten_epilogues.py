"""Elementwise ops that read a contraction's result under another shape read it as it is, so that they can be its epilogue.

Before::

    %y = call @contraction_0(%x, %w, %e) : (...) -> tensor<3136x64xf32>
    %z = tensor.expand_shape %y [[0, 1, 2], [3]] : tensor<3136x64xf32> into tensor<1x56x56x64xf32>
    %r = linalg.generic {(n, h, w, c) -> (n, h, w, c), (n, h, w, c) -> (c), ...} ins(%z, %bias) ... -> tensor<1x56x56x64xf32>

after::

    %y = call @contraction_0(%x, %w, %e) : (...) -> tensor<3136x64xf32>
    %f = linalg.generic {(p, c) -> (p, c), (p, c) -> (c), ...} ins(%y, %bias) ... -> tensor<3136x64xf32>
    %r = tensor.expand_shape %f [[0, 1, 2], [3]] : tensor<3136x64xf32> into tensor<1x56x56x64xf32>
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import ClassVar

from ...dialect.bindings import func, ir
from ...dialect.call_graph import callee_of
from ...dialect.functions import body_of, functions, name_of
from ...dialect.traversal import is_read_once, nested_operations, operations
from ..lowering_pass import LoweringPass
from ..marks import CONTRACTION, KERNEL
from .linalg_queries import captures_tensors, destinations, generics_in, index_maps, is_empty, is_parallel, owner_name
from .split_epilogues import split, split_maps
from .tensors import empty_like, groups_of, reassociation

__all__ = ["FlattenEpilogues", "flatten_epilogues"]

_Groups = list[list[int]]


@dataclass(frozen=True)
class FlattenEpilogues(LoweringPass):
    """Moves elementwise ops behind a reshape of a contraction's result in front of it."""

    name: ClassVar[str] = "relax-flatten-epilogues"

    def run(self, op: ir.Operation) -> None:
        flatten_epilogues(op)


def flatten_epilogues(module: ir.Operation) -> None:
    """Rewrites in every function of the module that is not a kernel itself; in place, linear in the number of ops."""
    contractions = {name_of(f) for f in functions(module) if KERNEL in f.attributes and _contracts(f)}
    for function in functions(module):
        if KERNEL in function.attributes or body_of(function) is None:
            continue
        for op in generics_in(function.operation):
            op = _split(op, contractions)
            shape = _shape_between(op, contractions)
            if shape is not None:
                _flatten(op, shape)


def _contracts(kernel: func.FuncOp) -> bool:
    return any(CONTRACTION in op.attributes for op in operations(kernel.regions[0].blocks[0]))


def _split(op: ir.Operation, contractions: set[str]) -> ir.Operation:
    """The op on all dimensions of a contraction's result of which it reads some as one, where it can be; else as it is."""
    if not _is_elementwise(op):
        return op
    maps = index_maps(op)
    for value, map_ in zip(op.operands, maps, strict=True):
        if map_ == maps[-1] == ir.AffineMap.get_identity(map_.n_dims) and _is_merged_contraction(value, op, contractions):
            merged, source = value.owner.operation, value.owner.operands[0]
            found = None if captures_tensors(op) or _reads_indices(op) else split_maps(op, merged)
            units = {i for i, size in enumerate(ir.RankedTensorType(source.type).shape) if size == 1}
            if found is not None and _are_flat(found, source, units):
                return split(op, merged, found)
    return op


def _are_flat(maps: Sequence[ir.AffineMap], source: ir.Value, units: set[int]) -> bool:
    if owner_name(source) != "tensor.expand_shape":
        return True
    groups = groups_of(source.owner.operation)
    return all(_flat_exprs(m, groups, units) is not None for m in maps)


def _is_elementwise(op: ir.Operation) -> bool:
    return len(op.results) == 1 and is_parallel(op) and is_empty(destinations(op)[0])


def _is_merged_contraction(value: ir.Value, reader: ir.Operation, contractions: set[str]) -> bool:
    if owner_name(value) != "tensor.collapse_shape" or not is_read_once(value):
        return False
    source = value.owner.operands[0]
    if owner_name(source) == "tensor.expand_shape":
        return _is_reshaped_contraction(source, reader, contractions)
    return _is_contraction(source, reader, contractions) and value.owner.operation.block == reader.block


def _shape_between(op: ir.Operation, contractions: set[str]) -> ir.Operation | None:
    """The reshape of a contraction's result that only this elementwise op reads, when the op can do without."""
    if not _is_elementwise(op):
        return None
    maps = index_maps(op)
    identity = ir.AffineMap.get_identity(maps[-1].n_dims)
    for value, map_ in zip(op.operands, maps, strict=True):
        if map_ == identity == maps[-1] and _is_reshaped_contraction(value, op, contractions):
            shape = value.owner.operation
            if captures_tensors(op) or _reads_indices(op):
                return None
            return shape if all(_flat_exprs(m, groups_of(shape), _units(op)) is not None for m in maps) else None
    return None


def _reads_indices(op: ir.Operation) -> bool:
    return any(inner.name == "linalg.index" for inner in nested_operations(op))


def _is_reshaped_contraction(value: ir.Value, reader: ir.Operation, contractions: set[str]) -> bool:
    if owner_name(value) != "tensor.expand_shape" or not is_read_once(value):
        return False
    return value.owner.operation.block == reader.block and _is_contraction(value.owner.operands[0], reader, contractions)


def _is_contraction(value: ir.Value, reader: ir.Operation, contractions: set[str]) -> bool:
    """Whether it is a contraction's result that only one op reads."""
    if owner_name(value) != "func.call" or not is_read_once(value):
        return False
    call = value.owner.operation
    return callee_of(call) in contractions and call.block == reader.block


def _flat_exprs(map_: ir.AffineMap, groups: _Groups, units: set[int]) -> list[tuple[int, list[int]]] | None:
    """Of an operand: for each group of its dimensions that become one, the loop over it, and which they are.

    The loop is -1 for a dimension of one element. None when the dimensions of a group are not all there, in order; loops of one
    iteration, the ``units``, may be missing.
    """
    loops = [e.position if isinstance(e, ir.AffineDimExpr) else -1 for e in map_.results]
    if any(loop < 0 and not isinstance(e, ir.AffineConstantExpr) for loop, e in zip(loops, map_.results, strict=True)):
        return None
    found: list[tuple[int, list[int]]] = []
    position = 0
    while position < len(loops):
        group = next((i for i, g in enumerate(groups) if loops[position] in g), -1)
        end = position + 1
        while group >= 0 and end < len(loops) and loops[end] in groups[group]:
            end += 1
        taken = loops[position:end]
        if group >= 0 and taken != [d for d in groups[group] if d in taken or d not in units]:
            return None
        found.append((group, list(range(position, end))))
        position = end
    return found


def _units(op: ir.Operation) -> set[int]:
    """The loops of one iteration of an elementwise op."""
    return {i for i, size in enumerate(ir.RankedTensorType(op.results[0].type).shape) if size == 1}


def _flatten(op: ir.Operation, shape: ir.Operation) -> None:
    groups = groups_of(shape)
    exprs = [_flat_exprs(m, groups, _units(op)) or [] for m in index_maps(op)]
    with ir.InsertionPoint(op), op.location:
        operands = [_collapsed(v, e) for v, e in zip(list(op.operands)[:-1], exprs, strict=False)]
        # Sizes of the destination: asking the result for them would be another use of it.
        out = empty_like(destinations(shape.operands[0].owner.operation)[0], _flat_type(shape, op))
        flat = _clone(op, [*operands, out], [_map(e, len(groups)) for e in exprs])
        attributes = {key: shape.attributes[key] for key in ("reassociation", "static_output_shape")}
        sizes = list(shape.operands)[1:]
        result = ir.Operation.create("tensor.expand_shape", [op.results[0].type], [flat.results[0], *sizes], attributes).result
    op.results[0].replace_all_uses_with(result)
    op.erase()
    shape.erase()


def _map(exprs: Sequence[tuple[int, list[int]]], loops: int) -> ir.AffineMap:
    flat = [ir.AffineExpr.get_dim(g) if g >= 0 else ir.AffineExpr.get_constant(0) for g, _ in exprs]
    return ir.AffineMap.get(loops, 0, flat)


def _flat_type(shape: ir.Operation, op: ir.Operation) -> ir.RankedTensorType:
    source, result = ir.RankedTensorType(shape.operands[0].type), ir.RankedTensorType(op.results[0].type)
    return ir.RankedTensorType.get(source.shape, result.element_type)


def _collapsed(value: ir.Value, exprs: Sequence[tuple[int, list[int]]]) -> ir.Value:
    """An operand with the dimensions of each group as one."""
    if not isinstance(value.type, ir.RankedTensorType) or all(len(places) == 1 for _, places in exprs):
        return value
    if owner_name(value) == "tensor.expand_shape":
        inner = value.owner.operation
        if groups_of(inner) == [places for _, places in exprs]:
            return inner.operands[0]
    type_, dynamic = ir.RankedTensorType(value.type), ir.ShapedType.get_dynamic_size()
    parts = [[type_.shape[i] for i in places] for _, places in exprs]
    collapsed = ir.RankedTensorType.get([dynamic if dynamic in part else prod(part) for part in parts], type_.element_type)
    attributes = {"reassociation": reassociation([places for _, places in exprs])}
    return ir.Operation.create("tensor.collapse_shape", [collapsed], [value], attributes).result


def _clone(op: ir.Operation, operands: Sequence[ir.Value], maps: Sequence[ir.AffineMap]) -> ir.Operation:
    """The op on other operands, with other loops."""
    flat = op.clone().operation
    for position, value in enumerate(operands):
        flat.operands[position] = value
    flat.results[0].set_type(operands[-1].type)
    flat.attributes["indexing_maps"] = ir.ArrayAttr.get([ir.AffineMapAttr.get(m) for m in maps])
    flat.attributes["iterator_types"] = ir.ArrayAttr.get(list(ir.ArrayAttr(op.attributes["iterator_types"]))[: maps[-1].n_dims])
    return flat

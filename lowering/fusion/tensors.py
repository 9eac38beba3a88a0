"""Small pieces of tensor IR that several steps of the lowering make."""

from __future__ import annotations

from collections.abc import Sequence

from ...dialect.bindings import ir

__all__ = ["empty_like", "groups_of", "reassociation"]


def groups_of(reshape: ir.Operation) -> list[list[int]]:
    """The dimensions that each dimension on the other side of a ``collapse_shape`` or ``expand_shape`` is."""
    groups = ir.ArrayAttr(reshape.attributes["reassociation"])
    return [[ir.IntegerAttr(i).value for i in ir.ArrayAttr(group)] for group in groups]


def reassociation(groups: Sequence[Sequence[int]]) -> ir.Attribute:
    """Such groups as an attribute."""
    i64 = ir.IntegerType.get_signless(64)
    return ir.ArrayAttr.get([ir.ArrayAttr.get([ir.IntegerAttr.get(i64, i) for i in group]) for group in groups])


def empty_like(value: ir.Value, type_: ir.RankedTensorType | None = None) -> ir.Value:
    """An uninitialised tensor of a value's sizes, of its type or of another one of that shape; at the insertion point."""
    type_ = type_ or ir.RankedTensorType(value.type)
    index = ir.IndexType.get()
    sizes: list[ir.Value] = []
    for axis, size in enumerate(type_.shape):
        if size == ir.ShapedType.get_dynamic_size():
            which = ir.Operation.create("arith.constant", [index], attributes={"value": ir.IntegerAttr.get(index, axis)})
            sizes.append(ir.Operation.create("tensor.dim", [index], [value, which.result]).result)
    return ir.Operation.create("tensor.empty", [type_], sizes).result

"""Texts, numbers, lists and dictionaries of Python as MLIR attributes, and back: what lowering writes down for later steps."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ..dialect.bindings import ir

__all__ = ["from_attribute", "to_attribute"]

#: What an attribute of this kind says: JSON, and MLIR attributes (types, say) as they are.
Plain = Any


def to_attribute(value: Plain) -> ir.Attribute:
    """The attribute of a value. Dictionaries lose the order of their keys, which MLIR sorts, and those of no value (None)."""
    if isinstance(value, ir.Attribute):
        return value
    if isinstance(value, bool):
        return ir.BoolAttr.get(value)
    if isinstance(value, int):
        return ir.IntegerAttr.get(ir.IntegerType.get_signless(64), value)
    if isinstance(value, str):
        return ir.StringAttr.get(value)
    if isinstance(value, Mapping):
        return ir.DictAttr.get({key: to_attribute(v) for key, v in value.items() if v is not None})
    if isinstance(value, Sequence):
        return ir.ArrayAttr.get([to_attribute(v) for v in value])
    raise TypeError(f"expected a text, a number, a list, a dictionary or an attribute, got {type(value).__name__}")


def from_attribute(attribute: ir.Attribute) -> Plain:
    """The value of an attribute that :func:`to_attribute` made; attributes of other kinds as they are."""
    if isinstance(attribute, ir.StringAttr | ir.BoolAttr | ir.IntegerAttr):
        return attribute.value
    if isinstance(attribute, ir.ArrayAttr):
        return [from_attribute(a) for a in attribute]
    if isinstance(attribute, ir.DictAttr):
        return {item.name: from_attribute(item.attr) for item in attribute}
    return attribute

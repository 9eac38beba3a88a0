"""Tuples of values as Python tuples: built from what a caller gives, packed, unpacked, and copied when they are results."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from ..bindings import ir
from ..errors import RelaxError
from ..struct_info import TensorInfo, is_tensor
from ..tuples import CAST, element_types, is_pack, is_unpack
from .numeric import Array

__all__ = ["convert", "leaves", "nested", "tensors_in", "unshared"]


def convert(op: ir.Operation, operands: list[Any]) -> list[Any]:
    """A tuple made of its elements, or the elements of one. Raises RelaxError for a cast that does neither."""
    if is_unpack(op):
        return list(operands[0])
    if is_pack(op):
        return [tuple(operands)]
    raise RelaxError(f"'{CAST}' op expected to pack a tuple or to unpack one", op.location)


def leaves(value: Any) -> Iterator[Any]:
    """What is in a tuple and in the tuples in it; the value itself, when it is no tuple."""
    if not isinstance(value, tuple):
        yield value
        return
    for element in value:
        yield from leaves(element)


def nested(type_: ir.Type, values: Iterator[Any]) -> Any:
    """A value of a type, made of the next values."""
    if not isinstance(type_, ir.TupleType):
        return next(values)
    return tuple(nested(t, values) for t in element_types(type_))


def tensors_in(type_: ir.Type, value: Any) -> Iterator[tuple[TensorInfo, Array]]:
    """The tensors that a value is, or that are in a tuple."""
    if isinstance(type_, ir.TupleType):
        for element, inner in zip(element_types(type_), value, strict=True):
            yield from tensors_in(element, inner)
    elif is_tensor(type_):
        yield TensorInfo.of(type_), value


def unshared(result: Any, seen: set[int]) -> Any:
    """A result that the caller may write to: an array of its own, or a tuple of those. ``seen``: ids of arrays not to share."""
    if isinstance(result, tuple):
        return tuple(unshared(r, seen) for r in result)
    own = np.array(result, order="C") if id(result) in seen or not isinstance(result, np.ndarray) else result
    seen.add(id(result))
    return own

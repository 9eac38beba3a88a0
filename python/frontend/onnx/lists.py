"""Sequences and optionals that a model takes and gives: tensors of names of their own, where their number is known."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from ...dialect.bindings import ir
from ...dialect.struct_info import TensorInfo
from ...weights.onnx_codes import from_codes
from .values import GraphValue, TensorSequence, relax_dtype, tensor_value

__all__ = ["Layout", "flat", "given_list", "kind_of", "laid_out", "layout_of"]

#: What a value consists of: a tensor (0, or the element type that its codes are of), a sequence (a tuple of these), an optional
#: without an element (None).
Layout = Any

Array = np.ndarray[Any, Any]


def kind_of(proto: Any) -> str:
    """``tensor_type``, ``sequence_type`` or ``optional_type``, of an input or a result; nothing where it is not said."""
    return proto.type.WhichOneof("value") or ""


def given_list(
    name: str, value: Any, is_optional: bool, argument: Callable[[str, TensorInfo], ir.Value]
) -> GraphValue | TensorSequence:
    """What an input is, of which there is an example: arguments ``name.0``, ``name.1`` and on, or ``name`` alone."""
    if value is None:
        return TensorSequence([], optional=True)
    if isinstance(value, list | tuple):
        items: Sequence[Any] = list(value)  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType]
        found = TensorSequence([_given(f"{name}.{i}", item, argument) for i, item in enumerate(items)])
        return TensorSequence([found], optional=True) if is_optional else found
    tensor = _given(name, value, argument)
    return TensorSequence([tensor], optional=True) if is_optional else tensor


def _given(name: str, value: Array, argument: Callable[[str, TensorInfo], ir.Value]) -> GraphValue:
    info = TensorInfo(value.shape, relax_dtype(value.dtype))
    return tensor_value(name, argument(name, info), frozenset([name]))


def layout_of(value: GraphValue | TensorSequence) -> Layout:
    """What a result consists of."""
    if isinstance(value, GraphValue):
        return value.coded
    items = tuple(layout_of(i) for i in value.items)
    if not value.optional:
        return items
    return items[0] if items else None


def flat(value: GraphValue | TensorSequence) -> list[GraphValue]:
    """The tensors that it consists of, in their order."""
    return [value] if isinstance(value, GraphValue) else [t for i in value.items for t in flat(i)]


def laid_out(layout: Layout, tensors: Iterator[Array]) -> Any:
    """A result, of its tensors."""
    if layout is None:
        return None
    if isinstance(layout, tuple):
        items: tuple[Layout, ...] = layout
        return [laid_out(i, tensors) for i in items]
    found = next(tensors)
    return from_codes(found, layout) if layout else found

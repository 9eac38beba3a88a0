"""Tensors and attributes of ONNX protos as arrays and Python values."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import onnx.helper
import onnx.numpy_helper

from ...dialect.bindings import ir
from ...dialect.errors import RelaxError
from .values import Array, relax_dtype

__all__ = ["attribute_value", "element_dtype", "tensor_array"]

#: Element types of ONNX without one of ours, by their names in errors.
_NAMES = onnx.TensorProto.DataType


def element_dtype(element: int) -> ir.Type:
    """An element type of ONNX as ours. Raises RelaxError where relax does not compute with it."""
    return relax_dtype(numpy_element(element))


def numpy_element(element: int) -> np.dtype[Any]:
    """An element type of ONNX as NumPy's. Raises RelaxError where there is none."""
    try:
        found = np.dtype(onnx.helper.tensor_dtype_to_np_dtype(element))
    except (KeyError, TypeError):
        raise RelaxError(f"expected an element type with numbers, got {element_name(element)}") from None
    if found.kind == "O" or element in (onnx.TensorProto.COMPLEX64, onnx.TensorProto.COMPLEX128):
        raise RelaxError(f"expected an element type with numbers, got {element_name(element)}")
    return found


def element_name(element: int) -> str:
    """What ONNX calls an element type."""
    try:
        return _NAMES.Name(element)
    except ValueError:
        return f"number {element}"


def tensor_array(tensor: onnx.TensorProto) -> Array:
    """The elements of a tensor that is in the model itself. Raises RelaxError where they do not fit its shape and type."""
    numpy_element(tensor.data_type)
    try:
        array = onnx.numpy_helper.to_array(tensor)
    except (ValueError, TypeError, OverflowError, MemoryError) as error:
        raise RelaxError(
            f"expected elements that fit the shape {list(tensor.dims)} of '{tensor.name}', got others ({error})"
        ) from None
    return np.ascontiguousarray(array).reshape(array.shape)


def attribute_value(attribute: onnx.AttributeProto) -> Any:
    """The Python value of an attribute; tensors and graphs as they are."""
    value = onnx.helper.get_attribute_value(attribute)
    if isinstance(value, bytes):
        return value.decode(errors="replace")
    if attribute.type == onnx.AttributeProto.STRINGS:
        return [v.decode(errors="replace") for v in value]
    if attribute.type in (onnx.AttributeProto.INTS, onnx.AttributeProto.FLOATS):
        return list(value)
    return value

"""Element types and attributes of ONNX protos as relax's and Python's."""

from __future__ import annotations

from typing import Any

import onnx
import onnx.helper

from ...dialect.bindings import ir
from ...dialect.errors import RelaxError
from ...weights.onnx_codes import is_coded
from ...weights.onnx_tensors import numpy_element
from .values import relax_dtype

__all__ = ["attribute_value", "element_dtype", "stored_dtype"]


def element_dtype(element: int) -> ir.Type:
    """An element type of ONNX as ours. Raises RelaxError where relax does not compute with it."""
    if is_coded(element):
        raise RelaxError(f"expected an element type that relax computes with, got {onnx.TensorProto.DataType.Name(element)}")
    return stored_dtype(element)


def stored_dtype(element: int) -> ir.Type:
    """The same; of those that relax does not compute with what their codes are."""
    return relax_dtype(numpy_element(element))


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

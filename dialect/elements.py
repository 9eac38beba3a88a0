"""Dense tensor data between MLIR attributes and NumPy arrays, for every dtype; the bindings' buffers lack the narrow ones."""

from __future__ import annotations

import re
from typing import Any

import numpy as np

from .bindings import ir
from .dtypes import numpy_dtype
from .errors import RelaxError

__all__ = ["from_numpy", "to_numpy"]

_HEX_BODY = re.compile(r'^dense<"0x([0-9A-Fa-f]*)">')
_ITEM = re.compile(r"[^\s,\[\]]+")
#: A resource blob starts with its alignment, four bytes.
_RESOURCE = re.compile(r'^\s+(?P<key>[^\s:]+|"[^"]*"): "0x[0-9A-Fa-f]{8}(?P<data>[0-9A-Fa-f]*)"', re.MULTILINE)


def to_numpy(elements: ir.Attribute) -> np.ndarray[Any, Any]:
    """The values of ``dense<...>`` or ``dense_resource<...>`` as a new C-ordered array.

    Raises:
        RelaxError: it is no such attribute, its dtype has no NumPy dtype, or the resource's data is not in this context.
    """
    if not isinstance(elements, ir.DenseElementsAttr):
        return _from_resource(elements)
    dtype, shape = _stored_dtype(elements.type.element_type), list(elements.type.shape)
    if dtype.isbuiltin == 1:
        return np.array(elements, dtype, order="C")
    text = str(elements)
    body = _HEX_BODY.match(text)
    if body is not None:
        return _from_bytes(bytes.fromhex(body[1]), dtype, shape)
    items = _ITEM.findall(text[len("dense<") : text.rindex("> : ")])
    values = np.array([_number(item, dtype) for item in items], np.float32).astype(dtype)
    return np.full(shape, values[0]) if elements.is_splat else values.reshape(shape)


def _from_resource(attribute: ir.Attribute) -> np.ndarray[Any, Any]:
    try:
        elements = ir.DenseResourceElementsAttr(attribute)
    except ValueError:
        raise RelaxError(f"expected dense elements, got {attribute}") from None
    return _from_bytes(_resource_bytes(elements), _stored_dtype(elements.type.element_type), list(elements.type.shape))


def _stored_dtype(element: ir.Type) -> np.dtype[Any]:
    """``si64``, as torch-mlir writes it, is stored as ``i64`` is."""
    return numpy_dtype(str(element).removeprefix("s"))


def from_numpy(array: np.ndarray[Any, Any], type_: ir.RankedTensorType) -> ir.DenseElementsAttr:
    """``dense<...>`` of a tensor type from an array of its shape and dtype.

    Raises:
        RelaxError: shape or dtype differ from the type's.
    """
    dtype = numpy_dtype(type_.element_type)
    if array.dtype != dtype or list(array.shape) != list(type_.shape):
        raise RelaxError(f"expected an array for {type_}, got {array.dtype} {list(array.shape)}")
    data = np.ascontiguousarray(array).reshape(array.shape)
    if _is_half_byte(dtype):
        data = data.astype(np.int8 if str(dtype) == "int4" else np.uint8)
    elif dtype.isbuiltin != 1:
        data = data.view(np.uint16 if dtype.itemsize == 2 else np.uint8)
    return ir.DenseElementsAttr.get(data, type=type_)


def _is_half_byte(dtype: np.dtype[Any]) -> bool:
    return str(dtype) in ("int4", "uint4")


def _number(item: str, dtype: np.dtype[Any]) -> float:
    """A printed element; NaN and infinity are printed as their bits."""
    if not item.startswith("0x"):
        return float(item)
    bits = int(item, 16)
    return float(np.array(bits, np.uint16 if dtype.itemsize == 2 else np.uint8).view(dtype))


def _from_bytes(data: bytes, dtype: np.dtype[Any], shape: list[int]) -> np.ndarray[Any, Any]:
    count = int(np.prod(shape, dtype=np.int64))
    expected = (count + 7) // 8 if dtype == np.bool_ else count * dtype.itemsize
    if len(data) != expected:
        raise RelaxError(f"expected {expected} bytes of tensor data, got {len(data)}")
    if dtype == np.bool_:
        bits = np.unpackbits(np.frombuffer(data, np.uint8), count=count, bitorder="little")
        return bits.astype(np.bool_).reshape(shape)
    if _is_half_byte(dtype):
        return np.frombuffer(data, np.int8).astype(dtype).reshape(shape)
    return np.frombuffer(data, dtype).reshape(shape).copy()


def _resource_bytes(elements: ir.DenseResourceElementsAttr) -> bytes:
    """The bindings do not hand out a resource's blob; a printed module has it in its footer."""
    with elements.context, ir.Location.unknown(elements.context):
        module = ir.Module.create()
        module.operation.attributes["value"] = elements
        text = str(module)
    key = str(elements)[len("dense_resource<") : str(elements).index("> : ")]
    found = next((m["data"] for m in _RESOURCE.finditer(text) if m["key"] == key), None)
    if found is None:
        raise RelaxError(f"expected the data of {elements} in the module, got none")
    return bytes.fromhex(found)

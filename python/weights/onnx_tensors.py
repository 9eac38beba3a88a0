"""Tensors of ONNX models as arrays, and those that lie in files beside the model; imports no MLIR."""

from __future__ import annotations

import math
import os
from typing import Any

import numpy as np
import onnx
import onnx.helper
import onnx.numpy_helper

from ..dialect.errors import RelaxError
from .arrays import Array
from .files import open_regular, stays_inside
from .onnx_codes import as_codes, is_coded

__all__ = ["ExternalData", "dense_tensor", "numpy_element", "tensor_array", "tensor_shape"]

#: Elements of less than eight bits share bytes.
_BITS = {
    getattr(onnx.TensorProto, name): bits
    for name, bits in {"UINT4": 4, "INT4": 4, "FLOAT4E2M1": 4, "UINT2": 2, "INT2": 2}.items()
    if hasattr(onnx.TensorProto, name)
}

#: What protobuf takes of a message.
_MOST_DENSE = 2**31 - 1


def numpy_element(element: int) -> np.dtype[Any]:
    """An element type of ONNX as NumPy's, bytes for those of :mod:`.onnx_codes`. Raises RelaxError where there is none."""
    if is_coded(element):
        return np.dtype(np.int8 if element == onnx.TensorProto.INT2 else np.uint8)
    try:
        found = np.dtype(onnx.helper.tensor_dtype_to_np_dtype(element))
    except (KeyError, TypeError):
        raise RelaxError(f"expected an element type with numbers, got {_name(element)}") from None
    if found.kind in "OcSU":
        raise RelaxError(f"expected an element type with numbers, got {_name(element)}")
    return found


def _name(element: int) -> str:
    try:
        return onnx.TensorProto.DataType.Name(element)
    except ValueError:
        return f"number {element}"


def tensor_shape(tensor: onnx.TensorProto) -> tuple[int, ...]:
    """The dimensions. Raises RelaxError where one is negative."""
    if any(d < 0 for d in tensor.dims):
        raise RelaxError(f"expected dimensions of 0 or more, got {list(tensor.dims)} of '{tensor.name}'")
    return tuple(tensor.dims)


def tensor_array(tensor: onnx.TensorProto) -> Array:
    """The elements of a tensor that is in the model itself. Raises RelaxError where they do not fit its shape and type."""
    numpy_element(tensor.data_type)
    shape = tensor_shape(tensor)
    try:
        return as_codes(np.ascontiguousarray(onnx.numpy_helper.to_array(tensor)).reshape(shape))
    except (ValueError, TypeError, OverflowError, MemoryError) as error:
        raise RelaxError(
            f"expected elements of '{tensor.name}' that fit its shape {list(shape)}, got others ({error})"
        ) from None


def dense_tensor(sparse: onnx.SparseTensorProto) -> onnx.TensorProto:
    """The same elements, and zeros between them, under the name that the values have.

    Raises:
        RelaxError: the elements are in another file, or none that are computed with; places are no ascending ones of the shape;
            the tensor is larger than a model may hold.
    """
    values, name = sparse.values, sparse.values.name
    if is_coded(values.data_type) or onnx.TensorProto.EXTERNAL in (values.data_location, sparse.indices.data_location):
        raise RelaxError(f"expected a sparse tensor '{name}' of numbers that are in the model itself")
    shape = tuple(sparse.dims)
    count = math.prod(shape)
    if any(d < 0 for d in shape) or count * numpy_element(values.data_type).itemsize > _MOST_DENSE:
        raise RelaxError(f"expected a sparse tensor '{name}' of {_MOST_DENSE} bytes at most, got shape {list(shape)}")
    elements, places = tensor_array(values).reshape(-1), _flat_places(tensor_array(sparse.indices), shape)
    is_ascending = places is not None and bool((np.diff(places) > 0).all())
    if places is None or places.size != elements.size or not is_ascending:
        raise RelaxError(f"expected ascending places in shape {list(shape)} for each element of sparse '{name}'")
    dense = np.zeros(count, elements.dtype)
    dense[places] = elements
    return onnx.numpy_helper.from_array(dense.reshape(shape), name)


def _flat_places(places: Array, shape: tuple[int, ...]) -> Array | None:
    """Places in one row of all elements, of such places or of ``[n, rank]``; None where they are none of the shape."""
    if places.ndim == 1:
        return places if ((places >= 0) & (places < math.prod(shape))).all() else None
    if places.ndim != 2 or places.shape[1] != len(shape) or not ((places >= 0) & (places < shape)).all():
        return None
    steps = [math.prod(shape[i + 1 :]) for i in range(len(shape))]
    return (places * np.array(steps, np.int64)).sum(1)


class ExternalData:
    """The files of a model; nothing of them is read but the elements that someone asks for."""

    def __init__(self, folder: str | None):
        self._folder = folder

    def place(self, tensor: onnx.TensorProto) -> tuple[str, int, int]:
        """Path, first byte and number of bytes of a tensor.

        Raises:
            RelaxError: the model is in no folder; the entry is not as ONNX has it, leads out of the folder, or does not have
                as many bytes as the shape says.
        """
        entries = {e.key: e.value for e in tensor.external_data}
        location = entries.get("location", "")
        if self._folder is None:
            raise RelaxError(f"expected a model from a file for the external data of '{tensor.name}', got one in memory")
        path = os.path.realpath(self._inside(self._folder, location, tensor.name))
        offset, length = (_count(entries, key, tensor.name) for key in ("offset", "length"))
        wanted = _stored_bytes(tensor)
        if length is not None and length != wanted:
            raise RelaxError(f"expected {wanted} bytes of external data of '{tensor.name}', got {length}")
        return path, offset or 0, wanted

    def _inside(self, folder: str, location: str, name: str) -> str:
        """The path of a location, which a stranger wrote: links may be the user's, as those of a Hugging Face cache."""
        path = os.path.join(folder, location)
        is_name = bool(location) and "\0" not in location and not os.path.isabs(location) and ".." not in location.split("/")
        if not is_name or not stays_inside(folder, path):
            raise RelaxError(f"expected external data of '{name}' inside of the model's folder, got {location!r}")
        return path

    def read(self, tensor: onnx.TensorProto) -> Array:
        """The elements, of the model itself or of a file. Raises RelaxError where they cannot be read."""
        if tensor.data_location != onnx.TensorProto.EXTERNAL:
            return tensor_array(tensor)
        path, offset, count = self.place(tensor)
        with open_regular(path) as file:
            if os.fstat(file.fileno()).st_size < offset + count:
                raise RelaxError(f"expected {count} bytes of '{tensor.name}' at {offset} of '{path}', got fewer")
            file.seek(offset)
            content = file.read(count)
        raw = onnx.TensorProto(data_type=tensor.data_type, dims=tensor.dims, raw_data=content, name=tensor.name)
        return tensor_array(raw)


def _stored_bytes(tensor: onnx.TensorProto) -> int:
    count = int(np.prod(tensor_shape(tensor), dtype=object)) if tensor.dims else 1
    bits = _BITS.get(tensor.data_type)
    return (count * bits + 7) // 8 if bits else count * numpy_element(tensor.data_type).itemsize


def _count(entries: dict[str, str], key: str, name: str) -> int | None:
    text = entries.get(key)
    if text is None:
        return None
    if not text.isdecimal() or len(text) > 18:
        raise RelaxError(f"expected a number of bytes as {key} of the external data of '{name}', got {text[:40]!r}")
    return int(text)

"""Elements of initializers that lie in files beside the model."""

from __future__ import annotations

import os

import numpy as np
import onnx

from ...dialect.errors import RelaxError
from ...weights.files import open_regular
from .tensors import numpy_element
from .values import Array

__all__ = ["ExternalData"]


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
        root = os.path.realpath(self._folder)
        path = os.path.realpath(os.path.join(root, location))
        if not location or os.path.isabs(location) or os.path.commonpath([root, path]) != root:
            raise RelaxError(f"expected external data of '{tensor.name}' inside of the model's folder, got '{location}'")
        offset, length = (_count(entries, key, tensor.name) for key in ("offset", "length"))
        wanted = stored_bytes(tensor)
        if length is not None and length != wanted:
            raise RelaxError(f"expected {wanted} bytes of external data of '{tensor.name}', got {length}")
        return path, offset or 0, wanted

    def read(self, tensor: onnx.TensorProto) -> Array:
        """The elements. Raises RelaxError where they cannot be read."""
        path, offset, count = self.place(tensor)
        with open_regular(path) as file:
            file.seek(offset)
            content = file.read(count)
        if len(content) != count:
            raise RelaxError(f"expected {count} bytes of '{tensor.name}' at {offset} of '{path}', got {len(content)}")
        raw = onnx.TensorProto(data_type=tensor.data_type, dims=tensor.dims, raw_data=content, name=tensor.name)
        return onnx.numpy_helper.to_array(raw)


def stored_bytes(tensor: onnx.TensorProto) -> int:
    """How many bytes the elements take: several of less than eight bits share one."""
    count = int(np.prod(tensor.dims, dtype=object))
    bits = _BITS.get(tensor.data_type)
    return (count * bits + 7) // 8 if bits else count * numpy_element(tensor.data_type).itemsize


_BITS = {
    getattr(onnx.TensorProto, name): bits
    for name, bits in {"UINT4": 4, "INT4": 4, "FLOAT4E2M1": 4, "UINT2": 2, "INT2": 2}.items()
    if hasattr(onnx.TensorProto, name)
}


def _count(entries: dict[str, str], key: str, name: str) -> int | None:
    text = entries.get(key)
    if text is None:
        return None
    if not text.isdecimal() or len(text) > 18:
        raise RelaxError(f"expected a number of bytes as {key} of the external data of '{name}', got '{text[:40]}'")
    return int(text)

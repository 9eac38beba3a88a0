"""A GGUF file to be written: metadata, and tensors by type and shape in; the header's bytes and each tensor's place out.

Source: the format's specification, https://github.com/ggml-org/ggml/blob/master/docs/gguf.md, version 3, little-endian.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from math import prod
from typing import NamedTuple

import numpy as np

from ...dialect.errors import RelaxError
from ..arrays import ArraySpec
from ..header import PAGE, Layout
from .gguf_file import BLOCKS, TYPES

__all__ = ["GgufTensor", "GgufValue", "bytes_spec", "plan_gguf"]

_Plain = bool | int | float | str
#: What metadata can be; a list is of one type.
GgufValue = _Plain | list[str] | list[int] | list[float]

#: What ggml has room for: with the zero at a name's end, and dimensions.
_MAX_NAME, _MAX_RANK = 63, 4


class GgufTensor(NamedTuple):
    """A tensor to be written: its type, by the name of blocks or NumPy's name of plain elements, and shape, rows first."""

    kind: str
    shape: tuple[int, ...]

    def problem(self, name: str) -> str | None:
        """Why no file can have it under this name, None where one can."""
        if self.kind not in TYPES:
            return f"expected a dtype that GGUF has, got {self.kind}"
        if not 1 <= len(self.shape) <= _MAX_RANK or 0 in self.shape:
            return f"expected 1 to {_MAX_RANK} dimensions, none of them 0, for GGUF, got {list(self.shape)}"
        if len(name.encode()) > _MAX_NAME:
            return f"expected a name of {_MAX_NAME} bytes at most for GGUF, got '{name}'"
        return None


def bytes_spec(tensor: GgufTensor) -> ArraySpec:
    """What is written for it: elements, or the bytes of blocks."""
    kind = BLOCKS.get(tensor.kind)
    if kind is None:
        return ArraySpec(np.dtype(tensor.kind), tensor.shape)
    *outer, row = tensor.shape
    return ArraySpec(np.dtype(np.uint8), (*outer, row // kind.elements * kind.nbytes))


def plan_gguf(tensors: Mapping[str, GgufTensor], values: Mapping[str, GgufValue], path: str) -> Layout:
    """Where everything goes in a file; tensors begin on pages, which can be released, and written past the page cache.

    Raises:
        RelaxError: no file can have such a tensor.
    """
    for name, tensor in tensors.items():
        problem = tensor.problem(name)
        if problem is not None:
            raise RelaxError(f"'{path}': tensor {name!r}: {problem}")
    known = {**values, "general.alignment": PAGE}
    head = [b"GGUF", struct.pack("<IQQ", 3, len(tensors), len(known))]
    head += [_text(key) + _value(value) for key, value in known.items()]
    offset, places = 0, dict[str, int]()
    for name, tensor in tensors.items():
        shape = tensor.shape[::-1]
        sizes = struct.pack(f"<I{len(shape)}Q", len(shape), *shape)
        head.append(_text(name) + sizes + struct.pack("<IQ", TYPES[tensor.kind], offset))
        places[name] = offset
        spec = bytes_spec(tensor)
        offset += -(-prod(spec.shape) * spec.dtype.itemsize // PAGE) * PAGE
    prefix = b"".join(head)
    prefix += b"\0" * (-len(prefix) % PAGE)
    return Layout(prefix, {name: len(prefix) + place for name, place in places.items()}, len(prefix) + offset)


def _text(text: str) -> bytes:
    content = text.encode()
    return struct.pack("<Q", len(content)) + content


def _value(value: GgufValue) -> bytes:
    """A value behind the number of its type; integers of a list have a sign, as those that llama.cpp's converter writes.

    A list of none is one of texts: merges of a vocabulary without any, which llama.cpp asks for.
    """
    if isinstance(value, list):
        kinds = {str: 8, float: 6, int: 5}
        return struct.pack("<IIQ", 9, kinds[type(value[0]) if value else str], len(value)) + _elements(value)
    if isinstance(value, str):
        return struct.pack("<I", 8) + _text(value)
    if isinstance(value, bool):
        return struct.pack("<I?", 7, value)
    if isinstance(value, float):
        return struct.pack("<If", 6, value)
    return struct.pack("<II", 4, value)


def _elements(values: list[str] | list[int] | list[float]) -> bytes:
    texts = [_text(v) for v in values if isinstance(v, str)]
    if texts:
        return b"".join(texts)
    return np.array(values, "<f4" if values and isinstance(values[0], float) else "<i4").tobytes()

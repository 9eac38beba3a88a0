"""GGUF files as named tensors: blocks as their fields, each a tensor of its own over the mapped file.

A tensor ``t`` in blocks is ``t.d``, ``t.qs``, ...: views ``[..., blocks, bytes]`` that skip the other fields. Source: the
format's specification, https://github.com/ggml-org/ggml/blob/master/docs/gguf.md, versions 2 and 3, little-endian.
"""

from __future__ import annotations

import difflib
import hashlib
import mmap
import os
import struct
from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise
from math import prod
from typing import Any, NamedTuple, Protocol

import ml_dtypes
import numpy as np

from ...dialect.errors import RelaxError
from ..arrays import Array, ArraySpec, aligned_empty
from ..files import KIND_BYTES, name_on_disk, open_regular, os_errors, other_kind, path_text
from ..mapped_file import MappedFile
from ..source import Ranges, runs_of

__all__ = ["BLOCKS", "TYPES", "Content", "GgufEntry", "GgufFile", "GgufTensors"]


class _Field(NamedTuple):
    """A field of a block: where it begins, its elements and their dtype; a length of 0 is a scalar."""

    offset: int
    dtype: str
    length: int = 0


@dataclass(frozen=True)
class _Kind:
    """A type of tensors: elements and bytes of a block, and its fields; of plain elements none."""

    name: str
    elements: int
    nbytes: int
    fields: Mapping[str, _Field]


def _plain(name: str, dtype: Any) -> _Kind:
    return _Kind(name, 1, np.dtype(dtype).itemsize, {})


#: Types in blocks, by name.
BLOCKS = {
    kind.name: kind
    for kind in (
        _Kind("Q4_0", 32, 18, {"d": _Field(0, "<f2"), "qs": _Field(2, "u1", 16)}),
        _Kind("Q4_1", 32, 20, {"d": _Field(0, "<f2"), "m": _Field(2, "<f2"), "qs": _Field(4, "u1", 16)}),
        _Kind("Q5_0", 32, 22, {"d": _Field(0, "<f2"), "qh": _Field(2, "u1", 4), "qs": _Field(6, "u1", 16)}),
        _Kind("Q5_1", 32, 24, {"d": _Field(0, "<f2"), "m": _Field(2, "<f2"), "qh": _Field(4, "u1", 4),
                               "qs": _Field(8, "u1", 16)}),
        _Kind("Q8_0", 32, 34, {"d": _Field(0, "<f2"), "qs": _Field(2, "i1", 32)}),
        _Kind("Q2_K", 256, 84, {"scales": _Field(0, "u1", 16), "qs": _Field(16, "u1", 64), "d": _Field(80, "<f2"),
                                "dmin": _Field(82, "<f2")}),
        _Kind("Q3_K", 256, 110, {"qh": _Field(0, "u1", 32), "qs": _Field(32, "u1", 64), "scales": _Field(96, "u1", 12),
                                 "d": _Field(108, "<f2")}),
        _Kind("Q4_K", 256, 144, {"d": _Field(0, "<f2"), "dmin": _Field(2, "<f2"), "scales": _Field(4, "u1", 12),
                                 "qs": _Field(16, "u1", 128)}),
        _Kind("Q5_K", 256, 176, {"d": _Field(0, "<f2"), "dmin": _Field(2, "<f2"), "scales": _Field(4, "u1", 12),
                                 "qh": _Field(16, "u1", 32), "qs": _Field(48, "u1", 128)}),
        _Kind("Q6_K", 256, 210, {"ql": _Field(0, "u1", 128), "qh": _Field(128, "u1", 64), "scales": _Field(192, "i1", 16),
                                 "d": _Field(208, "<f2")}),
        _Kind("IQ4_NL", 32, 18, {"d": _Field(0, "<f2"), "qs": _Field(2, "u1", 16)}),
        _Kind("IQ4_XS", 256, 136, {"d": _Field(0, "<f2"), "scales_h": _Field(2, "u1", 2), "scales_l": _Field(4, "u1", 4),
                                   "qs": _Field(8, "u1", 128)}),
        _Kind("MXFP4", 32, 17, {"d": _Field(0, "u1"), "qs": _Field(1, "u1", 16)}),
    )
}  # fmt: skip
_DTYPES: dict[int, Any] = {
    0: np.float32, 1: np.float16, 24: np.int8, 25: np.int16, 26: np.int32, 27: np.int64, 28: np.float64,
    30: ml_dtypes.bfloat16,
}  # fmt: skip
_KINDS = {number: _plain(np.dtype(d).name, d) for number, d in _DTYPES.items()} | {
    2: BLOCKS["Q4_0"], 3: BLOCKS["Q4_1"], 6: BLOCKS["Q5_0"], 7: BLOCKS["Q5_1"], 8: BLOCKS["Q8_0"], 10: BLOCKS["Q2_K"],
    11: BLOCKS["Q3_K"], 12: BLOCKS["Q4_K"], 13: BLOCKS["Q5_K"], 14: BLOCKS["Q6_K"], 20: BLOCKS["IQ4_NL"], 23: BLOCKS["IQ4_XS"],
    39: BLOCKS["MXFP4"],
}  # fmt: skip

#: Numbers of types by name, of plain elements as NumPy has it.
TYPES = {kind.name: number for number, kind in _KINDS.items()}

#: Numbers of metadata by type; 8 is a text, 9 an array.
_NUMBERS = {0: "<B", 1: "<b", 2: "<H", 3: "<h", 4: "<I", 5: "<i", 6: "<f", 7: "<?", 10: "<Q", 11: "<q", 12: "<d"}
_TEXT, _ARRAY = 8, 9


class GgufEntry(NamedTuple):
    """One tensor of a file: type, shape (rows first), where it begins and how many bytes it has."""

    kind: _Kind
    type: int
    shape: tuple[int, ...]
    begin: int
    nbytes: int


class Content(Protocol):
    """The bytes of a file, of which the header is read."""

    def __len__(self) -> int: ...
    def __getitem__(self, part: slice, /) -> bytes: ...


class _Reader:
    """The header, read in order; whatever it says, nothing beyond the file is read."""

    def __init__(self, content: Content, path: str):
        self._content, self._path = content, path
        self.at = 0

    def number(self, form: str) -> Any:
        return struct.unpack(form, self._bytes(struct.calcsize(form)))[0]

    def text(self) -> str:
        raw = self._bytes(self.number("<Q"))
        try:
            return raw.decode()
        except UnicodeDecodeError as error:
            raise self.error(f"expected a text in UTF-8, got {error}") from None

    def value(self, kind: int) -> Any:
        """A value of the metadata; of an array, which can be long, nothing but that it is there."""
        if kind == _TEXT:
            return self.text()
        if kind != _ARRAY:
            return self.number(self._form(kind))
        inner, count = self.number("<I"), self.number("<Q")
        if inner == _TEXT:
            for _ in range(count):
                self._bytes(self.number("<Q"))
        else:
            self._bytes(count * struct.calcsize(self._form(inner)))
        return None

    def error(self, text: str) -> RelaxError:
        return RelaxError(f"'{self._path}': {text} at byte {self.at}")

    def _form(self, kind: int) -> str:
        if kind not in _NUMBERS:
            raise self.error(f"expected a type of metadata, got {kind}")
        return _NUMBERS[kind]

    def _bytes(self, count: int) -> bytes:
        if count > len(self._content) - self.at:
            raise self.error(f"expected {count} more bytes of header, got {len(self._content) - self.at} (truncated?)")
        self.at += count
        return self._content[self.at - count : self.at]


class GgufTensors(ABC):
    """The tensors of a GGUF file by its header; where their bytes are is a matter of :meth:`_bytes`.

    Attributes:
        path: its name.
        values: the metadata, numbers and texts.
        tensors: types and shapes by the file's names.
        digest: of the header.
        is_interleaved: whether more is read for a while than a part of a field.
    """

    is_interleaved = True

    def __init__(self, path: str, content: Content):
        """Reads and checks the header. Raises RelaxError where it is not as the format has it."""
        self.path, self.size = path, len(content)
        if self.size < 24:
            raise RelaxError(f"'{path}': expected a GGUF file, got {self.size} bytes")
        self.metadata = dict[str, str]()
        reader = _Reader(content, path)
        magic, version = reader.number("<4s"), reader.number("<I")
        other = other_kind(bytes(content[:KIND_BYTES])) if magic != b"GGUF" else None
        if other is not None:
            raise RelaxError(f"'{path}': expected a GGUF file, got {other}")
        if magic != b"GGUF" or version not in (2, 3):
            raise RelaxError(f"'{path}': expected GGUF of version 2 or 3, got {magic!r} of version {version}")
        count, pairs = reader.number("<Q"), reader.number("<Q")
        self.values: dict[str, Any] = {reader.text(): reader.value(reader.number("<I")) for _ in range(pairs)}
        self.tensors = self._entries(reader, count)
        self.digest = hashlib.sha256(content[: reader.at]).hexdigest()
        self._parts = {part: (name, entry, field) for name, entry, field, part in self._all_parts()}

    @property
    def config(self) -> Mapping[str, Any]:
        return {"quantization_config": {"quant_method": "gguf"}, "tie_word_embeddings": "output.weight" not in self.tensors}

    def parts(self, name: str) -> dict[str, str]:
        """The names of a tensor's fields, by what the format calls them; of one without fields its own, as ``w``."""
        kind = self.tensors[name].kind
        return {field: f"{name}.{field}" for field in kind.fields} or {"w": name}

    def __iter__(self) -> Iterator[str]:
        return iter(self._parts)

    def __contains__(self, name: object) -> bool:
        return name in self._parts

    def spec(self, name: str) -> ArraySpec:
        _, entry, field = self._part(name)
        if field is None:
            return ArraySpec(np.dtype(_DTYPES[entry.type]), entry.shape)
        length = (field.length,) if field.length else ()
        return ArraySpec(np.dtype(field.dtype), (*entry.shape[:-1], entry.shape[-1] // entry.kind.elements, *length))

    def get(self, name: str) -> Array:
        return self._view(name, *self._bytes(self._part(name)[0]))

    def _view(self, name: str, content: Any, begin: int, blocks: tuple[int, ...] = ()) -> Array:
        """A tensor, or the field of one, where its bytes are in a buffer from there on; all of it, or so many blocks."""
        spec, (_, entry, field) = self.spec(name), self._part(name)
        shape = blocks or spec.shape[: len(entry.shape)]
        if field is None:
            return np.ndarray(shape, spec.dtype, content, begin)
        strides = [entry.kind.nbytes * prod(shape[i + 1 :]) for i in range(len(shape))]
        strides += [spec.dtype.itemsize] if field.length else []
        return np.ndarray((*shape, *spec.shape[len(shape) :]), spec.dtype, content, begin + field.offset, strides)

    @abstractmethod
    def _bytes(self, tensor: str) -> tuple[Any, int]:
        """A buffer with the bytes of a tensor, and where in it they begin."""

    def _part(self, name: str) -> tuple[str, GgufEntry, _Field | None]:
        """What a name stands for: a tensor of the file, and a field of its blocks."""
        if name not in self._parts:
            near = difflib.get_close_matches(str(name), self._parts, 1)
            raise RelaxError(
                f"'{self.path}': expected a tensor of this file, got {name!r}{f', like {near[0]!r}' if near else ''}"
            )
        return self._parts[name]

    def _all_parts(self) -> Iterator[tuple[str, GgufEntry, _Field | None, str]]:
        for name, entry in self.tensors.items():
            if not entry.kind.fields:
                yield name, entry, None, name
            for field, place in entry.kind.fields.items():
                yield name, entry, place, f"{name}.{field}"

    def _entries(self, reader: _Reader, count: int) -> dict[str, GgufEntry]:
        found: dict[str, tuple[str, int, tuple[int, ...], int]] = {}
        for _ in range(count):
            name, rank = reader.text(), reader.number("<I")
            if name in found or not 1 <= rank <= 4:
                raise reader.error(f"tensor {name!r}: expected one of this name with 1 to 4 dimensions, got {rank}")
            shape = tuple(reader.number("<Q") for _ in range(rank))[::-1]
            found[name] = (name, reader.number("<I"), shape, reader.number("<Q"))
        alignment = self.values.get("general.alignment", 32)
        if type(alignment) is not int or alignment < 1 or alignment & alignment - 1:
            raise RelaxError(f"'{self.path}': general.alignment: expected a power of two, got {alignment!r}")
        start = -(-reader.at // alignment) * alignment
        entries = {name: self._entry(*each, start, alignment) for name, each in found.items()}
        self._check_apart(entries)
        return entries

    def _entry(self, name: str, number: int, shape: tuple[int, ...], offset: int, start: int, alignment: int) -> GgufEntry:
        what, kind = f"'{self.path}': tensor {name!r}", _KINDS.get(number)
        if kind is None:
            known = ", ".join(k.name for k in _KINDS.values())
            raise RelaxError(f"{what}: expected one of the types {known}, got type {number}")
        if 0 in shape or shape[-1] % kind.elements:
            raise RelaxError(
                f"{what}: expected rows of a multiple of {kind.elements} elements ({kind.name}), got {list(shape)}"
            )
        nbytes = prod(shape) // kind.elements * kind.nbytes
        if offset % alignment or start + offset + nbytes > self.size:
            got = f"{offset} of {max(0, self.size - start)} (truncated?)"
            raise RelaxError(f"{what}: expected {nbytes} bytes at a multiple of {alignment} in the file, got offset {got}")
        return GgufEntry(kind, number, shape, start + offset, nbytes)

    def _check_apart(self, entries: Mapping[str, GgufEntry]) -> None:
        """Raises RelaxError where tensors overlap."""
        placed = sorted(entries.items(), key=lambda item: item[1].begin)
        for (first, one), (second, other) in pairwise(placed):
            if one.begin + one.nbytes > other.begin:
                raise RelaxError(f"'{self.path}': tensor {second!r}: expected it behind {first!r}, got an overlap")


class GgufFile(MappedFile, GgufTensors):
    """The tensors of a mapped GGUF file, see :class:`~..source.TensorSource`."""

    def __init__(self, path: str | os.PathLike[str]):
        """Opens a file: reads and checks its header. Raises RelaxError where it is not as the format has it."""
        name = path_text(path)
        with open_regular(name) as file, os_errors("read", name):
            MappedFile.__init__(self, name, file)
            if not self.size:
                raise RelaxError(f"'{name}': expected a GGUF file, got 0 bytes")
            self.map_content(file)
        self.files = [name]
        GgufTensors.__init__(self, name, self.map)

    @property
    def identity(self) -> str | None:
        """Changes when the file does."""
        known = (self.size, self.status.st_mtime_ns, self.status.st_ctime_ns, self.status.st_ino, self.digest)
        return " ".join(map(str, (name_on_disk(self.path), *known)))

    def prefetch(self, name: str) -> None:
        _, entry, _ = self._part(name)
        self.advise(mmap.MADV_WILLNEED, entry.begin // mmap.PAGESIZE * mmap.PAGESIZE, entry.begin + entry.nbytes)

    def release(self, name: str) -> None:
        _, entry, _ = self._part(name)
        self.advise(mmap.MADV_DONTNEED, -(-entry.begin // mmap.PAGESIZE) * mmap.PAGESIZE, entry.begin + entry.nbytes)

    def check_unchanged(self, names: Iterable[str] | None = None) -> None:
        del names
        super().check_unchanged()

    def read_all(self, names: Collection[str]) -> dict[str, Array]:
        """In memory of their own; the fields of one tensor are read together."""
        content = {tensor: self._read(tensor) for tensor in dict.fromkeys(self._part(n)[0] for n in names)}
        return {name: self._view(name, content[self._part(name)[0]], 0) for name in names}

    def read_part(self, name: str, ranges: Mapping[int, Ranges], place: Array | None = None) -> Array:
        """A part of a tensor or field, of rows or along them by blocks; the other fields of the same blocks are read, too, but
        not kept."""
        del place  # which has a field's bytes alone
        tensor, entry, _ = self._part(name)
        dims = (*entry.shape[:-1], entry.shape[-1] // entry.kind.elements)
        wanted = tuple(sum(e - b for b, e in ranges[i]) if i in ranges else d for i, d in enumerate(dims))
        content = aligned_empty(np.dtype(np.uint8), (prod(wanted) * entry.kind.nbytes,))
        self.read_runs(entry.begin, runs_of(dims, entry.kind.nbytes, ranges), content.data, tensor)
        return np.ascontiguousarray(self._view(name, content, 0, wanted))

    def _read(self, tensor: str) -> Array:
        entry = self.tensors[tensor]
        content = aligned_empty(np.dtype(np.uint8), (entry.nbytes,))
        self.read(entry.begin, content.data, tensor)
        return content

    def _bytes(self, tensor: str) -> tuple[Any, int]:
        return self.map, self.tensors[tensor].begin

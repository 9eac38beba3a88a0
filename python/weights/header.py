"""The header of a safetensors file: bytes in, checked tensor table out, and the table of a file to be written as bytes.

A file is ``<u64 little-endian n><n bytes of JSON><data>``; the JSON maps each name to dtype, shape and ``data_offsets`` within
the data, and ``__metadata__`` to strings. The rules checked here are those of the format's specification
(https://github.com/huggingface/safetensors#format): offsets cover the data without hole or overlap, names are unique.
"""

from __future__ import annotations

import json
import math
import reprlib
import struct
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, cast

import ml_dtypes
import numpy as np

from ..dialect.errors import RelaxError
from .arrays import ALIGNMENT, ArraySpec
from .json_text import parse_json

__all__ = ["MAX_HEADER_BYTES", "METADATA", "Header", "Layout", "TensorEntry", "parse_header", "plan_layout", "read_prefix"]

METADATA = "__metadata__"

#: The limit of the format's reference implementation.
MAX_HEADER_BYTES = 100_000_000

# Data that starts on a page can be released page by page; the specification allows spaces after the JSON.
_PAGE = 4096

# NumPy's limits: an array of more dimensions, or of more bytes even if one dimension is zero, cannot be made.
_MAX_RANK = 64
_MAX_BYTES = (1 << 63) - 1

_DTYPES: dict[str, np.dtype[Any]] = {
    name: np.dtype(dtype)
    for name, dtype in {
        "BOOL": np.bool_, "F64": np.float64, "F32": np.float32, "F16": np.float16, "BF16": ml_dtypes.bfloat16,
        "F8_E4M3": ml_dtypes.float8_e4m3fn, "F8_E5M2": ml_dtypes.float8_e5m2, "F8_E8M0": ml_dtypes.float8_e8m0fnu,
        "I64": np.int64, "I32": np.int32, "I16": np.int16, "I8": np.int8,
        "U64": np.uint64, "U32": np.uint32, "U16": np.uint16, "U8": np.uint8, "C64": np.complex64,
    }.items()
}  # fmt: skip
_NAMES = {dtype: name for name, dtype in _DTYPES.items()}

# Sub-byte types of the format, in bits: a file may hold them beside the tensors a model needs, so only reading one is an error.
_PACKED_BITS = {"F4": 4, "F6_E2M3": 6, "F6_E3M2": 6, "F8_E4M3FNUZ": 8, "F8_E5M2FNUZ": 8}


@dataclass(frozen=True)
class TensorEntry:
    """One tensor of a file.

    Attributes:
        dtype_name: the format's name, e.g. ``BF16``.
        spec: dtype and shape; None for the sub-byte types, which NumPy lacks.
        begin, end: bytes within the file.
    """

    dtype_name: str
    spec: ArraySpec | None
    begin: int
    end: int


@dataclass(frozen=True)
class Header:
    """A parsed header: the tensors by name in file order, and the metadata."""

    tensors: dict[str, TensorEntry]
    metadata: dict[str, str]


@dataclass(frozen=True)
class Layout:
    """A file to be written.

    Attributes:
        prefix: length and header, padded so that the data starts on a page.
        offsets: position of each tensor within the file.
        size: bytes of the whole file.
    """

    prefix: bytes
    offsets: dict[str, int] = field(repr=False)
    size: int


def read_prefix(prefix: bytes, file_bytes: int, path: str) -> int:
    """The header's length from the first 8 bytes. Raises RelaxError when such a header does not fit the file."""
    if len(prefix) < 8:
        raise RelaxError(f"'{path}': expected a safetensors file of at least 8 bytes, got {len(prefix)}")
    (length,) = struct.unpack("<Q", prefix[:8])
    if length > MAX_HEADER_BYTES:
        raise RelaxError(f"'{path}': expected a safetensors header of at most {MAX_HEADER_BYTES} bytes, got {length}")
    if 8 + length > file_bytes:
        raise RelaxError(
            f"'{path}': expected a file with a header of {length} bytes, got a file of {file_bytes} bytes (truncated)"
        )
    return length


def parse_header(text: bytes, file_bytes: int, path: str) -> Header:
    """Checks a header against its file.

    Args:
        text: the JSON bytes.
        file_bytes: size of the whole file.
        path: how errors name the file.

    Raises:
        RelaxError: anything is not as the format says, with the tensor's name.
    """
    table = _parse_json(text, path)
    metadata = _metadata(table.pop(METADATA, {}), path)
    base = 8 + len(text)
    entries = {name: _entry(name, value, base, path) for name, value in table.items()}
    ordered = dict(sorted(entries.items(), key=lambda item: (item[1].begin, item[1].end)))
    _check_cover(ordered, base, file_bytes, path)
    return Header(ordered, metadata)


def plan_layout(specs: Mapping[str, ArraySpec], metadata: Mapping[str, str], path: str) -> Layout:
    """Where everything goes in a file with these tensors.

    Tensors whose size is a multiple of a cache line come first, then the others by element size, so that the former all lie on
    cache lines and every element is naturally aligned although the format forbids padding.

    Raises:
        RelaxError: a tensor has a dtype that the format lacks, or a name that it cannot hold.
    """
    order = sorted(specs, key=lambda n: (specs[n].nbytes % ALIGNMENT != 0, -specs[n].dtype.itemsize))
    table: dict[str, object] = {METADATA: dict(metadata)} if metadata else {}
    ends: dict[str, tuple[int, int]] = {}
    offset = 0
    for name in order:
        spec = specs[name]
        end = offset + spec.nbytes
        table[name] = {"dtype": _format_name(name, spec, path), "shape": list(spec.shape), "data_offsets": [offset, end]}
        ends[name] = (offset, end)
        offset = end
    text = json.dumps(table, separators=(",", ":"), ensure_ascii=False).encode()
    text += b" " * (-(8 + len(text)) % _PAGE)
    if len(text) > MAX_HEADER_BYTES:
        raise RelaxError(f"'{path}': expected a safetensors header of at most {MAX_HEADER_BYTES} bytes, got {len(text)}")
    base = 8 + len(text)
    return Layout(struct.pack("<Q", len(text)) + text, {n: base + begin for n, (begin, _) in ends.items()}, base + offset)


def _format_name(name: str, spec: ArraySpec, path: str) -> str:
    if name == METADATA or not _is_text(name):
        raise RelaxError(f"'{path}': expected a tensor name that safetensors can hold, got {name!r}")
    found = _NAMES.get(spec.dtype)
    if found is None:
        raise RelaxError(f"'{path}': tensor {name!r}: expected a dtype that safetensors has, got {spec}")
    return found


def _is_text(name: str) -> bool:
    """Whether the name is valid Unicode (JSON escapes can make lone surrogates)."""
    return not any("\ud800" <= c <= "\udfff" for c in name)


def _parse_json(text: bytes, path: str) -> dict[str, Any]:
    if not text.startswith(b"{"):
        raise RelaxError(f"'{path}': expected a safetensors header that starts with '{{', got {text[:8]!r}")
    try:
        return parse_json(text.decode(), object_pairs_hook=_unique, parse_constant=_no_constant)
    except (ValueError, RecursionError) as error:
        raise RelaxError(f"'{path}': expected a safetensors header in JSON, got {_reason(error)}") from None


def _reason(error: Exception) -> str:
    return "too deep a nesting" if isinstance(error, RecursionError) else str(error)


def _no_constant(name: str) -> object:
    raise ValueError(f"the constant {name}")


def _unique(pairs: list[tuple[str, object]]) -> dict[str, object]:
    found: dict[str, object] = {}
    for name, value in pairs:
        if name in found:
            raise ValueError(f"the name {name!r} twice")
        if not _is_text(name):
            raise ValueError(f"the name {name!r}, which is not Unicode text")
        found[name] = value
    return found


def _metadata(value: object, path: str) -> dict[str, str]:
    table = cast("dict[str, object]", value) if isinstance(value, dict) else None
    if table is None or not all(isinstance(v, str) for v in table.values()):
        raise RelaxError(f"'{path}': expected {METADATA} to map names to strings, got {_short(cast('object', value))}")
    return cast("dict[str, str]", table)


def _entry(name: str, value: object, base: int, path: str) -> TensorEntry:
    where = f"'{path}': tensor {name!r}"
    if not isinstance(value, dict):
        raise RelaxError(f"{where}: expected an object with dtype, shape and data_offsets, got {_short(value)}")
    fields = cast("dict[str, object]", value)
    dtype = fields.get("dtype")
    if not isinstance(dtype, str) or (dtype not in _DTYPES and dtype not in _PACKED_BITS):
        raise RelaxError(f"{where}: expected a dtype out of {', '.join(_DTYPES)}, got {_short(dtype)}")
    shape = _sizes(fields.get("shape"), f"{where}: shape")
    offsets = _sizes(fields.get("data_offsets"), f"{where}: data_offsets")
    if len(offsets) != 2 or offsets[0] > offsets[1]:
        raise RelaxError(f"{where}: expected data_offsets [begin, end] with begin <= end, got {_short(offsets)}")
    _check_size(where, dtype, shape, offsets[1] - offsets[0])
    spec = ArraySpec(_DTYPES[dtype], tuple(shape)) if dtype in _DTYPES else None
    return TensorEntry(dtype, spec, base + offsets[0], base + offsets[1])


def _check_size(where: str, dtype: str, shape: list[int], got: int) -> None:
    bits = _PACKED_BITS.get(dtype) or _DTYPES[dtype].itemsize * 8
    if len(shape) > _MAX_RANK or math.prod(d for d in shape if d) * bits > 8 * _MAX_BYTES:
        raise RelaxError(f"{where}: expected at most {_MAX_RANK} dimensions and {_MAX_BYTES} bytes, got shape {_short(shape)}")
    total = math.prod(shape) * bits
    if total % 8 or total // 8 != got:
        raise RelaxError(f"{where}: expected {total / 8:g} bytes for {dtype}{shape}, got data_offsets that span {got} bytes")


def _sizes(value: object, where: str) -> list[int]:
    """A list of sizes; ``true`` is no number."""
    items = cast("list[object]", value) if isinstance(value, list) else None
    if items is None or not all(type(v) is int and 0 <= v <= _MAX_BYTES for v in items):
        raise RelaxError(f"{where}: expected a list of sizes, got {_short(cast('object', value))}")
    return cast("list[int]", items)


def _check_cover(entries: Mapping[str, TensorEntry], base: int, file_bytes: int, path: str) -> None:
    """The tensors, in file order, must follow one another from the header's end to the file's end."""
    position, previous = base, "the header"
    for name, entry in entries.items():
        if entry.end > file_bytes:
            raise RelaxError(
                f"'{path}': tensor {name!r}: expected a file of at least {entry.end} bytes, got {file_bytes} (truncated)"
            )
        if entry.begin != position:
            fault = "overlap" if entry.begin < position else "hole"
            raise RelaxError(
                f"'{path}': tensor {name!r}: expected data at offset {position - base}, right after {previous}, "
                f"got {entry.begin - base} ({fault})"
            )
        position, previous = entry.end, repr(name)
    if position != file_bytes:
        raise RelaxError(f"'{path}': expected a file of {position} bytes, got {file_bytes} (data that belongs to no tensor)")


# Bounded in depth and length: a hostile header nests as deep as the parser allows.
_repr = reprlib.Repr()
_repr.maxstring = _repr.maxother = 80


def _short(value: object) -> str:
    return _repr.repr(value)

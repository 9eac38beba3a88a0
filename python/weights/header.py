"""The header of a safetensors file: bytes in, checked tensor table out, and the table of a file to be written as bytes.

A file is ``<u64 little-endian n><n bytes of JSON><data>``; the JSON maps each name to dtype, shape and ``data_offsets`` within
the data, and ``__metadata__`` to strings. The rules checked here are those of the format's specification
(https://github.com/huggingface/safetensors#format): offsets cover the data without hole or overlap, names are unique.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
import reprlib
import struct
from array import array
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple, cast

import ml_dtypes
import numpy as np
from numpy.typing import NDArray

from ..collector import collector_paused
from ..dialect.errors import RelaxError
from .arrays import ALIGNMENT, ArraySpec
from .files import other_kind
from .json_text import members

__all__ = [
    "MAX_HEADER_BYTES", "METADATA", "PAGE", "Header", "Layout", "TensorEntry", "TensorTable", "parse_header", "plan_layout",
    "read_prefix",
]  # fmt: skip

Offsets = NDArray[np.int64]

METADATA = "__metadata__"

#: The limit of the format's reference implementation.
MAX_HEADER_BYTES = 100_000_000

#: Data that starts on a page can be released page by page, and written past the page cache; the specification allows spaces
#: after the JSON.
PAGE = 4096

# NumPy's limits: an array of more dimensions, or of more bytes even if one dimension is zero, cannot be made.
_MAX_RANK = 64
_MAX_BYTES = (1 << 63) - 1

_FIELDS = {"dtype", "shape", "data_offsets"}
_INT = {int}

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

# Sub-byte types of the format, in bits: a file may hold them beside the tensors a model needs, so only reading one is an error,
# as of a dtype that later versions of the format have, whose size is not known.
_PACKED_BITS = {"F4": 4, "F6_E2M3": 6, "F6_E3M2": 6, "F8_E4M3FNUZ": 8, "F8_E5M2FNUZ": 8}
_DTYPE_NAME = re.compile(r"[A-Z][A-Z0-9_]{0,31}")


@dataclass(frozen=True)
class TensorEntry:
    """One tensor of a file.

    Attributes:
        dtype_name: the format's name, e.g. ``BF16``.
        spec: dtype and shape; None for types that NumPy lacks, and those that are not known.
        begin, end: bytes within the file.
    """

    dtype_name: str
    spec: ArraySpec | None
    begin: int
    end: int


class _Kind(NamedTuple):
    """What tensors of one dtype and shape have in common; ``bits`` is what such a tensor takes."""

    dtype_name: str
    spec: ArraySpec | None
    bits: int


class TensorTable(Mapping[str, TensorEntry]):
    """The tensors of a file by name, in file order.

    A file may have 100,000. As objects of their own they take 100 MB; so offsets are in arrays, and what tensors of one dtype
    and shape have in common is there once.
    """

    def __init__(self, names: dict[str, int], kinds: list[_Kind], begins: Offsets, ends: Offsets):
        """Takes the position of each name, and what is at each position."""
        self._names, self._kinds, self._begins, self._ends = names, kinds, begins, ends

    def __getitem__(self, name: str) -> TensorEntry:
        at = self._names[name]
        kind = self._kinds[at]
        return TensorEntry(kind.dtype_name, kind.spec, int(self._begins[at]), int(self._ends[at]))

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)

    def __contains__(self, name: object) -> bool:
        return name in self._names


@dataclass(frozen=True)
class Header:
    """A parsed header: the tensors by name in file order, the metadata, and the SHA-256 of its text."""

    tensors: TensorTable
    metadata: dict[str, str]
    digest: str


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
    other = other_kind(prefix) if length > MAX_HEADER_BYTES or 8 + length > file_bytes else None
    if other is not None:
        raise RelaxError(f"'{path}': expected a safetensors file, got {other}")
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
    table, base, digest = _Table(path), 8 + len(text), hashlib.sha256(text).hexdigest()
    try:
        decoded = _decoded(text, path)
        del text  # a header may have 100 MB
        with collector_paused():
            table.add_all(decoded)
    except (ValueError, RecursionError) as error:
        raise RelaxError(f"'{path}': expected a safetensors header in JSON, got {_reason(error)}") from None
    return Header(table.checked(base, file_bytes), table.metadata, digest)


def _decoded(text: bytes, path: str) -> str:
    if not text.startswith(b"{"):
        raise RelaxError(f"'{path}': expected a safetensors header that starts with '{{', got {text[:8]!r}")
    return text.decode()


class _Table:
    """A header while it is read, one tensor after the other."""

    def __init__(self, path: str):
        self.metadata: dict[str, str] = {}
        self._path = path
        self._names: dict[str, int] = {}
        self._kinds: list[_Kind] = []
        self._begins, self._ends = array("q"), array("q")
        self._known: dict[tuple[str, tuple[int, ...]], _Kind] = {}
        self._has_metadata = False

    def add_all(self, text: str) -> None:
        """Everything in the JSON text. Raises ValueError or RecursionError when it is none, RelaxError for what it says."""
        for name, value in members(text, object_pairs_hook=_unique, parse_constant=_no_constant):
            if name == METADATA and not self._has_metadata:
                self.metadata, self._has_metadata = _metadata(value, self._path), True
                continue
            if name in self._names or name == METADATA:
                raise ValueError(f"the name {name!r} twice")
            if not _is_text(name):
                raise ValueError(f"the name {name!r}, which is not Unicode text")
            self._add(name, value)

    def _add(self, name: str, value: object) -> None:
        fields = cast("dict[str, Any]", value) if type(value) is dict else {}
        dtype, shape, offsets = (cast("Any", fields.get(n)) for n in ("dtype", "shape", "data_offsets"))
        # Types first: a key with True or 1.0 in it equals one with 1.
        is_known = type(dtype) is str and type(shape) is list and _INT.issuperset(map(type, shape))
        kind = self._known.get((dtype, tuple(shape))) if is_known else None
        is_range = type(offsets) is list and len(offsets) == 2 and _INT.issuperset(map(type, offsets))
        if kind is None or not is_range or not 0 <= offsets[0] <= offsets[1] or (offsets[1] - offsets[0]) * 8 != kind.bits:
            kind, offsets = _checked(value, f"'{self._path}': tensor {name!r}")
            self._known[kind.dtype_name, tuple(cast("list[int]", shape))] = kind
        self._names[name] = len(self._kinds)
        self._kinds.append(kind)
        self._begins.append(offsets[0])
        self._ends.append(offsets[1])

    def checked(self, base: int, file_bytes: int) -> TensorTable:
        """The table, in file order. Raises RelaxError when the tensors do not cover the data."""
        begins, ends = np.frombuffer(self._begins, np.int64), np.frombuffer(self._ends, np.int64)
        names, kinds = self._names, self._kinds
        order = np.lexsort((ends, begins))
        if not (order[:-1] < order[1:]).all():
            begins, ends, kinds, given = begins[order], ends[order], [kinds[i] for i in order], list(names)
            names.clear()
            names.update((given[i], at) for at, i in enumerate(order))
        _check_cover(names, begins, ends, base, file_bytes, self._path)
        return TensorTable(names, kinds, begins + base, ends + base)


def plan_layout(specs: Mapping[str, ArraySpec], metadata: Mapping[str, str], path: str) -> Layout:
    """Where everything goes in a file with these tensors.

    Tensors of whole pages come first, then those of whole cache lines, then the others by element size, so that the former lie
    on pages and cache lines, and every element is naturally aligned although the format forbids padding.

    Raises:
        RelaxError: a tensor has a dtype that the format lacks, or a name that it cannot hold.
    """
    order = sorted(
        specs, key=lambda n: (*(specs[n].nbytes % size != 0 for size in (PAGE, ALIGNMENT)), -specs[n].dtype.itemsize)
    )
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
    text += b" " * (-(8 + len(text)) % PAGE)
    if len(text) > MAX_HEADER_BYTES:
        raise RelaxError(f"'{path}': expected a safetensors header of at most {MAX_HEADER_BYTES} bytes, got {len(text)}")
    base = 8 + len(text)
    return Layout(struct.pack("<Q", len(text)) + text, {n: base + begin for n, (begin, _) in ends.items()}, base + offset)


def _format_name(name: str, spec: ArraySpec, path: str) -> str:
    if not isinstance(name, str) or name == METADATA or not _is_text(name):
        raise RelaxError(f"'{path}': expected a tensor name that safetensors can hold, got {name!r}")
    found = _NAMES.get(spec.dtype)
    if found is None:
        raise RelaxError(f"'{path}': tensor {name!r}: expected a dtype that safetensors has, got {spec}")
    return found


def _is_text(name: str) -> bool:
    """Whether the name is valid Unicode (JSON escapes can make lone surrogates)."""
    return name.isascii() or not any("\ud800" <= c <= "\udfff" for c in name)


def _reason(error: Exception) -> str:
    return "too deep a nesting" if isinstance(error, RecursionError) else str(error)


def _no_constant(name: str) -> object:
    raise ValueError(f"the constant {name}")


def _unique(pairs: list[tuple[str, object]]) -> dict[str, object]:
    found = dict(pairs)
    if found.keys() == _FIELDS and len(pairs) == len(_FIELDS):
        return found
    seen: set[str] = set()
    for name, _ in pairs:
        if name in seen:
            raise ValueError(f"the name {name!r} twice")
        if not _is_text(name):
            raise ValueError(f"the name {name!r}, which is not Unicode text")
        seen.add(name)
    return found


def _metadata(value: object, path: str) -> dict[str, str]:
    table = cast("dict[str, object]", value) if isinstance(value, dict) else None
    if table is None or not all(isinstance(v, str) and _is_text(v) for v in table.values()):
        raise RelaxError(f"'{path}': expected {METADATA} to map names to strings, got {_short(cast('object', value))}")
    return cast("dict[str, str]", table)


def _checked(value: object, where: str) -> tuple[_Kind, list[int]]:
    """An entry's kind and offsets, with everything checked."""
    if not isinstance(value, dict):
        raise RelaxError(f"{where}: expected an object with dtype, shape and data_offsets, got {_short(value)}")
    fields = cast("dict[str, object]", value)
    dtype = fields.get("dtype")
    if not isinstance(dtype, str) or _DTYPE_NAME.fullmatch(dtype) is None:
        raise RelaxError(f"{where}: expected a dtype out of {', '.join(_DTYPES)}, got {_short(dtype)}")
    shape = _sizes(fields.get("shape"), f"{where}: shape")
    offsets = _sizes(fields.get("data_offsets"), f"{where}: data_offsets")
    if len(offsets) != 2 or offsets[0] > offsets[1]:
        raise RelaxError(f"{where}: expected data_offsets [begin, end] with begin <= end, got {_short(offsets)}")
    _check_size(where, dtype, shape, offsets[1] - offsets[0])
    spec = ArraySpec(_DTYPES[dtype], tuple(shape)) if dtype in _DTYPES else None
    return _Kind(dtype, spec, 8 * (offsets[1] - offsets[0])), offsets


def _check_size(where: str, dtype: str, shape: list[int], got: int) -> None:
    bits = _DTYPES[dtype].itemsize * 8 if dtype in _DTYPES else _PACKED_BITS.get(dtype, 0)
    if len(shape) > _MAX_RANK or math.prod(d for d in shape if d) * max(bits, 1) > 8 * _MAX_BYTES:
        raise RelaxError(f"{where}: expected at most {_MAX_RANK} dimensions and {_MAX_BYTES} bytes, got shape {_short(shape)}")
    total = math.prod(shape) * bits
    if bits and (total % 8 or total // 8 != got):
        raise RelaxError(f"{where}: expected {total / 8:g} bytes for {dtype}{shape}, got data_offsets that span {got} bytes")


def _sizes(value: object, where: str) -> list[int]:
    """A list of sizes; ``true`` is no number."""
    items = cast("list[object]", value) if isinstance(value, list) else None
    if items is None or not all(type(v) is int and 0 <= v <= _MAX_BYTES for v in items):
        raise RelaxError(f"{where}: expected a list of sizes, got {_short(cast('object', value))}")
    return cast("list[int]", items)


def _check_cover(names: Iterable[str], begins: Offsets, ends: Offsets, base: int, file_bytes: int, path: str) -> None:
    """The tensors, in file order, must follow one another from the header's end to the file's end."""
    edges = np.concatenate([np.zeros(1, np.int64), ends])
    last = int(edges[-1])
    if base + last == file_bytes and (begins == edges[:-1]).all():
        return
    position, previous = 0, "the header"
    for name, begin, end in zip(names, begins.tolist(), ends.tolist(), strict=True):
        if base + end > file_bytes:
            raise RelaxError(
                f"'{path}': tensor {name!r}: expected a file of at least {base + end} bytes, got {file_bytes} (truncated)"
            )
        if begin != position:
            fault = "overlap" if begin < position else "hole"
            raise RelaxError(
                f"'{path}': tensor {name!r}: expected data at offset {position}, right after {previous}, got {begin} ({fault})"
            )
        position, previous = end, repr(name)
    raise RelaxError(f"'{path}': expected a file of {base + last} bytes, got {file_bytes} (data that belongs to no tensor)")


# Bounded in depth and length: a hostile header nests as deep as the parser allows.
_repr = reprlib.Repr()
_repr.maxstring = _repr.maxother = 80


def _short(value: object) -> str:
    return _repr.repr(value)

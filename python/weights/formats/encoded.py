"""A source of encoded tensors as one of the model's own: each weight is decoded when it is asked for, in parts of its rows.

A format gives a table of :class:`EncodedWeight`, by the model's names. What the table does not have stays as it is stored, so
a name that is asked for in the dtype and shape that the file has is the file's own tensor; that is how a module reads one
that was rewritten to the file's tensors.
"""

from __future__ import annotations

import difflib
import importlib
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from math import ceil, floor, lcm, prod
from typing import Any, NamedTuple

import numpy as np

from ...dialect.dtypes import dtype_name, numpy_dtype
from ...dialect.errors import RelaxError
from ..arrays import Array, ArraySpec, aligned_empty
from ..companions import parameters_beside
from ..source import DerivedSource, Ranges, TensorSource, ranges_of, read_all, read_part, reads_parts
from .weight_math import MathValue, argument, digest_of, evaluate

__all__ = ["EncodedSource", "EncodedWeight", "InOrder", "Math", "RowPlace"]


class InOrder(NamedTuple):
    """A weight whose inputs are in an order of their own.

    Attributes:
        value: the weight.
        order: the inputs in that order, ``[k]``.
    """

    value: MathValue
    order: MathValue


Math = Callable[[Mapping[str, MathValue]], MathValue]
"""From a file's tensors, by what the format calls them, to the weight in the dtype it is computed in."""

#: How many elements are decoded at once, and how many bytes NumPy's temporary arrays take for each, 35 for act-order: 151 MB.
_PART, _TEMPORARY = 1 << 22, 36

#: Bytes from which a part of a weight is decoded by compiled code, which takes about a second to make where no cache has it.
_COMPILED = 4 << 20

_FLOATS = ("f64", "f32", "bf16", "f16")


@dataclass(frozen=True)
class RowPlace:
    """Where the rows of a weight are in one of its tensors: along ``axis``, and so many rows for each index of it."""

    axis: int
    each: int | Fraction = 1

    def within(self, begin: int, end: int) -> tuple[int, int]:
        """The indices that hold these rows."""
        return floor(Fraction(begin) / self.each), ceil(Fraction(end) / self.each)


@dataclass(frozen=True)
class EncodedWeight:
    """A weight as a file has it.

    Attributes:
        shape: of the weight.
        stored: the file's names of its tensors, by what the format calls them.
        math: how they make the weight.
        rows: by the format's name, of tensors that hold the weight's rows in order; the others belong to all rows. Empty when
            the weight can be decoded as a whole only.
        unit: the rows that cannot be decoded but together, as many.
        narrow: how it is kept when a module is compiled for this file, as ``4 bits, a scale per 128``; None when it is decoded.
        reason: why it is decoded then.
        beside: names of tensors of the file that say something of it and are not read any more.
        dtype: what the format rounds the result to, None for the dtype that is asked for.
        narrow_math: how the tensors make what products read, where its inputs are in another order there.
    """

    shape: tuple[int, ...]
    stored: Mapping[str, str]
    math: Math
    rows: Mapping[str, RowPlace] = field(default_factory=dict[str, RowPlace])
    unit: int = 1
    narrow: str | None = None
    reason: str = ""
    beside: tuple[str, ...] = ()
    dtype: str | None = None
    narrow_math: Callable[[Mapping[str, MathValue]], InOrder] | None = None

    def digest(self, specs: Mapping[str, ArraySpec]) -> str:
        """Of how these tensors make what products read: what a module that was compiled for it does to them."""
        given = {role: argument(role, spec) for role, spec in specs.items()}
        values = (self.math(given),) if self.narrow_math is None else self.narrow_math(given)
        return digest_of(*values) if self.narrow is not None else ""

    def value(self, specs: Mapping[str, ArraySpec]) -> MathValue:
        """The weight, of tensors that look like this."""
        return self.math({role: argument(role, spec) for role, spec in specs.items()})


class EncodedSource(DerivedSource):
    """Tensors under the model's own names, of a source in which some are encoded; see :class:`~..source.TensorSource`."""

    def __init__(
        self,
        stored: TensorSource,
        weights: Mapping[str, EncodedWeight],
        format_name: str,
        parameters: Collection[str] = (),
    ):
        """Takes the table of a format, whose tensors are checked when they are asked for.

        Args:
            stored: the tensors as the file has them.
            weights: what is encoded, by the model's names.
            format_name: of the encoding, in errors and in what resuming a preparation compares.
            parameters: tensors that change what a model computes, and are not beside a weight.
        """
        super().__init__(stored)
        self._parameters = frozenset(parameters)
        self.weights, self.format = weights, format_name
        self.path, self.metadata, self.files = stored.path, stored.metadata, stored.files
        parts = {name for weight in weights.values() for name in (*weight.stored.values(), *weight.beside)}
        self._names = {
            **dict.fromkeys(n for n in stored if n not in parts),
            **dict.fromkeys(weights),
        }
        self._dtypes: dict[str, np.dtype[Any]] = {}
        self._raw: set[str] = set()

    def serving(self, wanted: Mapping[str, ArraySpec]) -> EncodedSource:
        """The same source for weights that will be asked for in these dtypes, or as the file's own tensors.

        A weight that the file has under its name is decoded to floats, and is the file's own tensor in its other dtype.
        """
        found = EncodedSource(self._stored, self.weights, self.format, self._parameters)
        for name, spec in wanted.items():
            if name in self.weights and dtype_name(spec.dtype) in _FLOATS:
                found._dtypes[name] = spec.dtype
            elif name in self._stored and (name not in self.weights or self.stored_spec(name) == spec):
                found._raw.add(name)
        raw = found._raw
        as_stored = {n for n, w in self.weights.items() if n not in found._dtypes and not raw.isdisjoint(w.stored.values())}
        found._names = dict.fromkeys([*(n for n in self._names if n not in as_stored), *raw])
        return found

    @property
    def identity(self) -> str | None:
        """Changes when the file does, or when its weights are decoded to others."""
        own = self._stored.identity
        dtypes = " ".join(f"{n}:{d}" for n, d in sorted(self._dtypes.items(), key=lambda item: item[0]))
        return None if own is None else f"{own}\ndecoded from {self.format} to {dtypes}"

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __contains__(self, name: object) -> bool:
        return name in self._names or name in self._raw

    def stored_spec(self, name: str) -> ArraySpec:
        """Of one of the file's own tensors; exponents alone (E8M0) are bytes."""
        spec = self._stored.spec(name)
        return ArraySpec(np.dtype(np.uint8), spec.shape) if spec.dtype.name == "float8_e8m0fnu" else spec

    def spec(self, name: str) -> ArraySpec:
        if name in self._raw or (name not in self.weights and name in self._stored):
            return self.stored_spec(name)
        return ArraySpec(self._dtype(name), self._weight(name).shape)

    def get(self, name: str) -> Array:
        if name in self._raw or (name not in self.weights and name in self._stored):
            return _as_bytes(self._stored.get(name))
        return self._decode(name)

    def read_all(self, names: Collection[str]) -> dict[str, Array]:
        """Weights as :meth:`get` has them, and the file's own tensors in memory of their own."""
        own = [n for n in names if n in self._raw or n not in self.weights]
        found = {n: _as_bytes(a) for n, a in read_all(self._stored, own).items()}
        return {n: found[n] if n in found else self._decode(n) for n in names}

    def read_part(self, name: str, ranges: Mapping[int, Ranges], place: Array | None = None) -> Array:
        """A part of one of the file's own tensors, whose bytes alone are read, or of a weight, whose rows are decoded."""
        if name in self._raw or (name not in self.weights and name in self._stored):
            own = None if place is None or self.stored_spec(name) != self._stored.spec(name) else place
            return _as_bytes(read_part(self._stored, name, ranges, own))
        weight = self._weight(name)
        parts: list[Array] = []
        for begin, end in _rows_in(weight, ranges):
            first, last = _rows_around(weight, begin, end) if self.reads_parts(name) else (0, weight.shape[0])
            parts.append(ranges_of(self._decode(name, first, last), {**ranges, 0: [(begin - first, end - first)]}))
        return parts[0] if len(parts) == 1 else np.concatenate(parts)

    def reads_parts(self, name: str) -> bool:
        """Whether a part takes no more memory than its bytes and what :meth:`beside` says."""
        if name in self._raw or name not in self.weights:
            return reads_parts(self._stored, name)
        weight = self.weights[name]
        return bool(weight.rows and weight.shape) and all(reads_parts(self._stored, n) for n in weight.stored.values())

    def _decode(self, name: str, begin: int = 0, end: int | None = None) -> Array:
        """Rows of a weight out of tensors that are read, not mapped: of a file that is cut off meanwhile an error."""
        weight = self._weight(name)
        count = weight.shape[0] if weight.shape else 1
        rows = (begin, count if end is None else end)
        try:
            tensors = {r: _as_bytes(a) for r, a in self._read_rows(weight, rows if rows != (0, count) else None).items()}
            return _decoded(weight, tensors, self._dtype(name), rows)
        except RelaxError as error:
            text = str(error.args[0])
            raise RelaxError(text if text.startswith("'") else f"'{self.path}': tensor {name!r}: {text}") from None

    def _read_rows(self, weight: EncodedWeight, rows: tuple[int, int] | None) -> dict[str, Array]:
        """What these rows are decoded from, None being all, by what the format calls it."""
        whole = {r: n for r, n in weight.stored.items() if rows is None or r not in weight.rows}
        found = read_all(self._stored, list(dict.fromkeys(whole.values())))
        arrays = {r: found[n] for r, n in whole.items()}
        parts = {} if rows is None else {r: {p.axis: [p.within(*rows)]} for r, p in weight.rows.items() if r in weight.stored}
        arrays |= {role: read_part(self._stored, weight.stored[role], ranges) for role, ranges in parts.items()}
        return {role: arrays[role] for role in weight.stored}

    def beside(self, name: str, ranges: Mapping[int, Ranges] | None = None) -> int:
        """Memory of what a weight, or a part of it, is decoded from, and meanwhile; also of rows that the part is cut from."""
        if name in self._raw or name not in self.weights:
            return 0
        weight = self.weights[name]
        if not ranges or not self.reads_parts(name):
            return self._decoding_bytes(name, None)
        wanted = _rows_in(weight, ranges)
        around = [_rows_around(weight, *rows) for rows in wanted]
        is_cut = wanted != around or len(wanted) > 1 or set(ranges) != {0}
        row = prod(weight.shape[1:]) * self._dtype(name).itemsize
        held = sum(end - begin for begin, end in around) * row if is_cut else 0
        return held + max(self._decoding_bytes(name, rows) for rows in around)

    def _decoding_bytes(self, name: str, rows: tuple[int, int] | None) -> int:
        """Memory of what rows are decoded from, None being all, and of NumPy's temporary arrays."""
        weight, specs = self.weights[name], self.stored_specs(name)
        begin, end = _row_ranges(weight, rows)[0]
        temporary = (end - begin) * prod(weight.shape[1:]) * _TEMPORARY
        if rows is None or rows == (0, weight.shape[0]):
            return sum(s.nbytes for s in specs.values()) + temporary
        places = {role: (place.axis, place.within(*rows)) for role, place in weight.rows.items() if role in specs}
        whole = sum(s.nbytes for role, s in specs.items() if role not in places)
        parts = sum(specs[r].nbytes * (last - first) // specs[r].shape[axis] for r, (axis, (first, last)) in places.items())
        return whole + parts * (2 if getattr(self._stored, "is_interleaved", False) else 1) + temporary

    @property
    def all_names(self) -> Iterable[str]:
        """The model's names, and the file's own."""
        return dict.fromkeys([*self, *self._stored])

    def parameters(self, names: Iterable[str], used: Iterable[str]) -> list[str]:
        """Those of these names, which nothing reads, that change what encoded weights are or what they are multiplied with."""
        given, parts = list(names), {part for weight in self.weights.values() for part in weight.stored.values()}
        stored = (part for n in used for part in (self.weights[n].stored.values() if n in self.weights else {n} & parts))
        return [*parameters_beside(given, stored), *(name for name in given if name in self._parameters)]

    def check_digests(self, digests: Mapping[str, str]) -> None:
        """Raises RelaxError where a weight is not encoded as in the file that a module was compiled for."""
        for name, digest in digests.items():
            if name in self.weights and self.weights[name].digest(self.stored_specs(name)) != digest:
                raise RelaxError(
                    f"'{self.path}': weight '{name}': expected it encoded as in the checkpoint that the module was compiled "
                    f"for, got it otherwise ({self.format}): compile for this one"
                )

    def stored_specs(self, name: str) -> dict[str, ArraySpec]:
        """Of the tensors that make a weight, by what the format calls them."""
        return {role: self.stored_spec(n) for role, n in self.weights[name].stored.items()}

    def _dtype(self, name: str) -> np.dtype[Any]:
        return self._dtypes.get(name, numpy_dtype(self._weight(name).dtype or "f32"))

    def _weight(self, name: str) -> EncodedWeight:
        if name not in self.weights:
            near = difflib.get_close_matches(str(name), self._names, 1)
            hint = f", did you mean {near[0]!r}" if near else ""
            raise RelaxError(f"'{self.path}': expected a tensor of this checkpoint, got {name!r}{hint}")
        return self.weights[name]

    def _parts(self, name: str) -> Iterable[str]:
        return self.weights[name].stored.values() if name in self.weights and name not in self._raw else [name]


def _as_bytes(array: Array) -> Array:
    """Exponents alone (E8M0) as bytes."""
    return array.view(np.uint8) if array.dtype.name == "float8_e8m0fnu" else array


def _decoded(
    weight: EncodedWeight, tensors: Mapping[str, Array], dtype: np.dtype[Any], rows: tuple[int, int]
) -> Array:  # fmt: skip
    """Rows of the weight in a dtype, a number at a time: temporary arrays take no more than those need."""
    first, last = rows
    out = aligned_empty(dtype, (last - first, *weight.shape[1:]) if weight.shape else ())
    for begin, end in ((b - first, e - first) for b, e in _row_ranges(weight, rows)):
        given = {role: _cut(array, weight.rows.get(role), begin, end) for role, array in tensors.items()}
        value = weight.value({role: ArraySpec.of(array) for role, array in given.items()}).astype(dtype_name(dtype))
        if value.spec.nbytes < _COMPILED or not _decoder().decode(value, given, out[begin:end]):
            out[begin:end] = evaluate(value, given)
    return out


def _decoder() -> Any:
    """The compiler is imported where a weight is large enough for it."""
    return importlib.import_module("...compiled_decoding", __package__)


def _unit(weight: EncodedWeight) -> int:
    """Rows that are decoded together: those of whole indices of every tensor."""
    return lcm(weight.unit, *(Fraction(r.each).numerator for r in weight.rows.values()))


def _row_ranges(weight: EncodedWeight, rows: tuple[int, int] | None = None) -> list[tuple[int, int]]:
    """The rows, None being all, as many at once as are decoded together."""
    first, last = rows or (0, weight.shape[0] if weight.shape else 1)
    if not weight.rows or not weight.shape:
        return [(first, last)]
    unit = _unit(weight)
    step = max(1, _PART // max(1, prod(weight.shape[1:]) * unit)) * unit
    return [(begin, min(begin + step, last)) for begin in range(first, last, step)]


def _rows_in(weight: EncodedWeight, ranges: Mapping[int, Ranges]) -> list[tuple[int, int]]:
    return list(ranges.get(0, [(0, weight.shape[0])]))


def _rows_around(weight: EncodedWeight, begin: int, end: int) -> tuple[int, int]:
    """What has to be decoded for some rows."""
    unit = _unit(weight)
    return begin // unit * unit, min(-(-end // unit) * unit, weight.shape[0])


def _cut(array: Array, rows: RowPlace | None, begin: int, end: int) -> Array:
    if rows is None:
        return array
    index = [slice(None)] * array.ndim
    index[rows.axis] = slice(*rows.within(begin, end))
    return array[tuple(index)]

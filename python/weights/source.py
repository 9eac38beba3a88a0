"""``TensorSource``: named tensors that are stored somewhere, whatever the format; what reads weights takes one.

A format plugs in at one of two places (:mod:`.opening` has both tables):

- a *container* (safetensors, ``.npz``, GGUF, ...) is opened by path and gives a source with the tensors as they are stored;
- an *encoding* (GPTQ, AWQ, FP8 blocks, ...) takes a source, whose ``config["quantization_config"]`` says how its tensors are to
  be read, and gives another one under the model's own names, which decodes a tensor when it is asked for.
"""

from __future__ import annotations

import itertools
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from math import prod
from typing import Any, Protocol, cast, runtime_checkable

import numpy as np

from .arrays import Array, ArraySpec

__all__ = [
    "DecodingSource", "DerivedSource", "RangedSource", "Ranges", "ReadingSource", "TensorSource", "ranges_of", "read_all",
    "read_part", "reads_parts", "runs_of",
]  # fmt: skip

#: Begins and ends.
Ranges = Sequence[tuple[int, int]]


class TensorSource(Protocol):
    """Named tensors; nothing is read from them before :meth:`get`.

    Thread-safe. What it says of itself must be cheap: :meth:`spec` reads no tensor's bytes, and a source that computes its
    tensors keeps none of them.
    """

    @property
    def path(self) -> str:
        """What was opened, as errors name it."""
        ...

    @property
    def metadata(self) -> Mapping[str, str]:
        """Texts that the file keeps beside its tensors."""
        ...

    @property
    def config(self) -> Mapping[str, Any]:
        """The model's ``config.json``, with ``quantization_config`` where it has one; empty where there is none.

        Raises:
            RelaxError: it cannot be read, or is no JSON object.
        """
        ...

    @property
    def files(self) -> list[str]:
        """Paths of all files that are read: what is written must be none of them."""
        ...

    @property
    def identity(self) -> str | None:
        """A text that changes when the content does, or how it is read: preparation goes on only where it is equal. None
        when that cannot be told.
        """
        ...

    def __iter__(self) -> Iterator[str]:
        """The names."""
        ...

    def __contains__(self, name: object, /) -> bool: ...

    def spec(self, name: str) -> ArraySpec:
        """Dtype and shape of a tensor. Raises RelaxError when there is none, or NumPy lacks its dtype."""
        ...

    def get(self, name: str) -> Array:
        """A tensor, read-only where it is mapped; of this spec. Raises as :meth:`spec`, and when it cannot be read."""
        ...

    def prefetch(self, name: str) -> None:
        """Starts reading what :meth:`get` will need, without waiting and without memory of the process."""
        ...

    def release(self, name: str) -> None:
        """Gives pages that :meth:`get` touched back to the system; arrays that it gave stay valid."""
        ...

    def check_unchanged(self, names: Iterable[str] | None = None) -> None:
        """Raises RelaxError when a file (of these tensors) is not what was opened any more."""
        ...


@runtime_checkable
class DecodingSource(TensorSource, Protocol):
    """A source that decodes, to dtypes that are asked for."""

    def serving(self, wanted: Mapping[str, ArraySpec]) -> TensorSource:
        """The source for weights that will be asked for so: in these dtypes, or as the file's own tensors."""
        ...

    def parameters(self, names: Iterable[str], used: Iterable[str]) -> list[str]:
        """Those of these names, which nothing reads, that change what encoded weights of those that are used are."""
        ...

    def check_digests(self, digests: Mapping[str, str]) -> None:
        """Raises RelaxError where a weight is not encoded as a digest says that it was when a module was compiled."""
        ...

    def beside(self, name: str, ranges: Mapping[int, Ranges] | None = None) -> int:
        """Memory of the process that a tensor, or a part of it, takes beside its array from :meth:`get` to :meth:`release`."""
        ...


class DerivedSource:
    """A source whose tensors are made of those of another one: what it has of that one as it is, and reading ahead."""

    def __init__(self, stored: Any):
        """Takes the other source."""
        self._stored = stored
        self._touched: dict[str, dict[str, None]] = {}

    def _parts(self, name: str) -> Iterable[str]:
        """The other source's tensors that one is made of."""
        raise NotImplementedError(name)

    def _touch(self, name: str, parts: Iterable[str]) -> None:
        """Says which of these :meth:`release` lets go of, where a part of a tensor is read: of no others."""
        self._touched.setdefault(name, {}).update(dict.fromkeys(parts))

    @property
    def config(self) -> Mapping[str, Any]:
        """The model's configuration; empty where there is none."""
        return self._stored.config

    @property
    def ahead_bytes(self) -> int:
        """Memory that reading ahead takes at most; nothing where files are mapped."""
        return getattr(self._stored, "ahead_bytes", 0)

    @property
    def notes(self) -> tuple[str, ...]:
        """What a report says of how files were read."""
        return getattr(self._stored, "notes", ())

    def prefetch(self, name: str) -> None:
        """Starts reading what a tensor is made of."""
        for part in self._parts(name):
            self._stored.prefetch(part)

    def release(self, name: str) -> None:
        """Lets go of what a tensor, or the parts of it that were read, was made of."""
        touched = self._touched.pop(name, None)
        for part in self._parts(name) if touched is None else touched:
            self._stored.release(part)

    def check_unchanged(self, names: Iterable[str] | None = None) -> None:
        """Raises RelaxError when a file (of what these tensors are made of) is not what was opened any more."""
        self._stored.check_unchanged(None if names is None else [part for name in names for part in self._parts(name)])


class ReadingSource(Protocol):
    """A source of mapped files that also reads: touching a view ends the process where a file was cut off meanwhile."""

    def read_all(self, names: Collection[str]) -> dict[str, Array]:
        """Tensors in memory of their own. Raises RelaxError as :meth:`TensorSource.get`, and for a file that was cut off."""
        ...


class RangedSource(Protocol):
    """A source that reads parts of tensors."""

    def read_part(self, name: str, ranges: Mapping[int, Ranges], place: Array | None = None) -> Array:
        """Of a tensor, what is in these ranges along some axes, one behind the other; only these bytes are read.

        It may be in ``place``, if that is an array of its dtype and shape.
        """
        ...


def read_part(
    source: TensorSource, name: str, ranges: Mapping[int, Ranges], place: Array | None = None
) -> Array:  # fmt: skip
    """A part of a tensor: of its bytes alone where the source can, else cut from what it gives."""
    if hasattr(type(source), "read_part"):
        return cast("RangedSource", source).read_part(name, ranges, place)
    return ranges_of(source.get(name), ranges)


def reads_parts(source: TensorSource, name: str) -> bool:
    """Whether a part of a tensor takes no more memory than its bytes."""
    if hasattr(type(source), "reads_parts"):
        return cast(Any, source).reads_parts(name)
    return hasattr(type(source), "read_part")


def ranges_of(array: Array, ranges: Mapping[int, Ranges]) -> Array:
    """What is in these ranges along some axes, one behind the other; of one range each a view."""
    for axis, pieces in ranges.items():
        before = (slice(None),) * axis
        parts = [array[(*before, slice(begin, end))] for begin, end in pieces]
        array = parts[0] if len(parts) == 1 else np.concatenate(parts, axis)
    return array


def runs_of(shape: Sequence[int], itemsize: int, ranges: Mapping[int, Ranges]) -> Iterator[tuple[int, int]]:
    """Where bytes of a part lie that follow one another, and how many, in order; ranges that are whole cut nothing."""
    if not prod(shape):
        return iter(())
    cut = {i: list(r) for i, r in ranges.items() if list(r) != [(0, shape[i])]}
    last = max(cut, default=0)
    if prod(shape[:last]) == 1:  # one behind the other: nothing to compute for each row
        line = prod(shape[last + 1 :]) * itemsize
        return iter([(b * line, (e - b) * line) for b, e in cut.get(last, [(0, shape[last])])] if shape else [(0, itemsize)])
    starts, nbytes = np.zeros(1, np.int64), prod(shape) * itemsize
    for axis, size in enumerate(shape[:last]):  # of every index in front, in one array: there are as many as rows
        nbytes //= size
        indices = np.concatenate([np.arange(b, e) for b, e in cut.get(axis, [(0, size)])])
        starts = (starts[:, None] + indices * nbytes).reshape(-1)
    pieces, line = (cut[last], nbytes // shape[last]) if cut else ([(0, 1)], nbytes)
    lines = (starts[:, None] + np.array([b * line for b, _ in pieces])).reshape(-1)
    return zip(lines.tolist(), itertools.cycle([(e - b) * line for b, e in pieces]), strict=False)


def read_all(source: TensorSource, names: Collection[str]) -> dict[str, Array]:
    """Tensors for one use: read where the source can, else as it gives them."""
    if hasattr(type(source), "read_all"):
        return cast("ReadingSource", source).read_all(names)
    return {name: source.get(name) for name in names}

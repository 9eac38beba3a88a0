"""Where weights come from: a checkpoint or a mapping behind one interface, and their comparison with what is expected."""

from __future__ import annotations

import itertools
import os
import threading
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any, cast

from ..dialect.errors import RelaxError
from ..dialect.reports.report import bytes_text, plural
from ..lowering.manifest_specs import WeightSpec
from ..weights.arrays import Array, ArraySpec, as_reals, is_complex, reals_spec, to_numpy
from ..weights.checksums import SAMPLES
from ..weights.opening import decoded, open_tensors
from ..weights.safetensors import Checkpoint
from ..weights.source import DecodingSource, Ranges, TensorSource, ranges_of, read_all, read_part, reads_parts
from .torch_tensors import is_composed, plain_tensors

__all__ = [
    "AGAIN", "CURRENT_FORMAT", "FILE_FORMAT", "FINGERPRINT", "WRITTEN_BY", "BytesReader", "MappingSource", "PreparedWeights",
    "StoredSource", "WeightSource", "open_source", "problems_text", "spec_problem", "weight_problems",
]  # fmt: skip

#: What to do about prepared weights that are not right.
AGAIN = "prepare the raw weights again"

#: The metadata key that ties a prepared file to the executable it is made for.
FINGERPRINT = "relaxir.fingerprint"
#: The metadata key of the format of prepared files, and the one that is written. Files without the key are of format 1.
FILE_FORMAT, CURRENT_FORMAT = "relaxir.format", "1"
#: The metadata key of the relaxir that wrote a prepared file.
WRITTEN_BY = "relaxir.version"


#: Fills memory with bytes from one of them on.
BytesReader = Callable[[int, memoryview], None]

#: What writes tensors that are several as the program has them, and what reads those of a plain program.
_SAVE = "export the quantized model and write its weights by rx.save_weights, or give a folder that transformers saved"

#: Weights that ``repr`` shows.
_SHOWN = 4


class PreparedWeights(dict[str, Any]):
    """Prepared weights in memory, by name.

    Attributes:
        fingerprint: of the executable they were prepared for.
        report: what the preparation did (:class:`.prepare.PrepareReport`).
    """

    def __init__(self, arrays: Mapping[str, Array], fingerprint: str, report: object = None):
        super().__init__(arrays)
        self.fingerprint = fingerprint
        self.report = report

    def __repr__(self) -> str:
        """How many there are and how large, not their elements."""
        shown = [f"{name}: {array.dtype}{list(array.shape)}" for name, array in itertools.islice(self.items(), _SHOWN)]
        more = ["..."] if len(self) > _SHOWN else []
        size = bytes_text(sum(array.nbytes for array in self.values()))
        return f"<{type(self).__name__}: {plural(len(self), 'weight')}, {size}; {', '.join([*shown, *more])}>"


def _fingerprint(tensors: TensorSource) -> str | None:
    """That of a prepared file, None for raw weights. Raises RelaxError for a file of a format that is not known here."""
    metadata = tensors.metadata
    format_ = metadata.get(FILE_FORMAT, CURRENT_FORMAT)
    if FINGERPRINT in metadata and format_ != CURRENT_FORMAT:
        writer = metadata.get(WRITTEN_BY, "another version")
        raise RelaxError(
            f"'{tensors.path}': expected prepared weights of format {CURRENT_FORMAT}, got format {format_[:20]!a}, "
            f"written by relaxir {writer[:20]}: {AGAIN}"
        )
    return metadata.get(FINGERPRINT)


class StoredSource:
    """Tensors of a file or folder; complex ones as code takes them, see :func:`~..weights.arrays.reals_spec`.

    Attributes:
        description: how errors name it.
        fingerprint: of the executable they were prepared for; None for raw weights.
        is_lazy: whether looking at a tensor may make it, which takes time and memory.
        hint: what helps where weights are missing; None where nothing is known.
        encoding_hint: what to do where tensors would have to be decoded; None where they are.
        files: paths that must not be written to.
    """

    is_lazy = False
    hint: str | None = None
    encoding_hint: str | None = None

    def __init__(self, tensors: TensorSource):
        self._tensors = tensors
        self.description = f"'{tensors.path}'"
        self.fingerprint = _fingerprint(tensors)
        self.files = tensors.files

    def serving(self, wanted: Mapping[str, ArraySpec]) -> StoredSource:
        """The same, where encoded weights of these names are decoded to these dtypes."""
        tensors = self._tensors
        if not hasattr(type(tensors), "serving"):  # isinstance would ask for all properties, such as the identity
            return self
        return StoredSource(cast("DecodingSource", tensors).serving(wanted))

    @property
    def all_names(self) -> Iterable[str]:
        """The names, and those of tensors that others are decoded from."""
        return getattr(self._tensors, "all_names", self)

    def check_digests(self, digests: Mapping[str, str]) -> None:
        """Raises RelaxError where encoded weights are not those that a module was compiled for."""
        if hasattr(type(self._tensors), "check_digests"):
            cast("DecodingSource", self._tensors).check_digests(digests)

    def parameters(self, names: Iterable[str], used: Iterable[str]) -> list[str]:
        """Those of these names, which nothing reads, that change what encoded weights of those that are used are."""
        tensors = self._tensors
        return cast("DecodingSource", tensors).parameters(names, used) if hasattr(type(tensors), "parameters") else []

    def __iter__(self) -> Iterator[str]:
        return iter(self._tensors)

    def __contains__(self, name: object) -> bool:
        return name in self._tensors

    def spec(self, name: str) -> ArraySpec:
        return reals_spec(self._tensors.spec(name))

    def _is_complex(self, name: str) -> bool:
        return is_complex(self._tensors.spec(name).dtype)

    def get(self, name: str) -> Array:
        return as_reals(self._tensors.get(name))

    def read(self, name: str, place: Array | None = None) -> Array:
        """A tensor for one use, there if it can be; of a file that is cut off meanwhile an error, where a view would end the
        process.
        """
        tensors = self._tensors
        found = tensors.read(name, place) if isinstance(tensors, Checkpoint) else read_all(tensors, [name])[name]
        return as_reals(found)

    def reads_parts(self, name: str) -> bool:
        """Whether a part of a tensor takes no more memory than its bytes."""
        return reads_parts(self._tensors, name) and not self._is_complex(name)

    def read_part(self, name: str, ranges: Mapping[int, Ranges], place: Array | None = None) -> Array:
        """Of a tensor, what is in these ranges along some axes: only these bytes, where the format lets them be found."""
        return ranges_of(self.read(name), ranges) if self._is_complex(name) else read_part(self._tensors, name, ranges, place)

    def reads_together(self, name: str) -> bool:
        """Whether :meth:`read_pieces` can be called for a tensor."""
        return isinstance(self._tensors, Checkpoint) and not self._is_complex(name)

    def read_pieces(self, name: str, axis: int, ranges: Ranges, place: Array) -> Array:
        """Neighbouring pieces of a tensor, in ``place``: all of one behind all of the other."""
        cast("Checkpoint", self._tensors).read_pieces(name, axis, ranges, place)
        return place

    def bytes_reader(self, name: str) -> BytesReader | None:
        """What fills memory with a tensor's bytes from one of them on; None where they are not stored as they are."""
        return self._tensors.bytes_reader(name) if isinstance(self._tensors, Checkpoint) else None

    def beside(self, name: str, ranges: Mapping[int, Ranges] | None = None) -> int:
        """Memory that a tensor, or a part of it, takes beside its array while it is read: what it is decoded from."""
        tensors = self._tensors
        return cast("DecodingSource", tensors).beside(name, ranges) if hasattr(type(tensors), "beside") else 0

    @property
    def ahead_bytes(self) -> int:
        """Memory that reading ahead takes at most; nothing where files are mapped."""
        return getattr(self._tensors, "ahead_bytes", 0)

    @property
    def notes(self) -> tuple[str, ...]:
        """What a report says of how files were read."""
        return getattr(self._tensors, "notes", ())

    @property
    def identity(self) -> str | None:
        """Changes when the content does; None when that cannot be told."""
        return self._tensors.identity

    @property
    def config(self) -> Mapping[str, Any]:
        """The model's configuration; empty where there is none."""
        return self._tensors.config

    def check_unchanged(self, names: Iterable[str] | None = None) -> None:
        self._tensors.check_unchanged(names)

    def damaged(self, names: Sequence[str], whole: bool) -> list[str]:
        """The tensors whose bytes are not what was prepared: all read whole, or the ends of some.

        Raises:
            RelaxError: the file has no checksums, or not as many as tensors, or is not what was opened any more.
        """
        checkpoint = self._tensors
        checkpoint.check_unchanged()  # what was cut off since it was opened must not be touched
        known = checkpoint.checksums() if isinstance(checkpoint, Checkpoint) else None
        if known is None or not isinstance(checkpoint, Checkpoint):
            raise RelaxError(f"{self.description}: expected checksums of {len(names)} tensors, got none: {AGAIN}")
        chosen = names if whole else names[:: -(-len(names) // SAMPLES) or 1]
        return checkpoint.damaged({name: known[name] for name in chosen}, whole)

    def prefetch(self, name: str) -> None:
        self._tensors.prefetch(name)

    def release(self, name: str) -> None:
        self._tensors.release(name)


class MappingSource:
    """A mapping from names to arrays of any library; attributes, and complex numbers, are as in :class:`StoredSource`.

    A mapping may make its tensors when they are asked for: each is asked for once, and kept until it is released.
    """

    identity: str | None = None
    config: Mapping[str, Any] = MappingProxyType({})
    ahead_bytes = 0
    notes: tuple[str, ...] = ()
    hint: str | None = None
    encoding_hint: str | None = "a mapping is not decoded: give the path of the file or folder"

    def __init__(self, mapping: Mapping[str, object]):
        """Takes the mapping; of one that makes its tensors nothing is asked for yet, of others torch's tensors of several
        tensors are taken apart.

        Raises:
            RelaxError: a name is no text, or is also that of a part of another tensor.
        """
        other = next((n for n in mapping if not isinstance(n, str)), None)
        if other is not None:
            raise RelaxError(f"expected names of weights as text, got {other!r}")
        self.is_lazy = type(mapping).__getitem__ is not dict.__getitem__
        composed = {} if self.is_lazy else {n: type(t).__name__ for n, t in mapping.items() if is_composed(t)}
        self._mapping = _taken_apart(mapping) if composed else mapping
        self._names = dict.fromkeys(self._mapping)
        if composed:
            name, kind = next(iter(composed.items()))
            self.hint = f"'{name}' of a class {kind} is several tensors, for a program that torch exported with them: {_SAVE}"
        self._kept: dict[str, Array] = {}
        self._locks: defaultdict[str, threading.Lock] = defaultdict(threading.Lock)
        self.description = "weights"
        self.fingerprint: str | None = getattr(mapping, "fingerprint", None)
        self.files: list[str] = []

    def serving(self, wanted: Mapping[str, ArraySpec]) -> MappingSource:
        """The same: nothing is encoded."""
        del wanted
        return self

    @property
    def all_names(self) -> Iterable[str]:
        """The names."""
        return self

    def check_digests(self, digests: Mapping[str, str]) -> None:
        """Nothing is encoded."""
        del digests

    def parameters(self, names: Iterable[str], used: Iterable[str]) -> list[str]:
        """None: nothing is encoded."""
        del names, used
        return []

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __contains__(self, name: object) -> bool:
        return name in self._names

    def spec(self, name: str) -> ArraySpec:
        return ArraySpec.of(self.get(name) if self.is_lazy else self._made(name))

    def get(self, name: str) -> Array:
        with self._locks[name]:
            found = self._kept.get(name)
            if found is None:
                found = self._kept[name] = self._made(name)
            return found

    def read(self, name: str, place: Array | None = None) -> Array:
        """A tensor for one use, where it is."""
        del place
        return self.get(name)

    def reads_parts(self, name: str) -> bool:
        """Whether a part of a tensor takes no more memory than its bytes; not of one that is made for it."""
        del name
        return not self.is_lazy

    def read_part(self, name: str, ranges: Mapping[int, Ranges], place: Array | None = None) -> Array:
        """Of a tensor, what is in these ranges along some axes."""
        del place
        return ranges_of(self.get(name), ranges)

    def reads_together(self, name: str) -> bool:
        """Never: arrays are there."""
        del name
        return False

    def read_pieces(self, name: str, axis: int, ranges: Ranges, place: Array) -> Array:
        """Not to be called."""
        raise NotImplementedError(name, axis, ranges, place)

    def bytes_reader(self, name: str) -> BytesReader | None:
        """None: arrays are there."""
        del name
        return None

    def beside(self, name: str, ranges: Mapping[int, Ranges] | None = None) -> int:
        """None: arrays are as they are."""
        return 0

    def _made(self, name: str) -> Array:
        return as_reals(to_numpy(self._mapping[name], f"weight '{name}'"))

    def check_unchanged(self, names: Iterable[str] | None = None) -> None:
        """Nothing to do: there is no file."""

    def damaged(self, names: Sequence[str], whole: bool) -> list[str]:
        """None: arrays in memory have no checksums. Raises RelaxError when it is asked for."""
        if whole:
            raise RelaxError(f"{self.description}: expected a file to verify, got a mapping, which has no checksums")
        return []

    def prefetch(self, name: str) -> None:
        """Nothing to do: it is in memory."""

    def release(self, name: str) -> None:
        self._kept.pop(name, None)


def _taken_apart(mapping: Mapping[str, object]) -> dict[str, object]:
    """A mapping of plain tensors. Raises RelaxError where two have one name."""
    found: dict[str, object] = {}
    for name, value in mapping.items():
        for part, tensor in plain_tensors(name, value):
            if part in found:
                raise RelaxError(f"weights: tensor '{part}': expected it once, got it twice")
            found[part] = tensor
    return found


WeightSource = StoredSource | MappingSource


def open_source(source: object) -> WeightSource:
    """A path, a :class:`Checkpoint` or a mapping as a source. Raises RelaxError for anything else, or as Checkpoint does."""
    if isinstance(source, (str, os.PathLike)):
        return StoredSource(_decoded(open_tensors(cast("str", source))))
    if isinstance(source, Mapping):
        return MappingSource(cast("Mapping[str, object]", source))
    if isinstance(source, Checkpoint):
        return StoredSource(_decoded(source))
    if callable(getattr(type(source), "spec", None)) and callable(getattr(type(source), "get", None)):
        return StoredSource(cast("TensorSource", source))  # of a format's own, decoded as its maker wants
    hint = ": its state_dict is one" if hasattr(source, "state_dict") else ""
    expected = "expected weights as a path, a Checkpoint or a mapping from names to arrays"
    raise RelaxError(f"{expected}, got {type(source).__name__}{hint}")


def _decoded(tensors: TensorSource) -> TensorSource:
    """Prepared weights are as compiled code reads them, whatever their names are."""
    return tensors if FINGERPRINT in tensors.metadata else decoded(tensors)


def weight_problems(expected: Mapping[str, WeightSpec], source: WeightSource, names_only: bool = False) -> list[str]:
    """One line for every expected weight that is missing or looks different, with expected and got."""
    return [line for name, weight in expected.items() if (line := _problem(name, weight, source, names_only))]


def _problem(name: str, weight: WeightSpec, source: WeightSource, name_only: bool) -> str | None:
    if name not in source:
        return f"weight '{name}': expected {weight.array}, got none"
    if name_only:
        return None
    try:
        got = source.spec(name)
    except RelaxError as error:  # a dtype that NumPy lacks: one line among the others
        return str(error).removeprefix(f"{source.description}: ")
    return spec_problem(name, weight, got)


def spec_problem(name: str, weight: WeightSpec, got: ArraySpec) -> str | None:
    """What is wrong with how a weight looks, if anything."""
    return None if got == weight.array else f"weight '{name}': expected {weight.array}, got {got}"


def problems_text(what: str, problems: list[str], total: int) -> str:
    """The message that lists all problems at once."""
    if len(problems) == 1:
        return f"{what}: {problems[0]}"
    return "\n  ".join([f"{what}: expected {total} weights, got {len(problems)} problems", *problems])

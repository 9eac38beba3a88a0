"""The raw weights of an executable, each found in a source, in the dtype that compiled code takes; what was done is told.

Under a weight's name is a tensor of the source (renamed, or one that it is tied to), or a value that the module brings along. A
tensor in a narrower dtype is widened, which changes no number; in a wider one it is rounded only when that is asked for.
"""

from __future__ import annotations

import json
import math
import re
import threading
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import numpy as np

from ..dialect.array_spec import dtype_text
from ..dialect.checks import expect_flag
from ..dialect.dtypes import numpy_dtype
from ..dialect.errors import ContentError, RelaxError
from ..dialect.reports.checkpoint import CheckpointWeights
from ..dialect.reports.fixed import FixedSection, fixed_digest
from ..lowering.manifest import Manifest
from ..lowering.manifest_specs import RawSpec, WeightSpec
from ..weights.arrays import Array, ArraySpec
from ..weights.casts import BFLOAT16_LIMIT, converted, has_beyond, has_nonfinite, is_exact, is_same_kind
from ..weights.companions import parameters_beside
from ..weights.folder_files import MERGING
from ..weights.model_buffers import computed_buffer
from ..weights.source import ranges_of
from .joined_experts import JoinedExperts, JoinedWeight, joined_weight
from .names import Rename, near_names, other_name, prefix_hint, rename_rules, renamed
from .narrow_limits import rounded_weights
from .sources import BytesReader, WeightSource, problems_text, spec_problem
from .state import first_value

__all__ = ["Piece", "RawWeights", "known_value", "part_spec"]

# Missing weights that get a hint of near names each.
_HINTS = 5


class Piece(NamedTuple):
    """A range of a weight, along an axis; where ``each`` is given, ranges of that size, all of one behind all of the other.

    ``within`` are ranges along other axes: an axis, a begin and an end each.
    """

    axis: int
    begin: int
    end: int
    each: int | None = None
    within: tuple[tuple[int, int, int], ...] = ()

    @property
    def along(self) -> tuple[tuple[int, int, int], ...]:
        """What there is along each axis of which there is not all."""
        return ((self.axis, self.begin, self.end), *self.within)

    @property
    def ranges(self) -> list[tuple[int, int]]:
        """Those that lie one behind the other."""
        return [(i, min(i + (self.each or self.end), self.end)) for i in range(self.begin, self.end, self.each or self.end)]


class RawWeights:
    """Raw weights by the names of the manifest; thread-safe.

    Attributes:
        description: how errors name the source.
        trained_state: state of which the source has other first values than the code, which are not used.
        not_finite: weights that have a NaN or an infinity, as far as they were read.
    """

    def __init__(self, manifest: Manifest, source: WeightSource, rename: Rename = None, cast: bool = False):
        """Finds every raw weight of the manifest.

        Raises:
            RelaxError: weights are missing or look different (all are listed, with hints); or as :func:`~.names.rename_rules`.
        """
        expect_flag(cast, "cast")
        self.description = source.description
        self.not_finite: set[str] = set()
        self._specs, self._cast = manifest.raw_weights, cast
        self._source: WeightSource | JoinedExperts = source
        self._rank, self._ranks = manifest.rank, manifest.ranks
        self._quantized = {n for w in manifest.prepared_weights.values() if "quantize" in w.ops for n in w.sources}
        self._limits = dict.fromkeys(rounded_weights(manifest), BFLOAT16_LIMIT)
        self._others: dict[str, str] = {}
        self._computed: dict[str, Array] = {}
        self._changed: dict[str, tuple[np.dtype[Any], np.dtype[Any]]] = {}
        self._lock = threading.Lock()
        rules = rename_rules(rename)
        names = renamed(source.all_names, rules, source.description)
        source.check_digests({names[n]: digest for n, digest in _digests(manifest).items() if n in names})
        wanted = {names.get(n, n): spec.whole.array for n, spec in self._specs.items()}
        joined = self._joined_experts(names)
        self._joined = joined
        for name, weight in joined.items():
            wanted |= weight.specs(self._specs[name].whole.array)
        served = source.serving(wanted)
        self._source = found = JoinedExperts(served, joined) if joined else served
        own = renamed(served, rules, source.description)
        self._found = self._matched({n: at for n, at in own.items() if at in found} | {name: name for name in joined})
        self.extra = tuple(n for n in found if n not in self._used and n not in self._specs)
        self._rules = [[pattern.pattern, text] for pattern, text in rules]
        self._check_specs()
        self._check_fixed(manifest, own)
        self.trained_state = self._trained_state(manifest, own)
        self._refuse_parameters(served)

    @property
    def files(self) -> list[str]:
        """Paths that must not be written to."""
        return self._source.files

    @property
    def identity(self) -> str | None:
        """Changes when what is prepared does; None when that cannot be told."""
        known = self._source.identity
        plain = not (self._rules or self._cast or self._source.config)
        return known if known is None or plain else f"{known}\n{self.reading}"

    @property
    def reading(self) -> str:
        """How the files are read: a text that is the same on every machine."""
        return json.dumps([self._rules, self._cast, dict(self._source.config)], sort_keys=True, default=str)

    @property
    def notes(self) -> tuple[str, ...]:
        """What was done beyond reading, one line each."""
        casts = Counter(self._changed.values())
        how = (("widened", True), ("rounded", False))
        lines = [
            f"{count} weights {word} from {dtype_text(a)} to {dtype_text(b)}"
            for word, exact in how
            for (a, b), count in casts.items()
            if is_exact(a, b) is exact
        ]
        lines += self._source.notes
        lines += [f"{len(self._joined)} weights joined of experts that are stored one by one"] if self._joined else []
        lines += [f"'{name}' read from '{other}'" for name, other in self._others.items()]
        lines += [f"computed from config.json: {', '.join(self._computed)}"] if self._computed else []
        lines += [f"state that begins as in the code: {', '.join(self.trained_state)}"] if self.trained_state else []
        lines += [f"not finite: {', '.join(sorted(self.not_finite))}"] if self.not_finite else []
        return tuple(lines)

    @property
    def converts(self) -> bool:
        """Whether any weight takes more memory than its own: it is in another dtype, or decoded."""
        return bool(self._changed) or any(n is not None and self._source.beside(n) for n in self._found.values())

    def nbytes(self, names: Iterable[str]) -> int:
        """Memory that these take while they are in use: as they are stored, and converted where they are."""
        return sum(self.part_bytes(name) for name in set(names))

    def part_bytes(self, name: str, piece: Piece | None = None) -> int:
        """Memory of a weight, or of a piece of it, and of what that is read from where it cannot be read alone."""
        spec, change, found = self._specs[name].array, self._changed.get(name), self._found[name]
        elements = math.prod(part_spec(spec, piece).shape)
        stored = spec.dtype.itemsize if change is None else change[0].itemsize
        own = elements * (spec.dtype.itemsize + (0 if change is None else stored))
        if found is None:
            return own
        ranges = self._part_ranges(self._specs[name], piece)
        alone = not ranges or self._source.reads_parts(found)
        whole = 0 if alone else math.prod(self._specs[name].whole.array.shape) * stored
        return own + self._source.beside(found, ranges) + whole

    @property
    def ahead_bytes(self) -> int:
        """Memory that reading ahead takes at most; nothing where files are mapped."""
        return self._source.ahead_bytes

    @property
    def config(self) -> Mapping[str, Any]:
        """The configuration of the source's model; empty where there is none."""
        return self._source.config

    def tensor(self, name: str) -> str | None:
        """What the source calls a weight; None where it comes from elsewhere."""
        return self._found[name]

    def parts(self, name: str) -> tuple[tuple[str, ...], ...]:
        """What the source calls the matrices of a weight that it has one by one: of each expert those below one another."""
        return self._joined[name].parts if name in self._joined else ()

    def least_dtype(self, name: str) -> np.dtype[Any]:
        """The narrowest dtype that has the same numbers: the source's, where it was widened."""
        stored, wanted = self._changed.get(name, (self._specs[name].array.dtype,) * 2)
        return stored if is_exact(stored, wanted) else wanted

    def reads_parts(self, name: str) -> bool:
        """Whether a piece of a weight takes no more memory than its bytes."""
        found = self._found[name]
        return found is not None and self._source.reads_parts(found)

    def reads_together(self, name: str) -> bool:
        """Whether neighbouring pieces of a weight are read at once, each into memory of its own."""
        return name not in self._changed and self._specs[name].cut is None and self.reads_ranges(name)

    def reads_ranges(self, name: str) -> bool:
        """Whether a range of a weight's bytes is read as fast as these bytes are with all others."""
        found = self._found[name]
        return found is not None and self._source.reads_together(found)

    def bytes_reader(self, name: str) -> BytesReader | None:
        """What fills memory with a weight's bytes from one of them on, which :meth:`check_finite` is to see then; None where
        :meth:`get` does more than read.
        """
        found = self._found[name]
        as_stored = found is not None and name not in self._changed and self._specs[name].cut is None
        return self._source.bytes_reader(found) if as_stored and found is not None and not self._source.is_lazy else None

    def get(self, name: str, place: Array | None = None, piece: Piece | None = None) -> Array:
        """A weight as its spec says, or a piece of it; in the memory of ``place``, an array like it, if it is read as stored.

        Raises:
            RelaxError: it looks different from what the source said, is rounded beyond its dtype, or is to be quantized and not
                finite.
        """
        spec, found = self._specs[name], self._found[name]
        if found is None:
            value = known_value(spec) if spec.value is not None else self._part(spec, self._computed[name])
            return value if piece is None else ranges_of(value, {axis: [(begin, end)] for axis, begin, end in piece.along})
        array = self._read(spec, found, place, piece)
        if self._source.is_lazy and array.dtype.name.startswith("float8_") and array.dtype != spec.array.dtype:
            self._refuse_unread(parameters_beside(self.extra, [found]))
        self.check_finite(name, array)
        wanted = WeightSpec(name, part_spec(spec.array, piece))
        if array.dtype == spec.array.dtype and array.shape == wanted.array.shape:
            return array
        if array.dtype != spec.array.dtype and array.shape == wanted.array.shape and self._may_convert(name, array.dtype):
            result = converted(array, spec.array.dtype)
            if result is None:
                raise ContentError(
                    f"{self.description}: weight '{name}': expected numbers that {dtype_text(spec.array.dtype)} holds, "
                    f"got greater ones in {dtype_text(array.dtype)}"
                )
            return result
        self._refuse([line for line in [spec_problem(name, wanted, ArraySpec.of(array))] if line])
        return array

    def prefetch(self, name: str) -> None:
        """Starts reading a weight."""
        found = self._found[name]
        if found is not None and self._specs[name].cut is None:  # of a part, other ranks' bytes would be read
            self._source.prefetch(found)

    def release(self, name: str) -> None:
        """Lets go of a weight that no running step reads."""
        found = self._found[name]
        if found is not None:
            self._source.release(found)

    def check_unchanged(self, names: Iterable[str] | None = None) -> None:
        """Raises RelaxError when a file (of these weights) is not what was opened any more."""
        self._source.check_unchanged(
            None if names is None else [n for n in map(self._found.__getitem__, names) if n is not None]
        )

    def _read(self, spec: RawSpec, found: str, place: Array | None, piece: Piece | None) -> Array:
        """A tensor of the source, or a piece of it, or of this rank's part of it."""
        if piece is not None and piece.each is not None:
            assert place is not None
            return self._source.read_pieces(found, piece.axis, piece.ranges, place)
        ranges = self._part_ranges(spec, piece)
        if not ranges:
            return self._source.read(found, place)
        got, expected = self._source.spec(found).shape, spec.whole.array.shape
        if got != expected:  # of a source that says only now what it has
            self._refuse([line for line in [spec_problem(spec.name, spec.whole, self._source.spec(found))] if line])
        return self._source.read_part(found, ranges, place)

    def _ranges(self, spec: RawSpec) -> dict[int, list[tuple[int, int]]]:
        """What this rank has of a weight, by axis; nothing where it has all of it."""
        return {} if spec.cut is None else {spec.cut.axis: spec.cut.ranges(self._rank, self._ranks)}

    def _part_ranges(self, spec: RawSpec, piece: Piece | None) -> dict[int, list[tuple[int, int]]]:
        """What a piece of this rank's part is of the whole, by axis."""
        ranges = self._ranges(spec)
        for axis, begin, end in () if piece is None else piece.along:
            ranges[axis] = _within(ranges.get(axis, [(0, spec.array.shape[axis])]), begin, end)
        return ranges

    def _part(self, spec: RawSpec, value: Array) -> Array:
        return ranges_of(value, self._ranges(spec))

    def _joined_experts(self, names: Mapping[str, str]) -> dict[str, JoinedWeight]:
        """Weights that the source has in several tensors."""
        found: dict[str, JoinedWeight] = {}
        for name, spec in self._specs.items():
            if name not in names and len(shape := spec.whole.array.shape) == 3:
                weight = joined_weight(name, shape[0], names, self.description)
                found |= {} if weight is None else {name: weight}
        return found

    def _matched(self, names: dict[str, str]) -> dict[str, str | None]:
        """Of each weight the tensor of the source; None where the module has the value."""
        found: dict[str, str | None] = {}
        missing: list[str] = []
        for name, spec in self._specs.items():
            if spec.value is not None:
                found[name] = None
            elif name in names:
                found[name] = names[name]
            elif (other := other_name(name, names, self._source.config)) is not None:
                found[name] = names[other]
                self._others[name] = other
            elif (value := computed_buffer(name, spec.whole.array, self._source.config)) is not None:
                found[name] = None
                self._computed[name] = value
            else:
                missing.append(name)
        self._refuse_missing(missing, names)
        self._used = set(found.values())
        return found

    def _refuse_missing(self, missing: list[str], names: dict[str, str]) -> None:
        if not missing:
            return
        hint = prefix_hint(missing, names) or self._source.hint or _adapter_hint(names) or _shard_hint(self.description)
        free = [n for n in names if n not in self._specs]
        problems = [
            f"weight '{name}': expected {self._specs[name].whole.array}, got none"
            + (near_names(name, free) if hint is None and i < _HINTS else "")
            for i, name in enumerate(missing)
        ]
        others = {n: names[n] for n, spec in self._specs.items() if n in names and spec.value is None}
        self._refuse(problems + self._problems(others), hint)

    def _check_specs(self) -> None:
        """Compares what the source says of its tensors; one that makes them is asked when they are read."""
        self._refuse(self._problems({name: found for name, found in self._found.items() if found is not None}))

    def _check_fixed(self, manifest: Manifest, names: Mapping[str, str]) -> None:
        """Compares weights that the code has as numbers with what the source has under their names."""
        others = [
            f"weight '{n}': {line}" for n, d in _fixed(manifest).items() if n in names for line in self._other(names[n], d)
        ]
        self._refuse(others, "weights that are part of the code: compile the model with these, too")

    def _trained_state(self, manifest: Manifest, names: Mapping[str, str]) -> tuple[str, ...]:
        """State of which the source has values of the right kind that are not the code's first ones."""
        state = {n: s for n, s in manifest.state.items() if n in names and n not in self._specs}
        alike = {n: s for n, s in state.items() if self._source.spec(names[n]) == s.array}
        read = {n: np.asarray(self._source.read(names[n])) for n in alike}
        return tuple(n for n, value in read.items() if value.tobytes() != first_value(alike[n]).tobytes())

    def _other(self, found: str, digest: str) -> list[str]:
        """What is not as its digest says."""
        value = np.asarray(self._source.read(found))
        wanted = digest.rpartition(" ")[0]
        dtype = numpy_dtype(wanted.partition("[")[0])
        with np.errstate(all="ignore"):
            same = fixed_digest(value if value.dtype == dtype else value.astype(dtype)) == digest
        return [] if same else [f"expected the {wanted} that the code was compiled with, got other values"]

    def _refuse_parameters(self, served: WeightSource) -> None:
        """Raises RelaxError where nothing reads what quantized weights are computed with: eight-bit floats have scales, too."""
        stored = {n: self._joined[n].names if n in self._joined else [at] for n, at in self._found.items() if at is not None}
        floats = [at for n, (dtype, _) in self._changed.items() if dtype.name.startswith("float8_") for at in stored[n]]
        used = [at for names in stored.values() for at in names]
        self._refuse_unread([*served.parameters(self.extra, used), *parameters_beside(self.extra, floats)])

    def _refuse_unread(self, unread: Iterable[str]) -> None:
        text = "expected none beside a quantized weight that nothing reads, got one that may change what the layer computes"
        self._refuse([f"tensor '{name}': {text}" for name in dict.fromkeys(unread)], self._source.encoding_hint)

    def _problems(self, found: dict[str, str]) -> list[str]:
        if self._source.is_lazy:
            return []
        return [line for name, at in found.items() if (line := self._problem(name, at))]

    def _problem(self, name: str, found: str) -> str | None:
        spec = self._specs[name].whole
        try:
            got = self._source.spec(found)
        except RelaxError as error:  # a dtype that NumPy lacks: one line among the others
            return str(error).removeprefix(f"{self.description}: ")
        if got.shape == spec.array.shape and got.dtype != spec.array.dtype and self._may_convert(name, got.dtype):
            return None
        line = spec_problem(name, spec, got)
        can = got.shape == spec.array.shape and is_same_kind(got.dtype, spec.array.dtype)
        return f"{line}: cast=True rounds" if line is not None and can else line

    def _may_convert(self, name: str, dtype: np.dtype[Any]) -> bool:
        """Whether a tensor of this dtype becomes the weight, which is noted."""
        wanted = self._specs[name].array.dtype
        if not is_exact(dtype, wanted) and not (self._cast and is_same_kind(dtype, wanted)):
            return False
        self._changed[name] = (dtype, wanted)
        return True

    def check_finite(self, name: str, array: Array) -> None:
        """Notes a weight that has a NaN or an infinity.

        Raises:
            ContentError: it is to be quantized, or has a number that bf16 lacks and is to be rounded to that.
        """
        if not has_nonfinite(array, self._limits.get(name, math.inf)):
            return
        if name in self._limits and has_beyond(array, self._limits[name]):
            text = f"expected numbers that bf16 holds, got greater ones in {dtype_text(array.dtype)}"
            raise ContentError(f"{self.description}: weight '{name}': {text}")
        if name in self._quantized:
            raise ContentError(f"{self.description}: weight '{name}': expected finite numbers to quantize, got NaN or infinity")
        with self._lock:
            self.not_finite.add(name)

    def _refuse(self, problems: list[str], hint: str | None = None) -> None:
        if problems:
            text = problems_text(self.description, problems, len(self._specs))
            raise RelaxError(text if hint is None else f"{text}\n  {hint}")


def _adapter_hint(names: Iterable[str]) -> str | None:
    """What helps who gives an adapter's tensors."""
    return f"these are an adapter's: {MERGING}" if any(".lora_A." in n or ".lora_B." in n for n in names) else None


def _shard_hint(description: str) -> str | None:
    """What helps who gives one of several files."""
    is_shard = re.search(r"-\d{5}-of-(?!00001)\d{5}\.\w+'$", description) is not None
    return "it is one file of several: give their folder, or its index" if is_shard else None


def _digests(manifest: Manifest) -> dict[str, str]:
    """Of each weight that a module reads as a checkpoint encodes it, how."""
    sections = [s for s in manifest.report.sections if isinstance(s, CheckpointWeights)]
    return {w.name: w.digest for section in sections for w in section.kept if w.digest}


def _fixed(manifest: Manifest) -> dict[str, str]:
    """Digests of weights that the code has as numbers."""
    sections = [s for s in manifest.report.sections if isinstance(s, FixedSection)]
    return {w.name: w.digest for section in sections for w in section.weights}


def part_spec(spec: ArraySpec, piece: Piece | None) -> ArraySpec:
    """Of a piece of an array."""
    if piece is None:
        return spec
    sizes = {axis: end - begin for axis, begin, end in piece.along}
    return ArraySpec(spec.dtype, tuple(sizes.get(i, size) for i, size in enumerate(spec.shape)))


def _within(ranges: Iterable[tuple[int, int]], begin: int, end: int) -> list[tuple[int, int]]:
    """Of what ranges hold, one behind the other, that from one place to another."""
    found: list[tuple[int, int]] = []
    done = 0
    for first, last in ranges:
        low, high = max(begin - done, 0), min(end - done, last - first)
        if low < high:
            found.append((first + low, first + high))
        done += last - first
    return found


def known_value(spec: RawSpec) -> Array:
    """The array of a weight that the module knows."""
    assert spec.value is not None
    values = np.frombuffer(spec.value, spec.array.dtype)
    return np.full(spec.array.shape, values[0]) if values.size == 1 else values.reshape(spec.array.shape)

"""Experts that a file has one by one as the tensors of all that models of transformers take: a source in, a source out.

``mlp.experts.gate_up_proj`` ``[experts, 2 * inner, hidden]`` is ``mlp.experts.0.gate_proj.weight`` above
``mlp.experts.0.up_proj.weight``, and so on; ``mlp.experts.down_proj`` is those of ``down_proj`` alone. Mixtral's files call
them w1, w3 and w2 of ``block_sparse_moe``. A part of such a weight is read from the tensors that it is in.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from math import prod

from ..dialect.errors import RelaxError
from ..weights.arrays import Array, ArraySpec, aligned_empty
from ..weights.source import DerivedSource, Ranges
from .sources import BytesReader, WeightSource

__all__ = ["JoinedExperts", "JoinedWeight", "joined_weight"]

_WEIGHT = re.compile(r"(.*\.)?(\w+)\.experts\.(gate_up_proj|down_proj)")

#: What the matrices of one expert are called, those of one tensor in the order of their rows.
_MATRICES = {"gate_up_proj": (("gate_proj", "up_proj"), ("w1", "w3")), "down_proj": (("down_proj",), ("w2",))}

#: What else files call the module that has the experts.
_MODULES = ("block_sparse_moe", "mlp", "feed_forward", "moe")


@dataclass(frozen=True)
class JoinedWeight:
    """A weight in several tensors; ``parts`` are their names, of each expert those whose rows are one below the other."""

    parts: tuple[tuple[str, ...], ...]

    @property
    def names(self) -> list[str]:
        """All of its tensors."""
        return [name for expert in self.parts for name in expert]

    def specs(self, whole: ArraySpec) -> dict[str, ArraySpec]:
        """What its tensors look like, of rows that are shared out evenly."""
        shape = (whole.shape[1] // len(self.parts[0]), *whole.shape[2:])
        return dict.fromkeys(self.names, ArraySpec(whole.dtype, shape))


def joined_weight(name: str, count: int, names: Mapping[str, str], where: str) -> JoinedWeight | None:
    """What makes the weight of all experts; None where a checkpoint has not its first expert.

    Args:
        name: what the model calls it.
        count: of experts.
        names: by what the model would call them, the checkpoint's tensors.
        where: how errors name the checkpoint.

    Raises:
        RelaxError: there are not as many experts.
    """
    found = _WEIGHT.fullmatch(name)
    if found is None:
        return None
    before, module, last = found[1] or "", found[2], found[3]
    for place in dict.fromkeys((module, *_MODULES)):
        for matrices in _MATRICES[last]:
            base = f"{before}{place}.experts."
            if all(f"{base}0.{m}.weight" in names for m in matrices):
                wanted = [[f"{base}{e}.{m}.weight" for m in matrices] for e in range(count)]
                _check_count(f"{where}: weight '{name}'", wanted, f"{base}{count}.{matrices[0]}.weight", names)
                return JoinedWeight(tuple(tuple(names[n] for n in expert) for expert in wanted))
    return None


def _check_count(what: str, wanted: list[list[str]], further: str, names: Collection[str]) -> None:
    missing = next((n for expert in wanted for n in expert if n not in names), None)
    if missing is not None or further in names:
        got = f"no {missing!r}" if missing is not None else repr(further)
        raise RelaxError(f"{what}: expected {len(wanted)} experts, got {got}")


class JoinedExperts(DerivedSource):
    """A source with weights that are joined; the attributes are those of :class:`.sources.StoredSource`."""

    fingerprint = None

    def __init__(self, stored: WeightSource, joined: Mapping[str, JoinedWeight]):
        """Joins tensors.

        Args:
            stored: where these are.
            joined: what they make, by its name.
        """
        super().__init__(stored)
        self._joined = joined
        self.description, self.files, self.is_lazy = stored.description, stored.files, stored.is_lazy
        self.hint, self.encoding_hint = stored.hint, stored.encoding_hint
        used = {n for weight in joined.values() for n in weight.names}
        self._names = dict.fromkeys([*(n for n in stored if n not in used), *joined])

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __contains__(self, name: object) -> bool:
        return name in self._names

    @property
    def identity(self) -> str | None:
        own = self._stored.identity
        return None if own is None else f"{own}\nwith experts joined"

    def spec(self, name: str) -> ArraySpec:
        """Dtype and shape. Raises RelaxError where the tensors of a weight do not fit together."""
        weight = self._joined.get(name)
        if weight is None:
            return self._stored.spec(name)
        first = [self._stored.spec(n) for n in weight.parts[0]]
        columns = first[0].shape[1:]
        for expert in weight.parts:
            for part, like in zip(expert, first, strict=True):
                got, wanted = self._stored.spec(part), ArraySpec(first[0].dtype, (*like.shape[:1], *columns))
                if got != wanted or len(got.shape) != 2:
                    raise RelaxError(f"{self.description}: tensor {part!r}: expected a matrix {wanted}, got {got}")
        return ArraySpec(first[0].dtype, (len(weight.parts), sum(spec.shape[0] for spec in first), *columns))

    def get(self, name: str) -> Array:
        return self._stored.get(name) if name not in self._joined else self.read(name)

    def read(self, name: str, place: Array | None = None) -> Array:
        """A tensor for one use, as :meth:`.sources.StoredSource.read`."""
        return self._stored.read(name, place) if name not in self._joined else self.read_part(name, {}, place)

    def read_part(self, name: str, ranges: Mapping[int, Ranges], place: Array | None = None) -> Array:
        """What is in ranges along some axes, as :meth:`.sources.StoredSource.read_part`."""
        weight = self._joined.get(name)
        if weight is None:
            return self._stored.read_part(name, ranges, place)
        spec = self.spec(name)
        shape = tuple(sum(e - b for b, e in ranges[i]) if i in ranges else d for i, d in enumerate(spec.shape))
        fits = place is not None and place.dtype == spec.dtype and place.shape == shape
        array = place if place is not None and fits else aligned_empty(spec.dtype, shape)
        pieces = list(self._pieces(weight, spec.shape, ranges))
        self._touch(name, (part for part, *_ in pieces))
        for part, within, expert, rows in pieces:
            target = array[expert, rows]
            got = self._stored.read_part(part, within, target) if within else self._stored.read(part, target)
            if got.ctypes.data != target.ctypes.data:
                target[...] = got
        return array

    def _pieces(
        self, weight: JoinedWeight, shape: tuple[int, ...], ranges: Mapping[int, Ranges]
    ) -> Iterator[tuple[str, dict[int, Ranges], int, slice]]:
        """What is read: a tensor, ranges of it, and the expert and the rows of the result where that belongs."""
        columns: dict[int, Ranges] = {1: ranges[2]} if 2 in ranges else {}
        sizes = [self._stored.spec(n).shape[0] for n in weight.parts[0]]
        experts = [e for begin, end in ranges.get(0, [(0, shape[0])]) for e in range(begin, end)]
        for at, expert in enumerate(experts):
            row = 0
            for begin, end in ranges.get(1, [(0, shape[1])]):
                first = 0
                for part, size in zip(weight.parts[expert], sizes, strict=True):
                    low, high = max(begin - first, 0), min(end - first, size)
                    if low < high:
                        rows: dict[int, Ranges] = {} if high - low == size else {0: [(low, high)]}
                        yield part, rows | columns, at, slice(row, row + high - low)
                        row += high - low
                    first += size

    def reads_parts(self, name: str) -> bool:
        """Whether a part of a tensor takes no more memory than its bytes."""
        return all(self._stored.reads_parts(part) for part in self._parts(name))

    def reads_together(self, name: str) -> bool:
        """Whether :meth:`read_pieces` can be called for a tensor."""
        return name not in self._joined and self._stored.reads_together(name)

    def bytes_reader(self, name: str) -> BytesReader | None:
        """As :meth:`.sources.StoredSource.bytes_reader`."""
        return None if name in self._joined else self._stored.bytes_reader(name)

    def read_pieces(self, name: str, axis: int, ranges: Ranges, place: Array) -> Array:
        """As :meth:`.sources.StoredSource.read_pieces`."""
        return self._stored.read_pieces(name, axis, ranges, place)

    def beside(self, name: str, ranges: Mapping[int, Ranges] | None = None) -> int:
        """Memory beside the array: what one tensor takes, unless it is read right where it belongs."""
        weight = self._joined.get(name)
        if weight is None:
            return self._stored.beside(name, ranges)
        pieces = self._pieces(weight, self.spec(name).shape, ranges or {})
        return max((self._beside_part(part, within) for part, within, _, _ in pieces), default=0)

    def _beside_part(self, part: str, within: Mapping[int, Ranges]) -> int:
        spec, beside = self._stored.spec(part), self._stored.beside(part, within)
        if not beside and self._stored.reads_together(part):
            return 0
        sizes = [sum(e - b for b, e in within[i]) if i in within else d for i, d in enumerate(spec.shape)]
        return beside + prod(sizes) * spec.dtype.itemsize

    def _parts(self, name: str) -> list[str]:
        return self._joined[name].names if name in self._joined else [name]

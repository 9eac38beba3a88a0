"""Records of a manifest that say how weights are prepared: steps, and how each runs on pieces of its weights."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ..dialect.array_spec import ArraySpec, aligned
from ..dialect.errors import RelaxError
from .json_reader import Reader
from .manifest_specs import Json, WeightSpec

__all__ = ["PartsSpec", "Range", "SegmentSpec", "StepSpec", "TensorPart"]


@dataclass(frozen=True)
class PartsSpec:
    """How a step runs on one piece of its weights after another.

    Attributes:
        count: of pieces.
        symbol: the function for a piece; None of a step that copies.
        last: the function for the last piece, where that is smaller.
        arena_bytes: what they need.
        gets, sets: of each weight that the step reads, or makes, the axis and the size of a piece; None of one that every piece
            reads whole.
        blocks: where pieces are blocks, which the whole step is nothing but calls for, how many of them are worth reading and
            writing at once; None where the step has a function of its own.
    """

    count: int
    symbol: str | None
    last: str | None
    arena_bytes: int
    gets: tuple[tuple[int, int] | None, ...]
    sets: tuple[tuple[int, int] | None, ...]
    blocks: int | None = None

    @property
    def symbols(self) -> tuple[str, ...]:
        """Of its functions: none of a copy."""
        return tuple(s for s in (self.symbol, self.last) if s is not None)

    def as_json(self) -> Json:
        places = {key: [list(p or ()) for p in getattr(self, key)] for key in ("gets", "sets")}
        last = {} if self.last is None else {"last": self.last}
        blocks = {} if self.blocks is None else {"blocks": self.blocks}
        return {"count": self.count, "symbol": self.symbol, "arena_bytes": self.arena_bytes} | last | places | blocks

    @staticmethod
    def read(reader: Reader) -> PartsSpec:
        last = reader.identifier("last") if "last" in reader.data else None
        arena, places = reader.size("arena_bytes"), (_places(reader, "gets"), _places(reader, "sets"))
        blocks = reader.size("blocks") if "blocks" in reader.data else None
        return PartsSpec(reader.size("count"), reader.identifier("symbol"), last, arena, *places, blocks)


Range = tuple[int, int, int]
"""An axis, and the first and the end of some neighbouring indices of it."""


@dataclass(frozen=True)
class TensorPart:
    """A part of a tensor: the position of the tensor, and what there is of it along axes of which there is not all."""

    position: int
    ranges: tuple[Range, ...] = ()

    def of(self, array: ArraySpec) -> ArraySpec:
        """What there is of an array at this position."""
        sizes = {axis: end - begin for axis, begin, end in self.ranges}
        return ArraySpec(array.dtype, tuple(sizes.get(i, size) for i, size in enumerate(array.shape)))

    def as_json(self) -> list[int]:
        return [self.position, *(number for r in self.ranges for number in r)]

    @staticmethod
    def read(numbers: object, where: str) -> TensorPart:
        found = [n for n in numbers if type(n) is int and n >= 0] if isinstance(numbers, list) else []
        ranges = tuple(zip(found[1::3], found[2::3], found[3::3], strict=False))
        if found != numbers or len(found) % 3 != 1 or any(begin >= end for _, begin, end in ranges):
            raise RelaxError(f"{where}: expected a position, and an axis, a begin and an end each, got {numbers!r}")
        return TensorPart(found[0], ranges)


@dataclass(frozen=True)
class SegmentSpec:
    """A part of one result of a step, made alone, from parts of some weights: of one that others were joined to, and the like.

    Attributes:
        parts: how it runs on one piece of these after another; a single one where it runs as it is.
        gets: what it reads of the step's weights.
        made: the part of a result; those of all segments in order are all results.
    """

    parts: PartsSpec
    gets: tuple[TensorPart, ...]
    made: TensorPart

    def as_json(self) -> Json:
        return {"parts": self.parts.as_json(), "gets": [g.as_json() for g in self.gets], "made": self.made.as_json()}

    @staticmethod
    def read(reader: Reader) -> SegmentSpec:
        gets = tuple(TensorPart.read(numbers, f"{reader.where}.gets") for numbers in reader.items("gets"))
        made = TensorPart.read(reader.value("made"), f"{reader.where}.made")
        return SegmentSpec(PartsSpec.read(reader.child("parts")), gets, made)


@dataclass(frozen=True)
class StepSpec:
    """A piece of weight preparation: raw weights in, prepared weights out; without a symbol it copies.

    Attributes:
        symbol: its function.
        gets, sets: names of the weights that it reads, and makes.
        arena_bytes: what the function needs.
        parts: how it runs on one piece of all of its weights after another, where it can.
        segments: how it runs on parts of some of its weights after another, where that takes less.
        reads: what it reads of those weights of which it does not read all: an expert of several.
    """

    symbol: str | None
    gets: tuple[str, ...]
    sets: tuple[str, ...]
    arena_bytes: int
    parts: PartsSpec | None = None
    segments: tuple[SegmentSpec, ...] = ()
    reads: tuple[TensorPart, ...] = ()

    def as_json(self) -> Json:
        found: Json = {"symbol": self.symbol, "gets": list(self.gets), "sets": list(self.sets), "arena_bytes": self.arena_bytes}
        parts = {} if self.parts is None else {"parts": self.parts.as_json()}
        lists = {"segments": self.segments, "reads": self.reads}
        return found | parts | {key: [item.as_json() for item in items] for key, items in lists.items() if items}

    @staticmethod
    def read(reader: Reader) -> StepSpec:
        symbol = None if reader.value("symbol") is None else reader.identifier("symbol")
        parts = PartsSpec.read(reader.child("parts")) if "parts" in reader.data else None
        segments = tuple(reader.records("segments", SegmentSpec.read)) if "segments" in reader.data else ()
        where, reads = f"{reader.where}.reads", reader.items("reads") if "reads" in reader.data else []
        return StepSpec(
            symbol, reader.texts("gets"), reader.texts("sets"), reader.size("arena_bytes"), parts, segments,
            tuple(TensorPart.read(numbers, where) for numbers in reads),
        )  # fmt: skip

    @property
    def symbols(self) -> tuple[str, ...]:
        """Of its functions: none of a copy."""
        all_parts = [*(() if self.parts is None else (self.parts,)), *(s.parts for s in self.segments)]
        own = () if self.symbol is None else (self.symbol,)
        return tuple(dict.fromkeys((*own, *(symbol for parts in all_parts for symbol in parts.symbols))))

    @property
    def places(self) -> tuple[TensorPart, ...]:
        """What it reads of each of its weights."""
        found = {part.position: part for part in self.reads}
        return tuple(found.get(i, TensorPart(i)) for i in range(len(self.gets)))

    def read_specs(self, raw: Mapping[str, WeightSpec]) -> tuple[ArraySpec, ...]:
        """What that looks like, of these weights."""
        return tuple(place.of(raw[n].array) for place, n in zip(self.places, self.gets, strict=True))

    def peak_bytes(self, raw: Mapping[str, WeightSpec], prepared: Mapping[str, WeightSpec]) -> int:
        """What is live while it runs: its weights, its scratch memory and its results, each aligned; a copy has no others."""
        weights = sum(spec.nbytes for spec in self.read_specs(raw))
        if self.symbol is None:
            return weights
        return weights + self.arena_bytes + sum(aligned(prepared[n].array.nbytes) for n in self.sets)


def _places(reader: Reader, key: str) -> tuple[tuple[int, int] | None, ...]:
    """An axis and a size each, or nothing."""
    found: list[tuple[int, int] | None] = []
    for place in reader.items(key):
        numbers = [n for n in place if type(n) is int and n >= 0] if isinstance(place, list) else [-1]
        if numbers != place or len(numbers) not in (0, 2) or numbers[1:] == [0]:
            raise RelaxError(f"{reader.where}.{key}: expected an axis and a size each, or neither, got {place!r}")
        found.append((numbers[0], numbers[1]) if numbers else None)
    return tuple(found)

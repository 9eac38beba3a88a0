"""How a preparation stays within a memory limit: how many threads, and which steps run on one piece after another."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from ..dialect.array_spec import aligned
from ..dialect.checks import expect_bytes
from ..dialect.errors import RelaxError
from ..lowering.manifest import Manifest
from ..lowering.manifest_steps import PartsSpec, SegmentSpec, StepSpec, TensorPart
from ..weights.arrays import ArraySpec
from .raw_weights import Piece, RawWeights, part_spec

__all__ = ["MemoryPlan", "StepCall", "StepRun", "plan_memory", "predicted_peak", "runs_of", "step_bytes"]

# Bytes of a piece of a weight that is copied: as many as a disk is busy with for some milliseconds.
_COPY_BYTES = 4 << 20
# What a step holds that is run as a whole, if it can be otherwise: more than weights of most layers take.
_HELD_BYTES = 256 << 20
# Bytes of a row worth a call of the system to read: 8 KiB take 4 us, 0.5 KiB 2 (page cache, Zen 5).
_ROW_BYTES = 8 << 10
# Pieces that one call of the system fills, at most; Linux takes 1024.
_TOGETHER = 256


#: How a step runs in pieces: of all its weights, or segment by segment.
Pieces = PartsSpec | tuple[SegmentSpec, ...]


@dataclass(frozen=True)
class MemoryPlan:
    """How steps run.

    Attributes:
        jobs: how many threads at most.
        each: the most bytes that one of them holds.
        parts: the steps that run in pieces, by what they make.
    """

    jobs: int
    each: int
    parts: Mapping[tuple[str, ...], Pieces] = field(default_factory=dict[tuple[str, ...], Pieces])


@dataclass(frozen=True)
class StepCall:
    """One call of compiled code: the function, and at which byte of each weight and each result it begins."""

    symbol: str
    offsets: tuple[int, ...]


@dataclass(frozen=True)
class StepRun:
    """What is read, computed and written together.

    Attributes:
        calls: of compiled code, in order; none of a copy.
        names: of the weights that are read.
        pieces: of each of them, which piece; None for all of it.
        results: positions of what is made among the step's results.
        gets, sets: what these are, and what is made.
        arena_bytes: what the functions need.
        cuts: where each call takes a range of bytes of its weights, the axis and the size of that for each weight, None of one
            that all calls take whole; nothing where it is otherwise.
    """

    calls: tuple[StepCall, ...]
    names: tuple[str, ...]
    pieces: tuple[Piece | None, ...]
    results: tuple[int, ...]
    gets: tuple[ArraySpec, ...]
    sets: tuple[ArraySpec, ...]
    arena_bytes: int
    cuts: tuple[tuple[int, int] | None, ...] = ()

    def block(self, index: int) -> tuple[Piece | None, ...]:
        """What one of the calls takes of each weight, of a run that has ``cuts``."""
        return tuple(
            piece if cut is None else _block(spec, piece, *cut, index)
            for spec, piece, cut in zip(self.gets, self.pieces, self.cuts, strict=True)
        )


def plan_memory(
    manifest: Manifest, source: RawWeights, jobs: int = 1, memory_limit: int | None = None
) -> MemoryPlan:  # fmt: skip
    """Steps as a whole where one alone stays within the limit, else in pieces; as many threads as all together let.

    Without a limit, those in pieces that would hold much more than what they make, as :func:`_is_held` says.

    Raises:
        RelaxError: a step takes more, even in pieces.
    """
    if memory_limit is None:
        ways = {step.sets: _of_all(manifest, step) for step in manifest.steps if _is_held(manifest, source, step)}
        held = {sets: parts for sets, parts in ways.items() if parts is not None}
        return MemoryPlan(min(jobs, max(len(manifest.steps), 1)), predicted_peak(manifest, source, held), held)
    limit = expect_bytes(memory_limit, "a memory limit of 1 byte or more")
    ahead, parts, most, largest = source.ahead_bytes, dict[tuple[str, ...], Pieces](), 0, ""
    for step in manifest.steps:
        count = step_bytes(manifest, source, step)
        if count + ahead > limit and (found := _least(manifest, source, step)) is not None and found[0] < count:
            count, parts[step.sets] = _together(manifest, source, step, (limit - ahead) // jobs, *found)
        if count > most:
            most, largest = count, step.sets[0]
    if most + ahead > limit:
        what = f"which preparing '{largest}' takes"
        raise RelaxError(f"expected a memory limit of {most + ahead} bytes or more, {what}, got {limit}")
    return MemoryPlan(min(jobs, (limit - ahead) // max(most, 1)), most, parts)


def predicted_peak(
    manifest: Manifest, source: RawWeights, parts: Mapping[tuple[str, ...], Pieces] | None = None
) -> int:  # fmt: skip
    """Memory of the largest step, with both forms of weights that are converted; some run in pieces."""
    parts = parts or {}
    if not parts and not source.converts and not any(step.reads for step in manifest.steps):
        return manifest.peak_bytes
    return max(
        (
            _part_bytes(manifest, source, step, parts[step.sets]) if step.sets in parts else step_bytes(manifest, source, step)
            for step in manifest.steps
        ),
        default=0,
    )


def _is_held(manifest: Manifest, source: RawWeights, step: StepSpec) -> bool:
    """Whether a step reads much that is made of other tensors, and can do so a piece at a time.

    Experts that a file has one by one are such: all of a layer joined are more than all that is made of them.
    """
    whole = {n: manifest.raw_weights[n].array.nbytes for n in step.gets}
    made = [n for n, count in whole.items() if source.parts(n) or source.part_bytes(n) > count]
    if not made or any(source.reads_ranges(n) or not source.reads_parts(n) for n in made):
        return False
    return step_bytes(manifest, source, step) > _HELD_BYTES


def step_bytes(manifest: Manifest, source: RawWeights, step: StepSpec) -> int:
    """Memory that a step takes: its weights, its scratch memory and its results."""
    run = next(runs_of(manifest, step, None))
    extra = sum(source.part_bytes(n, p) - s.nbytes for n, p, s in zip(run.names, run.pieces, run.gets, strict=True))
    return step.peak_bytes(manifest.raw_weights, manifest.prepared_weights) + extra


def runs_of(manifest: Manifest, step: StepSpec, pieces: Pieces | None) -> Iterator[StepRun]:
    """What is run for a step, in order."""
    inputs = step.read_specs(manifest.raw_weights)
    outputs = tuple(manifest.prepared_weights[n].array for n in step.sets)
    whole = StepRun((), step.gets, (None,) * len(inputs), tuple(range(len(outputs))), inputs, outputs, step.arena_bytes)
    if pieces is None:
        cuts = () if step.parts is None or step.parts.blocks is None else step.parts.gets
        yield _of_whole(replace(whole, calls=_calls_of_whole(step, inputs, outputs), cuts=cuts), step.places)
    elif isinstance(pieces, PartsSpec):
        yield from (_of_whole(run, step.places) for run in _runs(pieces, whole))
    else:
        for segment in pieces:
            places = [step.places[g.position] for g in segment.gets]
            yield from (_of_whole(run, places) for run in _runs_of_segment(segment, whole))


def _runs(parts: PartsSpec, whole: StepRun) -> Iterator[StepRun]:
    """What is run piece by piece for the same as a whole."""
    blocks = parts.blocks or 1
    for begin in range(0, parts.count, blocks):
        end = min(begin + blocks, parts.count)
        read, made = _pieces(whole.gets, parts.gets, begin, end), _pieces(whole.sets, parts.sets, begin, end)
        cuts = () if parts.blocks is None or _lies_across(parts, whole.gets) else parts.gets
        yield replace(
            whole,
            calls=_calls(parts, whole.gets, whole.sets, begin, end),
            pieces=read,
            gets=_specs(whole.gets, read),
            sets=_specs(whole.sets, made),
            arena_bytes=parts.arena_bytes,
            cuts=cuts,
        )


def _lies_across(parts: PartsSpec, specs: Sequence[ArraySpec]) -> bool:
    """Whether a piece of a weight is more than one range of its bytes."""
    places = zip(parts.gets, specs, strict=True)
    return any(place is not None and math.prod(spec.shape[: place[0]]) > 1 for place, spec in places)


def _runs_of_segment(segment: SegmentSpec, whole: StepRun) -> Iterator[StepRun]:
    """The same for a part of one result, from parts of some weights."""
    place, gets = segment.made.position, [g.position for g in segment.gets]
    own = replace(
        whole,
        names=tuple(whole.names[i] for i in gets),
        pieces=(None,) * len(gets),
        results=(place,),
        gets=tuple(g.of(whole.gets[g.position]) for g in segment.gets),
        sets=(segment.made.of(whole.sets[place]),),
    )
    yield from (_of_whole(run, segment.gets) for run in _runs(segment.parts, own))


def _of_whole(run: StepRun, places: Sequence[TensorPart]) -> StepRun:
    """A run on parts of weights, as one on the weights."""
    if not any(place.ranges for place in places):
        return run
    return replace(run, pieces=tuple(map(_within, run.pieces, places)))


def _within(piece: Piece | None, part: TensorPart) -> Piece | None:
    """A piece of a part, as one of the whole tensor."""
    along = {} if piece is None else {axis: (begin, end) for axis, begin, end in piece.along}
    for axis, first, last in part.ranges:
        begin, end = along.get(axis, (0, last - first))
        along[axis] = (first + begin, first + end)
    if not along:
        return None
    (axis, (begin, end)), *others = along.items()
    within = tuple((axis, *ends) for axis, ends in others)
    return Piece(axis, begin, end, None if piece is None else piece.each, within)


def _block(spec: ArraySpec, piece: Piece | None, axis: int, size: int, index: int) -> Piece:
    """The ranges of a piece, of which this is the array, with those that a call takes of an axis."""
    along = {} if piece is None else {axis: (begin, end) for axis, begin, end in piece.along}
    first, end = along.get(axis, (0, spec.shape[axis]))
    begin = first + index * size
    others = tuple((other, *ends) for other, ends in along.items() if other != axis)
    return Piece(axis, begin, min(begin + size, end), None, others)


def _calls_of_whole(step: StepSpec, inputs: Sequence[ArraySpec], outputs: Sequence[ArraySpec]) -> tuple[StepCall, ...]:
    if step.parts is not None and step.parts.blocks is not None:
        return _calls(step.parts, inputs, outputs, 0, step.parts.count)
    return () if step.symbol is None else (StepCall(step.symbol, (0,) * (len(inputs) + len(outputs))),)


def _calls(
    parts: PartsSpec, inputs: Sequence[ArraySpec], outputs: Sequence[ArraySpec], begin: int, end: int
) -> tuple[StepCall, ...]:  # fmt: skip
    """Those for some neighbours of the pieces, whose weights and results lie side by side."""
    if parts.symbol is None:
        return ()
    places = zip((*inputs, *outputs), (*parts.gets, *parts.sets), strict=True)
    sizes = [0 if p is None else p[1] * (s.nbytes // s.shape[p[0]]) for s, p in places]
    symbols = [parts.symbol] * (end - begin)
    if parts.last is not None and end == parts.count:
        symbols[-1] = parts.last
    return tuple(StepCall(symbol, tuple(i * size for size in sizes)) for i, symbol in enumerate(symbols))


def _least(manifest: Manifest, source: RawWeights, step: StepSpec) -> tuple[int, Pieces] | None:
    """How a step runs in pieces that take the least memory, and how much; None where it cannot."""
    parts = _of_all(manifest, step)
    ways: list[Pieces] = [*([] if parts is None else [parts]), *([step.segments] if step.segments else [])]
    return min(((_part_bytes(manifest, source, step, way), way) for way in ways), key=lambda found: found[0], default=None)


def _of_all(manifest: Manifest, step: StepSpec) -> PartsSpec | None:
    """How a step runs in pieces of all its weights; None where it cannot."""
    return _copied(manifest.prepared_weights[step.sets[0]].array) if step.symbol is None else step.parts


def _part_bytes(manifest: Manifest, source: RawWeights, step: StepSpec, pieces: Pieces) -> int:
    """Memory that the largest run of a step in pieces takes."""
    return max(_run_bytes(source, run) for run in _first_runs(manifest, step, pieces))


def _first_runs(manifest: Manifest, step: StepSpec, pieces: Pieces) -> Iterator[StepRun]:
    """The first run of each segment: no other one is larger."""
    if isinstance(pieces, PartsSpec):
        yield next(runs_of(manifest, step, pieces))
        return
    for segment in pieces:
        yield next(runs_of(manifest, step, (segment,)))


def _run_bytes(source: RawWeights, run: StepRun) -> int:
    read = sum(source.part_bytes(n, p) for n, p in dict(zip(run.names, run.pieces, strict=True)).items())
    made = sum(aligned(s.nbytes) for s in run.sets) if run.calls else 0
    return read + run.arena_bytes + made


def _together(
    manifest: Manifest, source: RawWeights, step: StepSpec, limit: int, count: int, parts: Pieces
) -> tuple[int, Pieces]:  # fmt: skip
    """As many pieces at once as make rows long enough to read where the weights are cut across them, within the limit."""
    if not isinstance(parts, PartsSpec):
        return count, parts
    places = [(manifest.raw_weights[n], place) for n, place in zip(step.gets, parts.gets, strict=True) if place is not None]
    across = [(w, axis, size) for w, (axis, size) in places if math.prod(w.array.shape[:axis]) > 1]
    if parts.blocks is not None or not across or not all(source.reads_together(w.name) for w, _, _ in across):
        return count, parts
    row = min(size * math.prod(w.array.shape[axis + 1 :]) * w.array.dtype.itemsize for w, axis, size in across)
    for number in range(min(-(-_ROW_BYTES // row), parts.count, _TOGETHER), 1, -1):
        more = replace(parts, blocks=number)
        if (taken := _part_bytes(manifest, source, step, more)) <= limit:
            return taken, more
    return count, parts


def _copied(spec: ArraySpec) -> PartsSpec | None:
    """Any weight can be copied in pieces."""
    axis = next((i for i, size in enumerate(spec.shape) if size != 1), None)
    if axis is None or not spec.nbytes:
        return None
    size = min(max(1, _COPY_BYTES * spec.shape[axis] // spec.nbytes), spec.shape[axis])
    place = (axis, size)
    return PartsSpec(-(-spec.shape[axis] // size), None, None, 0, (place,), (place,))


def _pieces(
    specs: Sequence[ArraySpec], places: Sequence[tuple[int, int] | None], begin: int, end: int
) -> tuple[Piece | None, ...]:  # fmt: skip
    return tuple(None if place is None else _piece(spec, *place, begin, end) for spec, place in zip(specs, places, strict=True))


def _piece(spec: ArraySpec, axis: int, size: int, begin: int, end: int) -> Piece:
    """Some neighbours; where they are not ranges of bytes, all of one behind all of the other, as the calls take them."""
    across = end - begin > 1 and math.prod(spec.shape[:axis]) > 1
    return Piece(axis, begin * size, min(end * size, spec.shape[axis]), size if across else None)


def _specs(specs: Sequence[ArraySpec], pieces: Sequence[Piece | None]) -> tuple[ArraySpec, ...]:
    return tuple(part_spec(spec, piece) for spec, piece in zip(specs, pieces, strict=True))

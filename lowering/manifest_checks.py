"""What holds between the records of a manifest: weights, state and steps that go together.

The records' module imports this one, which so names none of their classes.
"""

from __future__ import annotations

import math
from typing import Any

from ..dialect.errors import RelaxError

__all__ = ["check_manifest"]


def check_manifest(manifest: Any, where: str) -> None:
    """Raises RelaxError for records that do not go together; ``where`` names the manifest."""
    _check_entry_weights(manifest, where)
    _check_state(manifest, where)
    _check_steps(manifest, where)
    _check_cuts(manifest, where)
    _check_bounded(manifest, where)


def _check_entry_weights(manifest: Any, where: str) -> None:
    for entry in manifest.entries.values():
        for weight in entry.weights:
            found = manifest.prepared_weights.get(weight.name)
            if found is None or found.array != weight.array:
                raise RelaxError(
                    f"{where}: weight '{weight.name}' of entry '{entry.name}': expected a prepared weight {weight.array}, "
                    f"got {'none' if found is None else found.array}"
                )


def _check_state(manifest: Any, where: str) -> None:
    for entry in manifest.entries.values():
        positions = {s.argument for s in entry.state}
        if len(positions) < len(entry.state) or not positions <= set(range(len(entry.inputs) + len(entry.state))):
            raise RelaxError(f"{where}: entry '{entry.name}': expected a position of its own for each state, got {positions}")
        for state in entry.state:
            shared = manifest.state[state.name]
            if (state.array, state.first) != (shared.array, shared.first):
                raise RelaxError(
                    f"{where}: state '{state.name}': expected {shared.array} and one first value in all entries, "
                    f"got {state.array}"
                )


def _check_bounded(manifest: Any, where: str) -> None:
    for entry in manifest.entries.values():
        ranks = {o.name: len(o.shape) for o in entry.outputs}
        sizes = {o.name: o.shape for o in entry.outputs if o.dtype.name == "int64"}
        for output, name in entry.bounded:
            if sizes.get(name) != (ranks.get(output, -1),):
                raise RelaxError(f"{where}: entry '{entry.name}': expected '{name}' to be the sizes of output '{output}'")


def _check_steps(manifest: Any, where: str) -> None:
    made: list[str] = []
    for i, step in enumerate(manifest.steps):
        unknown = [n for n in step.gets if n not in manifest.raw_weights]
        unknown += [n for n in step.sets if n not in manifest.prepared_weights]
        if unknown:
            raise RelaxError(f"{where}.steps[{i}]: expected names of weights, got '{unknown[0]}'")
        _check_reads(step, [manifest.raw_weights[n].array for n in step.gets], f"{where}.steps[{i}].reads")
        inputs = list(step.read_specs(manifest.raw_weights))
        outputs = [manifest.prepared_weights[n].array for n in step.sets]
        if step.symbol is None and inputs != outputs:
            raise RelaxError(
                f"{where}.steps[{i}]: expected a copy between equal shapes and dtypes, got {step.gets} to {step.sets}"
            )
        if step.parts is not None:
            _check_parts(step.parts, inputs, outputs, f"{where}.steps[{i}].parts")
            _check_blocks(step, inputs, f"{where}.steps[{i}].parts")
        if step.segments:
            _check_segments(step.segments, inputs, outputs, f"{where}.steps[{i}].segments")
        made += step.sets
    if sorted(made) != sorted(manifest.prepared_weights):
        raise RelaxError(f"{where}.steps: expected to make every prepared weight once, got {len(made)} results for "
                         f"{len(manifest.prepared_weights)} prepared weights")  # fmt: skip


def _check_reads(step: Any, arrays: list[Any], where: str) -> None:
    """Raises RelaxError for parts of weights that a step does not have."""
    for part in step.reads:
        if step.symbol is None or not _is_inside(part, arrays):
            raise RelaxError(f"{where}: expected parts of the step's weights, got {part}")


def _is_inside(part: Any, arrays: list[Any]) -> bool:
    """Whether there is such a part of one of these."""
    if part.position >= len(arrays):
        return False
    shape = arrays[part.position].shape
    return all(axis < len(shape) and end <= shape[axis] for axis, _, end in part.ranges)


def _check_parts(parts: Any, inputs: list[Any], outputs: list[Any], where: str) -> None:
    """Raises RelaxError for pieces that are not as many of all weights, or of results no ranges of their bytes."""
    for key, places, arrays in (("gets", parts.gets, inputs), ("sets", parts.sets, outputs)):
        fits = len(places) == len(arrays) and all(
            place is None or (place[0] < len(a.shape) and -(-a.shape[place[0]] // place[1]) == parts.count)
            for place, a in zip(places, arrays, strict=True)
        )
        if not fits:
            raise RelaxError(f"{where}.{key}: expected {parts.count} pieces of each weight, got {list(places)}")
    if any(p is None or not _is_range(p, a) for p, a in zip(parts.sets, outputs, strict=True)):
        raise RelaxError(f"{where}.sets: expected pieces along the first dimension that is not 1, got {list(parts.sets)}")
    cut = [(a.shape[p[0]], p[1]) for p, a in zip((*parts.gets, *parts.sets), (*inputs, *outputs), strict=True) if p]
    if (parts.last is None) != all(whole % size == 0 for whole, size in cut):
        raise RelaxError(f"{where}.last: expected a function for a last piece that is smaller alone, got {parts.last!r}")


def _check_segments(segments: Any, inputs: list[Any], outputs: list[Any], where: str) -> None:
    """Raises RelaxError for segments of other tensors than a step has, or that do not make its results in order."""
    done = [0] * len(outputs)
    for i, segment in enumerate(segments):
        for part, arrays in [*((g, inputs) for g in segment.gets), (segment.made, outputs)]:
            if not _is_inside(part, arrays):
                raise RelaxError(f"{where}[{i}]: expected parts of the step's tensors, got {part}")
        made, place = _of_part(outputs, segment.made), segment.made.position
        _check_parts(segment.parts, [_of_part(inputs, g) for g in segment.gets], [made], f"{where}[{i}].parts")
        begins = {axis: begin for axis, begin, _ in segment.made.ranges}
        offset = sum(begin * math.prod(outputs[place].shape[axis + 1 :]) for axis, begin in begins.items())
        if offset * made.dtype.itemsize != done[place] or any(not _is_range((a, 0), made) for a in begins):
            raise RelaxError(f"{where}[{i}].made: expected what is behind the parts before it, got {segment.made}")
        done[place] += made.nbytes
    if done != [o.nbytes for o in outputs]:
        raise RelaxError(f"{where}: expected all of the results, got {done} bytes of them")


def _of_part(arrays: list[Any], part: Any) -> Any:
    return part.of(arrays[part.position])


def _check_blocks(step: Any, inputs: list[Any], where: str) -> None:
    """Raises RelaxError for blocks that a step is not made of, or that are no ranges of the weights' bytes."""
    parts = step.parts
    if (parts.blocks is None) != (step.symbol != parts.symbol) or parts.blocks == 0:
        raise RelaxError(f"{where}.blocks: expected 1 or more where the step has the symbol of its blocks, got {parts.blocks}")
    if parts.blocks and not all(p is None or _is_range(p, a) for p, a in zip(parts.gets, inputs, strict=True)):
        raise RelaxError(f"{where}.gets: expected blocks along the first dimension that is not 1, got {list(parts.gets)}")


def _is_range(place: tuple[int, int], array: Any) -> bool:
    """Whether a piece is a range of an array's bytes."""
    return array.shape[: place[0]] == (1,) * place[0]


def _check_cuts(manifest: Any, where: str) -> None:
    for name, weight in manifest.raw_weights.items():
        cut, shape, ranks = weight.cut, weight.array.shape, manifest.ranks
        if cut is None:
            continue
        if cut.axis >= len(shape) or any(p % ranks for p in cut.pieces) or sum(cut.pieces) != shape[cut.axis] * ranks:
            raise RelaxError(
                f"{where}: raw weight '{name}': expected pieces that {ranks} ranks share and of which each has {weight.array}, "
                f"got {list(cut.pieces)} of axis {cut.axis}"
            )

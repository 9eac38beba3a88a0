"""Preparation in parts: a manifest in, which steps belong to which file and to which machine out.

The plan follows from the manifest, the number of ranks and the largest file alone. So every rank makes the same plan for
itself, and nobody has to hand out work: ranks own disjoint steps, and write disjoint files.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from ..dialect.checks import expect_bytes, expect_count, whole_number
from ..dialect.errors import RelaxError
from ..lowering.manifest import Manifest
from ..lowering.manifest_steps import StepSpec
from ..weights.arrays import ArraySpec

__all__ = ["Shard", "check_rank", "plan_shards", "read_bytes_of", "written_bytes_of"]


@dataclass(frozen=True)
class Shard:
    """One file of prepared weights.

    Attributes:
        rank: who writes it.
        steps: what makes its tensors, in the manifest's order.
        specs: its tensors, in the order of their steps.
    """

    rank: int
    steps: tuple[StepSpec, ...]
    specs: dict[str, ArraySpec]


def check_rank(rank: object, world: object) -> tuple[int, int]:
    """Both as they are. Raises RelaxError unless there are 1 or more ranks, and this is one of them, from 0 on."""
    count = expect_count(world, "a world of 1 rank or more")
    number = whole_number(rank)
    if number is None or not 0 <= number < count:
        raise RelaxError(f"expected a rank from 0 to {count - 1}, got {rank!r}")
    return number, count


def plan_shards(manifest: Manifest, world: int = 1, shard_size: int | None = None) -> tuple[Shard, ...]:
    """The files of a preparation, in order.

    Each rank gets steps that follow one another, so that a weight which two of them read is mostly read by one rank. The most
    bytes that a rank reads and writes are as few as such pieces allow.

    Args:
        world: how many ranks work; with fewer steps than ranks some of them get none.
        shard_size: the most bytes of tensors in a file; one step's results stay together, however large. None: a file per rank.

    Raises:
        RelaxError: ``shard_size`` is no number of bytes from 1 on.
    """
    limit = None if shard_size is None else expect_bytes(shard_size, "a shard size of 1 byte or more")
    costs = [read_bytes_of(manifest, [s]) + written_bytes_of(manifest, [s]) for s in manifest.steps]
    found: list[Shard] = []
    for rank, piece in enumerate(_pieces(manifest.steps, costs, world)):
        for steps in _files(manifest, piece, limit):
            names = [name for step in steps for name in step.sets]
            found.append(Shard(rank, tuple(steps), {n: manifest.prepared_weights[n].array for n in names}))
    return tuple(found)


def read_bytes_of(manifest: Manifest, steps: Sequence[StepSpec]) -> int:
    """Bytes of raw weights that steps read; a weight that several of them read counts once."""
    return sum(manifest.raw_weights[name].array.nbytes for name in {n for s in steps for n in s.gets})


def written_bytes_of(manifest: Manifest, steps: Sequence[StepSpec]) -> int:
    """Bytes of prepared weights that steps write."""
    return sum(manifest.prepared_weights[name].array.nbytes for s in steps for name in s.sets)


def _files(manifest: Manifest, steps: Sequence[StepSpec], limit: int | None) -> Iterator[list[StepSpec]]:
    """Steps by file: as many in each as its size allows."""
    file, size = list[StepSpec](), 0
    for step in steps:
        count = written_bytes_of(manifest, [step])
        if file and limit is not None and size + count > limit:
            yield file
            file, size = [], 0
        file.append(step)
        size += count
    if file:
        yield file


def _pieces(steps: Sequence[StepSpec], costs: Sequence[int], count: int) -> list[Sequence[StepSpec]]:
    """So many pieces of a sequence, of which the costliest is as cheap as it can be.

    The least bound is found by bisection; that as many pieces as are allowed are enough is seen by filling one after another
    (a linear partition; Skiena, The Algorithm Design Manual, 8.5).
    """
    bound = _least(max(costs, default=0), sum(costs), lambda limit: len(_cuts(costs, limit)) < count)
    cuts = [0, *_cuts(costs, bound), len(steps)]
    pieces = [steps[a:b] for a, b in itertools.pairwise(cuts)]
    return pieces + [()] * (count - len(pieces))


def _cuts(costs: Sequence[int], limit: int) -> list[int]:
    """Where a new piece begins, when each takes as much as the limit lets it."""
    cuts, held = list[int](), 0
    for i, cost in enumerate(costs):
        if held and held + cost > limit:
            cuts.append(i)
            held = 0
        held += cost
    return cuts


def _least(low: int, high: int, enough: Callable[[int], bool]) -> int:
    """The least number for which something holds that holds for all above it."""
    while low < high:
        middle = (low + high) // 2
        if enough(middle):
            high = middle
        else:
            low = middle + 1
    return low

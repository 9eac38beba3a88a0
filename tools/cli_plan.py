"""``relaxir plan``: what a preparation on several machines reads, writes and takes, by the manifest alone."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from ..dialect.checks import expect_count
from ..dialect.reports.report import aligned, bytes_text, plural
from ..lowering.manifest import Manifest
from ..lowering.manifest_specs import total_bytes
from ..runtime.artifact import read_manifest
from ..runtime.shards import Shard, check_rank, plan_shards, read_bytes_of, written_bytes_of
from .cli_output import tell
from .cli_paths import Read
from .sizes import byte_count, byte_rate

__all__ = ["Rates", "add_plan", "plan_lines"]


@dataclass(frozen=True)
class Rates:
    """Bytes in a second, of one rank.

    Attributes:
        disk: reading and writing together.
        network: reading, where raw weights come over a network: then it goes on while the disk writes.
    """

    disk: float
    network: float | None = None

    def seconds(self, read: int, written: int) -> float:
        """The time that moving these bytes takes; computing goes on meanwhile, and is not counted."""
        if self.network is None:
            return (read + written) / self.disk
        return max(read / self.network, written / self.disk)


def add_plan(commands: Any) -> None:
    """Adds the command to those of ``relaxir``."""
    command = commands.add_parser("plan", help="what preparing on several machines reads, writes and takes; reads no weights")
    command.add_argument("artifact", type=Read, metavar="MODEL.relax")
    command.add_argument("--world", type=int, default=1, metavar="N", help="how many processes prepare")
    command.add_argument("--shard-size", type=byte_count, metavar="5GB", help="the most bytes in a file")
    command.add_argument("--jobs", type=int, default=1, metavar="N", help="threads of each process")
    command.add_argument("--disk", type=byte_rate, metavar="3GB/s", help="what the disk of a process moves, for the time")
    command.add_argument("--network", type=byte_rate, metavar="25Gbit/s", help="what it gets, where raw weights are elsewhere")
    command.set_defaults(command=_plan, refuse=command.error)


def _plan(arguments: argparse.Namespace) -> None:
    if arguments.network is not None and arguments.disk is None:
        arguments.refuse("expected --disk with --network, got none")
    rates = None if arguments.disk is None else Rates(arguments.disk, arguments.network)
    manifest = read_manifest(arguments.artifact)
    if manifest.ranks > 1 and arguments.world not in (1, manifest.ranks):
        arguments.refuse(f"expected --world {manifest.ranks} for an executable of as many ranks, got {arguments.world}")
    asked = (manifest, arguments.world, arguments.shard_size, arguments.jobs, rates)
    lines = list(plan_lines(*asked))
    tell(arguments, lines, plan_data(*asked), asked=True)


def plan_lines(
    manifest: Manifest, world: int = 1, shard_size: int | None = None, jobs: int = 1, rates: Rates | None = None
) -> Iterator[str]:
    """A table with a line for each rank, and what all of them do together.

    Raises:
        RelaxError: a world, shard size or number of jobs below 1.
    """
    check_rank(0, world)
    expect_count(jobs, "1 job or more")
    if manifest.ranks > 1:
        yield from _own_parts(manifest, shard_size, jobs, rates)
        return
    shards = plan_shards(manifest, world, shard_size)
    yield f"prepare on {plural(world, 'rank')}, {plural(jobs, 'job')} each: {plural(len(shards), 'file')}"
    rows = [["rank", "steps", "reads", "writes", "files", "peak memory", *(["seconds"] if rates else [])]]
    seconds = [0.0]
    for rank in range(world):
        mine = [s for s in shards if s.rank == rank]
        read, written = _moved(manifest, mine)
        steps = [step for s in mine for step in s.steps]
        peak = max((s.peak_bytes(manifest.raw_weights, manifest.prepared_weights) for s in steps), default=0)
        row = [str(rank), str(len(steps)), bytes_text(read), bytes_text(written), str(len(mine))]
        if rates is not None:
            seconds.append(rates.seconds(read, written))
        rows.append([*row, bytes_text(peak * jobs), *([f"{seconds[-1]:.1f}"] if rates else [])])
    yield from aligned(rows, range(len(rows[0])))
    raw, prepared = total_bytes(manifest.raw_weights), total_bytes(manifest.prepared_weights)
    read = sum(_moved(manifest, [s for s in shards if s.rank == rank])[0] for rank in range(world))
    yield f"all: reads {bytes_text(read)} of {bytes_text(raw)} raw weights, writes {bytes_text(prepared)}"
    if rates is not None:
        yield f"predicted: {max(seconds):.1f} s for the slowest rank, moving bytes alone; computing goes on meanwhile"


def plan_data(
    manifest: Manifest, world: int = 1, shard_size: int | None = None, jobs: int = 1, rates: Rates | None = None
) -> dict[str, Any]:
    """The same as numbers: bytes and seconds. Of an executable of several ranks the only rank told is like all others."""
    parts = 1 if manifest.ranks > 1 else world
    shards = plan_shards(manifest, parts, shard_size)
    ranks: list[dict[str, Any]] = []
    for rank in range(parts):
        mine = [s for s in shards if s.rank == rank]
        (read, written), steps = _moved(manifest, mine), [step for s in mine for step in s.steps]
        peak = max((s.peak_bytes(manifest.raw_weights, manifest.prepared_weights) for s in steps), default=0)
        seconds = None if rates is None else rates.seconds(read, written)
        row = {"rank": rank, "steps": len(steps), "reads": read, "writes": written, "files": len(mine)}
        ranks.append(row | {"peak_bytes": peak * jobs, "seconds": seconds})
    raw, prepared = total_bytes(manifest.raw_weights), total_bytes(manifest.prepared_weights)
    return {"ranks": ranks, "raw_bytes": raw, "prepared_bytes": prepared}


def _own_parts(manifest: Manifest, shard_size: int | None, jobs: int, rates: Rates | None) -> Iterator[str]:
    """The same of an executable that several ranks run together: each prepares its own part, all alike."""
    shards = list(plan_shards(manifest, 1, shard_size))
    read, written = _moved(manifest, shards)
    ranks, peak = manifest.ranks, manifest.peak_bytes * jobs
    whole = sum(w.whole.array.nbytes for w in manifest.raw_weights.values())
    yield f"prepare on each of {ranks} ranks, {plural(jobs, 'job')} each, its own part: {plural(len(shards), 'file')}"
    reads = f"each: reads {bytes_text(read)} of {bytes_text(whole)} raw weights"
    yield f"{reads}, writes {bytes_text(written)}, peak memory {bytes_text(peak)}"
    if rates is not None:
        yield f"predicted: {rates.seconds(read, written):.1f} s, moving bytes alone; computing goes on meanwhile"


def _moved(manifest: Manifest, shards: list[Shard]) -> tuple[int, int]:
    """Bytes that one rank reads and writes."""
    steps = [step for s in shards for step in s.steps]
    return read_bytes_of(manifest, steps), written_bytes_of(manifest, steps)

"""A preparation into several files, by one process or several: each writes files of its own, and the last one their index."""

from __future__ import annotations

import hashlib
import json
import os
import time
from dataclasses import replace

from ..dialect.errors import RelaxError
from ..lowering.manifest import Manifest
from ..weights.files import path_text
from ..weights.shard_names import index_path, shard_path
from ..weights.sharded import ShardedWriter, content_digest
from .memory_plan import plan_memory
from .part import manifest_of_steps
from .prepare import (
    PrepareOptions,
    PrepareReport,
    check_destination,
    checked_source,
    prepared_metadata,
    report_of,
)
from .raw_weights import RawWeights
from .shards import Shard, check_rank, plan_shards
from .sinks import FileSink
from .step_stream import Functions, StepStream

__all__ = ["prepare_to_shards"]


def prepare_to_shards(
    manifest: Manifest, functions: Functions, src: object, dst: str | os.PathLike[str], options: PrepareOptions
) -> PrepareReport:
    """Prepares this rank's part of the weights into its files; see :meth:`Executable.prepare`."""
    started = time.perf_counter()
    rank, world = check_rank(options.rank, options.world)
    shards = plan_shards(manifest, world, options.shard_size)
    mine = [i for i, shard in enumerate(shards) if shard.rank == rank]
    source = checked_source(manifest, src, options)
    if world > 1 and not source.files and source.identity is None:
        raise RelaxError(f"{source.description}: expected files that all of {world} ranks read, got arrays")
    path = path_text(dst, "write")
    for name in (index_path(path), *(shard_path(path, i + 1, len(shards)) for i in mine)):
        check_destination(source, name)
    part = manifest_of_steps(manifest, [step for i in mine for step in shards[i].steps])
    plan = plan_memory(part, source, options.jobs, options.memory_limit)
    writer = ShardedWriter(
        path, [s.specs for s in shards], mine, prepared_metadata(manifest), source=_content(source), resume_key=source.identity
    )
    with writer:
        todo = [s for s in part.steps if not writer.done.issuperset(s.sets)]
        stream = StepStream(part, functions, source, FileSink(writer), todo, options.progress, plan)
        stream.run(plan.jobs)
        source.check_unchanged()
    report = report_of(part, source, writer.path, started, stream, plan)
    return replace(report, notes=(*report.notes, *_missing(shards, writer.missing)))


def _content(source: RawWeights) -> str | None:
    """What the weights are made from, on whichever machine it is; None where that cannot be told."""
    found = content_digest(source.files) if source.files else source.identity  # of what is elsewhere the same for all
    return None if found is None else hashlib.sha256(json.dumps([found, source.reading]).encode()).hexdigest()


def _missing(shards: tuple[Shard, ...], missing: tuple[int, ...]) -> list[str]:
    if not missing:
        return []
    ranks = ", ".join(map(str, dict.fromkeys(shards[i].rank for i in missing)))
    told = f"{len(missing)} of {len(shards)} files are not there yet, of rank {ranks}"
    return [f"{told}: whoever writes the last one adds the index"]

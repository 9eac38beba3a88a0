"""A part of a preparation: names of raw weights in, the steps that read them and what those make out; weights made again."""

from __future__ import annotations

import os
import time
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace

from ..dialect.errors import RelaxError
from ..lowering.manifest import Manifest
from ..lowering.manifest_steps import StepSpec
from ..weights.arrays import Array
from ..weights.files import path_text
from ..weights.writer import StreamWriter
from .binding import check_bytes, checked_prepared
from .memory_plan import plan_memory
from .names import near_names
from .prepare import (
    PrepareOptions,
    PrepareReport,
    checked_source,
    prepare_in_memory,
    prepared_metadata,
    report_of,
)
from .sinks import FileSink
from .step_stream import Functions, StepStream

__all__ = ["manifest_of_steps", "part_of", "prepare_again", "updated_arrays"]


def part_of(manifest: Manifest, names: Iterable[str], given: Collection[str] = ()) -> Manifest:
    """The manifest of the steps that read these raw weights, alone; what is ``given`` goes before what the module knows.

    Raises:
        RelaxError: there is no such raw weight.
    """
    given_names: object = names
    if isinstance(given_names, str) or not isinstance(given_names, Iterable):
        raise RelaxError(f"expected names of raw weights, got {given_names!r}")
    chosen = list(names)
    unknown = next((n for n in chosen if not isinstance(n, str) or n not in manifest.raw_weights), None)
    if unknown is not None:
        near = near_names(str(unknown), manifest.raw_weights)
        raise RelaxError(f"expected names of raw weights, got {unknown!r}{near}")
    if not chosen:
        raise RelaxError("expected the name of a raw weight, got none")
    part = manifest_of_steps(manifest, [s for s in manifest.steps if not set(chosen).isdisjoint(s.gets)])
    raw = {n: replace(w, value=None) if n in given else w for n, w in part.raw_weights.items()}
    return replace(part, raw_weights=raw)


def manifest_of_steps(manifest: Manifest, steps: Sequence[StepSpec]) -> Manifest:
    """The manifest of some of its steps, with the weights that these read and make."""
    gets, sets = {n for s in steps for n in s.gets}, {n for s in steps for n in s.sets}
    raw = {n: w for n, w in manifest.raw_weights.items() if n in gets}
    prepared = {n: w for n, w in manifest.prepared_weights.items() if n in sets}
    peak = max((s.peak_bytes(raw, prepared) for s in steps), default=0)
    return replace(manifest, raw_weights=raw, prepared_weights=prepared, steps=tuple(steps), peak_bytes=peak)


def updated_arrays(manifest: Manifest, functions: Functions, given: Mapping[str, object]) -> dict[str, Array]:
    """The prepared weights that change when these raw weights do.

    Raises:
        RelaxError: a step that reads one of them reads others, too, which are not given; or as :meth:`Executable.prepare`.
    """
    part = part_of(manifest, given, given)
    missing = [n for n, w in part.raw_weights.items() if n not in given and w.value is None]
    if missing:
        beside = next(s for s in part.steps if missing[0] in s.gets)
        named = next(n for n in beside.gets if n in given)
        raise RelaxError(
            f"expected all raw weights that are prepared together, got '{named}' without {', '.join(map(repr, missing))}"
        )
    return dict(prepare_in_memory(part, functions, given, PrepareOptions()))


def prepare_again(
    manifest: Manifest, functions: Functions, src: object, dst: str | os.PathLike[str], names: Iterable[str],
    options: PrepareOptions,
) -> PrepareReport:  # fmt: skip
    """Runs the steps that read these raw weights, and replaces the file at once by one with their results.

    Processes that have the old file mapped keep it. What is taken over from it is compared with its checksums first.

    Raises:
        RelaxError: the file was prepared for another executable, or is damaged; or as :meth:`Executable.prepare`.
    """
    started, path = time.perf_counter(), path_text(dst, "write")
    part = part_of(manifest, names)
    old = checked_prepared(manifest, path)
    source = checked_source(part, src, options)
    plan = plan_memory(part, source, options.jobs, options.memory_limit)
    kept = [n for n in manifest.prepared_weights if n not in part.prepared_weights]
    check_bytes(old, kept, whole=True)
    specs = {n: w.array for n, w in manifest.prepared_weights.items()}
    with StreamWriter(path, specs, prepared_metadata(manifest), checksums=True) as writer:
        for name in kept:
            writer.put(name, old.read(name))
            old.release(name)
        stream = StepStream(part, functions, source, FileSink(writer), list(part.steps), options.progress, plan)
        stream.run(plan.jobs)
        source.check_unchanged()
        old.check_unchanged()
    return report_of(manifest, source, path, started, stream, plan)

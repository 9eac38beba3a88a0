"""Weight preparation: raw weights in, a file or mapping of prepared weights out, and a report; see :mod:`.step_stream`.

A step gets its raw weights, runs compiled code into a buffer that all steps share, puts the results into the output, and gives
back the weights that no later step needs. So memory stays at the largest step, whatever the size of the checkpoint: what a
large step leaves in the buffers goes before a step that needs more elsewhere.
"""

from __future__ import annotations

import os
import time
import warnings
from dataclasses import dataclass, field

from ..dialect.checks import expect_count
from ..dialect.errors import RelaxError, RelaxWarning
from ..dialect.reports.report import bytes_text, plural
from ..lowering.manifest import Manifest
from ..lowering.manifest_specs import total_bytes
from ..weights.files import os_errors, path_text
from ..weights.model_folder import CONFIG
from ..weights.opening import container_end
from ..weights.remote.places import is_url
from ..weights.writer import StreamWriter, working_files
from .memory_plan import MemoryPlan, plan_memory
from .names import Rename
from .raw_weights import RawWeights
from .sinks import FileSink, MemorySink
from .sources import CURRENT_FORMAT, FILE_FORMAT, FINGERPRINT, WRITTEN_BY, PreparedWeights, open_source
from .step_stream import Functions, PrepareProgress, PrepareTimes, ProgressHook, StepStream

__all__ = [
    "PrepareOptions", "PrepareProgress", "PrepareReport", "PrepareTimes", "check_destination", "checked_source",
    "prepare_in_memory", "prepare_to_file", "prepared_metadata", "report_of",
]  # fmt: skip


@dataclass(frozen=True)
class PrepareReport:
    """What a preparation did.

    Attributes:
        path: the file that was written.
        raw_bytes, prepared_bytes: sizes of the model's weights before and after.
        seconds: wall time.
        steps_run, steps_skipped: skipped ones were done by an interrupted run before.
        predicted_peak_bytes: memory for weights at once, by the manifest: largest step times jobs.
        peak_bytes: what it was: raw weights of running steps, and results and scratch memory as far as they were used.
        extra_weights: names in the source that the model does not use.
        notes: what was done beyond that, one line each: weights that were widened or rounded, tied ones, those with a NaN or an
            infinity.
        times: where the time went.
    """

    path: str
    raw_bytes: int
    prepared_bytes: int
    seconds: float
    steps_run: int
    steps_skipped: int
    predicted_peak_bytes: int
    peak_bytes: int
    extra_weights: tuple[str, ...]
    notes: tuple[str, ...] = ()
    times: PrepareTimes = field(default_factory=PrepareTimes)

    def __fspath__(self) -> str:
        """A report stands for the file: ``exe.bind(exe.prepare(src, dst))``."""
        return self.path

    def __str__(self) -> str:
        skipped = f", {self.steps_skipped} done before" if self.steps_skipped else ""
        extra = f", {plural(len(self.extra_weights), 'weight')} not used" if self.extra_weights else ""
        first = (
            f"prepared {self.path}: {bytes_text(self.raw_bytes)} to {bytes_text(self.prepared_bytes)} in {self.seconds:.2f} s, "
            f"{plural(self.steps_run, 'step')}{skipped}{extra}, predicted peak {bytes_text(self.predicted_peak_bytes)}"
        )
        return "\n  ".join((first, *self.notes))


@dataclass(frozen=True)
class PrepareOptions:
    """How to prepare; see :meth:`Executable.prepare`. Raises RelaxError for jobs that are no count."""

    jobs: int = 1
    progress: ProgressHook | None = None
    rename: Rename = None
    cast: bool = False
    rank: int = 0
    world: int = 1
    shard_size: int | None = None
    memory_limit: int | None = None
    share: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "jobs", expect_count(self.jobs, "1 job or more"))


def prepare_to_file(
    manifest: Manifest, functions: Functions, src: object, dst: str | os.PathLike[str], options: PrepareOptions
) -> PrepareReport:
    """Prepares weights into a safetensors file; see :meth:`Executable.prepare`."""
    started = time.perf_counter()
    source = checked_source(manifest, src, options)
    path = path_text(dst, "write")
    check_destination(source, path)
    if path.endswith(".json"):
        raise RelaxError(f"cannot write '{path}': expected the name of weights, got one of an index")
    plan = plan_memory(manifest, source, options.jobs, options.memory_limit)
    specs = {n: w.array for n, w in manifest.prepared_weights.items()}
    with StreamWriter(path, specs, prepared_metadata(manifest), resume_key=source.identity, checksums=True) as writer:
        todo = [s for s in manifest.steps if not writer.done.issuperset(s.sets)]
        stream = StepStream(manifest, functions, source, FileSink(writer), todo, options.progress, plan)
        stream.run(plan.jobs)
        source.check_unchanged()
    return report_of(manifest, source, path, started, stream, plan)


def prepare_in_memory(manifest: Manifest, functions: Functions, src: object, options: PrepareOptions) -> PreparedWeights:
    """Prepares weights into a mapping; see :meth:`Executable.prepare`."""
    started = time.perf_counter()
    source = checked_source(manifest, src, options)
    sink = MemorySink(options.share)
    plan = plan_memory(manifest, source, options.jobs)
    stream = StepStream(manifest, functions, source, sink, list(manifest.steps), options.progress, plan)
    stream.run(plan.jobs)
    source.check_unchanged()
    arrays = {name: sink.arrays[name] for name in manifest.prepared_weights}
    return PreparedWeights(arrays, manifest.fingerprint, report_of(manifest, source, "in memory", started, stream, plan))


def report_of(
    manifest: Manifest, source: RawWeights, path: str, started: float, stream: StepStream, plan: MemoryPlan
) -> PrepareReport:  # fmt: skip
    """What was done, where it began at this time of :func:`time.perf_counter`."""
    return PrepareReport(
        path,
        total_bytes(manifest.raw_weights),
        total_bytes(manifest.prepared_weights),
        time.perf_counter() - started,
        stream.step_count,
        len(manifest.steps) - stream.step_count,
        plan.each * plan.jobs + source.ahead_bytes,
        stream.peak_bytes,
        source.extra,
        source.notes,
        stream.times,
    )


def checked_source(manifest: Manifest, src: object, options: PrepareOptions) -> RawWeights:
    """The raw weights of a manifest. Raises RelaxError when a source lacks them, is prepared already, or for an option."""
    if options.progress is not None and not callable(options.progress):
        raise RelaxError(f"expected progress as a function, got {type(options.progress).__name__}")
    source = open_source(src)
    what = source.description
    found = source.fingerprint
    if found is not None:
        raise RelaxError(f"{what}: expected raw weights, got weights that are already prepared (fingerprint {found[:12]})")
    found = RawWeights(manifest, source, options.rename, options.cast)
    if found.trained_state:
        names = ", ".join(found.trained_state)
        text = f"{what}: has other values of state than calls begin with: {names}; set them by executable.state[name] = value"
        warnings.warn(text, RelaxWarning, stacklevel=4)
    return found


def check_destination(source: RawWeights, path: str, end: str | None = None) -> None:
    """That a file has a name by which it is read again, and is none of the raw weights' files.

    What is written meanwhile counts as well; a file may have several names.

    Args:
        source: the raw weights.
        path: the file.
        end: how its name has to end; None of safetensors, which may have any name that no other container has.

    Raises:
        RelaxError: it does not, or is one of theirs.
    """
    if is_url(path):
        raise RelaxError(f"cannot write '{path}': expected a file of this machine, got a URL")
    if path.endswith(os.sep):
        raise RelaxError(f"cannot write '{path}': expected the name of a file, got one of a folder")
    with os_errors("write", path):
        configs = [c for f in source.files if os.path.exists(c := os.path.join(os.path.dirname(f), CONFIG))]
        raw = {(s.st_dev, s.st_ino) for s in map(os.stat, (*source.files, *configs))}
        for name in (path, *working_files(path)):
            if os.path.exists(name) and (found := os.stat(name)) and (found.st_dev, found.st_ino) in raw:
                raise RelaxError(f"cannot write '{path}': expected another file than the raw weights, got one of theirs")
    if container_end(path) != end:
        wanted = "that no other kind of file has, as .safetensors" if end is None else end
        raise RelaxError(f"cannot write '{path}': expected an end of the name {wanted}, got '{os.path.basename(path)}'")


def prepared_metadata(manifest: Manifest) -> dict[str, str]:
    """What the file of prepared weights says of itself."""
    from .. import __version__

    return {
        "format": "relaxir", FILE_FORMAT: CURRENT_FORMAT, FINGERPRINT: manifest.fingerprint, WRITTEN_BY: __version__,
    }  # fmt: skip

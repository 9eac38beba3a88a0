"""Weight preparation as a stream: raw weights in, prepared weights out, one step of the manifest at a time.

A step gets its raw weights as views of the mapped file, runs compiled code into a buffer that all steps share, puts the results
into the output file, and gives the pages of weights that no later step needs back to the system. So memory stays at the largest
step, whatever the size of the checkpoint: what a large step leaves in the buffers goes before a step that needs more elsewhere.
"""

from __future__ import annotations

import os
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Protocol

from ..dialect.checks import expect_count
from ..dialect.errors import RelaxError
from ..lowering.manifest import Manifest, StepSpec, total_bytes
from ..weights.arrays import ALIGNMENT, Array, ArraySpec, address, aligned_empty
from ..weights.files import os_errors, path_text
from ..weights.sharded import ShardedWriter
from ..weights.writer import StreamWriter, working_files
from .calls import as_argument, int64_array, invoke, pointer_array
from .library import EntryFunction
from .names import Rename
from .raw_weights import RawWeights
from .scratch import Scratch
from .sources import FINGERPRINT, PreparedWeights, open_source
from .threads import work_alone

__all__ = [
    "FileSink", "PrepareOptions", "PrepareProgress", "PrepareReport", "Sink", "StepStream", "buffer_arrays", "buffer_bytes",
    "check_not_source", "checked_source", "prepare_in_memory", "prepare_to_file", "prepared_metadata", "report_of",
]  # fmt: skip

# Bytes asked from the disk before they are needed: 4 tensors of 16 MiB ahead gave 10 to 50 %.
_AHEAD_BYTES = 64 << 20

_NO_SYMBOLS = int64_array(())


@dataclass(frozen=True)
class PrepareProgress:
    """How far a preparation is; bytes are those of prepared weights."""

    steps_done: int
    steps_total: int
    bytes_done: int
    bytes_total: int


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

    def __fspath__(self) -> str:
        """A report stands for the file: ``exe.bind(exe.prepare(src, dst))``."""
        return self.path

    def __str__(self) -> str:
        skipped = f", {self.steps_skipped} done before" if self.steps_skipped else ""
        extra = f", {len(self.extra_weights)} weights not used" if self.extra_weights else ""
        first = (
            f"prepared {self.path}: {self.raw_bytes} bytes to {self.prepared_bytes} bytes in {self.seconds:.2f} s, "
            f"{self.steps_run} steps{skipped}{extra}, predicted peak {self.predicted_peak_bytes} bytes"
        )
        return "\n  ".join((first, *self.notes))


Functions = Callable[[str], EntryFunction]
ProgressHook = Callable[[PrepareProgress], None]


@dataclass(frozen=True)
class PrepareOptions:
    """How to prepare; see :meth:`Executable.prepare`."""

    jobs: int = 1
    progress: ProgressHook | None = None
    rename: Rename = None
    cast: bool = False
    rank: int = 0
    world: int = 1
    shard_size: int | None = None
    memory_limit: int | None = None


def prepare_to_file(
    manifest: Manifest, functions: Functions, src: object, dst: str | os.PathLike[str], options: PrepareOptions
) -> PrepareReport:
    """Prepares weights into a safetensors file; see :meth:`Executable.prepare`."""
    started = time.perf_counter()
    source = checked_source(manifest, src, options)
    path = path_text(dst, "write")
    check_not_source(source, path)
    jobs = jobs_within(manifest, source, options)
    specs = {n: w.array for n, w in manifest.prepared_weights.items()}
    with StreamWriter(path, specs, prepared_metadata(manifest), resume_key=source.identity, checksums=True) as writer:
        todo = [s for s in manifest.steps if not writer.done.issuperset(s.sets)]
        stream = StepStream(manifest, functions, source, FileSink(writer), todo, options.progress)
        stream.run(jobs)
        source.check_unchanged()
    return report_of(manifest, source, path, started, stream, jobs)


def prepare_in_memory(manifest: Manifest, functions: Functions, src: object, options: PrepareOptions) -> PreparedWeights:
    """Prepares weights into a mapping; see :meth:`Executable.prepare`."""
    started = time.perf_counter()
    source = checked_source(manifest, src, options)
    sink = _MemorySink()
    stream = StepStream(manifest, functions, source, sink, list(manifest.steps), options.progress)
    stream.run(options.jobs)
    source.check_unchanged()
    arrays = {name: sink.arrays[name] for name in manifest.prepared_weights}
    return PreparedWeights(
        arrays, manifest.fingerprint, report_of(manifest, source, "in memory", started, stream, options.jobs)
    )


def report_of(
    manifest: Manifest, source: RawWeights, path: str, started: float, stream: StepStream, jobs: int
) -> PrepareReport:  # fmt: skip
    """What was done, where it began at this time of :func:`time.perf_counter`."""
    return PrepareReport(
        path,
        total_bytes(manifest.raw_weights),
        total_bytes(manifest.prepared_weights),
        time.perf_counter() - started,
        stream.step_count,
        len(manifest.steps) - stream.step_count,
        _predicted_peak(manifest, source) * jobs + source.ahead_bytes,
        stream.peak_bytes,
        source.extra,
        source.notes,
    )


def _predicted_peak(manifest: Manifest, source: RawWeights) -> int:
    """Memory of the largest step, with both forms of weights that are converted."""
    if not source.converts:
        return manifest.peak_bytes
    return max((_step_bytes(manifest, source, step) for step in manifest.steps), default=0)


def _step_bytes(manifest: Manifest, source: RawWeights, step: StepSpec) -> int:
    """Memory that a step takes: its weights, its scratch memory and its results."""
    extra = source.nbytes(step.gets) - sum(manifest.raw_weights[n].array.nbytes for n in set(step.gets))
    return step.peak_bytes(manifest.raw_weights, manifest.prepared_weights) + extra


def jobs_within(manifest: Manifest, source: RawWeights, options: PrepareOptions) -> int:
    """How many threads at most may run steps at once, so that all together stay within the memory limit.

    Raises:
        RelaxError: one step alone takes more.
    """
    if options.memory_limit is None:
        return options.jobs
    limit = expect_count(options.memory_limit, "a memory limit of 1 byte or more")
    each, ahead = _predicted_peak(manifest, source), source.ahead_bytes
    least = each + ahead
    if least > limit:
        largest = max(manifest.steps, key=lambda step: _step_bytes(manifest, source, step))
        what = f"which preparing '{largest.sets[0]}' takes"
        raise RelaxError(f"expected a memory limit of {least} bytes or more, {what}, got {limit}")
    return min(options.jobs, (limit - ahead) // max(each, 1))


def checked_source(manifest: Manifest, src: object, options: PrepareOptions) -> RawWeights:
    """The raw weights of a manifest. Raises RelaxError when a source lacks them, is prepared already, or for an option."""
    expect_count(options.jobs, "1 job or more")
    if options.progress is not None and not callable(options.progress):
        raise RelaxError(f"expected progress as a function, got {type(options.progress).__name__}")
    source = open_source(src)
    what = source.description
    found = source.fingerprint
    if found is not None:
        raise RelaxError(f"{what}: expected raw weights, got weights that are already prepared (fingerprint {found[:12]})")
    return RawWeights(manifest, source, options.rename, options.cast)


def check_not_source(source: RawWeights, path: str) -> None:
    """What is written meanwhile counts as well; a file may have several names."""
    with os_errors("write", path):
        raw = {(s.st_dev, s.st_ino) for s in map(os.stat, source.files)}
        for name in (path, *working_files(path)):
            if os.path.exists(name) and (found := os.stat(name)) and (found.st_dev, found.st_ino) in raw:
                raise RelaxError(f"cannot write '{path}': expected another file than the raw weights, got one of theirs")


def prepared_metadata(manifest: Manifest) -> dict[str, str]:
    """What the file of prepared weights says of itself."""
    from .. import __version__

    return {"format": "relaxir", FINGERPRINT: manifest.fingerprint, "relaxir.version": __version__}


class Sink(Protocol):
    """Where results go: memory for a step's outputs, a way to keep one, and a way to keep a raw weight as it is."""

    def buffer_bytes(self, specs: Sequence[ArraySpec]) -> int: ...
    def outputs(self, specs: Sequence[ArraySpec], buffer: Scratch) -> list[Array]: ...
    def put(self, name: str, array: Array) -> None: ...
    def copy(self, name: str, array: Array) -> None: ...


class FileSink:
    """Results go through a shared buffer to the file: measured faster than computing into its mapped pages."""

    def __init__(self, writer: StreamWriter | ShardedWriter):
        self.put = self.copy = writer.put

    def buffer_bytes(self, specs: Sequence[ArraySpec]) -> int:
        return buffer_bytes(specs)

    def outputs(self, specs: Sequence[ArraySpec], buffer: Scratch) -> list[Array]:
        return buffer_arrays(specs, buffer)


def buffer_bytes(specs: Sequence[ArraySpec]) -> int:
    """What these arrays take in one buffer."""
    return _offsets(specs)[-1]


def buffer_arrays(specs: Sequence[ArraySpec], buffer: Scratch) -> list[Array]:
    """Arrays in a buffer, which grows as they need."""
    offsets = _offsets(specs)
    buffer.grow(max(offsets[-1], 1))
    return [buffer.view(offset, s.dtype, s.shape) for offset, s in zip(offsets, specs, strict=False)]


def _offsets(specs: Sequence[ArraySpec]) -> list[int]:
    """Where each array begins in a buffer, and where the last one ends."""
    offsets = [0]
    for spec in specs:
        offsets.append(offsets[-1] + -(-spec.nbytes // ALIGNMENT) * ALIGNMENT)
    return offsets


class _MemorySink:
    """Results are kept, each in memory of its own."""

    def __init__(self) -> None:
        self.arrays: dict[str, Array] = {}

    def buffer_bytes(self, specs: Sequence[ArraySpec]) -> int:
        return 0

    def outputs(self, specs: Sequence[ArraySpec], buffer: Scratch) -> list[Array]:
        return [aligned_empty(s.dtype, s.shape) for s in specs]

    def put(self, name: str, array: Array) -> None:
        self.arrays[name] = array

    def copy(self, name: str, array: Array) -> None:
        self.arrays[name] = aligned_empty(array.dtype, array.shape)
        self.arrays[name][...] = array


class _Buffers:
    """The memory that the steps of one thread share: one buffer to work in, one for results.

    Attributes:
        used: bytes of each that steps have used; no others take memory.
    """

    def __init__(self, limit: int):
        self.arena, self.results = Scratch(), Scratch()
        self.used = (0, 0)
        self._limit = limit

    def make_room(self, weights: int, arena: int, results: int) -> int:
        """Readies for a step that needs so many bytes; what larger steps left goes where all would exceed the limit.

        Returns:
            The bytes that the buffers then take.
        """
        wanted, used = (arena, results), [max(self.used[0], arena), max(self.used[1], results)]
        for i, buffer in enumerate((self.arena, self.results)):
            if used[i] > wanted[i] and weights + sum(used) > self._limit:
                buffer.free()
                used[i] = wanted[i]
        self.used = (used[0], used[1])
        return sum(used)


class StepStream:
    """Runs steps in order on a number of threads.

    Attributes:
        step_count: how many steps it runs.
        peak_bytes: the most bytes of raw weights, results and scratch memory that all threads held so far.
    """

    def __init__(
        self, manifest: Manifest, functions: Functions, source: RawWeights, sink: Sink, steps: Sequence[StepSpec],
        progress: ProgressHook | None,
    ):  # fmt: skip
        self._manifest = manifest
        self._functions = functions
        self._source = source
        self._sink = sink
        self._steps = steps
        self._progress = progress
        self._lock = threading.Lock()
        self._next = 0
        self._asked = 0
        self._ahead_bytes = 0
        self._done = PrepareProgress(0, len(steps), 0, sum(self._bytes(manifest.prepared_weights, s.sets) for s in steps))
        self._reading = Counter[str]()
        self._held: dict[int, int] = {}
        self.step_count = len(steps)
        self.peak_bytes = 0
        self._stopped = False

    def run(self, jobs: int) -> None:
        """All steps; the first error of any thread ends the others after their step and is raised."""
        if jobs == 1:
            return self._work()
        jobs = min(jobs, max(len(self._steps), 1))
        with ThreadPoolExecutor(jobs, initializer=work_alone) as pool:
            workers = [pool.submit(self._work) for _ in range(jobs)]
            try:
                for worker in workers:
                    worker.result()
            except BaseException:
                self._stopped = True
                raise

    def _work(self) -> None:
        buffers = _Buffers(_predicted_peak(self._manifest, self._source))
        try:
            self._run_steps(buffers)
        finally:
            self._hold(0)

    def _run_steps(self, buffers: _Buffers) -> None:
        while (step := self._take()) is not None:
            try:
                self._run_step(step, buffers)
                self._finish(step)
            except BaseException:
                self._stopped = True
                raise

    def _take(self) -> StepSpec | None:
        with self._lock:
            if self._stopped or self._next == len(self._steps):
                return None
            step = self._steps[self._next]
            self._next += 1
            self._reading.update(set(step.gets))
            self._read_ahead(step)
            return step

    def _read_ahead(self, taken: StepSpec) -> None:
        """Keeps the disk busy with what the next steps read. Needs the lock."""
        self._ahead_bytes -= self._bytes(self._manifest.raw_weights, taken.gets)
        while self._asked < len(self._steps) and self._ahead_bytes < _AHEAD_BYTES:
            step = self._steps[self._asked]
            for name in step.gets:
                self._source.prefetch(name)
            self._asked += 1
            self._ahead_bytes += self._bytes(self._manifest.raw_weights, step.gets)

    def _run_step(self, step: StepSpec, buffers: _Buffers) -> None:
        specs = [self._manifest.prepared_weights[n].array for n in step.sets if step.symbol is not None]
        weights, results = self._source.nbytes(step.gets), self._sink.buffer_bytes(specs)
        self._hold(weights + buffers.make_room(weights, step.arena_bytes, results))
        self._source.check_unchanged(step.gets)
        inputs = [self._input(name) for name in step.gets]
        if step.symbol is None:
            for name, array in zip(step.sets, inputs, strict=True):
                self._sink.copy(name, array)
            return
        outputs = self._sink.outputs(specs, buffers.results)
        tensors = pointer_array([address(a) for a in (*inputs, *outputs)])
        invoke(self._functions(step.symbol), tensors, _NO_SYMBOLS, buffers.arena, f"preparation of {', '.join(step.sets)}")
        for name, array in zip(step.sets, outputs, strict=True):
            self._sink.put(name, array)

    def _input(self, name: str) -> Array:
        """A raw weight as compiled code takes it."""
        return as_argument(self._source.get(name), f"weight '{name}'")

    def _hold(self, count: int) -> None:
        """Enters what this thread holds while its next step runs."""
        with self._lock:
            self._held[threading.get_ident()] = count
            self.peak_bytes = max(self.peak_bytes, sum(self._held.values()))

    def _finish(self, step: StepSpec) -> None:
        """Lets go of weights that no running step and not the next one reads; a later one reads them again."""
        with self._lock:
            self._reading.subtract(set(step.gets))
            following = self._steps[self._next].gets if self._next < len(self._steps) else ()
            for name in set(step.gets) - set(following):
                if not self._reading[name]:
                    self._source.release(name)
            done = self._done
            size = self._bytes(self._manifest.prepared_weights, step.sets)
            self._done = PrepareProgress(done.steps_done + 1, done.steps_total, done.bytes_done + size, done.bytes_total)
            if self._progress is not None:
                self._progress(self._done)

    def _bytes(self, weights: Mapping[str, Any], names: Sequence[str]) -> int:
        return sum(weights[n].array.nbytes for n in names)

"""Steps of a manifest as a stream: a source of raw weights and a sink in, the sink filled.

While one step's results are written, the next one's weights are read; the system reads those of the steps behind it. All this
takes no memory beyond the largest step's: what is read goes into the buffer whose content was just used.
"""

from __future__ import annotations

import contextlib
import functools
import logging
import threading
import time
from collections import Counter
from collections.abc import Callable, Generator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

from ..lowering.manifest import Manifest
from ..lowering.manifest_steps import StepSpec
from ..weights.arrays import Array, address
from .calls import as_argument, int64_array, invoke, pointer_array
from .library import EntryFunction
from .memory_plan import MemoryPlan, StepCall, StepRun, plan_memory, runs_of
from .raw_weights import RawWeights
from .scratch import Scratch
from .sinks import FileSink, Sink, buffer_arrays
from .step_buffers import StepBuffers, WriteBehind
from .threads import alone, work_alone

__all__ = ["Functions", "PrepareProgress", "PrepareTimes", "ProgressHook", "StepStream"]

# Bytes asked from the disk before they are needed: 4 tensors of 16 MiB ahead gave 10 to 50 %.
_AHEAD_BYTES = 64 << 20

_LOG = logging.getLogger("relaxir.prepare")
_NO_SYMBOLS = int64_array(())


@dataclass(frozen=True)
class PrepareProgress:
    """How far a preparation is; bytes are those of prepared weights.

    Attributes:
        steps_done, steps_total: steps that are written, and all that run.
        bytes_done, bytes_total: of their results.
        tensor: the prepared weight that was written last.
    """

    steps_done: int
    steps_total: int
    bytes_done: int
    bytes_total: int
    tensor: str = ""


@dataclass
class PrepareTimes:
    """Seconds of all threads together in each part of the work; parts of different steps overlap.

    Attributes:
        read: getting raw weights, and decoding encoded ones.
        compute: compiled code.
        write: putting results, with their checksums, into the sink.
    """

    read: float = 0.0
    compute: float = 0.0
    write: float = 0.0


Functions = Callable[[str], EntryFunction]
ProgressHook = Callable[[PrepareProgress], None]


@dataclass(frozen=True)
class _Writing:
    """Where the results of a run go, and the step that is done with it, if one is."""

    takers: Sequence[Callable[[Array], None]]
    completes: StepSpec | None


class StepStream:
    """Runs steps in order on a number of threads.

    Attributes:
        step_count: how many steps it runs.
        peak_bytes: the most bytes of raw weights, results and scratch memory that all threads held so far.
        times: where the time went so far.
    """

    def __init__(
        self, manifest: Manifest, functions: Functions, source: RawWeights, sink: Sink, steps: Sequence[StepSpec],
        progress: ProgressHook | None, plan: MemoryPlan | None = None,
    ):  # fmt: skip
        """Takes what runs; ``plan`` says which steps run in pieces, into a file then."""
        self._plan = plan_memory(manifest, source) if plan is None else plan
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
        self.times = PrepareTimes()
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
        buffers = StepBuffers(self._plan.each)
        try:
            with WriteBehind() as behind:
                while (step := self._take()) is not None:
                    self._run_step(step, buffers, behind)
        except BaseException:
            self._stopped = True
            raise
        finally:
            self._hold(0)

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
        self._ahead_bytes -= self._read_bytes(taken)
        while self._asked < len(self._steps) and self._ahead_bytes < _AHEAD_BYTES:
            step = self._steps[self._asked]
            for name, place in zip(step.gets, step.places, strict=True):
                if not place.ranges:  # what others read of it would be read, too
                    self._source.prefetch(name)
            self._asked += 1
            self._ahead_bytes += self._read_bytes(step)

    def _read_bytes(self, step: StepSpec) -> int:
        return sum(spec.nbytes for spec in step.read_specs(self._manifest.raw_weights))

    def _run_step(self, step: StepSpec, buffers: StepBuffers, behind: WriteBehind) -> None:
        self._source.check_unchanged(step.gets)
        parts = self._plan.parts.get(step.sets)
        takers = self._takers(step, parts is not None)
        *others, last = runs_of(self._manifest, step, parts)
        for run in others:
            self._run(step, run, _Writing(takers, None), (buffers, behind))
        self._run(step, last, _Writing(takers, step), (buffers, behind))

    def _takers(self, step: StepSpec, is_parted: bool) -> list[Callable[[Array], None]]:
        """What takes the results of a step, or pieces of them."""
        if is_parted:
            assert isinstance(self._sink, FileSink)
            return [self._sink.begin(name).put for name in step.sets]
        put = self._sink.copy if step.symbol is None else self._sink.put
        return [functools.partial(put, name) for name in step.sets]

    def _run(self, step: StepSpec, run: StepRun, writing: _Writing, memory: tuple[StepBuffers, WriteBehind]) -> None:
        buffers, behind = memory
        read = dict(zip(run.names, run.pieces, strict=True))
        weights = sum(self._source.part_bytes(name, piece) for name, piece in read.items())
        results = self._sink.buffer_bytes(run.sets) if run.calls else 0
        wanted = (weights, run.arena_bytes, results)
        if not buffers.has_room(*wanted, behind.held):
            behind.wait()
        self._hold(buffers.make_room(*wanted, behind.held) + behind.held)
        if not run.calls:
            with self._timed("read"):
                arrays = [as_argument(self._source.get(n, None, p), f"weight '{n}'") for n, p in read.items()]
            self._let_go(writing)
            return behind.put(lambda: self._write(writing, run, arrays), weights, held=weights)
        with self._timed("read"):
            inputs = self._inputs(run, buffers)
        behind.wait()  # what is written lies where the results go
        outputs = self._sink.outputs(run.sets, buffers.results)
        places, what = [address(a) for a in (*inputs, *outputs)], f"preparation of {', '.join(step.sets)}"
        one = alone() if step.parts is not None and step.parts.blocks is not None else contextlib.nullcontext()
        with one, self._timed("compute"):
            self._compute(run.calls, places, buffers.arena, what)
        self._let_go(writing)
        behind.put(lambda: self._write(writing, run, outputs), sum(s.nbytes for s in run.sets))

    def _compute(self, calls: Sequence[StepCall], places: Sequence[int], arena: Scratch, what: str) -> None:
        """Makes the calls of a run, whose weights and results are at these addresses."""
        for call in calls:
            tensors = pointer_array([place + offset for place, offset in zip(places, call.offsets, strict=True)])
            invoke(self._functions(call.symbol), tensors, _NO_SYMBOLS, arena, what)

    def _let_go(self, writing: _Writing) -> None:
        """Raw weights are in memory until the last run of their step has read them."""
        if writing.completes is not None:
            self._release(writing.completes)

    def _inputs(self, run: StepRun, buffers: StepBuffers) -> list[Array]:
        """Raw weights as compiled code takes them, in the buffer where the source can read into one."""
        places = buffer_arrays(run.gets, buffers.weights)
        read = zip(run.names, places, run.pieces, strict=True)
        return [as_argument(self._source.get(n, place, piece), f"weight '{n}'") for n, place, piece in read]

    def _write(self, writing: _Writing, run: StepRun, arrays: Sequence[Array]) -> None:
        with self._timed("write"):
            for place, array in zip(run.results, arrays, strict=True):
                writing.takers[place](array)
        if writing.completes is not None:
            self._tell(writing.completes)

    @contextlib.contextmanager
    def _timed(self, part: str) -> Generator[None]:
        """Adds the time of the ``with`` block to a part; microseconds beside what a step takes."""
        begin = time.perf_counter()
        yield
        with self._lock:
            setattr(self.times, part, getattr(self.times, part) + time.perf_counter() - begin)

    def _hold(self, count: int) -> None:
        """Enters what this thread holds while its next step runs."""
        with self._lock:
            self._held[threading.get_ident()] = count
            self.peak_bytes = max(self.peak_bytes, sum(self._held.values()))

    def _release(self, step: StepSpec) -> None:
        """Lets go of weights that no running step and not the next one reads; a later one reads them again."""
        with self._lock:
            self._reading.subtract(set(step.gets))
            following = self._steps[self._next].gets if self._next < len(self._steps) else ()
            for name in set(step.gets) - set(following):
                if not self._reading[name]:
                    self._source.release(name)

    def _tell(self, step: StepSpec) -> None:
        """Counts a step that is written."""
        with self._lock:
            done, size = self._done, self._bytes(self._manifest.prepared_weights, step.sets)
            self._done = PrepareProgress(
                done.steps_done + 1, done.steps_total, done.bytes_done + size, done.bytes_total, step.sets[-1]
            )
            _LOG.debug("prepared %s, step %d of %d", ", ".join(step.sets), self._done.steps_done, self._done.steps_total)
            if self._progress is not None:
                self._progress(self._done)

    def _bytes(self, weights: Mapping[str, Any], names: Sequence[str]) -> int:
        return sum(weights[n].array.nbytes for n in names)

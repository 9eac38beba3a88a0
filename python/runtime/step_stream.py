"""Steps of a manifest as a stream: a source of raw weights and a sink in, the sink filled.

While one step's results are written, the next one's weights are read; the system reads those of the steps behind it. All this
takes no memory beyond the largest step's: what is read goes into the buffer whose content was just used.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

from ..lowering.manifest import Manifest, StepSpec
from ..weights.arrays import Array, address
from .calls import as_argument, int64_array, invoke, pointer_array
from .library import EntryFunction
from .raw_weights import RawWeights
from .sinks import Sink, buffer_arrays
from .step_buffers import StepBuffers, WriteBehind
from .threads import work_alone

__all__ = ["Functions", "PrepareProgress", "ProgressHook", "StepStream", "predicted_peak", "step_bytes"]

# Bytes asked from the disk before they are needed: 4 tensors of 16 MiB ahead gave 10 to 50 %.
_AHEAD_BYTES = 64 << 20

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


Functions = Callable[[str], EntryFunction]
ProgressHook = Callable[[PrepareProgress], None]


def predicted_peak(manifest: Manifest, source: RawWeights) -> int:
    """Memory of the largest step, with both forms of weights that are converted."""
    if not source.converts:
        return manifest.peak_bytes
    return max((step_bytes(manifest, source, step) for step in manifest.steps), default=0)


def step_bytes(manifest: Manifest, source: RawWeights, step: StepSpec) -> int:
    """Memory that a step takes: its weights, its scratch memory and its results."""
    extra = source.nbytes(step.gets) - sum(manifest.raw_weights[n].array.nbytes for n in set(step.gets))
    return step.peak_bytes(manifest.raw_weights, manifest.prepared_weights) + extra


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
        buffers = StepBuffers(predicted_peak(self._manifest, self._source))
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
        self._ahead_bytes -= self._bytes(self._manifest.raw_weights, taken.gets)
        while self._asked < len(self._steps) and self._ahead_bytes < _AHEAD_BYTES:
            step = self._steps[self._asked]
            for name in step.gets:
                self._source.prefetch(name)
            self._asked += 1
            self._ahead_bytes += self._bytes(self._manifest.raw_weights, step.gets)

    def _run_step(self, step: StepSpec, buffers: StepBuffers, behind: WriteBehind) -> None:
        specs = [self._manifest.prepared_weights[n].array for n in step.sets if step.symbol is not None]
        wanted = (self._source.nbytes(step.gets), step.arena_bytes, self._sink.buffer_bytes(specs))
        if not buffers.has_room(*wanted, behind.held):
            behind.wait()
        self._hold(buffers.make_room(*wanted, behind.held) + behind.held)
        self._source.check_unchanged(step.gets)
        if step.symbol is None:
            return self._copy(step, behind)
        inputs = self._inputs(step, buffers)
        behind.wait()  # what is written lies where the results go
        outputs = self._sink.outputs(specs, buffers.results)
        tensors = pointer_array([address(a) for a in (*inputs, *outputs)])
        invoke(self._functions(step.symbol), tensors, _NO_SYMBOLS, buffers.arena, f"preparation of {', '.join(step.sets)}")
        self._release(step)
        behind.put(lambda: self._write(step, self._sink.put, outputs), sum(s.nbytes for s in specs))

    def _copy(self, step: StepSpec, behind: WriteBehind) -> None:
        """Raw weights are prepared ones; they are in memory of their own until they are written."""
        arrays = [as_argument(self._source.get(name), f"weight '{name}'") for name in step.gets]
        self._release(step)
        nbytes = self._source.nbytes(step.gets)
        behind.put(lambda: self._write(step, self._sink.copy, arrays), nbytes, held=nbytes)

    def _inputs(self, step: StepSpec, buffers: StepBuffers) -> list[Array]:
        """Raw weights as compiled code takes them, in the buffer where the source can read into one."""
        specs = [self._manifest.raw_weights[n].array for n in step.gets]
        places = buffer_arrays(specs, buffers.weights)
        return [as_argument(self._source.get(n, p), f"weight '{n}'") for n, p in zip(step.gets, places, strict=True)]

    def _write(self, step: StepSpec, put: Callable[[str, Array], None], arrays: Sequence[Array]) -> None:
        for name, array in zip(step.sets, arrays, strict=True):
            put(name, array)
        self._tell(step)

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
            if self._progress is not None:
                self._progress(self._done)

    def _bytes(self, weights: Mapping[str, Any], names: Sequence[str]) -> int:
        return sum(weights[n].array.nbytes for n in names)

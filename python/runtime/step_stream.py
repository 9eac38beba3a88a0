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

from ..dialect.errors import ContentError
from ..lowering.manifest import Manifest
from ..lowering.manifest_steps import StepSpec
from ..weights.arrays import Array, address
from .block_calls import BlockReads, Helpers, Invoke, WholeInputs, run_blocks
from .calls import as_argument, int64_array, invoke, pointer_array
from .library import EntryFunction
from .memory_plan import MemoryPlan, StepCall, StepRun, plan_memory, runs_of
from .narrow_limits import ScaleLimits
from .raw_weights import Piece, RawWeights
from .scratch import Scratch
from .sinks import Sink, Taker, buffer_arrays
from .step_buffers import Need, StepBuffers, WriteBehind
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

    takers: Sequence[Taker]
    completes: StepSpec | None


@dataclass(frozen=True)
class _Own:
    """What a thread that runs steps has for itself."""

    buffers: StepBuffers
    behind: WriteBehind
    helpers: Helpers


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
        """Takes what runs; ``plan`` says which steps run in pieces."""
        self._plan = plan_memory(manifest, source) if plan is None else plan
        self._manifest = manifest
        self._functions = functions
        self._source = source
        self._sink = sink
        self._steps = steps
        self._progress = progress
        self._limits = ScaleLimits(manifest)
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
            with WriteBehind() as behind, Helpers() as helpers:
                own = _Own(buffers, behind, helpers)
                while (step := self._take()) is not None:
                    self._run_step(step, own)
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

    def _run_step(self, step: StepSpec, own: _Own) -> None:
        self._source.check_unchanged(step.gets)
        parts = self._plan.parts.get(step.sets)
        takers = self._takers(step, parts is not None)
        *others, last = runs_of(self._manifest, step, parts)
        for run in others:
            self._run(step, run, _Writing(takers, None), own)
        self._run(step, last, _Writing(takers, step), own)

    def _takers(self, step: StepSpec, is_parted: bool) -> list[Taker]:
        """What takes the results of a step, or pieces of them."""
        if is_parted:
            return [self._sink.begin(name, self._manifest.prepared_weights[name].array) for name in step.sets]
        put = self._sink.copy if step.symbol is None else self._sink.put
        return [functools.partial(put, name) for name in step.sets]

    def _run(self, step: StepSpec, run: StepRun, writing: _Writing, own: _Own) -> None:
        if not run.calls:
            return self._copy(run, writing, own)
        what = f"preparation of {', '.join(step.sets)}"
        functions = {symbol: self._functions(symbol) for symbol in dict.fromkeys(call.symbol for call in run.calls)}

        def call(each: StepCall, places: Sequence[int], arena: Scratch) -> None:
            invoke(functions[each.symbol], pointer_array(places), _NO_SYMBOLS, arena, what)

        outputs = self._compute_blocks(run, call, own) if run.cuts else self._compute_whole(run, call, own)
        for place, array in zip(run.results, outputs, strict=True):
            problem = self._limits.problem(step.sets[place], array)
            if problem is not None:
                raise ContentError(f"{self._source.description}: {problem}")
        self._let_go(writing)
        own.behind.put(lambda: self._write(writing, run, outputs), sum(s.nbytes for s in run.sets))

    def _copy(self, run: StepRun, writing: _Writing, own: _Own) -> None:
        weights = self._part_bytes(run, run.pieces)
        self._make_room(own, Need(weights, run.arena_bytes, 0))
        with self._timed("read"):
            read = zip(run.names, run.pieces, strict=True)
            arrays = [as_argument(self._source.get(n, None, p), f"weight '{n}'") for n, p in read]
        self._let_go(writing)
        own.behind.put(lambda: self._write(writing, run, arrays), weights, held=weights)

    def _compute_whole(self, run: StepRun, call: Invoke, own: _Own) -> list[Array]:
        """The results of a run whose weights are read before its calls; what is written meanwhile lies where these go."""
        weights, results = self._part_bytes(run, run.pieces), self._sink.buffer_bytes(run.sets)
        self._make_room(own, Need(weights, run.arena_bytes, results))
        with self._timed("read"):
            inputs = self._inputs(run, own.buffers)
        own.behind.wait()
        outputs = self._sink.outputs(run.sets, own.buffers.results)
        places = [address(a) for a in (*inputs, *outputs)]
        with self._timed("compute"):
            for each in run.calls:
                call(each, [place + offset for place, offset in zip(places, each.offsets, strict=True)], own.buffers.arena)
        return outputs

    def _compute_blocks(self, run: StepRun, call: Invoke, own: _Own) -> list[Array]:
        """The results of a run in blocks, which threads share.

        Where each reads its range of the weights itself, the memory that this leaves takes the results of the run before, while
        they are written.
        """
        reads = all(self._source.reads_ranges(n) for n, cut in zip(run.names, run.cuts, strict=True) if cut is not None)
        need = self._need_of_blocks(run, reads, own)
        self._make_room(own, need)
        buffers, source = own.buffers, self._source
        others = buffers.helpers_of(need.helpers // max(1, self._bytes_of_helper(run, reads)))
        arenas = [buffers.arena, *(arena for _, arena in others)]
        if reads:
            first = BlockReads(run, source, buffers.weights)
            inputs = [first, *(BlockReads(run, source, memory, first) for memory, _ in others)]
        else:
            with self._timed("read"):
                arrays = self._inputs(run, buffers)
            inputs = [WholeInputs(run, arrays)] * len(arenas)
        if need.written:
            buffers.swap()
        else:
            own.behind.wait()
        outputs = self._sink.outputs(run.sets, buffers.results)
        with alone():
            read, computed = run_blocks(run, inputs, arenas, outputs, call, own.helpers)
        with self._lock:
            self.times.read, self.times.compute = self.times.read + read, self.times.compute + computed
        return outputs

    def _need_of_blocks(self, run: StepRun, reads: bool, own: _Own) -> Need:
        """What a run in blocks takes, with as many helpers as there are threads for, and room."""
        weights, results = self._part_bytes(run, run.block(0) if reads else run.pieces), self._sink.buffer_bytes(run.sets)
        held, each, buffers = own.behind.held, self._bytes_of_helper(run, reads), own.buffers
        need = Need(weights, run.arena_bytes, results, results if reads else 0)
        if not buffers.can_have(need, held):
            need = need._replace(written=0)
        threads = self._functions(run.calls[0].symbol).library.team.size
        helpers = max(0, min(threads, len(run.calls)) - 1)
        while helpers and not buffers.can_have(need._replace(helpers=helpers * each), held):
            helpers -= 1
        return need._replace(helpers=helpers * each)

    def _bytes_of_helper(self, run: StepRun, reads: bool) -> int:
        return max(1, run.arena_bytes + (self._part_bytes(run, run.block(0)) if reads else 0))

    def _make_room(self, own: _Own, need: Need) -> None:
        if not own.buffers.has_room(need, own.behind.held):
            own.behind.wait()
        self._hold(own.buffers.make_room(need, own.behind.held) + own.behind.held)

    def _part_bytes(self, run: StepRun, pieces: Sequence[Piece | None]) -> int:
        return sum(self._source.part_bytes(n, p) for n, p in dict(zip(run.names, pieces, strict=True)).items())

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

"""The calls of a step that runs in blocks, shared by threads: each takes the next block, reads its range, computes.

A block and what is between its weights and its results stay in the second-level cache of the processor that read it.
"""

from __future__ import annotations

import os
import time
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from types import TracebackType
from typing import Protocol

import numpy as np

from ..weights.arrays import Array, address
from .calls import as_argument
from .memory_plan import StepCall, StepRun
from .raw_weights import Piece, RawWeights, part_spec
from .scratch import Scratch
from .sinks import buffer_arrays
from .sources import BytesReader
from .threads import work_alone

__all__ = ["BlockReads", "Helpers", "Inputs", "Invoke", "WholeInputs", "run_blocks"]

#: What makes a call of compiled code at addresses, in an arena.
Invoke = Callable[[StepCall, Sequence[int], Scratch], None]


class Inputs(Protocol):
    """The addresses of the weights of one call after another."""

    def __call__(self, index: int) -> list[int]: ...


class WholeInputs:
    """Those of weights that are in memory as a whole."""

    def __init__(self, run: StepRun, arrays: Sequence[Array]):
        self._calls, self._places = run.calls, [address(a) for a in arrays]

    def __call__(self, index: int) -> list[int]:
        return [place + offset for place, offset in zip(self._places, self._calls[index].offsets, strict=False)]


class BlockReads:
    """Those of weights of which each call's range is read in front of it, into memory that a thread's calls share."""

    def __init__(self, run: StepRun, source: RawWeights, memory: Scratch, whole: BlockReads | None = None):
        """Reads what all calls take; ``whole`` has it already."""
        self._run, self._source, self._readers = run, source, dict[int, BytesReader]()
        first = run.block(0)
        self._places = buffer_arrays([part_spec(s, p) for s, p in zip(run.gets, first, strict=True)], memory)
        uncut = [i for i, cut in enumerate(run.cuts) if cut is None]
        self._whole: dict[int, Array] = {i: self._get(i, run.pieces[i]) for i in uncut} if whole is None else whole._whole
        self._held: list[Array] = []
        simple = [i for i, piece in enumerate(first) if piece is not None and i not in self._whole and not piece.within]
        self._readers = {i: found for i in simple if (found := source.bytes_reader(run.names[i])) is not None}

    def __call__(self, index: int) -> list[int]:
        pieces = self._run.block(index)
        self._held = [self._whole[i] if i in self._whole else self._get(i, piece) for i, piece in enumerate(pieces)]
        return [address(a) for a in self._held]

    def _get(self, i: int, piece: Piece | None) -> Array:
        name, reader = self._run.names[i], self._readers.get(i)
        if reader is None or piece is None:
            return as_argument(self._source.get(name, self._places[i], piece), f"weight '{name}'")
        # What get does for such a weight, without what takes as long as all else that happens to a block.
        place, axis = self._places[i], piece.axis
        size, count = place.shape[axis], piece.end - piece.begin
        array = place if count == size else place.reshape(-1)[: count * (place.size // size)]
        reader(piece.begin * (place.nbytes // size), array.reshape(-1).view(np.uint8).data)
        self._source.check_finite(name, array)
        return array


class Helpers:
    """Threads that take blocks beside the one that owns them. Use as a context manager, which ends them."""

    def __init__(self) -> None:
        self._pool: ThreadPoolExecutor | None = None

    def __enter__(self) -> Helpers:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if self._pool is not None:
            self._pool.shutdown()

    def start(self, count: int, work: Callable[[int], tuple[float, float]]) -> list[Future[tuple[float, float]]]:
        """Calls that many times at once, with numbers from 1 on."""
        if count and self._pool is None:
            self._pool = ThreadPoolExecutor(max(count, os.cpu_count() or 1), "relaxir-blocks", initializer=work_alone)
        return [self._pool.submit(work, i + 1) for i in range(count)] if self._pool is not None else []


def run_blocks(
    run: StepRun, inputs: Sequence[Inputs], arenas: Sequence[Scratch], outputs: Sequence[Array], call: Invoke, helpers: Helpers
) -> tuple[float, float]:  # fmt: skip
    """Makes the calls of a run, each thread with inputs and an arena of its own.

    Returns:
        Seconds of all threads together that reading took, and computing.

    Raises:
        What reading or a call raises first; no thread begins another block then.
    """
    todo, made, clock = deque(range(len(run.calls))), [address(a) for a in outputs], time.perf_counter

    def work(thread: int) -> tuple[float, float]:
        read = computed = 0.0
        try:
            while todo:
                begun = clock()
                try:
                    index = todo.popleft()
                except IndexError:  # another thread has taken the last one
                    break
                places = inputs[thread](index)
                done = clock()
                offsets = run.calls[index].offsets[len(places) :]
                places += [place + offset for place, offset in zip(made, offsets, strict=True)]
                call(run.calls[index], places, arenas[thread])
                read, computed = read + done - begun, computed + clock() - done
        except BaseException:
            todo.clear()
            raise
        return read, computed

    others = helpers.start(len(inputs) - 1, work)
    try:
        times = [work(0)]
    finally:
        wait(others)
    times += [other.result() for other in others]
    return sum(t for t, _ in times), sum(t for _, t in times)

"""Runs generators in turn until time is up, each in forked workers on consecutive seeds, and counts what comes out."""

from __future__ import annotations

import selectors
import sys
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from fuzzing.generators import Generator
from fuzzing.worker import Outcome, Worker

__all__ = ["Tally", "fuzz"]

#: How long a worker goes on at most before another generator has its turn; starting one costs up to a second.
SLICE_SECONDS = 20.0


@dataclass
class Tally:
    """What became of a generator's seeds."""

    name: str
    first: int
    next_seed: int
    runs: int = 0
    refusals: Counter[str] = field(default_factory=Counter[str])
    finds: list[Outcome] = field(default_factory=list[Outcome])

    def add(self, outcome: Outcome) -> None:
        """Counts one."""
        self.runs += 1
        self.next_seed = max(self.next_seed, outcome.seed + 1)
        if outcome.kind == "refused":
            self.refusals[outcome.reason] += 1
        if outcome.is_find:
            self.finds.append(outcome)

    def __str__(self) -> str:
        kinds = Counter(f.kind for f in self.finds)
        counts = f"{self.refusals.total()} refused, {kinds['mismatch']} mismatches, {kinds['death']} deaths"
        seeds = f"seeds {self.first} to {self.next_seed - 1}" if self.runs else "no seed"
        reasons = [f"  refused {count} times: {reason}" for reason, count in self.refusals.most_common()]
        return "\n".join([f"{self.name}: {self.runs} runs, {counts} ({seeds})", *reasons, *map(self.line, self.finds)])

    def line(self, find: Outcome) -> str:
        """A find, and how to see it again."""
        return f"  {find.kind}: make fuzz ONLY={self.name} SEED={find.seed}: {find.reason}"


def fuzz(
    generators: Sequence[Generator],
    seconds: float,
    first_seed: int = 0,
    jobs: int = 1,
    found: Callable[[Generator, Outcome], object] = lambda generator, find: None,
) -> list[Tally]:
    """Runs generators until time is up, at most ``jobs`` of them at once; each find is told when it is made."""
    tallies = {g.name: Tally(g.name, first_seed, first_seed) for g in generators}
    for generator in generators:
        generator.load()  # here, once, and not in each worker
    end, turn, running = time.monotonic() + seconds, 0, dict[Worker, Generator]()
    slice_seconds = min(SLICE_SECONDS, seconds / len(generators))
    with selectors.DefaultSelector() as ready:
        while running or time.monotonic() < end:
            while len(running) < min(jobs, len(generators)) and time.monotonic() < end:
                generator = generators[turn % len(generators)]
                turn += 1
                if generator in running.values():
                    continue
                seeds = range(tallies[generator.name].next_seed, sys.maxsize)
                worker = Worker(generator.check, seeds, generator.seconds, slice_seconds)
                running[worker] = generator
                ready.register(worker.pipe, selectors.EVENT_READ, worker)
            for key, _ in ready.select():
                _collect(key.data, running, ready, tallies, found)
    return list(tallies.values())


def _collect(
    worker: Worker,
    running: dict[Worker, Generator],
    ready: selectors.BaseSelector,
    tallies: dict[str, Tally],
    found: Callable[[Generator, Outcome], object],
) -> None:
    """Takes what a worker has to say; one that ended leaves room for another."""
    pipe, generator = worker.pipe, running[worker]
    for outcome in worker.receive():
        tallies[generator.name].add(outcome)
        if outcome.is_find:
            found(generator, outcome)
    if worker.ended:
        ready.unregister(pipe)
        del running[worker]

"""Runs cases: every peer in its own process, in alternating turns, with the machine's limits measured in between."""

from __future__ import annotations

import math
import shutil
import statistics
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from .cases import Case
from .limits import Meter
from .peers import OURS, OWN, PEERS, Peer, formats_of
from .process import FailureError, Process

__all__ = ["Options", "Outcome", "Row", "Runner"]

#: GiB of weights that the peers of one batch may hold together.
_BATCH_GIB = 8.0


#: GiB that are free, beside those for weights, when torch computes its results.
_ACTIVATIONS_GIB = 4.0


@dataclass(frozen=True)
class Options:
    """How long and with whom.

    Attributes:
        python: the interpreter of ours.
        peers_python: the interpreter of all others.
        rounds: turns of each peer, at most.
        case_seconds: no further round starts after that many (but three are run).
        load_seconds: what a peer may take to build a case.
        end: when the run has to be over, on the monotonic clock; what is under way then is cut off.
        folder: for models, as large as they are; emptied after each case.
    """

    python: str
    peers_python: str
    rounds: int
    case_seconds: float
    load_seconds: float
    end: float
    folder: Path

    @property
    def patience(self) -> float:
        """Seconds that a command may take now."""
        return max(1.0, min(self.load_seconds, self.end - time.monotonic()))

    @property
    def is_over(self) -> bool:
        """Whether the run has to be over."""
        return time.monotonic() > self.end - 1


@dataclass
class Outcome:
    """One peer on one case.

    Attributes:
        seconds: a median per turn.
        ratio: its median to that of ours in the same rounds.
        status: ``"timed"``, ``"failed"``, ``"not installed"``, ``"not applicable"`` or ``"not run"``; ``text`` says more.
        facts: what the peer told when it loaded the case: difference from torch, seconds to load, a note.
    """

    seconds: list[float] = field(default_factory=list)
    ratio: float | None = None
    status: str = "timed"
    text: str = ""
    facts: dict[str, Any] = field(default_factory=dict)

    @property
    def median(self) -> float | None:
        return statistics.median(self.seconds) if self.seconds else None


@dataclass
class Row:
    """One case with a number of threads.

    Attributes:
        work: FLOPs and bytes of one call, as ``flops`` and ``size``.
        limit: the least seconds for it on this machine; None where none was found, as for data that stay in caches.
        bound: ``"compute"`` or ``"memory"``, whichever limits.
        apart: seconds of a round trip between two cores in each round, with several threads.
    """

    case: Case
    threads: int
    outcomes: dict[str, Outcome]
    work: dict[str, int] = field(default_factory=dict)
    limit: float | None = None
    bound: str = ""
    apart: list[float] = field(default_factory=list[float])

    def share(self, name: str) -> float | None:
        """How much of the machine's limit a peer reaches."""
        median = self.outcomes[name].median
        return self.limit / median if self.limit and median else None


class Runner:
    """Holds the processes; use it as a context."""

    def __init__(self, options: Options, peers: list[str], threads: list[int]):
        self._options, self._threads = options, threads
        self._peers = [PEERS[OURS], *(PEERS[name] for name in peers if name != OURS)]
        self._reference = Process(options.peers_python, "torch", max(threads), options.folder)
        self._processes = {
            (p.name, t): Process(self._python(p), p.name, t, options.folder) for p in self._peers for t in threads
        }
        self._loaded: set[Process] = set()
        self._meters = {t: Meter(t) for t in threads}
        self.versions: dict[str, str] = {}
        self._absent: dict[str, Outcome] = {}
        self._late: dict[tuple[str, str], str] = {}  # by peer and case: not tried again with another number of threads

    def __enter__(self) -> Runner:
        for peer in self._peers:
            try:
                told = self._processes[peer.name, self._threads[0]].ask("hello", 120)
            except FailureError as error:
                told = {"missing": [str(error)]}
            if "missing" in told:
                self._absent[peer.name] = Outcome(status="not installed", text=f"no {', '.join(told['missing'])}")
            else:
                self.versions[peer.name] = told["version"]
        return self

    def __exit__(self, *_: object) -> None:
        for process in [self._reference, *self._processes.values()]:
            process.close()

    @property
    def absent(self) -> dict[str, str]:
        """Peers that are not installed, and what is missing."""
        return {name: outcome.text for name, outcome in self._absent.items()}

    @property
    def limits(self) -> dict[int, dict[str, Any]]:
        """FLOP/s by dtype and bytes per second by number of threads, as measured so far."""
        return {t: {"flops": m.limits.flops, "bandwidth": m.limits.bandwidth} for t, m in self._meters.items()}

    def run(self, case: Case, tell: Callable[[str], None]) -> Iterator[Row]:
        """One case, a row per number of threads. ``tell`` is told what is under way."""
        try:
            tell(f"{case.name}: torch's results, files")
            self._make_room(3 * case.gib + _ACTIVATIONS_GIB)
            work = self._reference.ask("reference", 2 * self._options.patience, case=case.name, formats=self._formats(case))
            for threads in self._threads:
                yield self._not_run(case, threads) if self._options.is_over else self._row(case, threads, work, tell)
        except FailureError as error:
            if self._options.is_over:
                yield from self.skipped(case)
                return
            outcome = Outcome(status="failed", text=f"torch's results: {error}")
            yield from (Row(case, t, {p.name: outcome for p in self._peers}) for t in self._threads)
        finally:
            shutil.rmtree(self._options.folder / case.name, ignore_errors=True)

    def skipped(self, case: Case) -> Iterator[Row]:
        """Rows of a case that there is no time for."""
        yield from (self._not_run(case, threads) for threads in self._threads)

    def _not_run(self, case: Case, threads: int) -> Row:
        outcome = Outcome(status="not run", text="over the budget")
        return Row(case, threads, {p.name: outcome for p in self._peers})

    def _python(self, peer: Peer) -> str:
        return self._options.python if peer.name in OWN else self._options.peers_python

    def _formats(self, case: Case) -> list[str]:
        return formats_of(case, [p for p in self._peers if p.name not in self._absent])

    def _row(self, case: Case, threads: int, work: dict[str, int], tell: Callable[[str], None]) -> Row:
        row = Row(case, threads, dict(self._absent), work)
        ours, others = self._peers[0], [p for p in self._peers[1:] if p.name not in self._absent]
        with_ours = ours.name not in self._absent and self._load(row, ours, tell)
        for batch in _batches(case, ours, others):
            ready = [peer for peer in batch if self._load(row, peer, tell)]
            if ready:
                self._rounds(row, [ours, *ready] if with_ours else ready, tell)
            self._drop(row, ready)
        if with_ours and not row.outcomes[ours.name].seconds:
            self._rounds(row, [ours], tell)
        self._drop(row, [ours])
        row.outcomes = {p.name: row.outcomes[p.name] for p in self._peers}
        if any(o.seconds for o in row.outcomes.values()) and (found := self._limit(case, threads, work)):
            row.limit, row.bound = found
        return row

    def _limit(self, case: Case, threads: int, work: dict[str, int]) -> tuple[float, str] | None:
        return self._meters[threads].limits.bound(**work, dtype=case.weights)

    def _load(self, row: Row, peer: Peer, tell: Callable[[str], None]) -> bool:
        """Whether the peer is ready to be timed; if not, the row says why."""
        tell(f"{row.case.name}: {peer.name} builds")
        outcome = row.outcomes[peer.name] = Outcome()
        try:
            needed = row.case.gib * (2 * peer.copies + 1)  # building takes about twice what it keeps
            if (free := self._make_room(needed)) < needed:
                raise FailureError(f"needs about {needed:.1f} GiB, {free:.1f} GiB are free")
            if (peer.name, row.case.name) in self._late:
                raise FailureError(self._late[peer.name, row.case.name])
            process = self._processes[peer.name, row.threads]
            outcome.facts = process.ask("load", self._options.patience, case=row.case.name)
            self._loaded.add(process)
        except FailureError as error:
            outcome.status, outcome.text = "failed" if error.applicable else "not applicable", str(error)
            if error.late and self._options.is_over:
                outcome.status, outcome.text = "not run", "over the budget"
            elif error.late:
                self._late[peer.name, row.case.name] = f"{error} with {row.threads} thread(s)"
        return outcome.status == "timed"

    def _rounds(self, row: Row, peers: list[Peer], tell: Callable[[str], None]) -> None:
        """Turns of all; each round starts with the next one."""
        end = time.monotonic() + self._options.case_seconds
        times: dict[str, list[float]] = {p.name: [] for p in peers}
        for i in range(self._options.rounds):
            if (i >= 3 and time.monotonic() > end) or self._options.is_over:
                break
            tell(f"{row.case.name}: round {i + 1}")
            self._meters[row.threads].turn()
            if row.threads > 1 and (trip := self._meters[row.threads].round_trip()) is not None:
                row.apart.append(trip)
            for peer in peers[i % len(peers) :] + peers[: i % len(peers)]:
                self._turn(row, peer, times)
        for peer in peers:
            outcome = row.outcomes[peer.name]
            outcome.seconds += times[peer.name]
            if outcome.status == "timed" and not outcome.seconds:
                outcome.status, outcome.text = "not run", "over the budget"
        ours = times.get(OURS)
        for name, values in times.items():
            if ours and values and row.outcomes[name].status == "timed":
                row.outcomes[name].ratio = statistics.median(values) / statistics.median(ours)

    def _turn(self, row: Row, peer: Peer, times: dict[str, list[float]]) -> None:
        outcome = row.outcomes[peer.name]
        if outcome.status != "timed":
            return
        try:
            told = self._processes[peer.name, row.threads].ask("turn", self._options.patience)
            times[peer.name].append(statistics.median(told["times"]))
        except FailureError as error:
            outcome.status, outcome.text = "failed", str(error)
            if error.late and self._options.is_over:
                outcome.status, outcome.text = "not run", "over the budget"
            times[peer.name].clear()

    def _drop(self, row: Row, peers: list[Peer]) -> None:
        for process in (self._processes[p.name, row.threads] for p in peers if p.name not in self._absent):
            try:
                process.ask("drop", 60)
            except FailureError:
                process.close()
            self._loaded.discard(process)

    def _make_room(self, gib: float) -> float:
        """Ends processes that have no case, the largest first, until so much memory is free: some never give any back.

        Returns:
            How many GiB are free then.
        """
        idle = [p for p in (self._reference, *self._processes.values()) if p not in self._loaded]
        for process in sorted(idle, key=lambda p: p.gib, reverse=True):
            if _free_gib() >= gib:
                break
            process.close()
        return _free_gib()


def _batches(case: Case, ours: Peer, others: list[Peer]) -> list[list[Peer]]:
    """Peers that are loaded at the same time, all of them where the weights are small; ours is loaded beside each batch."""
    batches: list[list[Peer]] = [[]]
    for peer in others:
        if batches[-1] and case.gib * (ours.copies + sum(p.copies for p in batches[-1]) + peer.copies) > _BATCH_GIB:
            batches.append([])
        batches[-1].append(peer)
    return batches


def _free_gib() -> float:
    """What programs may still take; without end where the system does not say."""
    try:
        lines = Path("/proc/meminfo").read_text().splitlines()
    except OSError:
        return math.inf
    return next(int(line.split()[1]) for line in lines if line.startswith("MemAvailable")) / (1 << 20)

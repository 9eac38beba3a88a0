"""What a profile tells: kernels with times, bytes and operations, as text, JSON and a trace."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from ..dialect.printable import joined_lines
from ..dialect.reports.report import aligned, bytes_text
from ..runtime.prepare import PrepareReport
from .arena_picture import ArenaBlock
from .compilation import CompilationProfile
from .limits import SpeedLimits
from .texts import plain_place, seconds_text
from .trace import trace_events

__all__ = ["KernelProfile", "Profile"]


@dataclass(frozen=True)
class KernelProfile:
    """What the calls of one kernel take in one call of an entry.

    Attributes:
        name: of the function in the code.
        kind: as in the report: ``contraction``, ``rows``, ...; ``copy`` for what moves state.
        ops: the relax ops in it.
        where: in the source, of the first call; empty where none is known.
        calls: how many there are; of code for GPUs launches, of which a kernel function may have several.
        seconds: all of them together; the median over calls of the entry.
        bytes: that one call reads and writes, each operand once; None where sizes are not known.
        flops: operations of one call; None likewise, and for kernels with loops around.
        share: of what the machine can do, as :attr:`.limits.SpeedLimits.share_text` says; None where that is not known.
        bound: what sets this least time, ``compute`` or ``memory``; empty where there is none.
    """

    name: str
    kind: str
    ops: tuple[str, ...]
    where: str
    calls: int
    seconds: float
    bytes: int | None = None
    flops: int | None = None
    share: float | None = None
    bound: str = ""


@dataclass(frozen=True)
class Profile:
    """Where the time of an entry goes.

    Attributes:
        entry: its name.
        rounds: how many calls of it were timed.
        seconds: a call of code without clocks, the median.
        clocked_seconds: a call of code with clocks.
        limits: what the machine can do, measured before and after.
        kernels: those with most time first.
        between_seconds: what a call with clocks takes outside of kernels, the median.
        sizes: of symbols, as the inputs say.
        arena: the buffers of its intermediate results, for these sizes.
        arena_calls: what is called while they live, in order.
        arena_bytes: all of them together.
        preparation: how the weights were prepared, where that was done beside.
        compilation: how the code was compiled: of a module, all of it; else of the code with clocks.
        note: what readers have to know of the times.
        events: the calls of kernels in one call: name, begin and length in nanoseconds, and what else is known.
    """

    entry: str
    rounds: int
    seconds: float
    clocked_seconds: float
    limits: SpeedLimits
    kernels: tuple[KernelProfile, ...]
    events: tuple[tuple[str, int, int, dict[str, Any]], ...]
    between_seconds: float = 0.0
    sizes: Mapping[str, int] = field(default_factory=dict[str, int])
    arena: tuple[ArenaBlock, ...] = ()
    arena_calls: tuple[str, ...] = ()
    arena_bytes: int = 0
    preparation: PrepareReport | None = None
    compilation: CompilationProfile | None = None
    note: str = ""

    def as_json(self) -> dict[str, Any]:
        """What ``json.dumps`` takes, without the events."""
        return {key: value for key, value in asdict(self).items() if key != "events"}

    def trace(self) -> dict[str, Any]:
        """One call as Chrome's trace events; ``json.dump`` of it is a file that Perfetto opens."""
        return trace_events(self.entry, round(1e9 * self.clocked_seconds), self.events)

    def __str__(self) -> str:
        limits = self.limits
        took = f"{seconds_text(self.seconds)}, median of {self.rounds} calls; {seconds_text(self.clocked_seconds)} with clocks"
        titles = ["kernel", "kind", "calls", "time", "of all", "bytes", "GFLOP/s", "of limit", "ops", "where"]
        rows = [self._row(k) for k in self.kernels]
        between = ["between kernels", "", "", *self._time(self.between_seconds), "", "", "", "", ""]
        table = aligned([titles, *rows, between], right=[2, 3, 4, 5, 6, 7])
        machine = f"{limits.machine}: {limits.flops / 1e9:.1f} GFLOP/s {limits.kind}, {limits.bandwidth / 1e9:.1f} GB/s"
        machine = self.note or machine
        return joined_lines([f"@{self.entry}: {took}", machine, *table, *self._others()])

    def _others(self) -> Iterator[str]:
        """What was done beside."""
        if self.arena_bytes:
            yield f"memory of intermediate results: {bytes_text(self.arena_bytes)}"
        if self.preparation is not None:
            times = self.preparation.times
            parts = ", ".join(f"{n} {seconds_text(s)}" for n, s in vars(times).items())
            yield f"preparation: {seconds_text(self.preparation.seconds)} ({parts})"
        if self.compilation is not None:
            stages = ", ".join(f"{n} {seconds_text(s)}" for n, s in self.compilation.stages)
            yield f"compilation: {seconds_text(self.compilation.seconds)} ({stages})"

    def _row(self, k: KernelProfile) -> list[str]:
        speed = "" if not k.flops or not k.seconds else f"{k.flops * k.calls / k.seconds / 1e9:.1f}"
        share = "" if k.share is None else f"{100 * k.share:.0f}% {k.bound}"
        ops = " ".join(op.removeprefix("relax.") for op in k.ops)
        size = "" if k.bytes is None else bytes_text(k.bytes)
        return [k.name, k.kind, str(k.calls), *self._time(k.seconds), size, speed, share, ops, plain_place(k.where)]

    def _time(self, seconds: float) -> list[str]:
        whole = sum(k.seconds for k in self.kernels) + self.between_seconds
        return [seconds_text(seconds), f"{100 * seconds / whole:.1f}%" if whole else ""]

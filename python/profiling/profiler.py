"""``profile``: an executable in, the time of each of its kernels out, with bytes, operations and what the machine could do.

An executable has no clocks. What is timed is made of its module once more, with a clock around each call of a kernel
(:mod:`relaxir.lowering.profiling`); calls of both take turns, so that the profile says what the clocks cost.
"""

from __future__ import annotations

import ctypes
import statistics
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from ..dialect.errors import RelaxError
from ..dialect.reports.kernels import Kernel, KernelSection
from ..dialect.reports.report import aligned, bytes_text, collecting
from ..lowering.backend import backend_named
from ..lowering.manifest import Manifest
from ..lowering.profiling import CLOCKS, FIELDS, ClockedCall, Profiling
from ..module import Module
from ..runtime.environment import num_threads
from ..runtime.executable import Executable
from ..runtime.library import Library
from ..runtime.threads import default_threads
from .kernel_work import CountedKernel, kernel_works
from .limits import MachineLimits, measured_limits
from .trace import trace_events

__all__ = ["KernelProfile", "Profile", "profile"]

Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class KernelProfile:
    """What the calls of one kernel take in one call of an entry.

    Attributes:
        name: of the function in the code.
        kind: as in the report: ``contraction``, ``rows``, ...; ``copy`` for what moves state.
        ops: the relax ops in it.
        where: in the source, of the first call; empty where none is known.
        calls: how many there are.
        seconds: all of them together; the median over calls of the entry.
        bytes: that one call reads and writes, each operand once; None where sizes are not known.
        flops: operations of one call; None likewise, and for kernels with loops around.
        share: of what the machine can do: the least time for its operations in f32, or for its bytes from memory, over its
            time; None where neither is known. Products of narrower numbers can have more than 1.
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
        events: the calls of kernels in one call: name, begin and length in nanoseconds, and what else is known.
    """

    entry: str
    rounds: int
    seconds: float
    clocked_seconds: float
    limits: MachineLimits
    kernels: tuple[KernelProfile, ...]
    events: tuple[tuple[str, int, int, dict[str, Any]], ...]

    def as_json(self) -> dict[str, Any]:
        """What ``json.dumps`` takes, without the events."""
        return {key: value for key, value in asdict(self).items() if key != "events"}

    def trace(self) -> dict[str, Any]:
        """One call as Chrome's trace events; ``json.dump`` of it is a file that Perfetto opens."""
        return trace_events(self.entry, round(1e9 * self.clocked_seconds), self.events)

    def __str__(self) -> str:
        inside = sum(k.seconds for k in self.kernels)
        limits = f"{self.limits.flops / 1e9:.1f} GFLOP/s in f32, {self.limits.bandwidth / 1e9:.1f} GB/s"
        head = [
            f"@{self.entry}: {_time(self.seconds)}, median of {self.rounds} calls; {_time(self.clocked_seconds)} with clocks",
            f"machine, {self.limits.threads} threads: {limits}",
        ]
        titles = ["kernel", "kind", "calls", "time", "of all", "bytes", "GFLOP/s", "of limit", "ops"]
        rows = [self._row(k) for k in self.kernels]
        between = ["between kernels", "", "", _time(self.clocked_seconds - inside), _part(self.clocked_seconds - inside, self)]
        return "\n".join([*head, *aligned([titles, *rows, [*between, "", "", "", ""]], right=[2, 3, 4, 5, 6, 7])])

    def _row(self, k: KernelProfile) -> list[str]:
        speed = "" if not k.flops or not k.seconds else f"{k.flops * k.calls / k.seconds / 1e9:.1f}"
        share = "" if k.share is None else f"{100 * k.share:.0f}% {k.bound}"
        ops = " ".join(op.removeprefix("relax.") for op in k.ops)
        size = "" if k.bytes is None else bytes_text(k.bytes)
        return [k.name, k.kind, str(k.calls), _time(k.seconds), _part(k.seconds, self), size, speed, share, ops]


def _time(seconds: float) -> str:
    return f"{1e3 * seconds:.3f} ms" if seconds >= 1e-3 else f"{1e6 * seconds:.1f} us"


def _part(seconds: float, whole: Profile) -> str:
    return f"{100 * seconds / whole.clocked_seconds:.1f}%" if whole.clocked_seconds else ""


def profile(
    executable: Executable,
    inputs: Mapping[str, Array],
    weights: object = None,
    *,
    entry: str | None = None,
    seconds: float = 1.0,
    limits: MachineLimits | None = None,
) -> Profile:
    """Calls an entry for a while, and tells where the time goes.

    Args:
        executable: code for this machine's CPU.
        inputs: of the entry, by name.
        weights: prepared ones, as :meth:`Executable.bind` takes them; None where the entry has none.
        entry: which one; not needed when there is only one.
        seconds: for how long, at least five calls.
        limits: what the machine can do; measured by default.

    Raises:
        RelaxError: the code is for another target than this machine's CPU, or lacks the module that it was lowered from;
            there is no such entry, or it cannot be called like this.
    """
    names = list(executable.entries)
    name = entry or (names[0] if len(names) == 1 else "main")
    if name not in names:
        raise RelaxError(f"expected an entry out of {', '.join(names)}, got '{name}'")
    clocked = _Clocked.of(executable)
    for one in (executable, clocked.executable):
        if one.entries[name].weights:
            one.bind(weights)
    threads = executable.threads or num_threads() or default_threads()
    loops = clocked.profiling.limit_loops()
    before = limits or measured_limits(loops, threads)
    plain, timed, calls = _timed(executable, clocked, name, inputs, seconds)
    measured = limits or before.best(measured_limits(loops, threads))  # others may have had the machine before
    sizes = _sizes(executable, name, inputs)
    works = kernel_works(executable.module_text, clocked.profiling.compiler, sizes).get(name, [])
    kernels = _kernels(clocked, name, calls, works, measured, _held_bytes(executable, name, inputs))
    order = sorted(kernels.values(), key=lambda k: -k.seconds)
    return Profile(
        name, len(plain), statistics.median(plain), statistics.median(timed), measured, tuple(order),
        _events(clocked, name, calls[timed.index(statistics.median_low(timed))], kernels),
    )  # fmt: skip


@dataclass
class _Clocked:
    """An executable with clocks.

    Attributes:
        executable: its code.
        profiling: what made it.
        calls: what each clock is around.
        kernels: what the report says, by entry.
        clocks: where they count.
    """

    executable: Executable
    profiling: Profiling
    calls: tuple[ClockedCall, ...]
    kernels: dict[str, tuple[Kernel, ...]]
    clocks: Array

    @staticmethod
    def of(executable: Executable) -> _Clocked:
        target = executable.manifest.target
        profiling = backend_named(target.backend).make_profiling()
        here = profiling.compiler.spec
        if (here.cpu, here.features) != (target.cpu, target.features):
            raise RelaxError(f"expected code that was compiled for this machine ({here.cpu}), got code for {target.cpu}")
        with collecting() as told:
            made = profiling.clocked(Module.parse(executable.module_text).ir.operation)
        manifest = Manifest.of(made.manifest)
        if manifest.fingerprint != executable.manifest.fingerprint:
            raise RelaxError("expected the module that the code was lowered from, got another one")
        library = Library.from_object(made.code, (*manifest.symbols, CLOCKS), manifest.target.openmp)
        clocks = (ctypes.c_int64 * (FIELDS * len(made.calls))).from_address(library.addresses[CLOCKS])
        kernels = {s.function: s.kernels for s in told.sections if isinstance(s, KernelSection)}
        places = {(k.name, k.ops): k.where for k in _told(executable)}  # the module's text has none
        kernels = {f: tuple(replace(k, where=places.get((k.name, k.ops), "")) for k in ks) for f, ks in kernels.items()}
        fields = np.ctypeslib.as_array(clocks).reshape(-1, FIELDS)
        return _Clocked(Executable(made.manifest, library), profiling, made.calls, kernels, fields)


def _told(executable: Executable) -> Iterator[Kernel]:
    """What the executable's own report says of kernels."""
    for section in executable.manifest.report.sections:
        if isinstance(section, KernelSection):
            yield from section.kernels


def _timed(
    executable: Executable, clocked: _Clocked, name: str, inputs: Mapping[str, Array], seconds: float
) -> tuple[list[float], list[float], list[Array]]:
    """Seconds of calls without and with clocks, and what the clocks say of the latter."""
    plain, timed, clocks = list[float](), list[float](), list[Array]()
    calls = [_call(one, name, inputs) for one in (executable, clocked.executable)]
    for call in calls:  # what comes first: memory, caches
        call()
    end = time.perf_counter() + seconds
    while len(plain) < 5 or time.perf_counter() < end:
        plain.append(_seconds(calls[0]))
        clocked.clocks[:] = 0
        begin = time.monotonic_ns()
        timed.append(_seconds(calls[1]))
        found = clocked.clocks.copy()
        found[:, 2:] -= begin
        clocks.append(found)
    return plain, timed, clocks


def _call(executable: Executable, name: str, inputs: Mapping[str, Array]) -> Callable[[], Any]:
    state = executable.new_state() if executable.entries[name].state else None
    return lambda: executable(**inputs, entry=name, state=state)


def _seconds(call: Callable[[], Any]) -> float:
    begin = time.perf_counter()
    call()
    return time.perf_counter() - begin


def _sizes(executable: Executable, name: str, inputs: Mapping[str, Array]) -> dict[str, int]:
    """What the inputs say of the symbols that are dimensions by themselves."""
    pairs = [(d, n) for s in executable.entries[name].inputs for d, n in zip(s.shape, inputs[s.name].shape, strict=True)]
    return {str(d): n for d, n in pairs if not isinstance(d, int) and str(d).isidentifier()}


def _held_bytes(executable: Executable, name: str, inputs: Mapping[str, Array]) -> int:
    """What a call goes through: its weights and inputs."""
    return sum(w.array.nbytes for w in executable.entries[name].weights) + sum(x.nbytes for x in inputs.values())


def _kernels(
    clocked: _Clocked,
    name: str,
    clocks: list[Array],
    works: list[CountedKernel],
    limits: MachineLimits,
    held: int,
) -> dict[str, KernelProfile]:
    """The profiles of kernels by name, in order of their first calls."""
    known = {k.name: k for k in clocked.kernels.get(name, ())}
    same = [(k.kind, k.ops) for k in known.values()] == [(w.kind, w.ops) for w in works]
    work = dict(zip(known, works, strict=True)) if same else {}
    found: dict[str, KernelProfile] = {}
    for function in dict.fromkeys(c.function for c in clocked.calls if c.entry == name):
        rows = [i for i, c in enumerate(clocked.calls) if (c.entry, c.function) == (name, function)]
        seconds = statistics.median(float(c[rows, 1].sum()) / 1e9 for c in clocks)
        calls, k = int(clocks[0][rows, 0].sum()), known.get(function)
        made = KernelProfile(function, "copy", (), "", calls, seconds)
        if k is not None:
            made = replace(made, kind=k.kind, ops=k.ops, where=k.where)
        found[function] = _with_limits(made, work.get(function), limits, held)
    return found


def _with_limits(made: KernelProfile, work: CountedKernel | None, limits: MachineLimits, held: int) -> KernelProfile:
    if work is None:
        return made
    made = replace(made, bytes=work.bytes, flops=work.flops)
    least, bound = limits.least_seconds(work.flops or 0, work.bytes or 0, held)
    if not least or not made.seconds:
        return made
    return replace(made, share=least * made.calls / made.seconds, bound=bound)


def _events(
    clocked: _Clocked, name: str, clocks: Array, kernels: Mapping[str, KernelProfile]
) -> tuple[tuple[str, int, int, dict[str, Any]], ...]:
    found = list[tuple[str, int, int, dict[str, Any]]]()
    for call, (count, total, begin, end) in zip(clocked.calls, clocks.tolist(), strict=True):
        if call.entry != name or not count:
            continue
        k = kernels[call.function]
        known = {"ops": " ".join(k.ops), "where": k.where, "bytes": k.bytes, "flops": k.flops, "calls": count, "ns": total}
        found.append((call.function, begin, end - begin, known))
    return tuple(found)

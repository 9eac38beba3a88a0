"""``profile``: an executable in, the time of each of its kernels out, with bytes, operations and what the machine could do.

An executable has no clocks. What is timed is made of its module once more, with a clock around each call of a kernel
(:mod:`relaxir.lowering.profiling`); calls of both take turns, so that the profile says what the clocks cost.
"""

from __future__ import annotations

import ctypes
import statistics
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ..dialect.errors import RelaxError
from ..dialect.reports.kernels import Kernel, KernelSection
from ..dialect.reports.report import collecting
from ..dialect.symbolic import Expr, evaluate
from ..lowering.arena import ArenaPlan
from ..lowering.backend import backend_named
from ..lowering.manifest import Manifest
from ..lowering.profiling import CLOCKS, FIELDS, ClockedCall, Profiling
from ..module import Module
from ..runtime.environment import num_threads
from ..runtime.executable import Executable
from ..runtime.library import Library
from ..runtime.prepare import PrepareReport
from ..runtime.sources import PreparedWeights
from ..runtime.threads import default_threads
from .arena_picture import ArenaBlock
from .compilation import CompilationProfile, clocked_compilation
from .kernel_work import CountedKernel, kernel_works
from .limits import MachineLimits, measured_limits
from .result import KernelProfile, Profile

__all__ = ["profile"]

Array = np.ndarray[Any, Any]


def profile(
    executable: Executable,
    inputs: Mapping[str, Array],
    weights: object = None,
    *,
    entry: str | None = None,
    seconds: float = 1.0,
    limits: MachineLimits | None = None,
    compilation: CompilationProfile | None = None,
) -> Profile:
    """Calls an entry for a while, and tells where the time goes.

    Args:
        executable: code for this machine's CPU.
        inputs: of the entry, by name.
        weights: prepared ones, as :meth:`Executable.bind` takes them; None where the entry has none.
        entry: which one; not needed when there is only one.
        seconds: for how long, at least five calls.
        limits: what the machine can do; measured by default.
        compilation: how the executable was compiled, for the profile; by default how the code with clocks was.

    Raises:
        RelaxError: the code is for another target than this machine's CPU, or lacks the module that it was lowered from;
            there is no such entry, or it cannot be called like this.
    """
    names = list(executable.entries)
    name = entry or (names[0] if len(names) == 1 else "main")
    if name not in names:
        raise RelaxError(f"expected an entry out of {', '.join(names)}, got '{name}'")
    with clocked_compilation() as clock:
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
    arena = next((a for a in clocked.arenas if a.function == name), None)
    blocks = _blocks(arena, sizes)
    return Profile(
        name, len(plain), statistics.median(plain), statistics.median(timed), measured, tuple(order),
        _events(clocked, name, calls[timed.index(statistics.median_low(timed))], kernels),
        _between(clocked, name, timed, calls), sizes, blocks, arena.calls if arena is not None and blocks else (),
        max((b.offset + b.bytes for b in blocks), default=0),
        weights.report if isinstance(weights, PreparedWeights) and isinstance(weights.report, PrepareReport) else None,
        compilation or clock.profile(),
    )  # fmt: skip


def _blocks(arena: ArenaPlan | None, sizes: Mapping[str, int]) -> tuple[ArenaBlock, ...]:
    """The buffers for these sizes; none where others decide, too."""
    if arena is None:
        return ()
    needed = {n for b in arena.buffers for e in (b.offset, b.size) if isinstance(e, Expr) for n in e.names}
    if not needed <= sizes.keys():
        return ()
    return tuple(ArenaBlock(evaluate(b.offset, sizes), evaluate(b.size, sizes), b.first, b.last) for b in arena.buffers)


def _between(clocked: _Clocked, name: str, timed: list[float], clocks: list[Array]) -> float:
    """Of each call the time that no kernel has: by itself, as medians of parts do not add up to that of the whole."""
    rows = [i for i, c in enumerate(clocked.calls) if c.entry == name]
    return statistics.median(t - float(c[rows, 1].sum()) / 1e9 for t, c in zip(timed, clocks, strict=True))


@dataclass
class _Clocked:
    """An executable with clocks.

    Attributes:
        executable: its code.
        profiling: what made it.
        calls: what each clock is around.
        kernels: what the report says, by entry.
        clocks: where they count.
        arenas: the memory of entries' intermediate results.
    """

    executable: Executable
    profiling: Profiling
    calls: tuple[ClockedCall, ...]
    kernels: dict[str, tuple[Kernel, ...]]
    clocks: Array
    arenas: tuple[ArenaPlan, ...] = ()

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
        return _Clocked(Executable(made.manifest, library), profiling, made.calls, kernels, fields, made.arenas)


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

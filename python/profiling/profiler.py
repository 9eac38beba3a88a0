"""``profile``: an executable in, the time of each of its kernels out, with bytes, operations and what the machine could do.

An executable has no clocks. Code of a CPU is made of its module once more, with a clock around each call of a kernel
(:mod:`.code_clocks`); of a GPU, the driver's events are around each launch (:mod:`.launch_clocks`). Calls with and without
take turns, so that the profile says what the clocks cost.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from ..dialect.errors import RelaxError
from ..dialect.symbolic import Expr, evaluate
from ..lowering.arena import ArenaPlan
from ..lowering.backend import backend_named
from ..lowering.profiling import ClockProfiling, LaunchProfiling
from ..runtime.executable import Executable
from ..runtime.prepare import PrepareReport
from ..runtime.sources import PreparedWeights
from .arena_picture import ArenaBlock
from .clocks import Clocks, Ran
from .code_clocks import CodeClocks
from .compilation import CompilationProfile, clocked_compilation
from .kernel_work import CountedKernel, kernel_works
from .launch_clocks import LaunchClocks
from .limits import SpeedLimits
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
    limits: SpeedLimits | None = None,
    compilation: CompilationProfile | None = None,
) -> Profile:
    """Calls an entry for a while, and tells where the time goes.

    Args:
        executable: code for this machine's CPU, or for its GPU, which is what is called then; on an emulated one, times are
            counts of instructions.
        inputs: of the entry, by name.
        weights: prepared ones, as :meth:`Executable.bind` takes them; None for those that are bound.
        entry: which one; not needed when there is only one.
        seconds: for how long, at least five calls.
        limits: what the machine can do; measured by default.
        compilation: how the executable was compiled, for the profile; by default how the code with clocks was.

    Raises:
        RelaxError: the code is for another target than this machine's CPU, or there is no GPU for it, or it lacks the module
            that it was lowered from; there is no such entry, or it cannot be called like this.
    """
    names = list(executable.entries)
    name = entry or (names[0] if len(names) == 1 else "main")
    if name not in names:
        raise RelaxError(f"expected an entry out of {', '.join(names)}, got '{name}'")
    with clocked_compilation() as clock:
        clocks = _clocks(executable)
    is_made = clocks.executable is not executable
    if executable.entries[name].weights:
        if weights is not None or not executable.is_bound:
            executable.bind(weights)
        if is_made:
            clocks.executable.bind(executable.weights if weights is None else weights)
    before = limits or clocks.limits(None)
    plain, timed, ran = _timed(executable, clocks, name, inputs, seconds)
    measured = limits or clocks.limits(before)  # others may have had the machine before
    sizes = _sizes(executable, name, inputs)
    works = kernel_works(executable.module_text, clocks.compiler, sizes).get(name, [])
    kernels = _kernels(clocks, name, ran, works, measured, _held_bytes(executable, name, inputs))
    order = sorted(kernels.values(), key=lambda k: -k.seconds)
    arena = next((a for a in clocks.arenas if a.function == name), None)
    blocks = _blocks(arena, sizes)
    return Profile(
        name, len(plain), statistics.median(plain), statistics.median(timed), measured, tuple(order),
        _events(ran[timed.index(statistics.median_low(timed))], kernels),
        _between(timed, ran), sizes, blocks, arena.calls if arena is not None and blocks else (),
        max((b.offset + b.bytes for b in blocks), default=0),
        weights.report if isinstance(weights, PreparedWeights) and isinstance(weights.report, PrepareReport) else None,
        compilation or (clock.profile() if is_made else None), clocks.note,
    )  # fmt: skip


def _clocks(executable: Executable) -> Clocks:
    profiling = backend_named(executable.manifest.target.backend).make_profiling(executable.manifest.data)
    if isinstance(profiling, ClockProfiling):
        return CodeClocks(executable, profiling)
    assert isinstance(profiling, LaunchProfiling)
    return LaunchClocks(executable, profiling)


def _blocks(arena: ArenaPlan | None, sizes: Mapping[str, int]) -> tuple[ArenaBlock, ...]:
    """The buffers for these sizes; none where others decide, too."""
    if arena is None:
        return ()
    needed = {n for b in arena.buffers for e in (b.offset, b.size) if isinstance(e, Expr) for n in e.names}
    if not needed <= sizes.keys():
        return ()
    return tuple(ArenaBlock(evaluate(b.offset, sizes), evaluate(b.size, sizes), b.first, b.last) for b in arena.buffers)


def _between(timed: Sequence[float], ran: Sequence[Sequence[Ran]]) -> float:
    """Of each call the time that no kernel has: by itself, as medians of parts do not add up to that of the whole."""
    return statistics.median(t - sum(r.nanoseconds for r in rs) / 1e9 for t, rs in zip(timed, ran, strict=True))


def _timed(
    executable: Executable, clocks: Clocks, name: str, inputs: Mapping[str, Array], seconds: float
) -> tuple[list[float], list[float], list[list[Ran]]]:
    """Seconds of calls without and with clocks, and what the clocks say of the latter."""
    plain, timed, ran = list[float](), list[float](), list[list[Ran]]()
    calls = [_call(one, name, inputs) for one in (executable, clocks.executable)]
    for call in calls:  # what comes first: memory, caches, graphs
        call()
    end = time.perf_counter() + seconds
    while len(plain) < 5 or time.perf_counter() < end:
        plain.append(clocks.seconds(calls[0]))
        took, found = clocks.timed(name, calls[1])
        timed.append(took)
        ran.append(found)
    return plain, timed, ran


def _call(executable: Executable, name: str, inputs: Mapping[str, Array]) -> Callable[[], Any]:
    spec = executable.entries[name]
    state = executable.new_state() if spec.state else None
    given, named = spec.call_of([inputs[s.name] for s in spec.inputs])
    return lambda: executable(*given, entry=name, state=state, **named)


def _sizes(executable: Executable, name: str, inputs: Mapping[str, Array]) -> dict[str, int]:
    """What the inputs say of the symbols that are dimensions by themselves."""
    pairs = [(d, n) for s in executable.entries[name].inputs for d, n in zip(s.shape, inputs[s.name].shape, strict=True)]
    return {str(d): n for d, n in pairs if not isinstance(d, int) and str(d).isidentifier()}


def _held_bytes(executable: Executable, name: str, inputs: Mapping[str, Array]) -> int:
    """What a call goes through: its weights and inputs."""
    return sum(w.array.nbytes for w in executable.entries[name].weights) + sum(x.nbytes for x in inputs.values())


def _kernels(
    clocks: Clocks,
    name: str,
    ran: Sequence[Sequence[Ran]],
    works: list[CountedKernel],
    limits: SpeedLimits,
    held: int,
) -> dict[str, KernelProfile]:
    """The profiles of kernels by name, in order of their first calls."""
    known = {k.name: k for k in clocks.kernels.get(name, ())}
    same = [(k.kind, k.ops) for k in known.values()] == [(w.kind, w.ops) for w in works]
    work = dict(zip(known, works, strict=True)) if same else {}
    found: dict[str, KernelProfile] = {}
    for function in dict.fromkeys(r.function for r in ran[0]):
        seconds = statistics.median(sum(r.nanoseconds for r in rs if r.function == function) / 1e9 for rs in ran)
        calls, k = sum(r.count for r in ran[0] if r.function == function), known.get(function)
        made = KernelProfile(function, clocks.other, (), "", calls, seconds)
        if k is not None:
            made = replace(made, kind=k.kind, ops=k.ops, where=k.where)
        found[function] = _with_limits(made, work.get(function), limits, held, clocks.rate(function))
    return found


def _with_limits(made: KernelProfile, work: CountedKernel | None, limits: SpeedLimits, held: int, rate: float) -> KernelProfile:
    if work is None:
        return made
    made = replace(made, bytes=work.bytes, flops=work.flops)
    least, bound = limits.least_seconds(work.flops or 0, work.bytes or 0, held, rate)
    if not least or not made.seconds:
        return made
    return replace(made, share=least * made.calls / made.seconds, bound=bound)


def _events(
    ran: Sequence[Ran], kernels: Mapping[str, KernelProfile]
) -> tuple[tuple[str, int, int, dict[str, Any]], ...]:  # fmt: skip
    found = list[tuple[str, int, int, dict[str, Any]]]()
    for r in ran:
        k = kernels[r.function]
        known = {"ops": " ".join(k.ops), "where": k.where, "bytes": k.bytes, "flops": k.flops, "calls": r.count}
        found.append((r.function, r.begin, r.end - r.begin, known | {"ns": r.nanoseconds}))
    return tuple(found)

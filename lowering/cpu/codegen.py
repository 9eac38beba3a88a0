"""LLVM IR text to object code: optimised and assembled for a target, kernel by kernel, by several processes."""

from __future__ import annotations

import os
import re
import sys
import threading
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from ...dialect.errors import RelaxError
from ..archive import archive
from ..compiler import KernelStore
from ..llvm_text import bf16_as_integers
from ..target import Target
from ..worker_process import WorkerDeathError, WorkerProcess, WorkerProcesses
from . import llvm_worker
from .llvm_units import MAIN, Unit, has_loop, units_of
from .llvm_worker import Machine, Units

__all__ = ["ObjectCode", "UnitQueue", "assembly", "object_code", "safe_text", "start_processes"]

# LLVM 22 makes one instruction of a truncation and a masked store on AVX-512, and forgets the mask: it writes whole vectors
# (`vpmovdw`). An empty assembler text between the two, which costs nothing, keeps them apart.
_NARROW_STORE = re.compile(r"^(\s*)(call void @llvm\.masked\.store\.\S+\((<(\d+) x i(8|16)>)) (%[\w.]+),", re.M)

# Of bf16 that are rounded and widened again, in vectors of less than a register, LLVM 22 makes a type that it does not know
# then, and aborts, where AVX-512 has instructions for bf16. A shift of integers is what widening is.
_WIDENED = re.compile(r"^(\s*)(%[\w.]+) = fpext <(\d+) x bfloat> (%[\w.]+) to <\d+ x float>$", re.M)

_FUNCTION = "\ndefine "

# Characters of text that another process is worth: LLVM takes 0.4 s for these, and a process 0.1 s to start.
_SHARE = 300_000

# Kernels that are worth another process before their text is there: 25,000 characters each are the rule.
_KERNELS = 12

_PROCESSES = WorkerProcesses(Path(llvm_worker.__file__))


@dataclass(frozen=True)
class ObjectCode:
    """Optimised, position-independent object code of a module.

    Attributes:
        codes: object files, by the names of the units; what is called from outside is :data:`~.llvm_units.MAIN`.
        symbols: of the kernels that are units, by name in the module.
    """

    codes: dict[str, bytes]
    symbols: dict[str, str]

    def archive(self, linked: Mapping[str, bytes] | None = None) -> bytes:
        """The object files as one, with others by name; equal code, equal bytes, wherever it comes from."""
        kernels = {**self.codes, **(linked or {})}
        main = kernels.pop(MAIN)
        return archive({f"{i}.o": code for i, code in enumerate([main, *(kernels[name] for name in sorted(kernels))])})


def start_processes(kernels: int) -> int:
    """Starts the processes that will compile so many kernels: they are ready when there is something to compile.

    Returns:
        How many.
    """
    started = _PROCESSES.first(min(_processors() - 1, kernels // _KERNELS))
    for process in started:
        process.start()
    return len(started)


def object_code(
    text: str,
    target: Target,
    store: KernelStore | None = None,
    elsewhere: Collection[str] = (),
    early: UnitQueue | None = None,
) -> ObjectCode:
    """The code of what is called from outside, and of kernels.

    Args:
        text: a module of LLVM IR.
        target: what to compile for.
        store: has kernels that were compiled before, and keeps new ones.
        elsewhere: names of kernels that are kept elsewhere.
        early: has kernels of the module that are compiled already.

    Raises:
        RelaxError: LLVM refuses the text or the target.
    """
    try:
        own = Units(_machine(target))
        main, *kernels = units_of(safe_text(text, target))
        keys = {u.name: _key(u, target) for u in kernels if store is not None and not set(u.functions) <= set(elsewhere)}
        found = {name: code for name, key in keys.items() if store is not None and (code := store.get(key))}
        queue = early or UnitQueue(target)
        queue.add({u.name: u.text for u in kernels if u.name not in found})
        calls = str(own.with_known_arguments(main.text))
        if has_loop(calls):
            queue.add({MAIN: calls})
        else:
            found[MAIN] = own.object_of_calls(calls)
        made = queue.compiled(own)
        if store is not None:
            for name in made.keys() & keys.keys():
                store.put(keys[name], made[name])
        found |= made
    except (RuntimeError, WorkerDeathError) as error:
        raise RelaxError(f"LLVM cannot compile for {target.triple}: {error}") from None
    return ObjectCode(found, {name: u.name for u in kernels for name in u.functions})


def assembly(text: str, target: Target) -> str:
    """The same code to read."""
    try:
        own = Units(_machine(target))
        called = str(own.with_known_arguments(safe_text(text, target)))
        return own.machine.emit_assembly(own.optimised(called))
    except RuntimeError as error:
        raise RelaxError(f"LLVM cannot compile for {target.triple}: {error}") from None


def _machine(target: Target) -> Machine:
    return Machine(target.triple, target.cpu, target.features)


def _key(unit: Unit, target: Target) -> str:
    return "\n".join([target.triple, target.cpu, target.features, unit.text])


def safe_text(text: str, target: Target) -> str:
    """LLVM IR of which LLVM makes right code."""
    text = text if target.has_bf16 else bf16_as_integers(text)
    if not target.has("avx512f"):
        return text
    return _stores_apart(_widened_by_shifts(text) if target.has_bf16 else text)


class UnitQueue:
    """Units to compile: this process, when it has nothing else to do, and others take the longest that is left.

    Args:
        target: what to compile for.
        processes: how many others there are; None: as many as the text is worth.
    """

    def __init__(self, target: Target, processes: int | None = None):
        self._target, self._processes = target, processes
        self._left: dict[str, str] = {}
        self._found: dict[str, bytes] = {}
        self._errors: list[Exception] = []
        self._threads: list[threading.Thread] = []
        self._busy: set[WorkerProcess] = set()
        self._lock = threading.Lock()

    def add(self, texts: Mapping[str, str]) -> None:
        """Has units compiled, given by name; names that are there already are the same units."""
        with self._lock:
            given = self._left | {n: t for n, t in texts.items() if n not in self._found}
            self._left = dict(sorted(given.items(), key=lambda item: -len(item[1])))
            idle = [p for p in _PROCESSES.first(self._others()) if p not in self._busy]
            self._busy.update(idle)
        threads = [threading.Thread(target=self._serve, args=(process,), daemon=True) for process in idle]
        self._threads += threads
        for thread in threads:
            thread.start()

    def compiled(self, own: Units) -> dict[str, bytes]:
        """The code of all units, of which this process compiles some.

        Raises:
            RuntimeError: LLVM refuses one.
            WorkerDeathError: a process ended over one.
        """
        self._work(own.object)
        for thread in self._threads:
            thread.join()
        self._work(own.object)  # what others had taken when they could not be started
        if self._errors:
            raise self._errors[0]
        return self._found

    def _others(self) -> int:
        if self._processes is not None:
            return self._processes
        return max(0, min(_processors() - 1, sum(map(len, self._left.values())) // _SHARE, len(self._left) - 1))

    def _serve(self, process: WorkerProcess) -> None:
        self._work(partial(_elsewhere, process, self._target), process)

    def _work(self, compiled: Callable[[str], bytes], process: WorkerProcess | None = None) -> None:
        while (taken := self._taken(process)) is not None:
            name, text = taken
            try:
                self._found[name] = compiled(text)
            except OSError:  # no other process may be started here
                with self._lock:
                    self._left[name] = text
                return
            except Exception as error:
                with self._lock:
                    self._errors.append(error)
                    self._left.clear()

    def _taken(self, process: WorkerProcess | None) -> tuple[str, str] | None:
        """The next unit, None when none is left: a process is idle then."""
        with self._lock:
            name = next(iter(self._left), None)
            if name is not None:
                return name, self._left.pop(name)
            if process is not None:
                self._busy.discard(process)
            return None


def _elsewhere(process: WorkerProcess, target: Target, text: str) -> bytes:
    answer: dict[str, Any] = process.answer({"text": text, **_machine(target).request})
    return llvm_worker.emitted(answer)


def _processors() -> int:
    """How many this process may use; without an interpreter that could be started its own."""
    if not sys.executable:
        return 1
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _new_name(kind: str, match: re.Match[str]) -> str:
    """A name of a value, by the place in its function: a kernel has one text in every module."""
    return f"%{kind}.{match.start() - match.string.rfind(_FUNCTION, 0, match.start())}"


def _with_lines(text: str, pattern: re.Pattern[str], lines: Callable[[re.Match[str]], Sequence[str]]) -> str:
    """The text with other lines in place of those that match, as far from the left as these: their first group says."""
    return pattern.sub(lambda match: "\n".join(match[1] + line for line in lines(match)), text)


def _widened_by_shifts(text: str) -> str:
    """The text with bf16 widened by integers."""
    return _with_lines(text, _WIDENED, _shifted)


def _shifted(match: re.Match[str]) -> Sequence[str]:
    _, name, lanes, value = match.groups()
    narrow, wide, own = f"<{lanes} x i16>", f"<{lanes} x i32>", _new_name("widened", match)
    return (
        f"{own}.bits = bitcast <{lanes} x bfloat> {value} to {narrow}",
        f"{own}.word = zext {narrow} {own}.bits to {wide}",
        f"{own}.upper = shl {wide} {own}.word, splat (i32 16)",
        f"{name} = bitcast {wide} {own}.upper to <{lanes} x float>",
    )


def _stores_apart(text: str) -> str:
    """The text with masked stores of narrow integers that LLVM cannot merge with what truncates these."""
    return _with_lines(text, _NARROW_STORE, _apart)


def _apart(match: re.Match[str]) -> Sequence[str]:
    _, call, kind, lanes, width, value = match.groups()
    name, bits = _new_name("apart", match), int(lanes) * int(width)
    if bits >= 128:
        return f'{name} = call {kind} asm "", "=v,0"({kind} {value})', f"{call} {name},"
    # No vector register holds so few bits for assembler.
    return (
        f"{name}.in = bitcast {kind} {value} to i{bits}",
        f'{name}.out = call i{bits} asm "", "=r,0"(i{bits} {name}.in)',
        f"{name} = bitcast i{bits} {name}.out to {kind}",
        f"{call} {name},",
    )

"""LLVM IR text to object code: optimised and assembled for a target, kernel by kernel, by several processes."""

from __future__ import annotations

import os
import re
import sys
import threading
from collections import deque
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from ...dialect.errors import RelaxError
from ..archive import archive
from ..compiler import KernelStore
from ..target import Target
from ..worker_process import WorkerDeathError, WorkerProcess, WorkerProcesses
from . import llvm_worker
from .llvm_units import MAIN, Unit, units_of
from .llvm_worker import Machine, Units

__all__ = ["ObjectCode", "assembly", "object_code", "start_processes"]

# LLVM 22 makes one instruction of a truncation and a masked store on AVX-512, and forgets the mask: it writes whole vectors
# (`vpmovdw`). An empty assembler text between the two, which costs nothing, keeps them apart.
_NARROW_STORE = re.compile(r"^(\s*)(call void @llvm\.masked\.store\.\S+\((<(\d+) x i(8|16)>)) (%[\w.]+),", re.M)

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


def start_processes(kernels: int) -> None:
    """Starts the processes that will compile so many kernels: they are ready when there is something to compile."""
    for process in _PROCESSES.first(min(_processors() - 1, kernels // _KERNELS)):
        process.start()


def object_code(text: str, target: Target, store: KernelStore | None = None, elsewhere: Collection[str] = ()) -> ObjectCode:
    """The code of what is called from outside, and of kernels.

    Args:
        text: a module of LLVM IR.
        target: what to compile for.
        store: has kernels that were compiled before, and keeps new ones.
        elsewhere: names of kernels that are kept elsewhere.

    Raises:
        RelaxError: LLVM refuses the text or the target.
    """
    try:
        own = Units(_machine(target))
        main, *kernels = units_of(_safe(text, target))
        units = [replace(main, text=str(own.with_known_arguments(main.text))), *kernels]
        keys = {u.name: _key(u, target) for u in kernels if store is not None and not set(u.functions) <= set(elsewhere)}
        found = {name: code for name, key in keys.items() if store is not None and (code := store.get(key))}
        missing = [u for u in units if u.name not in found]
        for unit, code in zip(missing, _compiled([u.text for u in missing], own, target), strict=True):
            found[unit.name] = code
            if store is not None and unit.name in keys:
                store.put(keys[unit.name], code)
    except (RuntimeError, WorkerDeathError) as error:
        raise RelaxError(f"LLVM cannot compile for {target.triple}: {error}") from None
    return ObjectCode(found, {name: u.name for u in kernels for name in u.functions})


def assembly(text: str, target: Target) -> str:
    """The same code to read."""
    try:
        own = Units(_machine(target))
        module = own.with_known_arguments(_safe(text, target))
        return own.machine.emit_assembly(own.optimised(str(module)))
    except RuntimeError as error:
        raise RelaxError(f"LLVM cannot compile for {target.triple}: {error}") from None


def _machine(target: Target) -> Machine:
    return Machine(target.triple, target.cpu, target.features)


def _key(unit: Unit, target: Target) -> str:
    return "\n".join([target.triple, target.cpu, target.features, unit.text])


def _safe(text: str, target: Target) -> str:
    return _stores_apart(text) if target.has("avx512f") else text


def _compiled(texts: Sequence[str], own: Units, target: Target) -> list[bytes]:
    """The code of units: this process and others take the longest that is left, one after the other."""
    left = deque(sorted(range(len(texts)), key=lambda i: -len(texts[i])))
    found: dict[int, bytes] = {}
    errors: list[Exception] = []
    others = _PROCESSES.first(max(0, min(_processors() - 1, sum(map(len, texts)) // _SHARE, len(texts) - 1)))
    work = partial(_work, left, texts, found, errors)
    threads = [threading.Thread(target=work, args=(partial(_elsewhere, process, target),)) for process in others]
    for thread in threads:
        thread.start()
    work(own.object)
    for thread in threads:
        thread.join()
    work(own.object)  # what others had taken when they could not be started
    if errors:
        raise errors[0]
    return [found[i] for i in range(len(texts))]


def _work(
    left: deque[int], texts: Sequence[str], found: dict[int, bytes], errors: list[Exception], compiled: Callable[[str], bytes]
) -> None:
    while True:
        try:
            i = left.popleft()
        except IndexError:
            return
        try:
            found[i] = compiled(texts[i])
        except OSError:  # no other process may be started here
            left.append(i)
            return
        except Exception as error:
            errors.append(error)
            left.clear()


def _elsewhere(process: WorkerProcess, target: Target, text: str) -> bytes:
    answer: dict[str, Any] = process.answer({"text": text, **_machine(target).request})
    return llvm_worker.emitted(answer)


def _processors() -> int:
    """How many this process may use; without an interpreter that could be started its own."""
    if not sys.executable:
        return 1
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _stores_apart(text: str) -> str:
    """The text with masked stores of narrow integers that LLVM cannot merge with what truncates these."""

    def apart(match: re.Match[str]) -> str:
        indent, call, kind, lanes, width, value = match.groups()
        # By the place in its function: a kernel has one text in every module.
        name = f"%apart.{match.start() - text.rfind(_FUNCTION, 0, match.start())}"
        bits = int(lanes) * int(width)
        if bits >= 128:
            return f'{indent}{name} = call {kind} asm "", "=v,0"({kind} {value})\n{indent}{call} {name},'
        # No vector register holds so few bits for assembler.
        lines = (
            f"{name}.in = bitcast {kind} {value} to i{bits}",
            f'{name}.out = call i{bits} asm "", "=r,0"(i{bits} {name}.in)',
            f"{name} = bitcast i{bits} {name}.out to {kind}",
            f"{call} {name},",
        )
        return "\n".join(indent + line for line in lines)

    return _NARROW_STORE.sub(apart, text)

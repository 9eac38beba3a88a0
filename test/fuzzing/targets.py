"""Where generators of graphs have their modules compiled for: this CPU, another one, or kernels of a GPU, run on the emulator.

A generator calls :func:`compiled` and :func:`new_state`, and is told nothing of the target. Instructions that only other CPUs
have become LLVM IR that means the same (:mod:`support.emulation`). On the emulator of GPUs a report (an access outside of
memory, a read of what nobody wrote, a race, a call that the driver refuses) is a find, whatever inputs were: code refuses a
call by checks of its own.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager, nullcontext
from contextvars import ContextVar
from typing import Any, TypeVar
from unittest import mock

import numpy as np

import relaxir as rx
from relaxir.lowering.cuda import emulator
from relaxir.lowering.cuda.emulator import Library
from relaxir.lowering.target import TARGETS
from support.emulation import compile_for
from support.guard_pages import Edge, guarded_copy

__all__ = ["CPU", "CPUS", "GPUS", "compiled", "compiling_for", "is_gpu", "is_this_cpu", "new_state", "unreported"]

CPU = "cpu"
#: All CPUs that code can be asked for by name.
CPUS = tuple(f"cpu:{name}" for name in TARGETS)
GPUS = ("cuda:sm_80", "cuda:sm_90a")

_Result = TypeVar("_Result")
# Bytes of an emulated device, and as many again that say what was written: workers may map 8 GiB (worker.py), and devices of
# some modules are there until Python collects them.
_MEMORY = 128 << 20
_TARGET = ContextVar("relaxir_fuzzing_target", default=CPU)


@contextmanager
def compiling_for(target: str) -> Generator[None]:
    """While this lasts modules are compiled for a target. Raises AssertionError for what a GPU's emulator reports meanwhile."""
    token = _TARGET.set(target)
    try:
        with _reports() if is_gpu() else nullcontext(list[str]()) as reports:
            yield
    finally:
        _TARGET.reset(token)
    assert not reports, f"{target}: {reports[0]}"


def unreported(function: Callable[[], _Result]) -> _Result:
    """What a function returns. Raises AssertionError for a report; for processes of their own, whose reports die with them."""
    with compiling_for(_TARGET.get()):
        return function()


def is_gpu() -> bool:
    """Whether modules are compiled for a GPU."""
    return _TARGET.get() in GPUS


def is_this_cpu() -> bool:
    """Whether modules are compiled for this CPU, as every generator's are unless it is told otherwise."""
    return _TARGET.get() == CPU


def compiled(module: rx.Module, checked: bool = False) -> rx.Executable:
    """A module for the target; raises what ``relaxir.compile`` does."""
    target = _TARGET.get()
    if target in CPUS:
        return compile_for(module, target.removeprefix("cpu:"), checked=checked)
    return rx.compile(module, target, cache=False, device="emulated" if is_gpu() else None, checked=checked)


def new_state(executable: rx.Executable, arrays: Mapping[str, np.ndarray], edge: Edge) -> Any:
    """A state with these values; on a CPU in memory against guard pages."""
    if not is_gpu():
        return executable.new_state({name: guarded_copy(array, edge) for name, array in arrays.items()})
    state = executable.new_state()
    for name, array in arrays.items():
        state[name] = array
    return state


@contextmanager
def _reports() -> Generator[list[str]]:
    """What calls of emulated drivers fail by, but for memory that is not there."""
    found, failed = list[str](), Library._failed

    def noting(self: Library, result: int, error: Exception) -> int:
        if not isinstance(error, MemoryError):
            found.append(str(error))
        return failed(self, result, error)

    small = functools.partial(emulator.library, memory=_MEMORY)
    with mock.patch.object(Library, "_failed", noting), mock.patch.object(emulator, "library", small):
        yield found

"""How many threads compiled code uses: the OpenMP runtime, found, loaded and told.

Code that is compiled for threads calls LLVM's OpenMP runtime: ``libomp`` of PyPI's ``cmeel-libomp``, else one of the
environment (conda's, or Intel's build of it) or of the system. The number of threads of a call is, first found:
:attr:`Executable.threads`, ``RELAXIR_NUM_THREADS``, what OpenMP itself decides (``OMP_NUM_THREADS``, or all cores that the
process may use). Results do not depend on it: threads share loops whose iterations write different elements.
"""

from __future__ import annotations

import ctypes
import ctypes.util
import functools
import os
import sys
import threading
from collections.abc import Generator
from contextlib import contextmanager
from importlib.util import find_spec
from typing import Any

from ..dialect.errors import RelaxError
from .environment import num_threads, openmp_threads

__all__ = ["Team", "alone", "find_runtime", "load_runtime", "told", "work_alone"]

# LLVM's runtime, and Intel's build of it, by their file names without the system's ending.
_NAMES = ("libomp", "libiomp5")
_ENDING = ".dylib" if sys.platform == "darwin" else ".so"

# Milliseconds that an idle worker spins before it sleeps. Intel's default of 200 takes the core from whatever runs between two
# calls, torch's threads for example; loops of one call follow each other within microseconds.
_SPIN_MS = 1

# Numbers of threads that no team has: what a thread told that uses no others, and what it tells before its first call.
_ALONE, _NOTHING = -1, -2


class _Told(threading.local):
    """What a calling thread told OpenMP last.

    Attributes:
        count: a team's number of threads; for a thread that uses no others, one that no team has.
        alone: whether it is to use no others.
    """

    count: int | None = None
    alone = False


told = _Told()


@functools.cache
def find_runtime() -> str | None:
    """The OpenMP runtime's path or name, None where there is none."""
    cmeel = find_spec("cmeel")  # its packages share a folder beside it; looking through all that is installed takes 8 ms
    prefixes = [sys.prefix] if cmeel is None or cmeel.origin is None else [_cmeel_prefix(cmeel.origin), sys.prefix]
    for path in (os.path.join(prefix, "lib", name + _ENDING) for prefix in prefixes for name in _NAMES):
        if os.path.exists(path):
            return os.path.realpath(path)
    return ctypes.util.find_library("omp") or ctypes.util.find_library("omp5") or ctypes.util.find_library("iomp5")


def _cmeel_prefix(origin: str) -> str:
    return os.path.join(os.path.dirname(os.path.dirname(origin)), "cmeel.prefix")


@functools.cache
def load_runtime() -> Any:
    """The runtime, its symbols visible to code that is loaded later. Raises RelaxError when there is none."""
    path = find_runtime()
    if path is None:
        raise RelaxError("expected an OpenMP runtime for code with threads (pip install cmeel-libomp), got none")
    try:
        runtime = ctypes.CDLL(path, mode=ctypes.RTLD_GLOBAL)
        runtime.omp_set_num_threads.argtypes = (ctypes.c_int,)
        if hasattr(runtime, "kmp_set_blocktime"):
            runtime.kmp_set_blocktime(_SPIN_MS)
    except (OSError, AttributeError) as error:
        raise RelaxError(f"cannot load the OpenMP runtime '{path}': {error}") from None
    return runtime


class Team:
    """The threads of one executable's calls.

    Attributes:
        count: how many; None leaves it to the environment.
    """

    def __init__(self, runtime: Any = None):
        """Args: runtime: from :func:`load_runtime`; None for code without threads."""
        self._runtime = runtime
        self.count = num_threads() if runtime is not None else None

    @property
    def size(self) -> int:
        """How many threads work for a call from this thread."""
        return 1 if told.alone else self.count or default_threads()

    def gather(self) -> None:
        """Makes the calling thread's next call use that many. OpenMP keeps the number per calling thread."""
        if self._runtime is None or told.count in (self.count, _ALONE):
            return
        self._runtime.omp_set_num_threads(1 if told.alone else self.count or default_threads())
        told.count = _ALONE if told.alone else self.count


def work_alone() -> None:
    """Makes calls from this thread use no other threads, because several threads like it run at once."""
    told.alone, told.count = True, _NOTHING


@contextmanager
def alone() -> Generator[None]:
    """Makes calls from this thread use no other threads in the ``with`` block: each is over before one would wake."""
    before = told.alone
    work_alone()
    try:
        yield
    finally:
        told.alone, told.count = before, _NOTHING


def default_threads() -> int:
    """What OpenMP would use: ``OMP_NUM_THREADS`` where it is set, else the cores that the process may use."""
    given = openmp_threads()
    if given is not None:
        return given
    return len(os.sched_getaffinity(0)) if sys.platform == "linux" else os.cpu_count() or 1

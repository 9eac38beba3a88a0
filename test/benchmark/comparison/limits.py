"""What this machine can do, measured by small compiled loops: FLOP/s of its cores and bytes per second from its memory."""

from __future__ import annotations

import ctypes
import os
import subprocess
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import numpy as np

__all__ = ["Limits", "Meter"]

#: Larger than any cache here, for all threads together.
_BYTES = 256 << 20

#: Rounds of the loop in one turn: about 10 ms.
_ROUNDS = 4_000_000


@dataclass
class Limits:
    """The best of all turns: of a limit, slower turns say only what else the machine did."""

    flops: float = 0.0
    bandwidth: float = 0.0

    def bound(self, flops: int, size: int) -> tuple[float, str] | None:
        """The least seconds for that many operations and bytes, and what sets it: ``"compute"`` or ``"memory"``.

        Bytes that stay in the last cache from call to call are not read from memory; None when nothing else bounds the time.
        """
        compute, memory = flops / self.flops, size / self.bandwidth if size > _cache_bytes() else 0.0
        if not flops and not memory:
            return None
        return (compute, "compute") if compute >= memory else (memory, "memory")


def _cache_bytes() -> int:
    """The last cache's size, 0 where the system does not tell."""
    return max(os.sysconf("SC_LEVEL3_CACHE_SIZE"), 0) if "SC_LEVEL3_CACHE_SIZE" in os.sysconf_names else 0


class Meter:
    """Measures with a number of threads; a turn of it goes between the peers' turns."""

    def __init__(self, threads: int):
        """Raises OSError or subprocess.CalledProcessError when the C compiler ``cc`` (or ``$CC``) fails."""
        self._library = _compiled()
        self._threads = threads
        self._pool = ThreadPoolExecutor(threads)
        self._data = [np.ones(_BYTES // 4 // threads, np.float32) for _ in range(threads)]
        self.limits = Limits()

    def turn(self) -> None:
        """Measures once more; about 0.1 s."""
        work = 2 * 12 * self._library.lanes() * _ROUNDS * self._threads
        seconds = self._together(lambda i: self._library.multiply_add(_ROUNDS, 0.5))
        self.limits.flops = max(self.limits.flops, work / seconds)
        seconds = self._together(lambda i: self._library.read_all(self._data[i].ctypes.data, self._data[i].size))
        self.limits.bandwidth = max(self.limits.bandwidth, sum(d.nbytes for d in self._data) / seconds)

    def _together(self, work: Callable[[int], float]) -> float:
        start = time.perf_counter()
        list(self._pool.map(work, range(self._threads)))
        return time.perf_counter() - start


def _compiled() -> ctypes.CDLL:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "limits.so"
        source = Path(__file__).with_name("limits.c")
        flags = ["-O3", "-march=native", "-ffast-math", "-shared", "-fPIC"]
        subprocess.run([os.environ.get("CC", "cc"), *flags, str(source), "-o", str(path)], check=True)
        library = ctypes.CDLL(str(path))
    library.multiply_add.argtypes = (ctypes.c_size_t, ctypes.c_float)
    library.read_all.argtypes = (ctypes.c_void_p, ctypes.c_size_t)
    library.multiply_add.restype = library.read_all.restype = ctypes.c_float
    return library

"""What this machine can do, measured by small compiled loops: FLOP/s of its cores and bytes per second from its memory."""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from relaxir.lowering.tile_permission import may_use_tiles

__all__ = ["Limits", "Meter", "compiled", "peaks", "round_trip"]

#: Larger than any cache here, for all threads together.
_BYTES = 256 << 20

#: Rounds of the loop in one turn: about 10 ms.
_ROUNDS = 4_000_000

#: Functions that multiply numbers of a dtype and add up in f32, or i32, and their operations per lane of 32 bits in a step; a
#: processor without the instruction has no function, and multiplies in f32. Four-bit integers are multiplied as bytes.
_PEAKS = {"f32": ("multiply_add", 2), "bf16": ("dot_bf16", 4), "int8": ("dot_int8", 8), "int4": ("dot_int8", 8)}
_STEPS = 12
#: Functions that multiply tile registers, where a processor has these, and their operations in a round.
_TILES = {"bf16": ("tiles_bf16", 4096), "int8": ("tiles_int8", 8192), "int4": ("tiles_int8", 8192)}


@dataclass
class Limits:
    """The best of all turns: of a limit, slower turns say only what else the machine did. FLOP/s are by dtype."""

    flops: dict[str, float] = field(default_factory=dict[str, float])
    bandwidth: float = 0.0

    def bound(self, flops: int, size: int, dtype: str = "f32") -> tuple[float, str] | None:
        """The least seconds for that many operations and bytes, and what sets it: ``"compute"`` or ``"memory"``.

        Bytes that stay in the last cache from call to call are not read from memory; None when nothing else bounds the time.
        """
        speed = self.flops.get(dtype, self.flops["f32"])
        compute, memory = flops / speed, size / self.bandwidth if size > _cache_bytes() else 0.0
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
        self._library = compiled()
        self._threads = threads
        self._pool = ThreadPoolExecutor(threads)
        self._data = [np.ones(_BYTES // 4 // threads, np.float32) for _ in range(threads)]
        self.limits = Limits()

    def turn(self) -> None:
        """Measures once more; about 0.1 s."""
        for dtype, (loop, work) in peaks(self._library).items():
            seconds = self._together(lambda i, loop=loop: loop(_ROUNDS, 0.5))
            found = work * _ROUNDS * self._threads / seconds
            self.limits.flops[dtype] = max(self.limits.flops.get(dtype, 0.0), found)
        seconds = self._together(lambda i: self._library.read_all(self._data[i].ctypes.data, self._data[i].size))
        self.limits.bandwidth = max(self.limits.bandwidth, sum(d.nbytes for d in self._data) / seconds)

    def round_trip(self) -> float | None:
        """As :func:`round_trip`."""
        return round_trip(self._library)

    def _together(self, work: Callable[[int], float]) -> float:
        start = time.perf_counter()
        list(self._pool.map(work, range(self._threads)))
        return time.perf_counter() - start


def compiled() -> ctypes.CDLL:
    """The loops of ``limits.c``, for this machine."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "limits.so"
        source = Path(__file__).with_name("limits.c")
        # Sums may be reordered. Not by -ffast-math: GCC links code then that has whoever loads it round subnormals to 0.
        fast = ["-fassociative-math", "-fno-signed-zeros", "-fno-trapping-math", "-fno-math-errno"]
        flags = ["-O3", "-march=native", *fast, "-shared", "-fPIC", "-pthread"]
        subprocess.run([os.environ.get("CC", "cc"), *flags, str(source), "-o", str(path)], check=True)
        library = ctypes.CDLL(str(path))
    library.read_all.argtypes = (ctypes.c_void_p, ctypes.c_size_t)
    library.read_all.restype = ctypes.c_float
    if hasattr(library, "round_trip"):
        library.round_trip.restype = ctypes.c_double
    return library


def round_trip(library: ctypes.CDLL) -> float | None:
    """Seconds that a line of memory takes from one core to another and back; None where there is one core, or no Linux.

    On a virtual machine it changes: 80 ns where the host has put both cores beside one cache (Zen 4), 400 ns where it has not.
    Then threads pay more for what they exchange, and have the memory bandwidth of two caches instead of one.
    """
    cores = sorted(os.sched_getaffinity(0)) if sys.platform == "linux" else []
    return library.round_trip(cores[0], cores[-1]) if len(cores) > 1 else None


def peaks(library: ctypes.CDLL) -> dict[str, tuple[Callable[[int, float], float], int]]:
    """By dtype the loop that multiplies it, given how many rounds and a number, and its operations in a round."""
    vectors = {dtype: (name, operations * _STEPS * library.lanes()) for dtype, (name, operations) in _PEAKS.items()}
    known = {dtype: found for dtype, found in vectors.items() if hasattr(library, found[0])}
    if may_use_tiles():
        known |= {dtype: found for dtype, found in _TILES.items() if hasattr(library, found[0])}
    loops = dict[str, tuple[Callable[[int, float], float], int]]()
    for dtype, (name, operations) in known.items():
        loop = getattr(library, name)
        loop.argtypes, loop.restype = (ctypes.c_size_t, ctypes.c_float), ctypes.c_float
        loops[dtype] = loop, operations
    return loops

"""What this machine can do, measured by small loops: multiplications and additions in f32 of its cores, bytes from memory."""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from ..lowering.profiling import LimitLoops
from ..runtime.library import Library

__all__ = ["MachineLimits", "measured_limits"]

#: Larger than any cache, for all threads together.
_BYTES = 256 << 20
#: Rounds of the loop of multiplications in one turn, about 5 ms.
_ROUNDS = 2_000_000
_TURNS = 7


@dataclass(frozen=True)
class MachineLimits:
    """The best of some turns: slower ones say only what else the machine did.

    Attributes:
        threads: how many worked.
        flops: multiplications and additions in f32, per second.
        bandwidth: bytes read from memory, per second.
        own_cache: bytes of a core's second cache; 0 where the system does not tell.
        last_cache: bytes of the last one; 0 likewise.
    """

    threads: int
    flops: float
    bandwidth: float
    own_cache: int
    last_cache: int

    def best(self, other: MachineLimits) -> MachineLimits:
        """The better one of two measurements."""
        flops, bandwidth = max(self.flops, other.flops), max(self.bandwidth, other.bandwidth)
        return replace(self, flops=flops, bandwidth=bandwidth)

    def least_seconds(self, flops: int, size: int, held: int) -> tuple[float, str]:
        """The least time for so many operations and bytes, and what sets it: ``compute`` or ``memory``; 0 where nothing does.

        Bytes that fit into a core's cache, or of a model (of ``held`` bytes) that fits into the last one, are taken for free.
        """
        from_memory = held > self.last_cache > 0 and size > self.own_cache
        compute, memory = flops / self.flops, size / self.bandwidth if from_memory else 0.0
        return max(compute, memory), "compute" if compute >= memory else "memory"


def measured_limits(loops: LimitLoops, threads: int) -> MachineLimits:
    """Measures with some threads; about 0.3 s."""
    library = Library.from_object(loops.code, (loops.multiply, loops.read))
    multiply, read = library.function(loops.multiply), library.function(loops.read)
    data = [np.ones(_BYTES // threads, np.uint8) for _ in range(threads)]
    into = [np.zeros(loops.lanes, np.float32) for _ in range(threads)]
    with ThreadPoolExecutor(threads) as pool:
        compute = _best(pool, threads, lambda i: multiply(into[i].ctypes.data, None, None, _ROUNDS))
        memory = _best(pool, threads, lambda i: read(data[i].ctypes.data, into[i].ctypes.data, None, data[i].nbytes))
    operations = loops.round_flops * _ROUNDS * threads
    bandwidth = sum(d.nbytes for d in data) / memory
    return MachineLimits(threads, operations / compute, bandwidth, *_cache_bytes())


def _cache_bytes() -> tuple[int, int]:
    """Sizes of the second and the last cache, as Linux tells; 0 where it does not."""
    sizes: dict[int, int] = {}
    for folder in sorted(Path("/sys/devices/system/cpu/cpu0/cache").glob("index*")):
        level, size = ((folder / name).read_text().strip() for name in ("level", "size"))
        if size.endswith("K"):
            sizes[int(level)] = int(size[:-1]) << 10
    return sizes.get(2, 0), sizes[max(sizes)] if sizes else 0


def _best(pool: ThreadPoolExecutor, threads: int, work: Callable[[int], Any]) -> float:
    """Seconds of the fastest turn."""
    best = float("inf")
    for _ in range(_TURNS):
        begin = time.perf_counter()
        list(pool.map(work, range(threads)))
        best = min(best, time.perf_counter() - begin)
    return best

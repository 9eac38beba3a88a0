"""What a machine can do: multiplications and additions of its cores, bytes from memory.

Of a CPU both are measured by small loops, in f32; of a GPU copies are measured, and operations follow from its figures.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Protocol, TypeVar

import numpy as np

from ..lowering.profiling import LimitLoops
from ..runtime.library import Library

__all__ = ["DeviceLimits", "MachineLimits", "SpeedLimits", "measured_limits"]

_Own = TypeVar("_Own", bound="SpeedLimits")

#: Larger than any cache, for all threads together.
_BYTES = 256 << 20
#: Rounds of the loop of multiplications in one turn, about 5 ms.
_ROUNDS = 2_000_000
_TURNS = 7


class SpeedLimits(Protocol):
    """What shares are of; of what is emulated there is none, and both are 0.

    Attributes:
        flops: operations per second, of which ``kind`` says what they are.
        bandwidth: bytes per second.
    """

    @property
    def flops(self) -> float: ...

    @property
    def bandwidth(self) -> float: ...

    @property
    def kind(self) -> str:
        """What operations are counted."""
        ...

    @property
    def machine(self) -> str:
        """What it is, for readers."""
        ...

    @property
    def share_text(self) -> str:
        """What a kernel's share of the limit is."""
        ...

    def best(self: _Own, other: _Own) -> _Own:
        """The better one of two measurements."""
        ...

    def least_seconds(self, flops: int, size: int, held: int, rate: float = 0.0) -> tuple[float, str]:
        """The least time for so many operations and bytes, and what sets it: ``compute`` or ``memory``; 0 where nothing does.

        Args:
            flops, size: operations and bytes.
            held: bytes that a call goes through.
            rate: of code for GPUs, operations of the kernel's kind that a multiprocessor starts in a cycle.
        """
        ...


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

    kind = "in f32"
    share_text = (
        "the least time for its operations in f32, or for its bytes from memory, over its time. Of products of narrower "
        "numbers it can be more than 100%"
    )

    @property
    def machine(self) -> str:
        return f"machine, {self.threads} threads"

    def best(self, other: MachineLimits) -> MachineLimits:
        """The better one of two measurements."""
        flops, bandwidth = max(self.flops, other.flops), max(self.bandwidth, other.bandwidth)
        return replace(self, flops=flops, bandwidth=bandwidth)

    def least_seconds(self, flops: int, size: int, held: int, rate: float = 0.0) -> tuple[float, str]:
        """As of :class:`SpeedLimits`.

        Bytes that fit into a core's cache, or of a model (of ``held`` bytes) that fits into the last one, are taken for free.
        """
        del rate
        from_memory = held > self.last_cache > 0 and size > self.own_cache
        compute, memory = flops / self.flops, size / self.bandwidth if from_memory else 0.0
        return max(compute, memory), "compute" if compute >= memory else "memory"


@dataclass(frozen=True)
class DeviceLimits:
    """Of a GPU.

    Attributes:
        device: what it is.
        cycles: per second, of all multiprocessors together, at the highest clock.
        flops: of tensor cores on bf16, per second.
        bandwidth: bytes read and written per second, by the fastest of some copies.
        last_cache: bytes of the second-level cache.
    """

    device: str
    cycles: float
    flops: float
    bandwidth: float
    last_cache: int

    kind = "of tensor cores in bf16"
    share_text = (
        "the least time for its operations at the rate of what it multiplies by (tensor cores on numbers as narrow, or f32), "
        "or for its bytes at the bandwidth of copies, over its time"
    )

    @property
    def machine(self) -> str:
        return self.device

    def best(self, other: DeviceLimits) -> DeviceLimits:
        """The better one of two measurements."""
        return replace(self, bandwidth=max(self.bandwidth, other.bandwidth))

    def least_seconds(self, flops: int, size: int, held: int, rate: float = 0.0) -> tuple[float, str]:
        """As of :class:`SpeedLimits`; bytes of a model that fits into the cache are taken for free."""
        from_memory = held > self.last_cache and self.bandwidth > 0
        compute = flops / (rate * self.cycles) if rate and self.cycles else 0.0
        memory = size / self.bandwidth if from_memory else 0.0
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

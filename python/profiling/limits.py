"""What this machine can do, measured by small loops: multiplications and additions in f32 of its cores, bytes from memory."""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from ..lowering.cpu.codegen import object_code
from ..lowering.target import Target
from ..runtime.library import Library

__all__ = ["MachineLimits", "measured_limits"]

#: Larger than any cache, for all threads together.
_BYTES = 256 << 20
#: Rounds of the loop of multiplications in one turn, about 5 ms, each with so many independent ones: 4 cycles of latency, two
#: at once.
_ROUNDS, _CHAINS = 2_000_000, 10
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


def measured_limits(threads: int) -> MachineLimits:
    """Measures with some threads; about 0.3 s."""
    target = Target.parse("cpu")
    lanes = target.vector_bits // 32
    library = Library.from_object(object_code(_code(lanes), target).archive(), ("relaxir_multiply", "relaxir_read"))
    multiply, read = library.function("relaxir_multiply"), library.function("relaxir_read")
    data = [np.ones(_BYTES // threads, np.uint8) for _ in range(threads)]
    into = [np.zeros(lanes, np.float32) for _ in range(threads)]
    with ThreadPoolExecutor(threads) as pool:
        compute = _best(pool, threads, lambda i: multiply(into[i].ctypes.data, None, None, _ROUNDS))
        memory = _best(pool, threads, lambda i: read(data[i].ctypes.data, into[i].ctypes.data, None, data[i].nbytes))
    operations = 2 * lanes * _CHAINS * _ROUNDS * threads
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


def _code(lanes: int) -> str:
    """Both loops, with the ABI of entries: the last argument is how many rounds, or bytes."""
    floats, words, step = f"<{lanes} x float>", f"<{lanes} x i32>", 4 * lanes
    chains, loads = range(_CHAINS), range(8)
    half = f"{floats} splat (float 0.5)"
    return "\n".join([
        f"declare {floats} @llvm.fma.v{lanes}f32({floats}, {floats}, {floats})",
        "define i64 @relaxir_multiply(ptr %into, ptr %a, ptr %b, i64 %rounds) {",
        "entry:\n  br label %loop",
        "loop:\n  %i = phi i64 [ 0, %entry ], [ %next, %loop ]",
        *(f"  %s{k} = phi {floats} [ zeroinitializer, %entry ], [ %t{k}, %loop ]" for k in chains),
        *(f"  %t{k} = call {floats} @llvm.fma.v{lanes}f32({floats} %s{k}, {half}, {half})" for k in chains),
        "  %next = add i64 %i, 1\n  %more = icmp ult i64 %next, %rounds\n  br i1 %more, label %loop, label %end\nend:",
        *(f"  %u{k} = fadd {floats} {f'%u{k - 1}' if k else 'zeroinitializer'}, %t{k}" for k in chains),
        f"  store {floats} %u{_CHAINS - 1}, ptr %into, align 4\n  ret i64 0\n}}",
        "define i64 @relaxir_read(ptr %data, ptr %into, ptr %b, i64 %bytes) {",
        "entry:\n  br label %loop",
        "loop:\n  %i = phi i64 [ 0, %entry ], [ %next, %loop ]",
        *(f"  %s{k} = phi {words} [ zeroinitializer, %entry ], [ %t{k}, %loop ]" for k in loads),
        *(f"  %o{k} = add i64 %i, {k * step}\n  %p{k} = getelementptr i8, ptr %data, i64 %o{k}" for k in loads),
        *(f"  %l{k} = load {words}, ptr %p{k}, align 4\n  %t{k} = add {words} %s{k}, %l{k}" for k in loads),
        f"  %next = add i64 %i, {8 * step}\n  %last = add i64 %next, {8 * step}",
        "  %more = icmp ule i64 %last, %bytes\n  br i1 %more, label %loop, label %end\nend:",
        *(f"  %u{k} = add {words} {f'%u{k - 1}' if k else 'zeroinitializer'}, %t{k}" for k in loads),
        f"  store {words} %u7, ptr %into, align 4\n  ret i64 0\n}}\n",
    ])  # fmt: skip

"""Packed products against what the machine can do: the peak of its multiply-adds, and of reading memory.

``python test/benchmark/matmul_peak.py [--dtype bf16] [--sizes 512 1024 2048] [--rows 1 2 4 8] [--rounds 15]`` prints for square
products the share of the peak, and for few rows the share of the bandwidth, where weights take turns so that none is cached.
Peak, bandwidth and products alternate on one thread in times of the processor; what is compared are the best ones. The peak is
that of ``comparison/limits.c`` for the dtype, compiled for this machine by ``cc``.
"""

from __future__ import annotations

import argparse
import ctypes
import time
from collections.abc import Callable

import numpy as np
from comparison.limits import compiled, peaks

import relaxir as rx
from relaxir.dialect.dtypes import numpy_dtype

#: More than caches hold.
ROTATED_BYTES = 256 << 20


def product(m: int, k: int, n: int, dtype: str, count: int = 1) -> list[Callable[[], object]]:
    """Calls of one compiled product, with weights of their own."""
    builder = rx.Builder()
    with builder.function("main"):
        x, w = builder.input("x", (m, k), dtype), builder.weight("w", (k, n), dtype)
        builder.output(builder.matmul(x, w, out_dtype="f32"))
    module = builder.build()
    values = np.random.default_rng(0).standard_normal((k, n), np.float32).astype(numpy_dtype(dtype))
    a = np.random.default_rng(1).standard_normal((m, k), np.float32).astype(numpy_dtype(dtype))
    calls, out = list[Callable[[], object]](), np.empty((m, n), np.float32)
    for _ in range(count):
        executable = rx.compile(module)
        executable.threads = 1
        executable.bind(executable.prepare({"w": values}))
        calls.append(lambda e=executable: e(a, out=out))
    want = a.astype(np.float32) @ values.astype(np.float32)
    error = np.abs(np.asarray(calls[0]()) - want).max() / np.abs(want).max()
    assert error < 1e-5, error
    return calls


def seconds(call: Callable[[], object]) -> float:
    """Processor time of a call."""
    start = time.process_time()
    call()
    return time.process_time() - start


def best(calls: dict[str, Callable[[], object]], rounds: int) -> dict[str, float]:
    """The shortest time of each, taking turns."""
    found = dict.fromkeys(calls, float("inf"))
    for _ in range(rounds):
        for name, call in calls.items():
            found[name] = min(found[name], seconds(call))
    return found


def rotated(calls: list[Callable[[], object]]) -> Callable[[], object]:
    """All of them, one after the other."""
    return lambda: [call() for call in calls]


def squares(library: ctypes.CDLL, dtype: str, sizes: list[int], rounds: int) -> None:
    """Prints the share of the peak of each size."""
    (loop, work), steps = peaks(library)[dtype], 4_000_000
    for size in sizes:
        (call,) = product(size, size, size, dtype)
        repeats = max(1, (1024 // size) ** 3)
        found = best(
            {
                "peak": lambda: loop(steps, 0.5),
                "product": lambda c=call, r=repeats: [c() for _ in range(r)],
            },
            rounds,
        )
        peak, got = work * steps / found["peak"], 2 * size**3 * repeats / found["product"]
        print(f"{size:5d}  {got / 1e9:7.1f} of {peak / 1e9:7.1f} GFLOP/s  {got / peak:5.3f}", flush=True)


def few_rows(library: ctypes.CDLL, dtype: str, rows: list[int], size: int, rounds: int) -> None:
    """Prints the share of the bandwidth of few rows."""
    memory = np.ones(ROTATED_BYTES // 4, np.float32)
    held = size * size * numpy_dtype(dtype).itemsize
    for m in rows:
        calls = product(m, size, size, dtype, max(1, ROTATED_BYTES // held))
        found = best(
            {
                "read": lambda: library.read_all(memory.ctypes.data, memory.size),
                "product": rotated(calls),
            },
            rounds,
        )
        bandwidth, got = ROTATED_BYTES / found["read"], held * len(calls) / found["product"]
        print(f"{m:3d} x {size} x {size}  {got / 1e9:6.1f} of {bandwidth / 1e9:6.1f} GB/s  {got / bandwidth:5.3f}", flush=True)


def main() -> None:
    """Runs what the command line asks for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--dtype", choices=["f32", "bf16"], default="f32")
    parser.add_argument("--sizes", type=int, nargs="*", default=[512, 1024, 2048])
    parser.add_argument("--rows", type=int, nargs="*", default=[1, 2, 4, 8])
    parser.add_argument("--size", type=int, default=2048)
    parser.add_argument("--rounds", type=int, default=15)
    options = parser.parse_args()
    library = compiled()
    if options.dtype not in peaks(library):
        parser.error(f"expected a processor with products of {options.dtype}")
    squares(library, options.dtype, options.sizes, options.rounds)
    few_rows(library, options.dtype, options.rows, options.size, options.rounds)


if __name__ == "__main__":
    main()

"""Packed f32 products against what the machine can do: the peak of its multiply-adds, and of reading memory.

``python test/benchmark/matmul_peak.py [--sizes 512 1024 2048] [--rows 1 2 4 8] [--rounds 15]`` prints for square products the
share of the peak, and for few rows the share of the bandwidth, where weights take turns so that no cache holds them. Peak,
bandwidth and products alternate on one thread in times of the processor; what is compared are the best ones. The peak is a C
kernel of independent multiply-adds, compiled for this machine by ``cc``.
"""

from __future__ import annotations

import argparse
import ctypes
import os
import subprocess
import tempfile
import time
from collections.abc import Callable

import numpy as np

import relaxir as rx

#: Enough accumulators to hide the latency, vectors as wide as the machine's; the sum of what a prefetching reader reads.
SOURCE = """
#define WIDTH (sizeof(vec) / sizeof(float))
#ifdef __AVX512F__
typedef float vec __attribute__((vector_size(64)));
#elif defined(__AVX__)
typedef float vec __attribute__((vector_size(32)));
#else
typedef float vec __attribute__((vector_size(16)));
#endif
typedef vec loose __attribute__((aligned(4)));
#define EACH(F) F(0) F(1) F(2) F(3) F(4) F(5) F(6) F(7) F(8) F(9) F(10) F(11)
double multiply_adds(long steps, float *out) {
  vec x = *(loose *)out, y = x;
#define START(i) vec a##i = ((loose *)out)[i];
#define STEP(i) a##i = a##i * x + y;
#define SUM(i) y += a##i;
  EACH(START)
  for (long s = 0; s < steps; s++) { EACH(STEP) }
  EACH(SUM)
  *(loose *)out = y;
  return 24.0 * WIDTH * steps;
}
double read_all(const float *x, long count, float *out) {
  vec a[8];
  for (int i = 0; i < 8; i++) a[i] = (vec){0};
  for (long s = 0; s + 8 * WIDTH <= count; s += 8 * WIDTH) {
    for (int i = 0; i < 8; i++) a[i] += *(const loose *)(x + s + i * WIDTH);
  }
  for (int i = 1; i < 8; i++) a[0] += a[i];
  *(loose *)out = a[0];
  return 4.0 * count;
}
"""
#: More than caches hold.
ROTATED_BYTES = 256 << 20


def machine() -> ctypes.CDLL:
    """The C kernels."""
    with tempfile.TemporaryDirectory() as folder:
        source, library = os.path.join(folder, "peak.c"), os.path.join(folder, "peak.so")
        with open(source, "w") as file:
            file.write(SOURCE)
        flags = ["-O2", "-march=native", "-ffp-contract=fast", "-shared", "-fPIC"]
        subprocess.run([os.environ.get("CC", "cc"), *flags, source, "-o", library], check=True)
        loaded = ctypes.CDLL(library)
    loaded.multiply_adds.restype = loaded.read_all.restype = ctypes.c_double
    return loaded


def product(m: int, k: int, n: int, count: int = 1) -> list[Callable[[], object]]:
    """Calls of one compiled product, with weights of their own."""
    builder = rx.Builder()
    with builder.function("main"):
        x, w = builder.input("x", (m, k), "f32"), builder.weight("w", (k, n), "f32")
        builder.output(builder.matmul(x, w))
    module = builder.build()
    values = np.random.default_rng(0).standard_normal((k, n)).astype(np.float32)
    a = np.random.default_rng(1).standard_normal((m, k)).astype(np.float32)
    calls = list[Callable[[], object]]()
    for _ in range(count):
        executable = rx.compile(module)
        executable.threads = 1
        executable.bind(executable.prepare({"w": values}))
        calls.append(lambda e=executable: e(a))
    error = np.abs(np.asarray(calls[0]()) - a @ values).max() / np.abs(a @ values).max()
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


def squares(kernels: ctypes.CDLL, sizes: list[int], rounds: int) -> None:
    """Prints the share of the peak of each size."""
    out = np.zeros(12 * 16, np.float32).ctypes.data_as(ctypes.c_void_p)
    steps = 10_000_000
    work = kernels.multiply_adds(ctypes.c_long(1), out) * steps
    for size in sizes:
        (call,) = product(size, size, size)
        repeats = max(1, (1024 // size) ** 3)
        found = best(
            {
                "peak": lambda: kernels.multiply_adds(ctypes.c_long(steps), out),
                "product": lambda c=call, r=repeats: [c() for _ in range(r)],
            },
            rounds,
        )
        peak, got = work / found["peak"], 2 * size**3 * repeats / found["product"]
        print(f"{size:5d}  {got / 1e9:7.1f} of {peak / 1e9:7.1f} GFLOP/s  {got / peak:5.3f}", flush=True)


def few_rows(kernels: ctypes.CDLL, rows: list[int], size: int, rounds: int) -> None:
    """Prints the share of the bandwidth of few rows."""
    out = np.zeros(12 * 16, np.float32).ctypes.data_as(ctypes.c_void_p)
    memory = np.ones(ROTATED_BYTES // 4, np.float32)
    pointer = memory.ctypes.data_as(ctypes.c_void_p)
    for m in rows:
        calls = product(m, size, size, max(1, ROTATED_BYTES // (4 * size * size)))
        found = best(
            {
                "read": lambda: kernels.read_all(pointer, ctypes.c_long(memory.size), out),
                "product": rotated(calls),
            },
            rounds,
        )
        bandwidth, got = ROTATED_BYTES / found["read"], 4 * size * size * len(calls) / found["product"]
        print(f"{m:3d} x {size} x {size}  {got / 1e9:6.1f} of {bandwidth / 1e9:6.1f} GB/s  {got / bandwidth:5.3f}", flush=True)


def main() -> None:
    """Runs what the command line asks for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", type=int, nargs="*", default=[512, 1024, 2048])
    parser.add_argument("--rows", type=int, nargs="*", default=[1, 2, 4, 8])
    parser.add_argument("--size", type=int, default=2048)
    parser.add_argument("--rounds", type=int, default=15)
    options = parser.parse_args()
    kernels = machine()
    squares(kernels, options.sizes, options.rounds)
    few_rows(kernels, options.rows, options.size, options.rounds)


if __name__ == "__main__":
    main()

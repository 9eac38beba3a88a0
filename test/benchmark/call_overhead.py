"""What a call of a bound executable costs before any work is done: us per call of a model of one small add.

    python test/benchmark/call_overhead.py [--rounds 15] [--calls 2000]

Beside it, in alternating rounds of the same run: torch's ``x + 1`` (where torch is installed), NumPy's, and a bare ctypes call
of a C function with as many arguments, the least that Python can do.
Medians of processor time: load of the machine hardly shows.
"""

from __future__ import annotations

import argparse
import ctypes
import statistics
import time
from collections.abc import Callable
from importlib.util import find_spec

import numpy as np

import relaxir as rx


def bound(symbolic: bool) -> rx.Executable:
    """``x + w`` of 8 rows of 4; the rows may be a symbol."""
    b = rx.Builder()
    with b.function("main"):
        x = b.input("x", ("n" if symbolic else 8, 4), "f32")
        b.output(b.add(x, b.weight("w", (4,), "f32")))
    executable = rx.compile(b.build(), cache=False)
    return executable.bind(executable.prepare({"w": np.ones(4, np.float32)}))


def contestants() -> dict[str, Callable[[], object]]:
    """What is measured, by name."""
    x = np.zeros((8, 4), np.float32)
    static, dynamic, out = bound(False), bound(True), np.empty((8, 4), np.float32)
    bare = ctypes.CDLL(None).labs  # looks at its first argument alone
    bare.argtypes, bare.restype = (*[ctypes.c_void_p] * 3, ctypes.c_int64), ctypes.c_int64
    found: dict[str, Callable[[], object]] = {
        "relaxir, static shape": lambda: static(x),
        "relaxir, symbolic shape": lambda: dynamic(x),
        "relaxir, by name": lambda: static(x=x),
        "relaxir, out given": lambda: static(x, out=out),
        "numpy x + 1": lambda: x + 1,
        "bare ctypes call": lambda: bare(1, 2, 3, 4),
    }
    if find_spec("torch") is not None:
        import torch

        tensor = torch.from_numpy(x)
        found |= {"relaxir, torch tensor": lambda: static(tensor), "torch x + 1": lambda: tensor + 1}
    return found


def measure(call: Callable[[], object], calls: int) -> float:
    """Processor time of one call in us."""
    start = time.process_time_ns()
    for _ in range(calls):
        call()
    return (time.process_time_ns() - start) / calls / 1000


def main() -> None:
    """Prints a line for each contestant."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--calls", type=int, default=2000)
    options = parser.parse_args()
    found = contestants()
    times: dict[str, list[float]] = {name: [] for name in found}
    for _ in range(options.rounds):
        for name, call in found.items():
            times[name].append(measure(call, options.calls))
    least = statistics.median(times["bare ctypes call"])
    for name, values in times.items():
        median = statistics.median(values)
        print(f"{name:24} {median:7.2f} us   {median / least:6.1f} x bare")


if __name__ == "__main__":
    main()

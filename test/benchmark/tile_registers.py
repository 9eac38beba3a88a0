"""Tile registers of this processor (Intel AMX): what a multiplication takes by how many of them are in use.

``python test/benchmark/tile_registers.py [--seconds 10]`` prints nanoseconds from one multiplication to the next, with the
reads that so many registers need: medians of turns in which eight are at most 1.5 times as slow as at their best, and of those
in which they are more than twice as slow. The latter are moments in which the core's other thread, which may be another virtual
machine's, has something in tile registers. Exits with 2 where there are none, or no C compiler.
"""

from __future__ import annotations

import argparse
import ctypes
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from relaxir.lowering.tile_permission import may_use_tiles

_IN_USE = (8, 7, 6, 5, 4)
# Rounds of four multiplications.
_ROUNDS = 500


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=10.0)
    options = parser.parse_args()
    if not may_use_tiles():
        print("this processor has no tile registers, or Linux gives none", file=sys.stderr)
        sys.exit(2)
    try:
        loops = _compiled()
    except (OSError, subprocess.CalledProcessError) as error:
        print(f"no C compiler for tile registers: {error}", file=sys.stderr)
        sys.exit(2)
    turns, end = list[Sequence[float]](), time.monotonic() + options.seconds
    while time.monotonic() < end:
        turns.append([_nanoseconds(loop) for loop in (*loops, loops[0])])
    _print(turns)


def _compiled() -> list[Callable[[int], None]]:
    """The loops with as many registers in use as :data:`_IN_USE` has it."""
    source = Path(__file__).with_suffix(".c")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "tile_registers.so"
        flags = ["-O2", "-march=native", "-shared", "-fPIC"]
        subprocess.run([os.environ.get("CC", "cc"), *flags, str(source), "-o", str(path)], check=True)
        library = ctypes.CDLL(str(path))
    loops = [library[f"use_{number}"] for number in _IN_USE]
    for loop in loops:
        loop.argtypes, loop.restype = (ctypes.c_size_t,), None
    return loops


def _nanoseconds(loop: Callable[[int], None]) -> float:
    """Of a multiplication."""
    start = time.perf_counter_ns()
    loop(_ROUNDS)
    return (time.perf_counter_ns() - start) / (4 * _ROUNDS)


def _print(turns: Sequence[Sequence[float]]) -> None:
    """Medians of turns that begin and end with eight registers as fast, and as slow, as that."""
    best = min(min(turn[0], turn[-1]) for turn in turns)
    fast = [turn for turn in turns if max(turn[0], turn[-1]) <= 1.5 * best]
    slow = [turn for turn in turns if min(turn[0], turn[-1]) > 2 * best]
    print(f"{'in use':8s}{'alone, ns':>12s}{'with others, ns':>18s}")
    for i, number in enumerate(_IN_USE):
        found = [f"{statistics.median(turn[i] for turn in some):.1f}" if some else "-" for some in (fast, slow)]
        print(f"{number:<8d}{found[0]:>12s}{found[1]:>18s}")
    print(f"{'turns':8s}{len(fast):>12d}{len(slow):>18d}")


if __name__ == "__main__":
    main()

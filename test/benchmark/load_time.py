"""How long ``load`` and ``bind`` of large prepared weights take, and what memory processes share that have them.

``python test/benchmark/load_time.py [--gib 4] [--processes 8] [--rounds 9] [--folder DIR]`` prepares weights, brings the file
into the page cache, and prints: milliseconds of ``load`` and ``bind`` in a process that has imported relaxir; by how much the
resident memory of another process grows until before its first call; and what several processes take together once each has
made a call that reads all weights, as the system divides shared pages among them (proportional set size).
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import median
from typing import Any

_CHILD = """
import json, sys, time
import numpy as np
began = time.perf_counter()
import relaxir as rx
load = rx.load
imported = time.perf_counter() - began
sys.path.insert(0, sys.argv[3])
from prepare_measure import status

def shared(key):
    with open("/proc/self/smaps_rollup") as file:
        return next(int(line.split()[1]) << 10 for line in file if line.startswith(key + ":"))

base, own = status("VmRSS"), shared("Pss")
processor = time.process_time()
began = time.perf_counter()
executable = load(sys.argv[1])
loaded = time.perf_counter()
executable.bind(sys.argv[2])
bound = time.perf_counter()
found = {"import": imported, "load": loaded - began, "bind": bound - loaded, "grown": status("VmRSS") - base}
found["processor"] = time.process_time() - processor
side = int(sys.argv[4])
print("bound", flush=True)
sys.stdin.readline()
if sys.argv[5] == "call":
    executable(np.ones((1, side), np.float32))
print("called", flush=True)
sys.stdin.readline()
found["proportional"], found["resident"] = shared("Pss") - own, status("VmRSS") - base
print(json.dumps(found), flush=True)
sys.stdin.readline()
"""


class Child:
    """A process that loads and binds, and goes on when it is told."""

    def __init__(self, folder: Path, side: int, call: bool):
        arguments = [str(folder / "f32.relax"), str(folder / "f32.out"), str(Path(__file__).parent), str(side)]
        self._process = subprocess.Popen(
            [sys.executable, "-c", _CHILD, *arguments, "call" if call else "none"],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=_environment(folder),
        )  # fmt: skip
        self._expect("bound")

    def step(self) -> str:
        """Goes on to the next line that it prints."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write("\n")
        self._process.stdin.flush()
        return self._process.stdout.readline().strip()

    def call(self) -> None:
        """Makes its call, or none."""
        line = self.step()
        assert line == "called", line

    def figures(self) -> dict[str, Any]:
        """What it measured, while the others are there."""
        return json.loads(self.step())

    def end(self) -> None:
        """Lets it go."""
        assert self._process.stdin is not None
        self._process.stdin.write("\n")
        self._process.stdin.close()
        self._process.wait()

    def _expect(self, text: str) -> None:
        assert self._process.stdout is not None
        line = self._process.stdout.readline().strip()
        assert line == text, line


def _environment(folder: Path) -> dict[str, str]:
    """Python keeps compiled modules, as it does for everybody who does not tell it not to."""
    found = {key: value for key, value in os.environ.items() if key != "PYTHONDONTWRITEBYTECODE"}
    return {**found, "PYTHONPYCACHEPREFIX": str(folder / "pyc")}


def measure(folder: Path, side: int, count: int, call: bool) -> list[dict[str, Any]]:
    """The figures of so many processes that have the weights at once."""
    children = [Child(folder, side, call) for _ in range(count)]
    for child in children:
        child.call()
    found = [child.figures() for child in children]
    for child in children:
        child.end()
    return found


def main() -> int:
    """Measures; exit code 1 when a bound does not hold."""
    from prepare_speed import Case, warm

    import relaxir as rx

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--gib", type=float, default=4.0)
    parser.add_argument("--side", type=int, default=2048)
    parser.add_argument("--processes", type=int, default=8)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--folder", default=None)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=options.folder) as name:
        folder = Path(name)
        case = Case("f32", folder, max(1, round(options.gib * 2**30 / 4 / options.side**2)), options.side, 1)
        case.build()
        rx.load(case.path("relax")).prepare(case.path("raw"), case.path("out"))
        case.path("raw").unlink()
        size = case.path("out").stat().st_size
        warm(case.path("out"))
        print(f"{size / 2**30:.2f} GiB, load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")
        measure(folder, options.side, 1, call=False)  # compiles Python modules
        alone = [measure(folder, options.side, 1, call=False)[0] for _ in range(options.rounds)]
        times = sorted((a["load"] + a["bind"]) * 1e3 for a in alone)
        parts = ", ".join(f"{key} {median(a[key] for a in alone) * 1e3:.1f}" for key in ("import", "load", "bind", "processor"))
        print(f"load and bind: median {median(times):.1f} ms, {times[0]:.1f} to {times[-1]:.1f} ({parts})")
        second = measure(folder, options.side, 2, call=False)[1]["grown"] / size
        print(f"resident memory of a second process grows by {second:.2%} of the weights before its first call")
        found = measure(folder, options.side, options.processes, call=True)
        total, resident = sum(f["proportional"] for f in found), sum(f["resident"] for f in found)
        together = f"{total / size:.2f} times the weights (resident in each, added up: {resident / size:.2f})"
        print(f"{options.processes} processes after a call: {together}")
    return 0 if median(times) < 50 and second < 0.05 and total < 1.1 * size else 1


if __name__ == "__main__":
    sys.exit(main())

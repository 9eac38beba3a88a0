"""Two versions of relaxir on the same cases, in alternating turns: what a change costs or gains.

``python test/benchmark/before_after.py --before CHECKOUT [--cases 'llama*' ...] [--threads 1,2] [--rounds 15]`` takes another
checkout, with its environment in ``.venv``, and prints for each case the median seconds of a call before and after,
and the median of their ratio in each round: above 1, the change made it slower. The cases are those of ``suite.py``. The
spread is that of the ratios' middle half, what differences below it mean on this machine now. ``apart`` is how many ns a line
of memory takes from one core to the other and back. With several threads rounds have a line of their own where that is more
than twice the least: a virtual machine's cores may share a cache in one second, and not in the next.
"""

from __future__ import annotations

import argparse
import math
import statistics
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from comparison.cases import CASES
from comparison.limits import compiled, round_trip
from comparison.peers import OURS, PEERS, formats_of
from comparison.process import FailureError, Process

#: Seconds for a case to load, and for a turn.
_PATIENCE = 600.0
_COLUMNS = "{:<32}{:>8}{:>8}{:>8}{:>12}{:>12}{:>9}{:>9}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--before", required=True, type=Path, metavar="CHECKOUT", help="the other version, with its .venv")
    parser.add_argument("--cases", nargs="+", default=["*"], metavar="PATTERN")
    parser.add_argument("--threads", default="1,2")
    parser.add_argument("--rounds", type=int, default=15)
    options = parser.parse_args()
    names = [name for name in CASES if any(Path(name).match(pattern) for pattern in options.cases)]
    if not names:
        parser.error(f"expected patterns of cases, got {' '.join(options.cases)}")
    print(_COLUMNS.format("case", "threads", "apart", "rounds", "before ms", "after ms", "ratio", "spread"))
    for threads in map(int, options.threads.split(",")):
        with tempfile.TemporaryDirectory() as folder:
            checkout = options.before.resolve()
            before = Process(str(checkout / ".venv/bin/python"), "relaxir", threads, Path(folder), checkout)
            after = Process(sys.executable, "relaxir", threads, Path(folder))
            try:
                for name in names:
                    print(_rows(name, threads, before, after, options.rounds), flush=True)
            finally:
                before.close()
                after.close()


@dataclass(frozen=True)
class _Round:
    """Seconds of a call before and after the change, and of a round trip between cores then."""

    before: float
    after: float
    apart: float


def _rows(name: str, threads: int, before: Process, after: Process, rounds: int) -> str:
    library, found = compiled(), list[_Round]()
    try:
        after.ask("reference", _PATIENCE, case=name, formats=formats_of(CASES[name], [PEERS[OURS]]))
        for process in (before, after):
            process.ask("load", _PATIENCE, case=name)
        for i in range(rounds):
            trip = round_trip(library) or 0.0
            turns = _turns(before, after, is_odd=bool(i % 2))
            found.append(_Round(*turns, max(trip, round_trip(library) or 0.0)))
    except FailureError as error:
        return f"{name}: {error}"
    near = 2 * min(r.apart for r in found) if threads > 1 else math.inf
    groups = [[r for r in found if r.apart <= near], [r for r in found if r.apart > near]]
    return "\n".join(_line(name, threads, group) for group in groups if group)


def _line(name: str, threads: int, rounds: list[_Round]) -> str:
    ratios = [r.after / r.before for r in rounds]
    low, _, high = statistics.quantiles(ratios, n=4) if len(ratios) > 1 else (ratios[0],) * 3
    first, second = (1e3 * statistics.median(times) for times in zip(*((r.before, r.after) for r in rounds), strict=True))
    apart, ratio = 1e9 * statistics.median(r.apart for r in rounds), statistics.median(ratios)
    numbers = f"{apart:.0f}", len(rounds), f"{first:.3f}", f"{second:.3f}", f"{ratio:.3f}", f"{high - low:.3f}"
    return _COLUMNS.format(name, threads, *numbers)


def _turns(before: Process, after: Process, is_odd: bool) -> tuple[float, float]:
    """The medians of a turn of each; who begins changes, so that drifts of the machine's speed cancel."""
    order = (after, before) if is_odd else (before, after)
    first, second = (statistics.median(p.ask("turn", _PATIENCE)["times"]) for p in order)
    return (second, first) if is_odd else (first, second)


if __name__ == "__main__":
    main()

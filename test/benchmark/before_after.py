"""Two versions of relaxir on the same cases, in alternating turns: what a change costs or gains.

``python test/benchmark/before_after.py --before CHECKOUT [--cases 'llama*' ...] [--threads 1,2] [--rounds 15]`` takes another
checkout, with its environment in ``.venv``, and prints for each case the median seconds of a call before and after,
and the median of their ratio in each round: above 1, the change made it slower. The cases are those of ``suite.py``. The
spread is that of the ratios' middle half, what differences below it mean on this machine now.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
from pathlib import Path

from comparison.cases import CASES
from comparison.peers import OURS, PEERS, formats_of
from comparison.process import FailureError, Process

#: Seconds for a case to load, and for a turn.
_PATIENCE = 600.0
_COLUMNS = "{:<32}{:>8}{:>12}{:>12}{:>9}{:>9}"


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
    print(_COLUMNS.format("case", "threads", "before ms", "after ms", "ratio", "spread"))
    for threads in map(int, options.threads.split(",")):
        with tempfile.TemporaryDirectory() as folder:
            checkout = options.before.resolve()
            before = Process(str(checkout / ".venv/bin/python"), "relaxir", threads, Path(folder), checkout)
            after = Process(sys.executable, "relaxir", threads, Path(folder))
            try:
                for name in names:
                    print(_row(name, threads, before, after, options.rounds), flush=True)
            finally:
                before.close()
                after.close()


def _row(name: str, threads: int, before: Process, after: Process, rounds: int) -> str:
    try:
        after.ask("reference", _PATIENCE, case=name, formats=formats_of(CASES[name], [PEERS[OURS]]))
        for process in (before, after):
            process.ask("load", _PATIENCE, case=name)
        pairs = [_turns(before, after, is_odd=bool(i % 2)) for i in range(rounds)]
    except FailureError as error:
        return f"{name}: {error}"
    ratios = [b / a for a, b in pairs]
    low, _, high = statistics.quantiles(ratios, n=4) if len(ratios) > 1 else (ratios[0],) * 3
    first, second = (statistics.median(times) * 1e3 for times in zip(*pairs, strict=True))
    return _COLUMNS.format(
        name, threads, f"{first:.3f}", f"{second:.3f}", f"{statistics.median(ratios):.3f}", f"{high - low:.3f}"
    )


def _turns(before: Process, after: Process, is_odd: bool) -> tuple[float, float]:
    """The medians of a turn of each; who begins changes, so that drifts of the machine's speed cancel."""
    order = (after, before) if is_odd else (before, after)
    first, second = (statistics.median(p.ask("turn", _PATIENCE)["times"]) for p in order)
    return (second, first) if is_odd else (first, second)


if __name__ == "__main__":
    main()

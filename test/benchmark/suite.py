"""relaxir against its peers: kernels and whole models, timed in alternating turns in one run.

``python test/benchmark/suite.py [--cases 'llama*' ...] [--peers torch iree ...] [--threads 1,2] [--quick]`` prints medians,
their ratios to ours (above 1: relaxir is faster) and the share of what the machine could do, and writes ``results.json`` and
``chart.svg`` to ``--output`` after every case. README.md beside this file says how to install the peers.
"""

from __future__ import annotations

import argparse
import json
import signal
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

from comparison import chart, tables
from comparison.cases import CASES, select
from comparison.peers import OURS, PEERS
from comparison.runs import Options, Row, Runner


def _numbers(text: str) -> list[int]:
    numbers = [int(part) for part in text.split(",")]
    if min(numbers) < 1:
        raise argparse.ArgumentTypeError(f"expected numbers of threads from 1 on, got {text}")
    return numbers


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cases", nargs="+", default=[], metavar="PATTERN", help="names, or patterns like 'llama*'")
    parser.add_argument("--peers", nargs="+", default=list(PEERS), choices=list(PEERS), metavar="PEER", help=", ".join(PEERS))
    parser.add_argument("--threads", type=_numbers, default=[1, 2], help="a run for each: 1,2")
    parser.add_argument("--rounds", type=int, help="turns of each peer (default 15; with --quick 5)")
    parser.add_argument("--quick", action="store_true", help="some cases, in less than 6 minutes")
    parser.add_argument("--case-seconds", type=float, help="no further round after (default 60; with --quick 4)")
    parser.add_argument("--load-seconds", type=float, help="for a peer to build a case (default 300; with --quick 30)")
    parser.add_argument(
        "--budget", type=float, help="no further case after that many seconds, 30 more for the last (with --quick 290)"
    )
    parser.add_argument("--peers-python", default=sys.executable, help="the interpreter that has the peers")
    parser.add_argument("--output", type=Path, default=Path("build/benchmark"), help="folder of results.json and chart.svg")
    parser.add_argument("--list", action="store_true", help="names of cases, and nothing else")
    return parser


def _tell(text: str) -> None:
    """What is under way, on a terminal."""
    if sys.stderr.isatty():
        print(f"\r\033[K{text}", end="", file=sys.stderr, flush=True)


def _save(rows: list[Row], runner: Runner, about: dict[str, object], folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    found = tables.as_json(rows, about | {"versions": runner.versions, "absent": runner.absent, "limits": runner.limits})
    (folder / "results.json").write_text(json.dumps(found, indent=1) + "\n")
    machine = tables.machine()
    (folder / "chart.svg").write_text(chart.svg(rows, f"relaxir and peers on {machine['cpu']}, {machine['date'][:10]}"))


def _head(runner: Runner, about: dict[str, object]) -> None:
    print(f"{about['cpu']}, {about['cores']} cores, load {about['load']:.1f}")
    print("peers: " + ", ".join(f"{name} {version}" for name, version in runner.versions.items()))
    for name, text in runner.absent.items():
        print(f"not installed: {name} ({text})")
    if float(str(about["load"])) > 0.5:
        print("the machine is busy: these times say little")


def main() -> int:
    """Runs what the command line asks for; 1 when a case of ours fails."""
    parser = _parser()
    options = parser.parse_args()
    if options.list:
        print("\n".join(CASES))
        return 0
    try:
        cases = select(options.cases, options.quick)
    except ValueError as error:
        parser.error(str(error))
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that files of models are removed
    quick = options.quick
    about: dict[str, object] = tables.machine() | {"command": sys.argv[1:]}
    start, rows = time.monotonic(), list[Row]()
    budget = options.budget or (290 if quick else float("inf"))
    with tempfile.TemporaryDirectory(prefix="relaxir-benchmark-") as folder:
        chosen = Options(
            sys.executable,
            options.peers_python,
            options.rounds or (5 if quick else 15),
            options.case_seconds or (4 if quick else 60),
            options.load_seconds or (30 if quick else 300),
            start + budget + 30,
            Path(folder),
        )
        with Runner(chosen, options.peers, options.threads) as runner:
            _head(runner, about)
            for case in cases:
                late = time.monotonic() - start > budget
                found = runner.skipped(case) if late else runner.run(case, _tell)
                for row in found:
                    _tell("")
                    print(f"\n{tables.row_text(row)}", flush=True)
                    rows.append(row)
                    _save(rows, runner, about, options.output)
            _tail(rows, runner, options.output, time.monotonic() - start)
    return int(any(row.outcomes[OURS].status == "failed" for row in rows))


def _tail(rows: list[Row], runner: Runner, folder: Path, seconds: float) -> None:
    print(f"\n{tables.summary(rows)}")
    for threads, limits in runner.limits.items():
        flops = ", ".join(f"{value / 1e9:.0f} GFLOP/s in {dtype}" for dtype, value in limits["flops"].items())
        print(f"limits with {threads} thread(s): {flops}, {limits['bandwidth'] / 1e9:.1f} GB/s from memory")
    print(f"{seconds:.0f} s; {folder / 'results.json'}, {folder / 'chart.svg'}")


if __name__ == "__main__":
    sys.exit(main())

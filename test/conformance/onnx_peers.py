"""A random sample of ONNX's own tests of backends, by relaxir, ONNX Runtime, IREE and TVM.

    .venv/bin/python test/conformance/onnx_peers.py --peers-python peers-venv/bin/python --results build/peers.jsonl

Each peer runs the tests in a process of its own, which is started again behind a test that ended it or took too long. A line
per test and peer is written to ``--results`` as it comes; lines that are there are not run again. Where ``iree`` or ``tvm``
fail they get another try with integers of at most one dimension, which may be shapes or axes, as constants (``with
constants``). test/benchmark/README.md says how to install the peers.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import sys
from collections import Counter
from pathlib import Path
from typing import Any

for _threads in ("RELAXIR_NUM_THREADS", "OMP_NUM_THREADS", "TVM_NUM_THREADS"):
    os.environ.setdefault(_threads, "1")
os.environ["RELAXIR_CACHE_DIR"] = "off"
sys.path[:0] = [str(Path(__file__).resolve().parents[1])]

PEERS = ("relaxir", "onnxruntime", "iree", "tvm")

#: Seconds for a test; a process begins with all tests' numbers, which take as many to make as most tests to run.
_LIMIT, _START = 120, 120


def sampled(count: int, seed: int) -> list[str]:
    """Names of so many tests."""
    from conformance.onnx_tests import tests

    return random.Random(seed).sample(sorted(tests()), count)


def _worker(peer: str) -> None:
    """Answers each name on standard input with a line: ``right``, ``wrong`` or ``refused``, and why."""
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)
    from conformance.onnx_runners import outcome
    from conformance.onnx_tests import tests

    found = tests()
    print("ready", file=answers)
    for line in sys.stdin:
        print(json.dumps(outcome(peer, found[line.strip()])), file=answers)


def _kept(path: Path) -> dict[tuple[str, str], tuple[str, str]]:
    lines = path.read_text().splitlines() if path.exists() else []
    rows = [json.loads(line) for line in lines]
    return {(r["peer"], r["test"]): (r["outcome"], r["why"]) for r in rows}


def _print(found: dict[tuple[str, str], tuple[str, str]], names: list[str]) -> None:
    kinds = ("right", "with constants", "wrong", "refused", "died", "late")
    print(f"{'peer':14s}" + "".join(f"{k:>16s}" for k in kinds))
    for peer in PEERS:
        counts = Counter(found[peer, n][0] for n in names if (peer, n) in found)
        if counts:
            print(f"{peer:14s}" + "".join(f"{counts[k]:16d}" for k in kinds))
    for n in names:
        kind, why = found.get(("relaxir", n), ("right", ""))
        if kind != "right":
            print(f"relaxir: {n}: {kind}: {why}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sample", type=int, default=150)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--peers", nargs="+", choices=PEERS, default=list(PEERS))
    parser.add_argument("--peers-python", default=sys.executable, help="the interpreter that has the peers")
    parser.add_argument("--results", type=Path, default=Path("build/onnx_peers.jsonl"))
    parser.add_argument("--worker", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.worker:
        _worker(options.worker)
        return
    from conformance.peer_process import PeerProcess

    names = sampled(options.sample, options.seed)
    found = _kept(options.results)
    options.results.parent.mkdir(parents=True, exist_ok=True)
    with options.results.open("a") as file:
        for name in options.peers:
            python = sys.executable if name == "relaxir" else options.peers_python
            peer = PeerProcess([python, str(Path(__file__).resolve()), "--worker", name], _START, _LIMIT)
            for test in names:
                if (name, test) in found:
                    continue
                kind, why = found[name, test] = peer.ask(test)
                row: dict[str, Any] = {"peer": name, "test": test, "outcome": kind, "why": why}
                print(json.dumps(row), file=file, flush=True)
            peer.close()
    _print(found, names)


if __name__ == "__main__":
    main()

"""Runs ONNX's own tests of backends, ``onnx.backend.test``, and compares what fails with the list of what is expected to.

    .venv/bin/python test/conformance/onnx_backend.py [--jobs 2] [--check] [NAME ...]

Prints how many of the 2,024 tests are right, refused, wrong, or end the process, with the first test of each reason. With
``--check`` the exit code is 1 where a test that ``onnx_expected_failures.txt`` does not list fails, or a listed one passes: the
list may only shrink. All tests take two minutes of one core.
"""

from __future__ import annotations

import argparse
import fnmatch
import os
import sys
from collections import Counter, defaultdict
from multiprocessing import get_context
from multiprocessing.connection import Connection
from multiprocessing.connection import wait as wait_for
from pathlib import Path
from typing import Any

os.environ["RELAXIR_CACHE_DIR"] = "off"
for _threads in ("RELAXIR_NUM_THREADS", "OMP_NUM_THREADS"):
    os.environ.setdefault(_threads, "1")

sys.path[:0] = [str(Path(__file__).resolve().parents[1])]

from conformance.onnx_tests import compare, tests  # noqa: E402

import relaxir  # noqa: E402
from relaxir import backend  # noqa: E402

_EXPECTED = Path(__file__).parent / "onnx_expected_failures.txt"

#: Seconds for a test.
_LIMIT = 120


def outcome(test: Any) -> tuple[str, str]:
    """``right``, ``refused`` or ``wrong``, and why."""
    try:
        compare(test, lambda model: backend.prepare(model).run)
    except relaxir.RelaxError as error:
        lines = str(error).splitlines()
        return "refused", (lines[1] if len(lines) > 1 else lines[0]).strip()
    except AssertionError as error:
        return "wrong", " ".join(str(error).split())[:120]
    except Exception as error:
        return "wrong", f"{type(error).__name__}: {error}"[:120]
    return "right", ""


def expected_failures() -> dict[str, str]:
    """Reasons by pattern of names."""
    lines = [line.strip() for line in _EXPECTED.read_text().splitlines()]
    found: dict[str, str] = {}
    reason = ""
    for line in lines:
        if line.startswith("#"):
            reason = line[1:].strip()
        elif line:
            found[line] = reason
    return found


def reason_for(name: str, expected: dict[str, str]) -> str | None:
    """Why a test is expected to fail; None where it is not."""
    return next((reason for pattern, reason in expected.items() if fnmatch.fnmatchcase(name, pattern)), None)


def _work(names: list[str], pipe: Connection) -> None:
    """A process that sends the outcome of one test after the other: one that ends it takes no other with it."""
    import signal

    found = tests()
    for name in names:
        signal.alarm(_LIMIT)
        pipe.send((name, outcome(found[name])))
    pipe.close()


def run(names: list[str], jobs: int) -> dict[str, tuple[str, str]]:
    """The outcomes by name."""
    context = get_context("fork")
    results: dict[str, tuple[str, str]] = {}
    pending = {i: names[i::jobs] for i in range(jobs)}
    pipes: dict[Any, int] = {}

    def start(i: int) -> None:
        if not pending[i]:
            return
        receiver, sender = context.Pipe(duplex=False)
        context.Process(target=_work, args=(pending[i], sender), daemon=True).start()
        sender.close()
        pipes[receiver] = i

    for i in range(jobs):
        start(i)
    while pipes:
        for pipe in wait_for(list(pipes)):
            i = pipes[pipe]
            try:
                name, found = pipe.recv()
                results[name] = found
                pending[i].remove(name)
            except EOFError:
                del pipes[pipe]
                if pending[i]:  # the process ended inside of this one
                    results[pending[i].pop(0)] = ("died", "the process ended")
                    start(i)
    return results


def _print(results: dict[str, tuple[str, str]]) -> None:
    counts = Counter(kind for kind, _ in results.values())
    print(f"{len(results)} tests: {', '.join(f'{counts[k]} {k}' for k in ('right', 'refused', 'wrong', 'died'))}")
    groups: dict[tuple[str, str], list[str]] = defaultdict(list)
    for name, (kind, why) in sorted(results.items()):
        if kind != "right":
            groups[kind, why].append(name)
    for (kind, why), names in sorted(groups.items(), key=lambda item: -len(item[1])):
        print(f"{len(names):5d} {kind}: {why[:110]} ({names[0]})")


def unexpected(results: dict[str, tuple[str, str]]) -> list[str]:
    """What differs from the list of expected failures, in words."""
    expected = expected_failures()
    new = [f"{n}: {k}: {w}" for n, (k, w) in results.items() if k != "right" and reason_for(n, expected) is None]
    mended = [f"{n}: right, but expected to fail" for n, (k, _) in results.items() if k == "right" and reason_for(n, expected)]
    return new + mended


def main() -> int:
    """The exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", help="tests whose names have one of these in them; all by default")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--check", action="store_true", help="compare with the expected failures")
    options = parser.parse_args()
    names = [n for n in tests() if not options.names or any(part in n for part in options.names)]
    results = run(names, options.jobs)
    _print(results)
    if not options.check:
        return 0
    found = unexpected(results)
    print("\n".join(found) or "as expected")
    return int(bool(found))


if __name__ == "__main__":
    sys.exit(main())

"""Processor time of tests, by file: a plugin of pytest (``PYTHONPATH=test pytest -p support.processor_time ...``).

Counted is what the test's process, those that it started and those that they started used in its setup, call and teardown;
what else the processes of a run do (imports, collection) is a line of its own. Linux alone has what this reads.
"""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Generator
from pathlib import Path

import pytest

_TICKS = os.sysconf("SC_CLK_TCK")
_KEY = "processor seconds"
_by_file: dict[str, float] = defaultdict(float)
_by_test: dict[str, float] = {}
_elsewhere: list[float] = []


def _used() -> float:
    """Seconds of this process, of the children that ended, and of those that did not: compilers stay for the next text."""
    return sum(os.times()[:4]) + sum(_of_process(child) for child in _children(os.getpid()))


def _of_process(pid: int) -> float:
    """Seconds of a process and its children."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:  # it ended meanwhile
        return 0.0
    return sum(map(int, fields[11:15])) / _TICKS + sum(_of_process(child) for child in _children(pid))


def _children(pid: int) -> list[int]:
    try:
        return [int(child) for file in Path(f"/proc/{pid}/task").glob("*/children") for child in file.read_text().split()]
    except OSError:
        return []


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    before = _used()
    result = yield
    _note(item.nodeid, _used() - before)
    return result


def _note(test: str, seconds: float) -> None:
    _by_test[test] = seconds
    _by_file[test.split("::")[0]] += seconds


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    output = getattr(session.config, "workeroutput", None)
    _elsewhere.append(_used() - sum(_by_test.values()))
    if output is not None:  # a worker of xdist: its controller prints
        output[_KEY] = {"tests": _by_test, "elsewhere": _elsewhere[0]}


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: object) -> None:
    found = getattr(node, "workeroutput", {}).get(_KEY)
    if found is None:
        return
    for test, seconds in found["tests"].items():
        _note(test, seconds)
    _elsewhere.append(found["elsewhere"])


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    if hasattr(terminalreporter.config, "workerinput"):
        return
    write = terminalreporter.write_line
    terminalreporter.section("processor seconds")
    for name, seconds in sorted(_by_file.items(), key=lambda each: -each[1]):
        write(f"{seconds:8.1f} {name}")
    write(f"{sum(_elsewhere):8.1f} imports, collection, and what else {len(_elsewhere)} processes did")
    write(f"{sum(_by_file.values()) + sum(_elsewhere):8.1f} all")
    write("slowest tests")
    for name, seconds in sorted(_by_test.items(), key=lambda each: -each[1])[:40]:
        write(f"{seconds:8.1f} {name}")

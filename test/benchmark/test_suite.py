"""The benchmark's own behaviour: what it writes, and that a peer that is missing, crashes or hangs costs one line."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import pytest
import torch
from benchmark.comparison import chart, networks, runs, tables
from benchmark.comparison.cases import CASES, select
from benchmark.comparison.limits import Limits
from benchmark.comparison.peers import OURS, PEERS, Peer, formats_of
from benchmark.comparison.process import FailureError, Process
from benchmark.comparison.runs import Options, Outcome, Row, Runner, _batches

from support import forked_python

_SUITE = Path(__file__).with_name("suite.py")


def test_run(tmp_path: Path) -> None:
    options = ["--cases", "softmax*", "--peers", "onednn", "--threads", "1", "--rounds", "1"]
    code = f"import runpy, sys; sys.argv[0] = {str(_SUITE)!r}; runpy.run_path(sys.argv[0], run_name='__main__')"
    done = forked_python.run(code, *options, "--output", str(tmp_path))
    assert done.returncode == 0, done.stdout + done.stderr
    assert "onednn         not applicable: no linear layer" in done.stdout
    (row,) = json.loads((tmp_path / "results.json").read_text())["rows"]
    statuses = {name: found["status"] for name, found in row["peers"].items()}
    assert statuses == {OURS: "timed", "onednn": "not applicable"}
    assert row["peers"][OURS]["ratio"] == 1
    assert row["peers"][OURS]["error"] < 1e-5
    ElementTree.parse(tmp_path / "chart.svg")


def _script(folder: Path, body: str) -> str:
    path = folder / "python"
    path.write_text(f"#!/bin/sh\n{body}\n")
    path.chmod(0o755)
    return str(path)


@pytest.mark.parametrize(
    ("body", "text"),
    [
        ("echo no memory >&2; exit 3", "process ended by exit code 3: no memory"),
        ("kill -SEGV $$", "process ended by SIGSEGV: "),
        ("sleep 60", "no result within 1 s"),
        ("""read line; echo '{"failed": "ValueError: a\\\\nb"}'; sleep 60""", "ValueError: a b"),
    ],
)
def test_failures(tmp_path: Path, body: str, text: str) -> None:
    process = Process(_script(tmp_path, body), "torch", 1, tmp_path)
    for _ in range(2):  # the process is started again
        with pytest.raises(FailureError) as error:
            process.ask("hello", 1)
        assert str(error.value).startswith(text.strip())
        process.close()


def test_workers_end_with_their_parent(tmp_path: Path) -> None:
    """Killed, it cannot end them, and they are stopped."""
    lines = f"""
from benchmark.comparison.process import Process
process = Process({sys.executable!r}, "iree", 1, {str(tmp_path)!r})
process.ask("hello", 60)
print(process._child.pid, flush=True)
import time; time.sleep(60)
"""
    folder = Path(__file__).parents[1]
    with subprocess.Popen([sys.executable, "-c", lines], stdout=subprocess.PIPE, text=True, cwd=folder) as parent:
        assert parent.stdout is not None
        worker = int(parent.stdout.readline())
        _wait_for(worker, "T")
        parent.kill()
        parent.wait()
    _wait_for(worker, "Z", "")


def _wait_for(process: int, *states: str) -> None:
    end = time.monotonic() + 10
    while _state(process) not in states:
        assert time.monotonic() < end, _state(process)
        time.sleep(0.01)


def _state(process: int) -> str:
    """The letter that Linux gives for what a process does; nothing for one that is gone."""
    path = Path(f"/proc/{process}/stat")
    return path.read_text().rsplit(")", 1)[1].split()[0] if path.exists() else ""


def test_not_applicable(tmp_path: Path) -> None:
    process = Process(_script(tmp_path, """read line; echo '{"not_applicable": "why"}'"""), "torch", 1, tmp_path)
    with pytest.raises(FailureError, match="why") as error:
        process.ask("hello", 10)
    assert not error.value.applicable
    process.close()


def test_processes_without_a_case_make_room(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The largest first, no more than it takes, and none that is to be timed."""
    python = _script(tmp_path, """while read line; do echo '{"ok": {"missing": [], "version": "1"}}'; done""")
    options = Options(python, python, 1, 1, 10, time.monotonic() + 60, tmp_path)
    sizes = {"torch": 3.0, "onednn": 2.0, "iree": 1.0, OURS: 5.0}
    with Runner(options, ["torch", "onednn", "iree"], [1]) as runner:
        processes = {name: process for (name, _), process in runner._processes.items()}
        runner._loaded.add(processes[OURS])
        alive = {name for name, process in processes.items() if process.ask("hello", 10)}
        assert all(process.gib > 0 for process in processes.values())
        named = {id(process): name for name, process in processes.items()}
        monkeypatch.setattr(Process, "gib", property(lambda p: sizes.get(named.get(id(p), ""), 0.0)))
        monkeypatch.setattr(Process, "close", lambda p: alive.discard(named.get(id(p), "")))
        monkeypatch.setattr(runs, "_free_gib", lambda: 11.0 - sum(sizes[name] for name in alive))
        assert runner._make_room(4.0) == 5.0
        assert alive == {OURS, "iree"}
        assert runner._make_room(100.0) == 6.0
        assert alive == {OURS}
        monkeypatch.undo()


def _rows() -> list[Row]:
    case = CASES["matmul-512"]
    facts = {"error": 1e-6, "load_s": 1.0, "note": ""}
    outcomes = {
        OURS: Outcome([1e-3, 2e-3, 3e-3], 1.0, facts=facts),
        "torch": Outcome([4e-3], 2.0, facts=facts),
        "relaxir-int8": Outcome([1e-3], 0.5, facts=facts),
        "relaxir-direct": Outcome([5e-4], 0.25, facts=facts),
        "iree": Outcome(status="failed", text="process ended by SIGSEGV"),
        "tvm": Outcome(status="not installed", text="no tvm"),
    }
    return [Row(case, threads, outcomes, {"flops": 1, "size": 1}, 1e-3, "compute") for threads in (1, 2)]


def test_tables() -> None:
    text = tables.row_text(_rows()[0])
    assert "iree           failed: process ended by SIGSEGV" in text
    assert "tvm            not installed: no tvm" in text
    assert "50.0% of limit" in text
    far = replace(_rows()[1], apart=[80e-9, 350e-9])
    assert "2 threads   limit     1.000 ms (compute)   cores 80 to 350 ns apart" in tables.row_text(far)
    assert "geometric mean of best peer / relaxir 2.00 over 1 cases" in tables.summary(_rows())
    assert "4.00 with int8 activations where weights are int8 or int4" in tables.summary(_rows())
    assert re.search(r"int8 activations +1 +1\.000 ms +100\.0% +4\.00 x  torch", tables.summary(_rows()))
    assert "8.00 with direct convolutions where there are others" in tables.summary(_rows())
    (row, _) = tables.as_json(_rows(), {})["rows"]
    assert row["peers"]["torch"]["median_s"] == 4e-3
    assert row["peers"]["iree"]["text"] == "process ended by SIGSEGV"


def test_chart() -> None:
    marks = [e.tag.rsplit("}")[-1] for e in ElementTree.fromstring(chart.svg(_rows(), "a < b")).iter()]
    assert marks.count("circle") == 1 + 2
    assert marks.count("polygon") == len(PEERS) - 1 + 2 * 3


def test_select() -> None:
    assert [case.name for case in select(["matmul-512", "llama-4*decode"], quick=True)] == ["matmul-512", "llama-4096x2-decode"]
    assert all(case.quick for case in select([], quick=True))
    assert len(select([], quick=False)) == len(CASES)
    with pytest.raises(ValueError, match="expected cases to match 'bort'"):
        select(["bort"], quick=False)


@pytest.mark.parametrize(("dtype", "group", "count"), [("int8", 64, 255), ("int4", 32, 16)])
def test_narrow_weights_are_exact(dtype: str, group: int, count: int) -> None:
    """Each peer quantizes them again: the largest of a group is -8 or 127 times a scale, the others whole multiples of it."""
    weight = torch.randn(4, 64, generator=torch.Generator().manual_seed(0))
    networks._round(weight, dtype)
    for values in weight.view(-1, group).double():
        steps = values / (values.abs().max() / (count // 2))
        assert (steps - steps.round()).abs().max() < 1e-4
        assert len(set(steps.round().tolist())) <= count
    again = weight.clone()
    networks._round(again, dtype)
    torch.testing.assert_close(again, weight, rtol=1e-6, atol=0)


def test_limits() -> None:
    limits = Limits(flops={"f32": 1e9, "bf16": 2e9}, bandwidth=1e9)
    assert limits.bound(10**12, 8) == (1000.0, "compute")
    assert limits.bound(10**12, 8, "bf16") == (500.0, "compute")
    assert limits.bound(10**12, 8, "int4") == (1000.0, "compute")
    assert limits.bound(10**9, 10**12) == (1000.0, "memory")
    assert limits.bound(0, 8) is None or limits.bound(0, 8) == (8e-9, "memory")


@pytest.mark.parametrize("name", ["json.nowhere", "nowhere", "nowhere.at.all"])
def test_missing(name: str) -> None:
    assert Peer("x", "x", ("json", name), "x").missing() == [name]


def test_batches_fit_memory() -> None:
    ours, *others = PEERS.values()
    assert _batches(CASES["matmul-512"], ours, others) == [others]
    batches = _batches(CASES["llama-4096x2-decode"], ours, others)
    assert [peer for batch in batches for peer in batch] == others
    assert len(batches) > 1


def test_files_are_written_for_who_reads_them() -> None:
    case = next(c for c in CASES.values() if c.file)
    assert formats_of(case, [PEERS[OURS]]) == ["file"]  # what before_after.py asks for, where no peer runs
    assert formats_of(CASES["matmul-512"], PEERS.values()) == ["onnx"]

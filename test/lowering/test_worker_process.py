"""Programs that run beside this process: whole answers, whatever happens while they are written."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from relaxir.lowering.worker_process import WorkerProcess
from support.stopped import stopped_often

#: Answers with as many letters as are asked for, and with its process.
PROGRAM = """
import json, os, sys
for line in sys.stdin:
    print(json.dumps({"process": os.getpid(), "text": "a" * json.loads(line)["count"]}), flush=True)
"""


@pytest.fixture
def process(tmp_path: Path) -> Iterator[WorkerProcess]:
    path = tmp_path / "program.py"
    path.write_text(PROGRAM)
    process = WorkerProcess(path)
    yield process
    process.stop()


@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_an_answer_is_whole_when_its_writer_is_stopped(
    process: WorkerProcess, monkeypatch: pytest.MonkeyPatch, unbuffered: str
):
    monkeypatch.setenv("PYTHONUNBUFFERED", unbuffered)
    with stopped_often(process.answer({"count": 1})["process"]):
        for _ in range(5):
            assert len(process.answer({"count": 1 << 24})["text"]) == 1 << 24

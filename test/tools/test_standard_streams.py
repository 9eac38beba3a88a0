"""What commands print is whole."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from support.stopped import stopped_often

PROGRAM = """
import sys
from pathlib import Path
from relaxir.tools.standard_streams import open_standard_streams
open_standard_streams()
for _ in range(5):
    {write}
"""


@pytest.mark.parametrize("unbuffered", ["", "1"])
@pytest.mark.parametrize("write", ["print('a' * (1 << 24))", "sys.stdout.buffer.write(b'a' * (1 << 24))"])
def test_output_is_whole_when_a_command_is_stopped(write: str, unbuffered: str):
    """With PYTHONUNBUFFERED, Python drops what is left when a signal interrupts its writing."""
    command = [sys.executable, "-c", PROGRAM.format(write=write)]
    environment = {**os.environ, "PYTHONUNBUFFERED": unbuffered}
    with subprocess.Popen(command, stdout=subprocess.PIPE, env=environment) as process, stopped_often(process.pid):
        assert process.stdout is not None
        assert process.stdout.read().count(b"a") == 5 << 24


@pytest.mark.parametrize("encoding", ["ascii", "latin-1", "utf-8"])
def test_names_that_an_encoding_lacks(encoding: str, tmp_path: Path) -> None:
    """They are shown by their numbers; what is a file is UTF-8 wherever it goes."""
    text = 'func.func @"\\C3\\BC\\E4\\B8\\AD"(%x: tensor<2xf32>) -> tensor<2xf32> { return %x : tensor<2xf32> }'
    (tmp_path / "m.mlir").write_text(text)
    command = [sys.executable, "-m", "relaxir"]
    environment = os.environ | {"PYTHONIOENCODING": encoding}
    done = subprocess.run([*command, "info", "m.mlir"], cwd=tmp_path, env=environment, capture_output=True, check=True)
    assert "ü中".encode(encoding, "backslashreplace") in done.stdout
    view = [*command, "view", "m.mlir", "-o", "-", "--format", "svg"]
    done = subprocess.run(view, cwd=tmp_path, env=environment, capture_output=True, check=True)
    assert "ü中" in done.stdout.decode()

"""What commands print is whole."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from support.stopped import stopped_often

PROGRAM = """
import sys
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

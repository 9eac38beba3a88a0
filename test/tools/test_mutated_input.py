"""relax-opt on hundreds of broken modules: it refuses or accepts, it never crashes and never shows a traceback."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

MUTATE = Path(__file__).resolve().parents[1] / "support" / "mutate.py"


@pytest.mark.skipif(not hasattr(os, "fork"), reason="forks to survive crashes")
@pytest.mark.parametrize("seed", [1, 2])
def test_mutated_modules(seed: int, tmp_path: Path) -> None:
    command = [sys.executable, str(MUTATE), str(seed), "100"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr

"""The lit tests' modules with tokens and lines changed, through relax-opt with random passes: it accepts or refuses."""

from __future__ import annotations

import contextlib
import io
import os
import tempfile

from relaxir.tools.relax_opt import run
from support.mutate import mutant

__all__ = ["check"]


def check(seed: int) -> str | None:
    """Raises AssertionError unless relax-opt ends with 0 or 1."""
    text, flags = mutant(seed)
    with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stderr(io.StringIO()):
        path = os.path.join(folder, "mutant.mlir")
        with open(path, "w", errors="surrogateescape") as file:
            file.write(text)
        code = run([path, "-o", os.devnull, *flags])
    assert code in (0, 1), f"exit code {code}"
    return "relax-opt refuses it" if code else None

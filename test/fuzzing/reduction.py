"""A seed that finds something, made a small module that finds the same: of the same exception, or the same signal."""

from __future__ import annotations

import re
import time
from pathlib import Path

from fuzzing.generators import Generator
from fuzzing.worker import Outcome, outcomes
from relaxir.debugging import reduced

__all__ = ["kind_of", "reduced_text", "write_reduced"]

#: What is small after so long is small enough.
REDUCE_SECONDS = 120.0
#: Where reduced modules go.
FOLDER = Path("build/fuzz")


def write_reduced(generator: Generator, find: Outcome) -> Path | None:
    """The file with the module that finds the same; None for a generator that makes none."""
    small = reduced_text(generator, find)
    if small is None:
        return None
    FOLDER.mkdir(parents=True, exist_ok=True)
    path = FOLDER / f"{generator.name}-{find.seed}.mlir"
    path.write_text(small, errors="surrogateescape")
    return path


def reduced_text(generator: Generator, find: Outcome) -> str | None:
    """The text of the module, or of what is none, reduced; None for a generator that makes none."""
    if generator.text is None or find.seed < 0:
        return None
    text = generator.text(find.seed)
    end = time.monotonic() + REDUCE_SECONDS

    def fails(candidate: str) -> bool:
        if time.monotonic() > end:
            return False
        (found,) = outcomes(lambda seed: generator.check_text(candidate, seed), [find.seed], generator.seconds)
        return found.kind == find.kind and kind_of(found) == kind_of(find)

    return reduced(text, fails) if fails(text) else text


def kind_of(find: Outcome) -> str:
    """What does not change when names and numbers do."""
    return re.sub(r"[\d.]+|'[^']*'|@\w+|%\w+|\[[^]]*\]", "#", find.reason)[:60]

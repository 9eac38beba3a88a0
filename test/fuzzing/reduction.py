"""A seed that finds something, made a small module that finds the same: of the same exception, or the same signal."""

from __future__ import annotations

import re
import time

from fuzzing.generators import Generator
from fuzzing.worker import Outcome, outcomes
from relaxir.dialect.context import new_context
from support.reduce_module import reduced

__all__ = ["reduced_text"]

#: What is small after so long is small enough.
REDUCE_SECONDS = 120.0


def reduced_text(generator: Generator, find: Outcome) -> str | None:
    """The text of the module, reduced if it is valid; None for a generator that makes none."""
    if generator.text is None or find.seed < 0:
        return None
    text = generator.text(find.seed)
    end = time.monotonic() + REDUCE_SECONDS

    def fails(candidate: str) -> bool:
        if time.monotonic() > end:
            return False
        (found,) = outcomes(lambda _: generator.check_text(candidate), [find.seed], generator.seconds)
        return found.kind == find.kind and _kind(found.reason) == _kind(find.reason)

    try:
        return reduced(text, fails, new_context()) if fails(text) else text
    except Exception:  # of parsing it, which may be what the find is about
        return text


def _kind(reason: str) -> str:
    """What does not change when names and numbers do."""
    return re.sub(r"[\d.]+|'[^']*'|@\w+|%\w+|\[[^]]*\]", "#", reason)[:60]

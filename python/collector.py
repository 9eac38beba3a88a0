"""Python's garbage collector, and where it has to wait."""

from __future__ import annotations

import contextlib
import gc
from collections.abc import Generator

__all__ = ["collector_paused"]


@contextlib.contextmanager
def collector_paused() -> Generator[None]:
    """Keeps Python's garbage collector from running, also as a decorator; what nobody refers to goes at once all the same.

    Compiling makes hundreds of thousands of objects that stay to its end: looking through them, and through those of torch and
    transformers, again and again takes a tenth of the time, and finds nothing. Threads may pause it side by side: it runs again
    when the first one has ended that found it running.
    """
    running = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if running:
            gc.enable()

"""A process that is stopped and goes on again and again, as by Ctrl-Z or a profiler: its system calls are cut short."""

from __future__ import annotations

import contextlib
import os
import signal
import threading
import time
from collections.abc import Iterator

__all__ = ["stopped_often"]


@contextlib.contextmanager
def stopped_often(process: int) -> Iterator[None]:
    """Stops a process about a thousand times a second for as long as the block runs."""
    is_over = threading.Event()

    def stop() -> None:
        while not is_over.is_set():
            with contextlib.suppress(ProcessLookupError):
                os.kill(process, signal.SIGSTOP)
                os.kill(process, signal.SIGCONT)
            time.sleep(0.001)

    thread = threading.Thread(target=stop)
    thread.start()
    try:
        yield
    finally:
        is_over.set()
        thread.join()

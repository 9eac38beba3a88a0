"""Calls of torch that warn of torch's own code, which whoever imports a model cannot change."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Generator
from contextlib import contextmanager

__all__ = ["without_logs", "without_warnings"]


@contextmanager
def without_warnings() -> Generator[None]:
    """Keeps what torch says of uses that are going to end, its own ones, from the user."""
    with warnings.catch_warnings():
        for category in (DeprecationWarning, FutureWarning):
            warnings.simplefilter("ignore", category)
        yield


@contextmanager
def without_logs() -> Generator[None]:
    """Keeps back what packages log while they are imported, of parts of theirs that are not for this machine: torchao's."""
    before = logging.root.manager.disable
    logging.disable(max(before, logging.WARNING))
    try:
        with without_warnings():
            yield
    finally:
        logging.disable(before)

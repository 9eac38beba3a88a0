"""Calls of torch that warn of torch's own code, which whoever imports a model cannot change."""

from __future__ import annotations

import warnings
from collections.abc import Generator
from contextlib import contextmanager

__all__ = ["without_warnings"]


@contextmanager
def without_warnings() -> Generator[None]:
    """Keeps what torch says of uses that are going to end, its own ones, from the user."""
    with warnings.catch_warnings():
        for category in (DeprecationWarning, FutureWarning):
            warnings.simplefilter("ignore", category)
        yield

"""Random modules as checked code: results as always, and no access outside of its buffer."""

from __future__ import annotations

from . import random_modules
from .random_modules import text

__all__ = ["check", "check_text", "text"]


def check(seed: int) -> str | None:
    """Compiles the module of a seed and compares every result of every entry; returns why it was refused, if it was."""
    return check_text(text(seed))


def check_text(text: str) -> str | None:
    """The same of a module."""
    return random_modules.check_text(text, checked=True)

"""What a file elsewhere is to those who read it: one attempt at a time, each with one way to fail.

A :class:`Transport` speaks with one kind of server. It does not try again and keeps nothing; :mod:`.remote_file` does.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

__all__ = ["HEAD_BYTES", "AttemptError", "MissingError", "Opened", "RefusedAccessError", "Transport"]

#: Bytes that opening reads at once: most headers are in there, so that a file takes one request.
HEAD_BYTES = 1 << 16


class AttemptError(Exception):
    """An attempt failed, and another one may not.

    Attributes:
        count: bytes that it had read by then.
        wait: seconds after which the server wants to be asked again, if it says so.
    """

    def __init__(self, reason: str, count: int = 0, wait: float | None = None):
        super().__init__(reason)
        self.count, self.wait = count, wait


class MissingError(Exception):
    """There is no such file."""


class RefusedAccessError(Exception):
    """An attempt failed, and others will."""


@dataclass(frozen=True)
class Opened:
    """A file as its server describes it.

    Attributes:
        size: its bytes.
        tag: changes when the content does (an ETag, a time); None where the server has none.
        head: its first bytes, up to ``HEAD_BYTES``.
    """

    size: int
    tag: str | None
    head: bytes


class Transport(Protocol):
    """One file of a server. Thread-safe; raises the exceptions above and no others."""

    def open(self) -> Opened:
        """What there is to know of the file."""
        ...

    def read(self, begin: int, view: memoryview, opened: Opened) -> int:
        """Fills memory with bytes from there on, one at least.

        Returns:
            How many; a server may give less than was asked for.
        """
        ...

    def whole(self, limit: int) -> bytes:
        """A small file's content; of one that has more than ``limit`` bytes, some more than these."""
        ...

    def check_unchanged(self, opened: Opened) -> None:
        """Raises RefusedAccessError when the file is known to be another one; where each answer tells, nothing is asked."""
        ...

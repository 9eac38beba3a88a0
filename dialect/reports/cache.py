"""The report's section on the cache of compiled code: there is one only when compiled code could not be kept."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from .report import Section

__all__ = ["CacheSection"]


@dataclass(frozen=True)
class CacheSection(Section):
    """Why compiled code was not kept for the next compilation.

    Attributes:
        directory: where it would have gone.
        reason: what the system says.
    """

    directory: str
    reason: str
    kind: ClassVar[str] = "cache"

    @property
    def subject(self) -> str:
        return self.directory

    def summary(self) -> list[str]:
        return [f"cache: compiled code was not kept in '{self.directory}': {self.reason}"]

    def lines(self) -> list[str]:
        return self.summary()

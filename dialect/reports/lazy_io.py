"""What ``relax-schedule-lazy-io`` made of a function: the bytes it holds at most, before and after. Imports no MLIR."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from .report import Section, bytes_text

__all__ = ["ScheduledIo"]


@dataclass(frozen=True)
class ScheduledIo(Section):
    """The peak of one function.

    Attributes:
        function: its name.
        before_bytes, peak_bytes: live bytes at most, in the order it had and in the one it has.
        bound_bytes: what no order gets below.
    """

    kind: ClassVar[str] = "schedule-lazy-io"
    function: str
    before_bytes: int
    peak_bytes: int
    bound_bytes: int

    @property
    def subject(self) -> str:
        return self.function

    def summary(self) -> list[str]:
        before = "" if self.before_bytes == self.peak_bytes else f", {bytes_text(self.before_bytes)} before"
        return [f"@{self.function}: holds {bytes_text(self.peak_bytes)} at most{before}"]

    def lines(self) -> list[str]:
        return [f"{self.summary()[0]}; no order takes less than {bytes_text(self.bound_bytes)}"]

"""What a pipeline did to the run-time work of a function: operations and bytes of one run, before and after; no MLIR."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

from .report import Section

__all__ = ["WorkSection"]


@dataclass(frozen=True)
class WorkSection(Section):
    """The work of one function that is called at run time; numbers, or expressions of its symbols (see :mod:`..analysis.work`).

    Attributes:
        function: its name.
        flops_before, flops_after: arithmetic operations.
        bytes_before, bytes_after: bytes that ops read and write when each runs on its own.
    """

    kind: ClassVar[str] = "work"
    function: str
    flops_before: str
    flops_after: str
    bytes_before: str
    bytes_after: str

    @property
    def subject(self) -> str:
        return self.function

    def following(self, earlier: Section) -> Section:
        """Of several pipelines, what was before the first one."""
        if not isinstance(earlier, WorkSection):
            return self
        return replace(self, flops_before=earlier.flops_before, bytes_before=earlier.bytes_before)

    def summary(self) -> list[str]:
        return self.lines()

    def lines(self) -> list[str]:
        operations = _change(self.flops_before, self.flops_after, "operations")
        return [f"@{self.function}: at run time {operations}, {_change(self.bytes_before, self.bytes_after, 'bytes')}"]


def _change(before: str, after: str, unit: str) -> str:
    return f"{after} {unit}" if before == after else f"{after} {unit} instead of {before}"

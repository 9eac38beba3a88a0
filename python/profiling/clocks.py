"""What times the kernels of a call: clocks in code that is made once more, or the events of a device's driver."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from ..dialect.reports.kernels import Kernel, KernelSection
from ..lowering.arena import ArenaPlan
from ..lowering.compiler import Compiler
from ..runtime.executable import Executable
from .limits import SpeedLimits

__all__ = ["Clocks", "Ran", "kernels_told"]


@dataclass(frozen=True)
class Ran:
    """The calls of one kernel at one place of an entry.

    Attributes:
        function: what the report calls it.
        count: how many.
        nanoseconds: all of them together.
        begin, end: of the first and of the last one, in nanoseconds after the call of the entry began.
    """

    function: str
    count: int
    nanoseconds: int
    begin: int
    end: int


class Clocks(ABC):
    """Times calls of an executable.

    Attributes:
        executable: what is called with clocks.
        compiler: what makes such code.
        kernels: what the report says, by entry.
        arenas: the memory of entries' intermediate results.
        other: the kind of what runs and is no kernel of the report.
        note: what readers have to know of the times.
    """

    executable: Executable
    compiler: Compiler
    kernels: Mapping[str, tuple[Kernel, ...]]
    arenas: tuple[ArenaPlan, ...] = ()
    other: str = "copy"
    note: str = ""

    @abstractmethod
    def timed(self, entry: str, call: Callable[[], Any]) -> tuple[float, list[Ran]]:
        """Seconds of a call of :attr:`executable`, and what ran in it, in order."""

    @abstractmethod
    def limits(self, known: SpeedLimits | None) -> SpeedLimits:
        """What the machine can do, measured now; the better of it and of what was found before."""

    def seconds(self, call: Callable[[], Any]) -> float:
        """Of a call without clocks."""
        begin = time.perf_counter()
        call()
        return time.perf_counter() - begin

    def rate(self, function: str) -> float:
        """What :meth:`SpeedLimits.least_seconds` takes of a kernel."""
        del function
        return 0.0


def kernels_told(executable: Executable) -> Iterator[tuple[str, Kernel]]:
    """What the executable's own report says of kernels, with the names of entries."""
    for section in executable.manifest.report.sections:
        if isinstance(section, KernelSection):
            yield from ((section.function, kernel) for kernel in section.kernels)

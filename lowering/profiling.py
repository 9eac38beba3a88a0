"""What a backend brings for profiles.

Of code that calls its kernels: the same with a clock around each, and loops that find what the machine can do. Of code that
launches kernels on a device, whose driver has clocks: what each kernel is a part of.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ..dialect.bindings import ir
from .arena import ArenaPlan
from .compiler import Compiler

__all__ = [
    "CLOCKS",
    "FIELDS",
    "ClockProfiling",
    "ClockedCall",
    "ClockedCode",
    "LaunchProfiling",
    "LaunchedCode",
    "LimitLoops",
    "Profiling",
]

#: The symbol of the clocks. Each is four 64-bit integers: how often its call was made, nanoseconds in it, when the first one
#: began and when the last one ended.
CLOCKS, FIELDS = "relaxir.clocks", 4


@dataclass(frozen=True)
class ClockedCall:
    """A call with a clock.

    Attributes:
        entry: the entry that it is in.
        function: what is called: a kernel, or a copy.
    """

    entry: str
    function: str


@dataclass(frozen=True)
class ClockedCode:
    """Code whose calls of kernels have clocks, in :data:`CLOCKS`.

    Attributes:
        code: an object or an archive of some.
        manifest: of the same module.
        calls: what each clock is around.
        arenas: the memory of entries' intermediate results.
    """

    code: bytes
    manifest: dict[str, Any]
    calls: tuple[ClockedCall, ...]
    arenas: tuple[ArenaPlan, ...] = ()


@dataclass(frozen=True)
class LimitLoops:
    """Two functions that do nothing but what a machine can do most of; their last argument says how much.

    Attributes:
        code: as of :class:`ClockedCode`.
        multiply: the name of the one that multiplies and adds in f32, a number of rounds; it writes ``lanes`` numbers.
        read: the name of the one that reads a number of bytes; it writes as much.
        lanes: numbers in a register.
        round_flops: operations of a round.
    """

    code: bytes
    multiply: str
    read: str
    lanes: int
    round_flops: int


@dataclass(frozen=True)
class LaunchedCode:
    """What kernels on a device are.

    Attributes:
        functions: the kernel function, as the report names it, that the launches of each kernel are of.
        rates: operations that a multiprocessor starts in a cycle, by kernel function.
        peak: what most operations of tensor cores on 16 bits would be, likewise.
        arenas: as of :class:`ClockedCode`.
    """

    functions: Mapping[str, str]
    rates: Mapping[str, float]
    peak: float
    arenas: tuple[ArenaPlan, ...] = ()


class Profiling(ABC):
    """Says what there is to profile on this machine."""

    @abstractmethod
    def __init__(self, here: Mapping[str, Any], manifest: Mapping[str, Any]):
        """Args: here: what the run time of this machine has (:meth:`Runtime.here`). manifest: the code's; may be empty."""

    @property
    @abstractmethod
    def compiler(self) -> Compiler:
        """What compiles for this machine."""


class LaunchProfiling(Profiling):
    """Of code that launches kernels."""

    @abstractmethod
    def launched(self, module: ir.Operation) -> LaunchedCode:
        """Lowers a module of relax functions, which is consumed. Raises RelaxError as ``compile_module``."""


class ClockProfiling(Profiling):
    """Of code that calls its kernels: makes it once more."""

    @abstractmethod
    def clocked(self, module: ir.Operation) -> ClockedCode:
        """Compiles a module of relax functions, which is consumed. Raises RelaxError as ``compile_module``."""

    @abstractmethod
    def limit_loops(self) -> LimitLoops:
        """What the machine's limits are measured by."""

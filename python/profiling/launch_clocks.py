"""Clocks of code that launches its kernels: events that the device's driver records around each launch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..dialect.reports.kernels import Kernel
from ..lowering.profiling import LaunchProfiling
from ..module import Module
from ..runtime.executable import Executable
from .clocks import Clocks, Ran, kernels_told
from .limits import DeviceLimits, SpeedLimits

__all__ = ["LaunchClocks"]

_NOTE = "emulated: times are instructions of threads, a picosecond each, which are no times of a GPU, and have no limit"


class LaunchClocks(Clocks):
    """Of code for a GPU, which is what is timed itself: launch by launch, not as a graph."""

    other = "launch"

    def __init__(self, executable: Executable, profiling: LaunchProfiling):
        """Asks the device. Raises RelaxError without one, or without the module that the code was lowered from."""
        self.executable, self.compiler = executable, profiling.compiler
        self._speed = executable.library.speed()
        self._is_emulated = not self._speed.bandwidth
        self.note = _NOTE if self._is_emulated else ""
        self._made = profiling.launched(Module.parse(executable.module_text).ir.operation)
        self.arenas = self._made.arenas
        kernels = dict[str, tuple[Kernel, ...]]()
        for entry, kernel in kernels_told(executable):
            kernels[entry] = (*kernels.get(entry, ()), kernel)
        self.kernels = kernels

    def timed(self, entry: str, call: Callable[[], Any]) -> tuple[float, list[Ran]]:
        with self.executable.library.launches() as launches:
            seconds = super().seconds(call)
        ran = list[Ran]()
        for launch in launches:
            begin, length = round(1e9 * launch.begin), round(1e9 * launch.seconds)
            ran.append(Ran(self._made.functions.get(launch.kernel, launch.kernel), 1, length, begin, begin + length))
        return (max((r.end for r in ran), default=0) / 1e9 if self._is_emulated else seconds), ran

    def seconds(self, call: Callable[[], Any]) -> float:
        return self.timed("", call)[0] if self._is_emulated else super().seconds(call)

    def limits(self, known: SpeedLimits | None) -> DeviceLimits:
        speed = self._speed if known is None else self.executable.library.speed()
        cycles = 0.0 if self._is_emulated else speed.clock * speed.multiprocessors
        found = DeviceLimits(speed.name, cycles, cycles * self._made.peak, speed.bandwidth, speed.l2_bytes)
        return known.best(found) if isinstance(known, DeviceLimits) else found

    def rate(self, function: str) -> float:
        return self._made.rates.get(function, 0.0)

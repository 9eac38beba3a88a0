"""Clocks of code that calls its kernels: it is made of its module once more, with a clock around each call.

:mod:`relaxir.lowering.profiling` has the code; what it counts in is read after each call.
"""

from __future__ import annotations

import ctypes
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from ..dialect.errors import RelaxError
from ..dialect.reports.kernels import KernelSection
from ..dialect.reports.report import collecting
from ..lowering.manifest import Manifest
from ..lowering.profiling import CLOCKS, FIELDS, ClockProfiling
from ..module import Module
from ..runtime.environment import num_threads
from ..runtime.executable import Executable
from ..runtime.library import Library
from ..runtime.threads import default_threads
from .clocks import Clocks, Ran, kernels_told
from .limits import MachineLimits, SpeedLimits, measured_limits

__all__ = ["CodeClocks"]


class CodeClocks(Clocks):
    """Of code for this machine's CPU."""

    def __init__(self, executable: Executable, profiling: ClockProfiling):
        """Makes the code. Raises RelaxError for code of another processor, or without the module that it was lowered from."""
        target, here = executable.manifest.target, profiling.compiler.spec
        if (here.cpu, here.features) != (target.cpu, target.features):
            raise RelaxError(f"expected code that was compiled for this machine ({here.cpu}), got code for {target.cpu}")
        with collecting() as told:
            made = profiling.clocked(Module.parse(executable.module_text).ir.operation)
        manifest = Manifest.of(made.manifest)
        if manifest.fingerprint != executable.manifest.fingerprint:
            raise RelaxError("expected the module that the code was lowered from, got another one")
        library = Library.from_object(made.code, (*manifest.symbols, CLOCKS), manifest.target.openmp)
        clocks = (ctypes.c_int64 * (FIELDS * len(made.calls))).from_address(library.addresses[CLOCKS])
        kernels = {s.function: s.kernels for s in told.sections if isinstance(s, KernelSection)}
        places = {(k.name, k.ops): k.where for _, k in kernels_told(executable)}  # the module's text has none
        self.kernels = {f: tuple(replace(k, where=places.get((k.name, k.ops), "")) for k in ks) for f, ks in kernels.items()}
        self.executable = Executable(made.manifest, library, externs=executable.externs)
        self.compiler, self.arenas = profiling.compiler, made.arenas
        self._calls, self._clocks = made.calls, np.ctypeslib.as_array(clocks).reshape(-1, FIELDS)
        self._loops, self._threads = profiling.limit_loops(), executable.threads or num_threads() or default_threads()

    def timed(self, entry: str, call: Callable[[], Any]) -> tuple[float, list[Ran]]:
        self._clocks[:] = 0
        began = time.monotonic_ns()
        seconds = self.seconds(call)
        counted = zip(self._calls, self._clocks.tolist(), strict=True)
        return seconds, [
            Ran(c.function, count, nanoseconds, begin - began, end - began)
            for c, (count, nanoseconds, begin, end) in counted
            if c.entry == entry and count
        ]

    def limits(self, known: SpeedLimits | None) -> MachineLimits:
        found = measured_limits(self._loops, self._threads)
        return known.best(found) if isinstance(known, MachineLimits) else found

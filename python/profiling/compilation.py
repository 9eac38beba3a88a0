"""Where the time of a compilation goes: its passes one by one, what builds kernels, LLVM."""

from __future__ import annotations

import time
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, field

from ..dialect.bindings import ir
from ..dialect.passes.manager import observing

__all__ = ["CompilationClock", "CompilationProfile", "clocked_compilation"]

#: The first pass of lowering, and what builds kernels.
_FIRST, _KERNELS = "relax-set-target", ("relax-lower-kernels", "relax-plan-")


@dataclass(frozen=True)
class CompilationProfile:
    """Where the time went.

    Attributes:
        seconds: all of it.
        stages: ``relax passes`` (missing where the module was through them before), ``kernels`` (their plans and their code),
            ``other lowering``, and ``LLVM`` (from its IR to machine code), with their seconds.
        passes: each, in order, with its seconds; without options.
    """

    seconds: float
    stages: tuple[tuple[str, float], ...]
    passes: tuple[tuple[str, float], ...]


@dataclass
class CompilationClock:
    """Counts while passes run.

    Attributes:
        began: when, of :func:`time.perf_counter`.
        passes: as of :class:`CompilationProfile`.
    """

    began: float = field(default_factory=time.perf_counter)
    passes: list[tuple[str, float]] = field(default_factory=list[tuple[str, float]])
    ended: float = 0.0
    _last: float = 0.0

    def after(self, element: str, op: ir.Operation) -> None:
        """Is called after each pass."""
        now = time.perf_counter()
        self.passes.append((element.partition("{")[0], now - (self._last or self.began)))
        self._last = now

    def profile(self) -> CompilationProfile:
        """What was counted until the end."""
        names = [name for name, _ in self.passes]
        first = next((i for i, name in enumerate(names) if name == _FIRST), 0)
        relax, lowering = self.passes[:first], self.passes[first:]
        kernels = sum(s for name, s in lowering if name.startswith(_KERNELS))
        stages = [
            *([("relax passes", sum(s for _, s in relax))] if relax else []),
            ("kernels", kernels),
            ("other lowering", sum(s for _, s in lowering) - kernels),
            ("LLVM", self.ended - (self._last or self.began)),
        ]
        return CompilationProfile(self.ended - self.began, tuple(stages), tuple(self.passes))


@contextmanager
def clocked_compilation() -> Generator[CompilationClock]:
    """A clock for the compilation in the ``with`` block, which comes out of no cache."""
    clock = CompilationClock()
    with observing(clock.after):
        yield clock
    clock.ended = time.perf_counter()

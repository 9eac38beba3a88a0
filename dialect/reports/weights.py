"""What ``relax-quantize-weights`` did to a function: the weights that are stored narrow, how exact, and those that are not.

Imports no MLIR.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from .report import Section, aligned, bytes_text, plural

__all__ = ["NarrowWeight", "QuantizedWeights", "WideWeight"]


@dataclass(frozen=True)
class NarrowWeight:
    """A weight of products that is stored as integers and scales.

    Attributes:
        sources: the raw weights it comes from.
        bits: of an integer.
        group: how many elements, one above the other in a column, share a scale.
        before: bytes of it as it was.
        after: bytes of the integers and the scales.
        axis: along which axis of the one raw weight the groups are, of which this is a transposition at most; None of what is
            computed from raw weights.
        scale: what numbers scales are, ``f32``, ``f16`` or ``bf16``; None in reports from before this was told.
    """

    sources: tuple[str, ...]
    bits: int
    group: int
    before: int
    after: int
    axis: int | None = None
    scale: str | None = None


@dataclass(frozen=True)
class WideWeight:
    """A weight of products that stays as it is, and why."""

    sources: tuple[str, ...]
    bytes: int
    reason: str


@dataclass(frozen=True)
class QuantizedWeights(Section):
    """What was decided for the weights that products of a function read.

    Attributes:
        function: its name.
        narrow: weights that are stored narrow.
        kept: weights that are not.
        bound: how far an element can be off, as a part of the largest of its group.
    """

    kind: ClassVar[str] = "quantize-weights"
    function: str
    narrow: tuple[NarrowWeight, ...]
    kept: tuple[WideWeight, ...]
    bound: float

    @property
    def subject(self) -> str:
        return self.function

    def following(self, earlier: Section) -> Section:
        """After a second run, what the first one made narrow is still so."""
        assert isinstance(earlier, QuantizedWeights)
        bound = max(earlier.bound, self.bound) if self.narrow else earlier.bound
        return QuantizedWeights(self.function, (*earlier.narrow, *self.narrow), self.kept, bound)

    def summary(self) -> list[str]:
        before, after = (sum(getattr(w, key) for w in self.narrow) for key in ("before", "after"))
        off = f"an element is off by at most 1/{1 / self.bound:.0f} of its group's largest"
        line = (
            f"@{self.function}: {plural(len(self.narrow), 'weight')} quantized, {bytes_text(before)} -> {bytes_text(after)}, "
        )
        return [line + off + (f"; {plural(len(self.kept), 'weight')} kept" if self.kept else "")]

    def lines(self) -> list[str]:
        rows = [
            ["/".join(w.sources), f"{bytes_text(w.before)} -> {bytes_text(w.after)}", f"{w.bits} bits in groups of {w.group}"]
            for w in self.narrow
        ]
        rows += [["/".join(w.sources), bytes_text(w.bytes), f"kept: {w.reason}"] for w in self.kept]
        return [*self.summary(), *(f"  {line}" for line in aligned(rows, right=[1]))]

"""What ``relax-shard`` did: which weights are cut into parts for ranks, and which each rank has whole. Imports no MLIR."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from .report import Section, aligned, bytes_text, plural

__all__ = ["CutWeight", "ShardedWeights", "UncutWeight"]


@dataclass(frozen=True)
class CutWeight:
    """A weight of which each rank has a part.

    Attributes:
        name: its name.
        axis: the dimension that is cut.
        pieces: how many pieces of that are cut on their own.
        before: bytes of the whole weight.
        after: bytes of a part.
    """

    name: str
    axis: int
    pieces: int
    before: int
    after: int


@dataclass(frozen=True)
class UncutWeight:
    """A matrix that each rank has whole, and why."""

    name: str
    bytes: int
    reason: str


@dataclass(frozen=True)
class ShardedWeights(Section):
    """What was decided for the weights of a module.

    Attributes:
        ranks: how many there are.
        cut: weights of which each rank has a part.
        whole: matrices of which it has not.
        state: names of the state that is cut.
        sums, gathers: how often the functions together call a sum over all ranks, and put parts together.
    """

    kind: ClassVar[str] = "shard"
    ranks: int
    cut: tuple[CutWeight, ...]
    whole: tuple[UncutWeight, ...]
    state: tuple[str, ...]
    sums: int
    gathers: int

    @property
    def subject(self) -> str:
        return "module"

    def summary(self) -> list[str]:
        before, after = (sum(getattr(w, key) for w in self.cut) for key in ("before", "after"))
        line = f"{self.ranks} ranks: {plural(len(self.cut), 'weight')} cut, {bytes_text(before)} -> {bytes_text(after)} each"
        line += f"; {plural(len(self.whole), 'other')} whole" if self.whole else ""
        return [f"{line}; {plural(self.sums, 'sum')} and {plural(self.gathers, 'gather')} over all ranks"]

    def lines(self) -> list[str]:
        rows = [
            [w.name, f"{bytes_text(w.before)} -> {bytes_text(w.after)}", f"axis {w.axis}" + _pieces(w.pieces)] for w in self.cut
        ]
        rows += [[w.name, bytes_text(w.bytes), f"whole: {w.reason}"] for w in self.whole]
        return [*self.summary(), *(f"  {line}" for line in aligned(rows, right=[1]))]


def _pieces(count: int) -> str:
    return f" in {count} pieces" if count > 1 else ""

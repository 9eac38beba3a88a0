"""What ``relax-share-packed-weights`` did to a function: the weights that are held once, or twice, and why. Imports no MLIR."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from .report import Section, bytes_text, plural

__all__ = ["HeldTwice", "SharedWeight", "SharedWeights"]


@dataclass(frozen=True)
class SharedWeight:
    """A weight of products of which rows are read packed.

    Attributes:
        sources: the raw weights it comes from.
        bytes: what a second copy would take.
    """

    sources: tuple[str, ...]
    bytes: int


@dataclass(frozen=True)
class HeldTwice:
    """A weight that is packed for products and held as it is for look-ups.

    Attributes:
        sources: the raw weights it comes from.
        bytes: what the second copy takes.
        reason: why.
    """

    sources: tuple[str, ...]
    bytes: int
    reason: str


@dataclass(frozen=True)
class SharedWeights(Section):
    """What was decided for the weights of a function that are both packed and looked up.

    Attributes:
        function: its name.
        shared: weights that are held packed alone.
        twice: weights that are held in both ways.
    """

    kind: ClassVar[str] = "share-packed-weights"
    function: str
    shared: tuple[SharedWeight, ...]
    twice: tuple[HeldTwice, ...]

    @property
    def subject(self) -> str:
        return self.function

    def following(self, earlier: Section) -> Section:
        """After a second run, what the first one shared is still shared."""
        assert isinstance(earlier, SharedWeights)
        return SharedWeights(self.function, (*earlier.shared, *self.shared), self.twice)

    def summary(self) -> list[str]:
        saved = sum(s.bytes for s in self.shared)
        line = f"@{self.function}: look-ups read {plural(len(self.shared), 'packed weight')}, {bytes_text(saved)} less"
        return [f"{line}; {plural(len(self.twice), 'weight')} held twice" if self.twice else line]

    def lines(self) -> list[str]:
        return [
            *(
                f"@{self.function}: look-ups read '{'+'.join(s.sources)}' packed, {bytes_text(s.bytes)} less"
                for s in self.shared
            ),
            *(
                f"@{self.function}: '{'+'.join(t.sources)}' is held twice, {bytes_text(t.bytes)}: {t.reason}"
                for t in self.twice
            ),
        ]

"""What ``relax-quantize-convolutions`` did to a function: convolutions of integers, and those that are not. Imports no MLIR."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from .report import Section, plural

__all__ = ["KeptConvolution", "QuantizedConvolutions"]


@dataclass(frozen=True)
class KeptConvolution:
    """A convolution of dequantized operands that stays one of floats, and why.

    Attributes:
        sources: the raw weights of its filters.
        reason: why.
    """

    sources: tuple[str, ...]
    reason: str


@dataclass(frozen=True)
class QuantizedConvolutions(Section):
    """What was decided for the convolutions of a function that read dequantized operands.

    Attributes:
        function: its name.
        integer: of convolutions of integers, the raw weights of their filters.
        kept: convolutions of floats.
    """

    kind: ClassVar[str] = "quantize-convolutions"
    function: str
    integer: tuple[tuple[str, ...], ...]
    kept: tuple[KeptConvolution, ...]

    @property
    def subject(self) -> str:
        return self.function

    def following(self, earlier: Section) -> Section:
        """After a second run, what the first one rewrote still is."""
        assert isinstance(earlier, QuantizedConvolutions)
        return QuantizedConvolutions(self.function, (*earlier.integer, *self.integer), self.kept)

    def summary(self) -> list[str]:
        line = f"@{self.function}: {plural(len(self.integer), 'convolution')} of integers"
        return [f"{line}; {len(self.kept)} of dequantized ones in floats" if self.kept else line]

    def lines(self) -> list[str]:
        return [
            *(f"@{self.function}: '{'+'.join(sources)}' convolves integers" for sources in self.integer),
            *(f"@{self.function}: '{'+'.join(c.sources)}' convolves floats: {c.reason}" for c in self.kept),
        ]

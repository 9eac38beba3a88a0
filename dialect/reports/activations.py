"""What ``relax-quantize-activations`` did to a function: the products of integers, and those that are not. Imports no MLIR."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from .report import Section, plural

__all__ = ["KeptProduct", "QuantizedActivations", "QuantizedProduct"]


@dataclass(frozen=True)
class QuantizedProduct:
    """A product whose rows are quantized when it is computed.

    Attributes:
        sources: the raw weights behind its weight.
        bits: of an integer of the weight.
        group: how many elements of a row, and of a column, share a scale.
    """

    sources: tuple[str, ...]
    bits: int
    group: int


@dataclass(frozen=True)
class KeptProduct:
    """A product with a quantized weight that stays one of floats, and why."""

    sources: tuple[str, ...]
    reason: str


@dataclass(frozen=True)
class QuantizedActivations(Section):
    """What was decided for the products of a function that read dequantized weights.

    Attributes:
        function: its name.
        integer: products of integers.
        kept: products of floats.
    """

    kind: ClassVar[str] = "quantize-activations"
    function: str
    integer: tuple[QuantizedProduct, ...]
    kept: tuple[KeptProduct, ...]

    @property
    def subject(self) -> str:
        return self.function

    def following(self, earlier: Section) -> Section:
        """After a second run, what the first one rewrote still is."""
        assert isinstance(earlier, QuantizedActivations)
        return QuantizedActivations(self.function, (*earlier.integer, *self.integer), self.kept)

    def summary(self) -> list[str]:
        line = f"@{self.function}: {plural(len(self.integer), 'product')} of int8 activations"
        return [f"{line}; {len(self.kept)} of float ones" if self.kept else line]

    def lines(self) -> list[str]:
        return [
            *(f"@{self.function}: '{'+'.join(p.sources)}' {p.bits} bits, groups of {p.group}" for p in self.integer),
            *(f"@{self.function}: '{'+'.join(p.sources)}' has float activations: {p.reason}" for p in self.kept),
        ]

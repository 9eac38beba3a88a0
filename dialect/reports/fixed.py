"""What a module has as numbers of the weights that it was imported with. Imports no MLIR."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from ..array_spec import ArraySpec
from .report import Section, plural

__all__ = ["FixedSection", "FixedWeight", "fixed_digest"]

# Hexadecimal digits of SHA-256.
_DIGITS = 16


def fixed_digest(array: np.ndarray[Any, Any]) -> str:
    """The dtype, the shape and a digest of the elements' bytes, in the order of this machine."""
    native = np.asarray(array, array.dtype.newbyteorder("="), order="C")
    return f"{ArraySpec.of(native)} {hashlib.sha256(native.tobytes()).hexdigest()[:_DIGITS]}"


@dataclass(frozen=True)
class FixedWeight:
    """A weight that is part of the code.

    Attributes:
        name: the weight's.
        digest: its dtype and shape, and a digest of its elements; preparation holds what it finds under the name to it.
    """

    name: str
    digest: str


@dataclass(frozen=True)
class FixedSection(Section):
    """Weights whose values the code was compiled with.

    Attributes:
        weights: by name.
    """

    kind: ClassVar[str] = "fixed-weights"
    weights: tuple[FixedWeight, ...]

    @property
    def subject(self) -> str:
        return "module"

    def summary(self) -> list[str]:
        return [f"{plural(len(self.weights), 'weight')} of the model as numbers in the code"]

    def lines(self) -> list[str]:
        return [*self.summary(), *(f"  {w.name}: {w.digest.split(' ')[0]}" for w in self.weights)]

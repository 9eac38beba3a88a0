"""How many bytes of arrays an evaluation holds, counted while it runs: the measurement behind ``relax.peak_bytes``.

While an op runs, its operands, its results and all values used later are held. Arguments of the function are held throughout,
those of functions it calls belong to their callers. Each value counts, also one that shares its array with another.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from ..bindings import ir
from ..struct_info import is_tensor

__all__ = ["HeldValues", "MemoryTracker"]


@dataclass
class MemoryTracker:
    """Bytes held now, and at most so far."""

    live: int = 0
    peak: int = 0

    def add(self, count: int) -> None:
        """Enters bytes; a negative number takes them out."""
        self.live += count
        self.peak = max(self.peak, self.live)


@dataclass
class HeldValues:
    """The values that one call of a function holds."""

    tracker: MemoryTracker
    sizes: dict[ir.Value, int] = field(default_factory=dict[ir.Value, int])

    def hold(self, values: Iterable[ir.Value | None], arrays: Sequence[Any]) -> None:
        """Enters values with their arrays; None for one that is not kept."""
        for value, array in zip(values, arrays, strict=True):
            if value is not None and is_tensor(value):
                self.sizes[value] = array.nbytes
                self.tracker.add(array.nbytes)

    def release(self, values: Iterable[ir.Value]) -> None:
        """Takes out those of the values that are held."""
        for value in values:
            self.tracker.add(-self.sizes.pop(value, 0))

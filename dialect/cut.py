"""How a tensor is cut into a part for each of several ranks. Imports no MLIR."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Cut"]


@dataclass(frozen=True)
class Cut:
    """How a tensor is cut into a part for each rank.

    Attributes:
        axis: the dimension, from 0 on.
        pieces: sizes of its consecutive pieces in the whole tensor; each is a multiple of the number of ranks.
    """

    axis: int
    pieces: tuple[int, ...]

    def whole(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        """The shape of the whole tensor, of that of a part."""
        return (*shape[: self.axis], sum(self.pieces), *shape[self.axis + 1 :])

    def ranges(self, rank: int, ranks: int) -> list[tuple[int, int]]:
        """Begin and end, along the axis, of what a rank has of the whole tensor, in order."""
        found: list[tuple[int, int]] = []
        start = 0
        for piece in self.pieces:
            size = piece // ranks
            found.append((start + rank * size, start + (rank + 1) * size))
            start += piece
        return found

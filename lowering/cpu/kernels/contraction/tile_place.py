"""What a tile of a contraction is told: where it is, which steps of k it sums, and what it fetches ahead."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from .....dialect.bindings import ir
from ....kernels.emit.linear_index import Size
from ....kernels.emit.memory import Point

__all__ = ["Column", "NextPanel", "Share", "Steps", "TilePlace"]

Column = tuple[ir.Value, ir.Value | None]
"""The first column of a vector of a tile, and the mask of the columns that exist when not all do."""


@dataclass(frozen=True)
class NextPanel:
    """What is read of the right operand after a panel: where the next one begins, and with which step of k."""

    column: ir.Value
    step: ir.Value


@dataclass(frozen=True)
class Share:
    """A tile among those that read the same panel: each fetches its share of what follows.

    Attributes:
        number: which tile it is, as an index value.
        of: how many shares there are, a power of two; 0 when it is the only tile, which fetches what it will read itself.
        following: what they fetch, where it is not the same steps of the next panel.
    """

    number: ir.Value
    of: int
    following: NextPanel | None = None


@dataclass(frozen=True)
class Steps:
    """Some steps of k: the first one, and how many."""

    first: ir.Value
    count: Size


@dataclass(frozen=True)
class TilePlace:
    """A tile: its rows, vectors of columns, share of what is fetched, and steps of k."""

    rows: Sequence[Point]
    columns: Sequence[Column]
    share: Share
    steps: Steps

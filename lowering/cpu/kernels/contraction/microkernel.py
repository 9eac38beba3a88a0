"""One register tile of a contraction: what its sums start from, the sums, and where they go."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from .....dialect.bindings import ir
from .epilogue import FetchedEpilogue
from .operand_loads import OperandLoads
from .staging import Stager
from .tile_place import TilePlace

__all__ = ["Microkernel", "Sums"]


class Sums(Protocol):
    """A way to sum the products of a tile."""

    def accumulate(self, place: TilePlace, start: Sequence[ir.Value]) -> list[ir.Value]:
        """Adds the products of the tile's steps of k to ``start``, a value for each row and column."""
        ...


class Microkernel:
    """Builds tiles of one contraction."""

    def __init__(self, loads: OperandLoads, epilogue: FetchedEpilogue):
        self.loads, self.epilogue = loads, epilogue

    def tile(self, sums: Sums, place: TilePlace) -> None:
        """Accumulates in registers, then stores, through the epilogue if there is one."""
        self._store(place, sums.accumulate(place, self._start(place)))

    def staging_tile(self, stager: Stager, place: TilePlace) -> Sums:
        """The same, which leaves the right factor on the stack: how the tiles that follow sum."""
        start, scratch = self._start(place), stager.scratch(place.steps)
        self._store(place, stager.in_tile(place, start, scratch))
        return stager.sums(place.steps, scratch)

    def done(self) -> None:
        """Behind all tiles."""

    def _start(self, place: TilePlace) -> list[ir.Value]:
        points = self.loads.column_points(place)
        start = [self.epilogue.initial(point) for point in points]
        if len(place.rows) > 1:
            self.epilogue.fetch(points, len(place.columns))
        return start

    def _store(self, place: TilePlace, totals: Sequence[ir.Value]) -> None:
        for point, total in zip(self.loads.column_points(place), totals, strict=True):
            self.epilogue.store(total, point)

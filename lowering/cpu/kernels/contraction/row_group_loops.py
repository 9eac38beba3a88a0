"""The loop over groups of rows around a contraction whose rows have a matrix each by their group, as experts' have.

::

    for group {   // threads begin once, and go through all groups
      rows = those in front of ends[group], from where the group before ends
      if rows > 0 { all columns of these, as those of any product, of which threads share parts }
    }
    for rows behind the last group { out = epilogue(0) }

The matrix of a group without rows is not read. How many rows one has, data says: what a plan does by their number is decided
when code runs.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from .....dialect.bindings import ir
from ....kernels.emit.emitter import Emitter, LoopWork
from ....kernels.emit.group_ends import GroupEnds
from ....kernels.emit.linear_index import Size
from ....kernels.emit.memory import Memory, Point
from ....kernels.structure.row_groups import FIRST_ROW, ROWS_OF_GROUP, GroupedContraction
from .microkernel import Microkernel
from .tile_place import Column, Share, Steps, TilePlace
from .tiles import Tiles

__all__ = ["RowGroupLoops"]


class _NoProducts:
    """Sums of nothing: rows behind the last group."""

    def __init__(self, emitter: Emitter, width: int):
        self.emitter, self.width = emitter, width

    def accumulate(self, place: TilePlace, start: Sequence[ir.Value]) -> list[ir.Value]:
        """What sums start from."""
        del place
        return [self.emitter.broadcast(value, self.width) for value in start]


@dataclass(frozen=True)
class RowGroupLoops:
    """Builds this loop for one contraction."""

    contraction: GroupedContraction
    emitter: Emitter
    memory: Memory

    def build(
        self,
        microkernel: Microkernel,
        tiles: Tiles,
        sizes: set[Size],
        inner: Callable[[Point], None],
        work: LoopWork | None,
    ) -> None:
        """All groups.

        Args:
            microkernel, tiles: of the contraction.
            sizes: that code for a group needs.
            inner: builds what is done of a group.
            work: of all groups, where threads share it in loops inside of a group, and nothing else; else None.
        """
        em, groups, one = self.emitter, self.contraction.groups, self.emitter.number(1)
        rows = one if groups.rows is None else self.memory.size(groups.rows)
        ends = GroupEnds(em, self.memory, groups, rows)

        def group(number: ir.Value) -> None:
            begin, end = ends.first_row(number), ends.end(number)
            place = Point() if groups.dim is None else Point().at(groups.dim, number)

            def some() -> None:
                if groups.rows is not None:
                    self.memory.bind(ROWS_OF_GROUP, em.sub(end, begin))
                self.memory.prepare(sizes)
                inner(place.at(FIRST_ROW, begin))

            em.only_when(em.compare("sgt", end, begin), some)

        def every() -> None:
            em.each(em.number(0), em.number(groups.count), 1, group)

        if work is None:
            every()
        else:
            em.team(every, work)
        last = ends.end(em.number(groups.count - 1))
        em.each(last, rows, 1, lambda row: self._empty(microkernel, tiles, row))

    def _empty(self, microkernel: Microkernel, tiles: Tiles, row: ir.Value) -> None:
        """A row of no group."""
        em, contraction = self.emitter, self.contraction
        columns = contraction.nest.extents[contraction.n].static
        assert columns is not None  # of all groups together, and there are so many
        point = Point().at(FIRST_ROW, row)
        point = point if contraction.m is None else point.at(contraction.m, em.number(0))
        nothing = _NoProducts(em, microkernel.loads.width)

        def panel(found: Sequence[Column]) -> None:
            place = TilePlace([point], found, Share(em.number(0), 0), Steps(em.number(0), Size.of(0)))
            Microkernel.tile(microkernel, nothing, place)

        whole = columns // tiles.panel * tiles.panel
        em.each(em.number(0), em.number(whole), tiles.panel, lambda n: panel(tiles.columns(n)))
        if columns > whole:
            panel(tiles.columns(em.number(whole), columns - whole))

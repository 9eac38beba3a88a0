"""The search for a row's group, or a tile's: where groups end, data says, and no host waits for it."""

from __future__ import annotations

from collections.abc import Callable

from .....dialect.bindings import ir
from ....kernels.emit.group_ends import GroupEnds

__all__ = ["GroupSearch"]


class GroupSearch(GroupEnds):
    """Builds the search for a group, for one thread; all of a block look for the same one."""

    def end_row(self, group: ir.Value) -> ir.Value:
        """The row behind the last one of a group; of the group behind the last, behind all rows."""
        em = self.em
        end = self.end(self.known(group))
        return em.op("arith.select", [self.is_group(group), end, self.rows], em.index)

    def is_group(self, group: ir.Value) -> ir.Value:
        """Whether it is not the one behind the last."""
        return self.em.compare("ult", group, self.em.number(self.groups.count))

    def known(self, group: ir.Value) -> ir.Value:
        """The group, or the last one."""
        return self.em.op("arith.minui", [group, self.em.number(self.groups.count - 1)], self.em.index)

    def last(self, begins: Callable[[ir.Value, ir.Value], ir.Value]) -> ir.Value:
        """The last group that begins early enough, as ``begins`` says of a group and its first row; it does of group 0."""
        em, found = self.em, self.em.number(0)
        for bit in reversed(range(self.groups.count.bit_length())):
            candidate = em.add(found, em.number(1 << bit))
            exists = em.compare("ule", candidate, em.number(self.groups.count))
            first = self.end(self.known(em.sub(candidate, em.number(1))))
            fits = em.op("arith.andi", [exists, begins(candidate, first)], em.i1)
            found = em.op("arith.select", [fits, candidate, found], em.index)
        return found

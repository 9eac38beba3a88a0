"""Where the rows of groups begin and end, read from memory when code runs."""

from __future__ import annotations

from ....dialect.bindings import ir
from ..structure.row_groups import RowGroups
from .emitter import Emitter
from .memory import Memory, Point

__all__ = ["GroupEnds"]


class GroupEnds:
    """Reads the ends of groups. Whatever they are, no row is beyond those that exist."""

    def __init__(self, em: Emitter, memory: Memory, groups: RowGroups, rows: ir.Value):
        """Reads nothing yet.

        Args:
            em: the kernel's emitter.
            memory: the kernel's.
            groups: them.
            rows: how many there are of all groups and behind them; ends beyond are taken to be there.
        """
        self.em, self.memory, self.groups, self.rows = em, memory, groups, rows

    def first_row(self, group: ir.Value) -> ir.Value:
        """The first row of a group, of the one behind the last, too."""
        em = self.em
        before = self.end(em.sub(em.op("arith.maxui", [group, em.number(1)], em.index), em.number(1)))
        return em.op("arith.select", [em.compare("eq", group, em.number(0)), em.number(0), before], em.index)

    def end(self, group: ir.Value) -> ir.Value:
        """The row behind the last one of a group."""
        em, operand, dim = self.em, self.groups.ends, self.groups.dim
        assert operand.buffer is not None
        end = self.memory.load(operand.buffer, operand.offset, Point({} if dim is None else {dim: group}))
        end = em.op("arith.index_cast", [end], em.index)
        end = em.op("arith.maxsi", [end, em.number(0)], em.index)
        return em.op("arith.minsi", [end, self.rows], em.index)

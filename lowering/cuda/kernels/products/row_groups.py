"""Products of rows in groups, each with the matrix of its group: what a kernel computes of such a contraction, for which rows.

As linalg writes it, all groups are summed, and a row counts as zeros in others than its own (:data:`ROW_GROUPS`). Here a group
is what fixes a place in the right factor, as an index of a batch does, and the left factor is the rows as they are. Where
groups end, data says: kernels look for a row's group, or a tile's, by a binary search, and no host waits for it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from .....dialect.bindings import ir
from .....dialect.errors import RelaxError
from ....kernels.emit.buffers import Buffers
from ....kernels.emit.emitter import Emitter
from ....kernels.emit.memory import Memory, Point
from ....kernels.structure.factor import Factor
from ....kernels.structure.match import Contraction, match_contraction
from ....kernels.structure.nest import Operand
from ....marks import ROW_GROUPS

__all__ = ["GroupSearch", "GroupedContraction", "RowGroups", "match_product", "match_rows"]


@dataclass(frozen=True)
class RowGroups:
    """Groups of rows.

    Attributes:
        dim: the loop dimension of groups; None of a single one.
        ends: for each group the row behind its last one.
        count: how many groups there are.
    """

    dim: int | None
    ends: Operand
    count: int


@dataclass(frozen=True)
class GroupedContraction(Contraction):
    """``C[m, n] += left[m, k] * right[group of m, k, n]``; a group is in ``batch``, as the result has no dimension of it."""

    groups: RowGroups


def match_product(operation: ir.Operation, memory: Buffers) -> Contraction | None:
    """A contraction as kernels of tiles compute it, None when it is no sum of products that can be tiled.

    Raises RelaxError at an operation whose marks do not fit it.
    """
    found = match_contraction(operation, memory)
    return found if found is None or ROW_GROUPS not in operation.attributes else _grouped(found)


def match_rows(operation: ir.Operation, memory: Buffers) -> Contraction | None:
    """The same as kernels of few rows do, to which rows in groups are so many products of one row."""
    found = match_product(operation, memory)
    if not isinstance(found, GroupedContraction):
        return found
    rows = tuple(d for d in found.nest.extents if d in {*found.shared, found.m})
    return _with(found, found.left.value, found.groups, m=None, shared=(), batch=rows)


def _grouped(found: Contraction) -> GroupedContraction | None:
    """None of a single column, whose rows are what it reads a part of, and of single steps of k, which are no sum.

    Raises RelaxError where rows are not masked by groups.
    """
    if _mask_of(found.left) is None and _mask_of(found.right) is not None:
        return None
    mask, operation = _mask_of(found.left), found.nest.operation
    ends = [] if mask is None else [o for o in found.left.part(mask[0]).operands if o.buffer is not None]
    if mask is None or len(ends) != 1 or not isinstance(ends[0].argument.type, ir.IntegerType):
        raise RelaxError(f"expected a left factor that {ROW_GROUPS} masks by ends of groups", operation.location)
    count, dims = ir.MemRefType(ends[0].value.type).shape[0], ends[0].offset.dims()
    if dims != set(found.outer) or found.batch or (not dims and count != 1):
        return None
    groups = RowGroups(next(iter(dims), None), ends[0], count)
    return _with(found, mask[1], groups, m=found.m, shared=found.shared, batch=tuple(dims))


def _mask_of(factor: Factor) -> tuple[ir.Value, ir.Value] | None:
    """The mask of a factor, and what it is where that holds; None of one without."""
    owner = factor.value.owner
    return None if isinstance(owner, ir.Block) or owner.name != "arith.select" else (owner.operands[0], owner.operands[1])


def _with(
    found: Contraction, left: ir.Value, groups: RowGroups, *, m: int | None, shared: tuple[int, ...], batch: tuple[int, ...]
) -> GroupedContraction:
    return GroupedContraction(found.nest, batch, shared, m, found.n, (), found.k, found.left.part(left), found.right, groups)


class GroupSearch:
    """Builds the search for a group, for one thread; all of a block look for the same one."""

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
        before = self._end(em.sub(em.op("arith.maxui", [group, em.number(1)], em.index), em.number(1)))
        return em.op("arith.select", [em.compare("eq", group, em.number(0)), em.number(0), before], em.index)

    def end_row(self, group: ir.Value) -> ir.Value:
        """The row behind the last one of a group; of the group behind the last, behind all rows."""
        em = self.em
        end = self._end(self.known(group))
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
            first = self._end(self.known(em.sub(candidate, em.number(1))))
            fits = em.op("arith.andi", [exists, begins(candidate, first)], em.i1)
            found = em.op("arith.select", [fits, candidate, found], em.index)
        return found

    def _end(self, group: ir.Value) -> ir.Value:
        """Where a group ends, none beyond all rows."""
        em, operand, dim = self.em, self.groups.ends, self.groups.dim
        assert operand.buffer is not None
        end = self.memory.load(operand.buffer, operand.offset, Point({} if dim is None else {dim: group}))
        end = em.op("arith.index_cast", [end], em.index)
        end = em.op("arith.maxsi", [end, em.number(0)], em.index)
        return em.op("arith.minsi", [end, self.rows], em.index)

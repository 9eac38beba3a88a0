"""Which tile of the result has which number: groups of rows of tiles, each column by column, one product after the other."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from .....dialect.bindings import ir
from ....kernels.emit.emitter import Emitter
from ....kernels.emit.linear_index import Size
from ....kernels.emit.memory import Memory
from ....kernels.structure.match import Contraction
from ....kernels.structure.row_groups import GroupedContraction
from .group_search import GroupSearch
from .tensor_maps import dims_of_rows
from .tile_plan import ProductTile
from .warp_code import WarpCode

__all__ = ["RowsOfTile", "TileOrder", "count_of_tiles", "delinearized"]


@dataclass(frozen=True)
class RowsOfTile:
    """Rows of the result that a block computes, or columns.

    Attributes:
        first: the first one, as an index.
        count: how many the result has; static: the same, if it is known.
        fixed: loop variables that all of them have alike.
        dims: loop dimensions that they are made of, with their sizes, the innermost last.
        is_summed: whether any of them have a sum, of rows in groups: those behind the last group have none; None: all have.
    """

    first: ir.Value
    count: ir.Value
    static: int | None
    fixed: Mapping[int, ir.Value]
    dims: Sequence[tuple[int, ir.Value]]
    is_summed: ir.Value | None = None

    def variables(self, em: Emitter, row: ir.Value) -> dict[int, ir.Value]:
        """The loop variables of a row that exists."""
        return {**self.fixed, **delinearized(em, row, self.dims)}


def delinearized(em: Emitter, number: ir.Value, dims: Sequence[tuple[int, ir.Value]]) -> dict[int, ir.Value]:
    """The indices of an element by its number, where the last dimension is innermost."""
    found = dict[int, ir.Value]()
    for dim, extent in reversed(dims[1:]):
        found[dim] = em.op("arith.remui", [number, extent], em.index)
        number = em.op("arith.divui", [number, extent], em.index)
    return found | {dim: number for dim, _ in dims[:1]}


class TileOrder:
    """The tiles of one product, or of several, or of rows in groups.

    A tile has rows of one group. Those of group g begin with number ``(first row of g) div (rows of a tile) + g``, which leaves
    room for as many as the groups before it can need; numbers between groups are tiles without rows.

    Attributes:
        count: how many there are in all, in 32 bits.
    """

    def __init__(self, code: WarpCode, memory: Memory, contraction: Contraction, tile: ProductTile, raster: int):
        self.code, self.em, self.tile, self.raster = code, code.em, tile, raster
        extents, self.n = contraction.nest.extents, contraction.n
        rows = dims_of_rows(contraction)
        self._static = _product([extents[d] for d in rows]).static, extents[self.n].static
        sizes = {d: memory.size(size) for d, size in extents.items()}
        self._groups = contraction.groups if isinstance(contraction, GroupedContraction) else None
        batch = () if self._groups is not None else contraction.batch
        self._dims, self._batch = ([(d, sizes[d]) for d in dims] for dims in (rows, batch))
        self._rows, self._columns = memory.size(_product([extents[d] for d in rows])), sizes[self.n]
        self._down, self._across = self._tiles(self._rows, tile.rows), self._tiles(self._columns, tile.columns)
        if self._groups is not None:
            self._search = GroupSearch(code.em, memory, self._groups, self._rows)
            self._down = code.add(code.divide(code.narrow(self._rows), tile.rows)[0], self._groups.count + 1)
        self._each = code.mul(self._down, self._across)
        batches = memory.size(_product([extents[d] for d in batch]))
        self.count = code.mul(self._each, code.narrow(batches)) if batch else self._each

    def place(self, number: ir.Value) -> tuple[RowsOfTile, RowsOfTile]:
        """Rows and columns of a tile by its number, in 32 bits."""
        em, code = self.em, self.code
        which, number = self._divided(number, self._each) if self._batch else (code.number(0), number)
        group, inside = self._divided(number, code.mul(self._across, self.raster))
        first = code.mul(group, self.raster)
        left = em.op("arith.subi", [self._down, first], em.i32)
        column, row = self._divided(inside, em.op("arith.minui", [left, code.number(self.raster)], em.i32))
        fixed = delinearized(em, code.index(which), self._batch)
        tile = code.add(first, row)
        down = code.index(code.mul(tile, self.tile.rows))
        across = code.index(code.mul(column, self.tile.columns))
        rows = RowsOfTile(down, self._rows, self._static[0], fixed, self._dims)
        rows = rows if self._groups is None else self._in_group(code.index(tile))
        return rows, RowsOfTile(across, self._columns, self._static[1], rows.fixed, [(self.n, self._columns)])

    def _in_group(self, tile: ir.Value) -> RowsOfTile:
        """The rows of a tile by its number, which are of one group."""
        em, search = self.em, self._search
        assert self._groups is not None
        size = em.number(self.tile.rows)

        def start(group: ir.Value, first: ir.Value) -> ir.Value:
            return em.add(em.op("arith.divui", [first, size], em.index), group)

        group = search.last(lambda group, first: em.compare("ule", start(group, first), tile))
        begin, end = search.first_row(group), search.end_row(group)
        first = em.add(begin, em.mul(em.sub(tile, start(group, begin)), size))
        is_summed = em.op("arith.andi", [search.is_group(group), em.compare("ult", first, end)], em.i1)
        fixed = {} if self._groups.dim is None else {self._groups.dim: search.known(group)}
        return RowsOfTile(first, end, None, fixed, self._dims, is_summed)

    def _tiles(self, count: ir.Value, size: int) -> ir.Value:
        """How many tiles of so many, a power of two, cover a count."""
        code = self.code
        return code.divide(code.narrow(self.em.add(count, self.em.number(size - 1))), size)[0]

    def _divided(self, number: ir.Value, by: ir.Value) -> tuple[ir.Value, ir.Value]:
        em = self.em
        return em.op("arith.divui", [number, by], em.i32), em.op("arith.remui", [number, by], em.i32)


def _product(sizes: Sequence[Size]) -> Size:
    total = Size.of(1)
    for size in sizes:
        total = total * size
    return total


def count_of_tiles(memory: Memory, contraction: Contraction, tile: ProductTile) -> ir.Value:
    """How many tiles there are in all, as an index, computed by the host."""
    em, extents, total = memory.emitter, contraction.nest.extents, memory.emitter.number(1)
    sides = (dims_of_rows(contraction), tile.rows), ((contraction.n,), tile.columns), (contraction.batch, 1)
    if isinstance(contraction, GroupedContraction):
        rows = memory.size(_product([extents[d] for d in dims_of_rows(contraction)]))
        whole = em.op("arith.divui", [rows, em.number(tile.rows)], em.index)
        total, sides = em.add(whole, em.number(contraction.groups.count + 1)), sides[1:2]
    for dims, size in sides:
        above = em.add(memory.size(_product([extents[d] for d in dims])), em.number(size - 1))
        total = em.mul(total, em.op("arith.divui", [above, em.number(size)], em.index))
    return total

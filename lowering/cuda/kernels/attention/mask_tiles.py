"""Which tiles of a mask show something: a byte for each, by a kernel in front of attention's, which skips what is hidden.

The bytes are ``[batches and heads of keys that the mask tells apart][tiles of rows][tiles of keys]``, each of them
:data:`HIDDEN`, :data:`PARTLY` or :data:`WHOLE`. So a mask that all heads have is read once for them here, and attention reads
it in tiles alone that it changes.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from .....dialect.bindings import ir
from ....kernels.emit.emitter import Emitter
from ....kernels.emit.linear_index import Size
from ....kernels.structure.attention import MatchedAttention
from ..device_code import DeviceCode
from ..device_memory import DeviceMemory
from ..products.warp_code import WarpCode
from .mask import MaskCode, is_same_for_rows
from .places import AttentionPlaces
from .plan import WARP, AttentionTile

__all__ = ["HIDDEN", "PARTLY", "THREADS", "WHOLE", "MaskTiles", "build_mask_tiles"]

#: No row of a tile sees any key; some see some; all see all, and scores stay what they are.
HIDDEN, PARTLY, WHOLE = 0, 1, 2
#: Of a block, which looks at one tile.
THREADS = 256

_WARPS = THREADS // WARP
# Elements that a thread has asked for before it looks at one. Not measured: 8 of 256 threads are 2 KiB of bytes on their way.
_AHEAD = 8


@dataclass(frozen=True)
class MaskTiles:
    """The tiles of one attention's mask.

    Attributes:
        attention: read for the host or for a kernel.
        tile: attention's.
    """

    attention: MatchedAttention
    tile: AttentionTile

    @property
    def along(self) -> tuple[int, ...]:
        """The batches and heads of keys that have masks of their own, the one that changes fastest first."""
        attention, dims = self.attention, self.attention.dims
        assert attention.mask is not None
        read = attention.mask.offset.dims()
        wanted = [d for d in (dims.group, *range(dims.batch - 1, -1, -1)) if (dims.head if d == dims.group else d) in read]
        return tuple(d for d in wanted if attention.extents[dims.head if d == dims.group else d].static != 1)

    def masks(self, em: Emitter, size: Callable[[Size], ir.Value]) -> ir.Value:
        """How many masks there are."""
        total = em.number(1)
        for dim in self.along:
            total = em.mul(total, size(self.attention.extents[dim]))
        return total

    def row_tiles(self, em: Emitter, together: ir.Value) -> ir.Value:
        """Tiles of the rows of heads that share keys; one where these have one mask."""
        return em.number(1) if is_same_for_rows(self.attention) else _tiles(em, together, self.tile.rows)

    def key_tiles(self, em: Emitter, size: Callable[[Size], ir.Value]) -> ir.Value:
        return _tiles(em, size(self.attention.extents[self.attention.dims.key]), self.tile.keys)

    def first(self, places: AttentionPlaces, row_tile: ir.Value) -> ir.Value:
        """The number of the byte of a block's first keys, for a tile of its rows."""
        em, size, number = places.em, places.memory.size, places.em.number(0)
        for dim in self.along[::-1]:
            number = em.add(em.mul(number, size(self.attention.extents[dim])), places.at[dim])
        if not is_same_for_rows(self.attention):
            number = em.add(em.mul(number, self.row_tiles(em, places.together)), row_tile)
        return em.mul(number, self.key_tiles(em, size))


def _tiles(em: Emitter, count: ir.Value, by: int) -> ir.Value:
    return em.op("arith.divui", [em.add(count, em.number(by - 1)), em.number(by)], em.index)


def build_mask_tiles(device: DeviceCode, memory: DeviceMemory, tiles: MaskTiles, together: ir.Value, found: ir.Value) -> None:
    """Builds the kernel, a block of which looks at one tile.

    Args:
        device: where to build.
        memory: the kernel's.
        tiles: read with it.
        together: rows of heads that share keys.
        found: the address of the first byte.
    """
    em, code = device.em, WarpCode(device.em, device.shared_pointer(4 * _WARPS))
    row_tiles, key_tiles = tiles.row_tiles(em, together), tiles.key_tiles(em, memory.size)
    places = AttentionPlaces(memory, tiles.attention, device.block(), em.mul(row_tiles, key_tiles), tiles.along)
    row_tile, key_tile = places.split(places.part, key_tiles)
    seen = _Looking(code, places, tiles, device.thread()).of_thread(row_tile, key_tile)
    _write(code, code.narrow(device.thread()), seen, em.add(found, device.block()))


class _Looking:
    """Builds what a thread sees of a tile: a column of it, in every so many rows."""

    def __init__(self, code: WarpCode, places: AttentionPlaces, tiles: MaskTiles, thread: ir.Value):
        attention = tiles.attention
        assert attention.mask is not None
        self.em, self.places, self.tiles, self.operand = code.em, places, tiles, attention.mask
        self.mask = MaskCode(code, places, attention.mask, [])
        row, key = code.divide(code.narrow(thread), tiles.tile.keys)
        self.row, self.key = code.index(row), code.index(key)

    def of_thread(self, row_tile: ir.Value, key_tile: ir.Value) -> list[ir.Value]:
        """Whether it sees any element, and whether all that it sees change nothing; what does not exist is its neighbour."""
        em, places, tile = self.em, self.places, self.tiles.tile
        last = em.sub(places.keys, em.number(1))
        key = places.least(em.add(em.mul(key_tile, em.number(tile.keys)), self.key), last)
        self.moved = em.mul(key, places.step(self.operand, self.tiles.attention.dims.key))
        start, none = [em.constant(False, em.i1), em.constant(True, em.i1)], em.number(0)
        if is_same_for_rows(self.tiles.attention):
            return self._with(start, [none])
        first, step = em.add(em.mul(row_tile, em.number(tile.rows)), self.row), THREADS // tile.keys

        def some(row: ir.Value, seen: list[ir.Value]) -> list[ir.Value]:
            return self._with(seen, [em.add(em.add(first, row), em.number(i * step)) for i in range(_AHEAD)])

        return em.loop(none, em.number(tile.rows), _AHEAD * step, some, start)

    def _with(self, seen: list[ir.Value], rows: list[ir.Value]) -> list[ir.Value]:
        em, places, last = self.em, self.places, self.places.last_row()
        there = [places.address(self.operand, places.row(places.least(row, last))) for row in rows]
        any_, all_ = seen
        for value in [self.mask.value(em.add(address, self.moved)) for address in there]:
            any_ = em.op("arith.ori", [any_, self.mask.shows_by(value)], em.i1)
            all_ = em.op("arith.andi", [all_, self.mask.is_plain(value)], em.i1)
        return [any_, all_]


def _write(code: WarpCode, thread: ir.Value, seen: list[ir.Value], address: ir.Value) -> None:
    """Puts together what threads see."""
    em = code.em
    warp, lane = code.divide(thread, WARP)
    both = [em.op("arith.extui", [code.vote(kind, v)], em.i32) for kind, v in zip(("any", "all"), seen, strict=True)]
    is_first = em.compare("eq", lane, code.number(0))
    em.only_when(is_first, lambda: code.store(code.add(*both), code.mul(warp, 4), 4))
    code.barrier()

    def put() -> None:
        of_warps = [code.load(em.i32, code.number(4 * i), 4) for i in range(_WARPS)]
        least, most = of_warps[0], of_warps[0]
        for value in of_warps[1:]:
            least, most = (em.op(f"arith.{n}ui", [v, value], em.i32) for n, v in (("min", least), ("max", most)))
        is_whole = em.compare("eq", least, code.number(WHOLE))
        partly = em.op("arith.minui", [most, code.number(PARTLY)], em.i32)
        value = em.op("arith.select", [is_whole, code.number(WHOLE), partly], em.i32)
        i64 = em.integer(64)
        access = {"alignment": ir.IntegerAttr.get(i64, 1), "ordering": ir.IntegerAttr.get(i64, 0)}
        byte = em.op("arith.trunci", [value], em.integer(8))
        em.effect("llvm.store", [byte, code.global_pointer(address)], access)

    em.only_when(em.compare("eq", thread, code.number(0)), put)

"""Tile registers of a processor (Intel AMX): eight matrices of up to 16 rows of 64 bytes, and what multiplies them.

Before they are used, a thread says how many rows and bytes each has (``ldtilecfg``, which empties them, some 100 cycles), and
behind it that they are free again. Where all tiles of a loop say the same, that is done around the loop.

As few as possible are in use: while the other thread of a core holds something in such registers, too, those in use are missing
where instructions get new ones, and reads wait for multiplications. Emerald Rapids, ns from one of these to the next, with the
reads that so many registers need: eight 29, seven 20, six 17, five 15, four 13; alone 6.3 (``benchmark/tile_registers.py``).

Source: Intel, "Intel 64 and IA-32 Architectures Software Developer's Manual", volume 1, chapter 18.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from .....dialect.bindings import ir
from ....kernels.emit.emitter import Emitter
from ....marks import TILE_ACCESS
from .matrix_shape import TILE_WORDS, WORD_BYTES

__all__ = ["Registers", "TileMemory", "TileRegisters"]

#: Registers of sums, two rows of two; of the left factor; of the right one; of one of them that needs another one.
_SUMS, _LEFT, _RIGHT, _OTHER = ((0, 1), (2, 3)), 4, 5, 6
# Of an f32: products of parts whose numbers add up to as many or more are behind its last bit.
_PARTS = 3
# The only palette there is: 8 registers of 1 KiB.
_PALETTE = 1


@dataclass(frozen=True)
class TileMemory:
    """Where a register is read from or written to: memory, its first byte, and bytes from one row to the next."""

    memory: ir.Value
    bytes: ir.Value
    stride: ir.Value


@dataclass(frozen=True)
class Registers:
    """What registers hold.

    Attributes:
        rows: of each one of the left factor, one or two.
        vectors: of 16 columns, one or two.
        words: of the left factor's rows.
        keeps: whether both vectors have a register, as one of rows is multiplied by several parts of them.
    """

    rows: tuple[int, ...]
    vectors: int
    words: int
    keeps: bool = False

    def left(self, i: int) -> int:
        """The register of one of rows: the same one where they are as many."""
        return _LEFT if self.rows[i] == self.rows[0] else _OTHER

    def right(self, j: int) -> int:
        """The register of a vector of columns."""
        return _OTHER if j and self.keeps else _RIGHT

    def shapes(self) -> dict[int, tuple[int, int]]:
        """Rows and bytes of a row of each register."""
        line = TILE_WORDS * WORD_BYTES
        sums = {_SUMS[i][j]: (rows, line) for i, rows in enumerate(self.rows) for j in range(self.vectors)}
        left = {self.left(i): (rows, self.words * WORD_BYTES) for i, rows in enumerate(self.rows)}
        return sums | left | {self.right(j): (self.words, line) for j in range(self.vectors)}

    def configuration(self) -> list[int]:
        """What ``ldtilecfg`` reads, in words of 32 bits."""
        found = bytearray(64)
        found[0] = _PALETTE
        for number, (rows, size) in self.shapes().items():
            found[16 + 2 * number : 18 + 2 * number] = size.to_bytes(2, "little")
            found[48 + number] = rows
        return [int.from_bytes(found[i : i + 4], "little", signed=True) for i in range(0, 64, 4)]


@dataclass(frozen=True, eq=False)
class _Use:
    """Code that uses registers: what says how, the first of its own operations, and what frees them."""

    registers: Registers
    begin: ir.Operation
    end: ir.Operation


class TileRegisters:
    """Builds code that uses them."""

    def __init__(self, emitter: Emitter, instruction: str):
        self.emitter, self.instruction = emitter, instruction
        self.i8 = emitter.integer(8)
        self._uses = list[_Use]()

    def begin(self, registers: Registers) -> ir.Operation:
        """Says what registers hold."""
        return self.emitter.intrinsic_effect("llvm.x86.ldtilecfg", [self.emitter.words_on_stack(registers.configuration())])

    def empty(self, registers: Registers) -> None:
        """Sums of zero."""
        for i in range(len(registers.rows)):
            for j in range(registers.vectors):
                self.emitter.intrinsic_effect("llvm.x86.tilezero", [self._number(_SUMS[i][j])])

    def multiply(
        self,
        registers: Registers,
        left: Sequence[Sequence[TileMemory]],
        right: Sequence[Sequence[TileMemory]],
        between: Sequence[Callable[[], None]] = (),
    ) -> None:
        """Adds the products of all tiles of the left factor by all of the right one, each read when it is needed first.

        Factors may be sums of parts, each of the 8 bits behind the one before: products of 24 bits are added.

        Args:
            registers: what registers hold.
            left, right: of each register of rows, and of columns, its parts.
            between: builds other code, which is spread evenly: far from each other, both would wait in turns.
        """
        shapes, held = registers.shapes(), dict[int, TileMemory]()
        places = _neighbours(len(left), len(right))
        products = [(i, j, a, b) for a, b in _pairs(len(left[0]), len(right[0])) for i, j in places]

        def loaded(number: int, tile: TileMemory) -> int:
            if held.get(number) is not tile:
                self._access("tileloadd64", number, tile, shapes)
            held[number] = tile
            return number

        for done, (i, j, a, b) in enumerate(products):
            numbers = (_SUMS[i][j], loaded(registers.left(i), left[i][a]), loaded(registers.right(j), right[j][b]))
            self.emitter.intrinsic_effect(self.instruction, [self._number(n) for n in numbers])
            for build in between[done * len(between) // len(products) : (done + 1) * len(between) // len(products)]:
                build()

    def load(self, registers: Registers, tiles: Sequence[Sequence[TileMemory]]) -> None:
        """Reads sums, by tiles of rows and of columns."""
        shapes = registers.shapes()
        for i, row in enumerate(tiles):
            for j, tile in enumerate(row):
                self._access("tileloadd64", _SUMS[i][j], tile, shapes)

    def store(self, registers: Registers, tiles: Sequence[Sequence[TileMemory]]) -> None:
        """Writes sums, by tiles of rows and of columns."""
        shapes = registers.shapes()
        for i, row in enumerate(tiles):
            for j, tile in enumerate(row):
                self._access("tilestored64", _SUMS[i][j], tile, shapes)

    def end(self, registers: Registers, begin: ir.Operation) -> None:
        """Frees the registers."""
        end = self.emitter.intrinsic_effect("llvm.x86.tilerelease", [])
        self._uses.append(_Use(registers, begin, end))

    def _number(self, number: int) -> ir.Value:
        return self.emitter.constant(number, self.i8)

    def _access(self, name: str, number: int, tile: TileMemory, shapes: dict[int, tuple[int, int]]) -> None:
        em = self.emitter
        pointer = em.address(tile.memory, tile.bytes)
        stride = em.op("arith.index_cast", [tile.stride], em.integer(64))
        mark = {TILE_ACCESS: ir.DenseI64ArrayAttr.get(list(shapes[number]), em.context)}
        em.intrinsic_effect(f"llvm.x86.{name}", [self._number(number), pointer, stride], mark)

    # -- around loops ------------------------------------------------------------------------------------------------

    def around_loops(self) -> None:
        """Moves what begins and ends uses out of loops whose uses are all alike."""
        uses = self._uses
        while True:
            loops = {u.begin.parent: None for u in uses if u.begin.parent.name == "scf.for"}
            free = [loop for loop in loops if self._is_alike(loop, uses)]
            if not free:
                return
            uses = self._moved(free[0], uses)

    def _is_alike(self, loop: ir.Operation, uses: Sequence[_Use]) -> bool:
        """Whether all uses in a loop are of the same registers, and stand in it directly."""
        inside = [u for u in uses if loop in _around(u.begin)]
        return all(u.registers == inside[0].registers and u.begin.parent == loop for u in inside)

    def _moved(self, loop: ir.Operation, uses: Sequence[_Use]) -> list[_Use]:
        first, *others = [u for u in uses if u.begin.parent == loop]
        kept = [u for u in uses if u not in others]
        first.begin.move_before(loop)
        first.end.move_after(loop)
        for use in others:
            use.begin.erase()
            use.end.erase()
        return kept


def _neighbours(rows: int, columns: int) -> list[tuple[int, int]]:
    """All pairs of both, each with one of the one before it: row by row, forth and back."""
    return [(i, columns - 1 - j if i % 2 else j) for i in range(rows) for j in range(columns)]


def _pairs(left: int, right: int) -> list[tuple[int, int]]:
    """Parts of two factors whose products count, each pair with a part of the one before it: that stays in its register."""
    first = [(0, b) for b in reversed(range(1, right))]
    others = [(a, b) for a in range(1, left) for b in reversed(range(min(right, _PARTS - a)))]
    return [*first, *others, (0, 0)]


def _around(op: ir.Operation) -> list[ir.Operation]:
    """The operations around one, from inside out."""
    found = list[ir.Operation]()
    around = op.parent
    while around is not None:
        found.append(around.operation)
        around = around.operation.parent
    return found

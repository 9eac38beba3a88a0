"""Sums from registers to global memory: by shared memory, so that a thread gets neighbours, and the group's scalar body."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from .....dialect.bindings import ir
from ....kernels.emit.epilogue import Epilogue
from ....kernels.emit.memory import Lanes, Point
from ....kernels.structure.match import Contraction, MatchedGroup
from ....kernels.structure.nest import read_nest
from ..device_memory import DeviceMemory
from .plan import sums_pitch
from .tile_order import RowsOfTile
from .warp_code import WarpCode

__all__ = ["Exchange", "Results", "starts_at_zero"]

_SUM_BYTES = 4
_ZEROS = ("0.000000e+00 : f32", "0 : i32")


@dataclass(frozen=True)
class Exchange:
    """Shared memory through which some threads pass sums.

    Attributes:
        start: where it begins.
        lines, columns: how many sums it holds.
        thread: number of the thread among those that share it.
        threads: how many these are.
        meet: builds a barrier of them.
        row: the row of the tile that a line is.
        column: the column of the tile that is the first of a line.
    """

    start: ir.Value
    lines: int
    columns: int
    thread: ir.Value
    threads: int
    meet: Callable[[], None]
    row: Callable[[ir.Value], ir.Value]
    column: ir.Value


class Results:
    """Builds the last part of a kernel.

    Attributes:
        width: neighbouring columns that a thread computes.
    """

    def __init__(self, code: WarpCode, memory: DeviceMemory, contraction: Contraction, group: MatchedGroup, width: int):
        self.code, self.memory, self.contraction, self.group, self.width = code, memory, contraction, group, width
        epilogue = None if group.epilogue is None else read_nest(group.epilogue, memory)
        self.epilogue = Epilogue(contraction, epilogue, group, code.em, memory)
        for op in [] if epilogue is None else epilogue.body()[0]:
            if op.name == "memref.load":
                memory.captured(op.operands[0])

    def build(
        self, sums: Sequence[ir.Value], blocks: int, exchange: Exchange, place: tuple[ir.Value, ir.Value, ir.Value],
        rows: RowsOfTile, columns: RowsOfTile, share: ir.Value | None = None, shares: int = 1,
    ) -> None:  # fmt: skip
        """Builds it for some sums of a warp.

        Args:
            sums: four of each 16 rows by 8 columns, as instructions give them: two neighbours of row ``lane div 4``, and two
                of that 8 rows below.
            blocks: how many of these there are side by side.
            exchange: where they pass.
            place: the first line and column of the warp's part, and the thread's number in its warp.
            rows: of the tile.
            columns: of the tile.
            share: which of the parts of the sums the warp has, if these are several, which are added up here, in order.
            shares: how many these are.
        """
        em, code = self.code.em, self.code
        for number in range(shares):

            def write(*, adds: bool = number > 0) -> None:
                self._to_shared(sums, blocks, exchange, place, adds=adds)

            if share is None or shares == 1:
                write()
            else:
                em.only_when(em.compare("eq", share, code.number(number)), write)
            exchange.meet()
        self._from_shared(exchange, rows, columns)

    def _to_shared(
        self, sums: Sequence[ir.Value], blocks: int, exchange: Exchange, place: tuple[ir.Value, ir.Value, ir.Value],
        *, adds: bool,
    ) -> None:  # fmt: skip
        code, pitch = self.code, sums_pitch(exchange.columns)
        line, column, lane = place
        line = code.add(line, code.bits(lane, 2, 3))
        column = code.add(column, code.mul(code.bits(lane, 0, 2), 2))
        start = code.add(exchange.start, code.add(code.mul(line, pitch), code.mul(column, _SUM_BYTES)))
        for at in range(0, len(sums), 2):
            block, half = divmod(at // 2, 2)
            i, j = divmod(block, blocks)
            moved = (16 * i + 8 * half) * pitch + 8 * j * _SUM_BYTES
            pair, target = code.pair(*sums[at : at + 2]), code.add(start, moved)
            if adds:
                pair = self._added(code.load(pair.type, target, 2 * _SUM_BYTES), pair)
            code.store(pair, target, 2 * _SUM_BYTES)

    def _added(self, a: ir.Value, b: ir.Value) -> ir.Value:
        is_float = isinstance(self.contraction.nest.outputs[0].argument.type, ir.FloatType)
        return self.code.em.op("arith.addf" if is_float else "arith.addi", [a, b], a.type)

    def _from_shared(self, exchange: Exchange, rows: RowsOfTile, columns: RowsOfTile) -> None:
        code, em, width = self.code, self.code.em, self.width
        per_line = exchange.columns // width
        kind = em.vector(width, self.contraction.nest.outputs[0].argument.type)

        def part(at: ir.Value, _: list[ir.Value]) -> Sequence[ir.Value]:
            line, column = code.divide(code.narrow(at), per_line)
            column = code.mul(column, width)
            row = em.add(rows.first, code.index(exchange.row(line)))
            n = em.add(columns.first, code.index(code.add(exchange.column, column)))
            address = code.add(code.mul(line, sums_pitch(exchange.columns)), code.mul(column, _SUM_BYTES))

            def result() -> None:
                sums = code.load(kind, code.add(exchange.start, address), min(16, width * _SUM_BYTES))
                self._result(sums, rows.variables(em, row) | {self.contraction.n: n})

            self._where_it_exists(((rows, row), (columns, n)), result)
            return ()

        em.loop(code.index(exchange.thread), em.number(exchange.lines * per_line), exchange.threads, part)

    def _where_it_exists(self, at: Sequence[tuple[RowsOfTile, ir.Value]], build: Callable[[], None]) -> None:
        """Rows and columns of a tile may be behind the last."""
        em, inside = self.code.em, None
        for along, number in at:
            exists = em.compare("ult", number, along.count)
            inside = exists if inside is None else em.op("arith.andi", [inside, exists], em.i1)
        assert inside is not None
        em.only_when(inside, build)

    def _result(self, sums: ir.Value, variables: Mapping[int, ir.Value]) -> None:
        em, n, width = self.code.em, self.contraction.n, self.width
        point = Point(variables, Lanes(n, width), {n: width})
        if not starts_at_zero(self.group):
            sums = self._added(em.broadcast(self.epilogue.initial(point), width), sums)
        self.epilogue.store(sums, point)


def starts_at_zero(group: MatchedGroup) -> bool:
    """Whether sums are all there is of a group's result, and not added to what is there."""
    if group.fill is None:
        return False
    filled = group.fill.operands[0].owner
    return not isinstance(filled, ir.Block) and str(filled.attributes["value"]) in _ZEROS

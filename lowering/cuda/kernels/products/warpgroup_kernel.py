"""A product on tensor cores, for Hopper: one thread asks for tiles of the factors, warpgroups multiply what has arrived.

::

    one thread:                                   each warpgroup:
        for each tile of the block, each stage:       for each tile of the block:
            wait until the stage's place is free          for each stage:
            ask for the stage                                 wait until it is there; products
                                                              its predecessor's products are done: its place is free
                                                          sums through the group's scalar body to global memory

Blocks stay: while warpgroups store one tile, the next one's stages arrive.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from .....dialect.bindings import ir
from ....kernels.structure.match import Contraction, MatchedGroup
from ....kernels.structure.row_groups import match_product
from ..device_code import DeviceCode
from ..device_memory import DeviceMemory
from .instructions import STEP_BYTES
from .results import Exchange, Results
from .stage_ring import StageRing
from .tensor_maps import MappedFactor
from .tile_order import RowsOfTile, TileOrder
from .warpgroup_code import ASKING, MULTIPLYING, WarpgroupCode
from .warpgroup_plan import EIGHT_LINES, LINE, ROWS, WarpgroupPlan

__all__ = ["WarpgroupKernel"]


class WarpgroupKernel:
    """Builds one kernel."""

    def __init__(
        self, device: DeviceCode, group: MatchedGroup, plan: WarpgroupPlan, maps: Sequence[tuple[MappedFactor, ir.Value]]
    ):
        """Reads the operation for the kernel.

        Args:
            device: where to build.
            group: what is computed.
            plan: how.
            maps: the factors, left and right, each with its descriptor, a parameter of the kernel.
        """
        self.device, self.group, self.plan, self.em, self.maps = device, group, plan, device.em, maps
        self.memory = DeviceMemory(device, () if group.temporary is None else (group.temporary,))
        contraction = match_product(group.contraction, self.memory)
        assert contraction is not None
        self.contraction: Contraction = contraction
        self.code = WarpgroupCode(device.em, device.shared_pointer(plan.shared_bytes, 1024))
        self.ring = StageRing(self.code, plan.stages, plan.barriers_start)
        self.thread = self.code.narrow(device.thread())
        self.order = TileOrder(self.code, self.memory, contraction, plan.tile, plan.raster)
        self.results = Results(self.code, self.memory, contraction, group, plan.store)
        depth = contraction.nest.extents[contraction.k].static
        assert depth is not None
        self.steps = -(-depth // plan.tile.depth)

    def build(self) -> None:
        """Builds the kernel's code."""
        em, code, plan = self.em, self.code, self.plan
        warpgroup = code.same_in_warp(code.divide(self.thread, 128)[0])

        def make() -> None:
            self.ring.make(plan.warpgroups)
            for _, tensor_map in self.maps:
                code.prefetch_map(tensor_map)

        is_first = em.compare("eq", self.thread, code.number(0))
        em.only_when(is_first, make)
        code.barrier()

        def ask() -> None:
            code.set_registers(ASKING, more=False)
            em.only_when(is_first, self._ask)

        def multiply() -> None:
            code.set_registers(MULTIPLYING, more=True)
            self._multiply(em.op("arith.subi", [warpgroup, code.number(1)], em.i32))

        em.only_when(em.compare("eq", warpgroup, code.number(0)), ask)
        em.only_when(em.compare("ne", warpgroup, code.number(0)), multiply)

    # -- stages in turn --------------------------------------------------------------------------------------------

    def _tiles(self, body: Callable[[ir.Value, list[ir.Value]], Sequence[ir.Value]], parity: int) -> None:
        """A loop over the block's tiles, in which stages go on from tile to tile."""
        em, code = self.em, self.code
        start = [code.number(0), code.number(parity)]
        count = code.index(self.order.count)
        em.loop(self.device.block(), count, self.plan.blocks, lambda tile, at: body(code.narrow(tile), at), start)

    # -- the thread that asks --------------------------------------------------------------------------------------

    def _ask(self) -> None:
        em, code, plan = self.em, self.code, self.plan

        def tile(number: ir.Value, carried: list[ir.Value]) -> Sequence[ir.Value]:
            rows, columns = self.order.place(number)

            def stage(step: ir.Value, at: list[ir.Value]) -> Sequence[ir.Value]:
                stage, parity = at
                code.wait_for(self.ring.free(stage), parity)
                full, start = self.ring.full(stage), code.mul(stage, plan.stage_bytes)
                code.arrive_expecting(full, plan.stage_bytes)
                k = code.mul(code.narrow(step), plan.tile.depth)
                self._ask_for(0, start, k, rows, plan.tile.rows, full)
                self._ask_for(1, code.add(start, plan.left_bytes), k, columns, plan.tile.columns, full)
                return self.ring.following(stage, parity)

            return em.loop(em.number(0), self._steps_of(rows), 1, stage, carried)

        self._tiles(tile, 1)  # a wait for what was before the first phase does not wait

    def _steps_of(self, rows: RowsOfTile) -> ir.Value:
        """How many stages a tile has: of rows that no group has, none."""
        em, steps = self.em, self.em.number(self.steps)
        return steps if rows.is_summed is None else em.op("arith.select", [rows.is_summed, steps, em.number(0)], em.index)

    def _ask_for(self, side: int, start: ir.Value, k: ir.Value, rows: RowsOfTile, count: int, full: ir.Value) -> None:
        """Asks for a factor's part of a stage: lines of 128 bytes, of as many rows as there are, or of all steps of k."""
        code, (factor, tensor_map) = self.code, self.maps[side]
        first = code.narrow(rows.first)
        in_line = LINE // self.plan.instruction.bytes
        for i in [0] if factor.along_k else range(0, count, in_line):
            at = factor.coordinates(k, code.add(first, i), lambda d: code.narrow(rows.fixed[d]))
            code.load_tile(code.add(start, i * self.plan.tile.depth * self.plan.instruction.bytes), tensor_map, at, full)

    # -- warpgroups that multiply ----------------------------------------------------------------------------------

    def _multiply(self, warpgroup: ir.Value) -> None:
        em, code, plan = self.em, self.code, self.plan
        in_group = code.bits(self.thread, 0, 7)
        is_first = em.compare("eq", in_group, code.number(0))

        def release(stage: ir.Value) -> None:
            em.only_when(is_first, lambda: code.arrive(self.ring.free(stage)))

        def products(at: list[ir.Value], sums: ir.Value, *, starts: bool) -> ir.Value:
            stage, parity = at
            code.wait_for(self.ring.full(stage), parity)
            return self._stage_products(code.mul(stage, plan.stage_bytes), warpgroup, sums, starts=starts)

        element = ir.Type.parse(plan.instruction.sums, em.context)

        def fields(sums: ir.Value) -> list[ir.Value]:
            return [code.field(sums, i, element) for i in range(plan.tile.columns // 2)]

        def tile_of_float8(number: ir.Value, carried: list[ir.Value]) -> Sequence[ir.Value]:
            """Sums have fewer bits than f32: those of a stage, 128 steps of k, are summed alone, and added in f32."""
            rows, columns = self.order.place(number)

            def stage(_: ir.Value, at: list[ir.Value]) -> Sequence[ir.Value]:
                here, sums = at[:2], at[2:]
                part = products(here, code.no_sums(plan.instruction, plan.tile.columns), starts=True)
                code.wait_products(0)
                release(here[0])
                added = [em.op("arith.addf", [s, p], element) for s, p in zip(sums, fields(part), strict=True)]
                return [*self.ring.following(*here), *added]

            zeros = [em.constant(0, element)] * (plan.tile.columns // 2)
            following, parity, *sums = em.loop(em.number(0), self._steps_of(rows), 1, stage, [*carried, *zeros])
            self._store(sums, warpgroup, in_group, rows, columns)
            return [following, parity]

        def summed(carried: list[ir.Value]) -> list[ir.Value]:
            """All stages of a tile; gives the next one's place and the sums."""
            sums = products(carried, code.no_sums(plan.instruction, plan.tile.columns), starts=True)

            def stage(_: ir.Value, at: list[ir.Value]) -> Sequence[ir.Value]:
                *here, before, sums = at
                sums = products(here, sums, starts=False)
                code.wait_products(1)
                release(before)
                return [*self.ring.following(here[0], here[1]), here[0], sums]

            started = [*self.ring.following(carried[0], carried[1]), carried[0], sums]
            stage_, parity, last, sums = em.loop(em.number(1), em.number(self.steps), 1, stage, started)
            code.wait_products(0)
            release(last)
            return [stage_, parity, *fields(sums)]

        def tile(number: ir.Value, carried: list[ir.Value]) -> Sequence[ir.Value]:
            rows, columns = self.order.place(number)
            if rows.is_summed is None:
                stage, parity, *sums = summed(carried)
            else:
                none = [*carried, *[em.constant(0, element)] * (plan.tile.columns // 2)]
                types = [v.type for v in none]
                stage, parity, *sums = em.when(rows.is_summed, lambda: summed(carried), lambda: none, types)
            self._store(sums, warpgroup, in_group, rows, columns)
            return [stage, parity]

        self._tiles(tile_of_float8 if plan.instruction.is_float8 else tile, 0)

    def _stage_products(self, start: ir.Value, warpgroup: ir.Value, sums: ir.Value, *, starts: bool) -> ir.Value:
        """Starts all products of a stage."""
        code, plan = self.code, self.plan
        across = not self.maps[1][0].along_k
        left = code.descriptor(code.add(start, code.mul(warpgroup, ROWS * LINE)), LINE // 8, EIGHT_LINES)
        # Of steps of k along columns, 64 columns are a block of lines; lines of the next ones are so many bytes further on.
        block = plan.tile.depth * LINE
        right = code.descriptor(code.add(start, plan.left_bytes), block if across else LINE // 8, EIGHT_LINES)
        further = plan.instruction.depth * LINE if across else STEP_BYTES
        code.begin_products()
        for step in range(LINE // STEP_BYTES):
            sums = code.multiply_group(
                plan.instruction, plan.tile.columns, code.moved(left, step * STEP_BYTES), code.moved(right, step * further),
                sums, starts=starts and step == 0, across=across,
            )  # fmt: skip
        code.commit_products()
        return sums

    def _store(
        self, sums: Sequence[ir.Value], warpgroup: ir.Value, in_group: ir.Value, rows: RowsOfTile, columns: RowsOfTile
    ) -> None:
        """Sums to memory, some columns at a time; each warp has its own 16 rows."""
        code, plan = self.code, self.plan
        warp, lane = code.divide(in_group, 32)
        number = code.add(code.mul(warpgroup, 4), warp)
        start = code.add(code.mul(number, plan.exchange_bytes), plan.exchange_start)
        first_row = code.mul(number, 16)
        for column in range(0, plan.tile.columns, plan.part):
            code.meet_in_warp()
            exchange = Exchange(
                start, 16, plan.part, lane, 32, code.meet_in_warp, lambda line: code.add(first_row, line), code.number(column)
            )
            part = sums[column // 2 :][: plan.part // 2]
            self.results.build(part, plan.part // 8, exchange, (code.number(0), code.number(0), lane), rows, columns)

"""Attention of a block's rows, for Hopper: one thread asks for tiles of keys and values, warpgroups multiply what has arrived.

::

    one thread:                              each warpgroup:
        for each tile that rows may see:         queries to registers
            wait until its place is free         scores = queries * keys of tile 0; powers, state = softmax
            ask for its keys and values          for each tile from 1 on:
                                                     wait until it is there
                                                     start scores = queries * keys of the tile
                                                     start total += powers * values of the tile before
                                                     scores are done; powers, state = softmax     # beside these products
                                                     total is done: its place is free; total *= what the softmax says
                                                 total += powers * values of the last tile; total / sums to memory

So the softmax of a tile is beside products of the tile before, and of other warpgroups. Queries and powers are in registers.
Of a mask, a tile is asked for and multiplied only if its byte says that a row sees something (:mod:`.mask_tiles`); where it
does not say that all rows see all of it, warpgroups read the mask while the products run.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from .....dialect.bindings import ir
from ....kernels.structure.attention import MatchedAttention
from ..device_code import DeviceCode
from ..device_memory import DeviceMemory
from ..products.instructions import STEP_BYTES
from ..products.stage_ring import StageRing
from ..products.tensor_maps import MappedFactor
from ..products.warpgroup_code import ASKING, MULTIPLYING, WarpgroupCode
from ..products.warpgroup_plan import EIGHT_LINES, LINE, ROWS
from .mask import Visible
from .places import AttentionPlaces
from .plan import STRIP, WARP
from .results import AttentionResults
from .shape import BOOLEAN
from .softmax import HALVES, RowState, SoftmaxCode
from .warpgroup_mask import WarpgroupMask
from .warpgroup_plan import WarpgroupAttentionPlan

__all__ = ["WarpgroupAttention"]

_GROUP = 4 * WARP


class WarpgroupAttention:
    """Builds one kernel."""

    def __init__(
        self, device: DeviceCode, memory: DeviceMemory, attention: MatchedAttention, plan: WarpgroupAttentionPlan,
        parts: ir.Value, maps: Sequence[tuple[MappedFactor, ir.Value]], shown: ir.Value | None,
    ):  # fmt: skip
        """As for :class:`~.kernel.AttentionKernel`.

        ``maps`` are keys and values, each with its descriptor, a parameter; ``shown`` is the address of the bytes that say
        which tiles of the mask show something, where there is one.
        """
        assert attention.depth is not None
        assert attention.width is not None
        self.device, self.attention, self.plan, self.em, self.maps = device, attention, plan, device.em, maps
        self.depth, self.width = attention.depth, attention.width
        self.stage_bytes = plan.stage_bytes(self.depth, self.width)
        self.values_start = plan.tile_bytes(self.depth)
        self.code = code = WarpgroupCode(device.em, device.shared_pointer(plan.shared_bytes(self.depth, self.width), 1024))
        self.ring = StageRing(code, plan.stages, plan.stages * self.stage_bytes)
        self.places = AttentionPlaces(memory, attention, device.block(), parts)
        self.thread = code.narrow(device.thread())
        self.shown = shown
        self.is_added = attention.mask is not None and str(attention.mask.element) != BOOLEAN
        self.is_scaled = attention.scale <= 0 or self.is_added
        self.softmax = SoftmaxCode(code, 1.0 if self.is_scaled else attention.scale)

    def build(self, first_row: ir.Value, results: AttentionResults) -> None:
        """Builds the kernel's code, for the rows from one on of the heads that share keys."""
        em, code, places = self.em, self.code, self.places
        self.first_row = first_row
        self.last_row = places.last_row()
        self.end, full = places.bounds(first_row, self.plan.tile.rows, places.keys)
        keys = em.number(self.plan.tile.keys)
        count = em.op("arith.divui", [em.add(self.end, em.number(self.plan.tile.keys - 1)), keys], em.index)
        full = em.op("arith.divui", [full, keys], em.index)
        self.mask = None if self.shown is None else WarpgroupMask(code, places, self.plan.tile, first_row, self.shown)
        first = em.number(0) if self.mask is None else self.mask.first_shown(count)
        warpgroup = code.same_in_warp(code.divide(self.thread, _GROUP)[0])
        is_first = em.compare("eq", self.thread, code.number(0))

        def make() -> None:
            self.ring.make(self.plan.warpgroups)
            for _, tensor_map in self.maps:
                code.prefetch_map(tensor_map)

        em.only_when(is_first, make)
        code.barrier()

        def ask() -> None:
            code.set_registers(ASKING, more=False)
            em.only_when(is_first, lambda: self._ask(first, count))

        def multiply() -> None:
            code.set_registers(MULTIPLYING, more=True)
            self._multiply(em.op("arith.subi", [warpgroup, code.number(1)], em.i32), first, count, full, results)

        em.only_when(em.compare("eq", warpgroup, code.number(0)), ask)
        em.only_when(em.compare("ne", warpgroup, code.number(0)), multiply)

    # -- the thread that asks --------------------------------------------------------------------------------------

    def _ask(self, first: ir.Value, count: ir.Value) -> None:
        em, code, ring = self.em, self.code, self.ring

        def ask(number: ir.Value, stage: ir.Value, parity: ir.Value) -> Sequence[ir.Value]:
            code.wait_for(ring.free(stage), parity)
            full, start = ring.full(stage), code.mul(stage, self.stage_bytes)
            code.arrive_expecting(full, self.stage_bytes)
            key = code.mul(code.narrow(number), self.plan.tile.keys)
            self._ask_for(0, start, key, self.depth, full)
            self._ask_for(1, code.add(start, self.values_start), key, self.width, full)
            return ring.following(stage, parity)

        # A wait for what was before the first phase does not wait.
        start = [code.number(0), code.number(1)]
        em.loop(first, count, 1, lambda t, at: self._if_shown(t, lambda: ask(t, *at), at), start)

    def _ask_for(self, side: int, start: ir.Value, key: ir.Value, elements: int, full: ir.Value) -> None:
        """Asks for keys or values of a tile, in lines of 128 bytes."""
        code, plan, (factor, tensor_map) = self.code, self.plan, self.maps[side]
        for block in range(plan.blocks(elements)):
            at = factor.coordinates(code.number(block * plan.block_elements), key, lambda d: code.narrow(self.places.at[d]))
            code.load_tile(code.add(start, block * plan.tile.keys * LINE), tensor_map, at, full)

    def _if_shown(
        self, tile: ir.Value, build: Callable[[], Sequence[ir.Value]], carried: Sequence[ir.Value]
    ) -> Sequence[ir.Value]:
        return build() if self.mask is None else self.mask.if_shown(tile, build, carried)

    # -- warpgroups that multiply ----------------------------------------------------------------------------------

    def _multiply(
        self, warpgroup: ir.Value, tile: ir.Value, count: ir.Value, full: ir.Value, results: AttentionResults
    ) -> None:
        em, code = self.em, self.code
        in_group = code.bits(self.thread, 0, 7)
        self.is_first = em.compare("eq", in_group, code.number(0))
        warp, lane = code.divide(in_group, WARP)
        own = code.add(code.mul(warpgroup, ROWS), code.add(code.mul(warp, STRIP), code.bits(lane, 2, 3)))
        first = em.add(self.first_row, code.index(own))
        own_rows = [em.add(first, em.number(8 * half)) for half in range(HALVES)]
        self.rows = [self.places.least(r, self.last_row) for r in own_rows]
        self.quarter = code.mul(code.bits(lane, 0, 2), 2)
        start = self.softmax.start(self.width).values
        types = [v.type for v in start]
        if self.mask is not None:
            self.mask.of_rows(self.rows, self.end, full)
        is_any = em.compare("ne", count, tile)
        state = em.when(is_any, lambda: self._tiles(tile, count, full), lambda: start, types)
        results.write(self.places, self.softmax, [RowState.of(state)], own_rows, lane)

    def _tiles(self, first: ir.Value, count: ir.Value, full: ir.Value) -> list[ir.Value]:
        """All tiles, from the first one on that is shown; gives the state."""
        em, code, ring = self.em, self.code, self.ring
        queries = self._queries()
        start, zero = self.softmax.start(self.width), code.number(0)
        code.wait_for(ring.full(zero), zero)
        code.begin_products()
        scores = self._scores(queries, zero)
        code.commit_products()
        scores = self._seen(0, scores, first, is_full=False)
        most, sums, powers, _ = self.softmax.weigh(start.most, start.sums, scores)
        begun = [*ring.following(zero, zero), zero, *most, *sums, *start.total, *self._narrowed(powers)]
        totals, ahead = len(start.total), 3 + 2 * HALVES

        def step(tile: ir.Value, carried: list[ir.Value], *, is_full: bool) -> list[ir.Value]:
            stage, parity, before = carried[:3]
            most, sums, rest = carried[3 : 3 + HALVES], carried[3 + HALVES : ahead], carried[ahead:]
            code.wait_for(ring.full(stage), parity)
            rest = code.begin_products_of(rest)
            scores = self._scores(queries, stage)
            code.commit_products()
            total = self._add_values(rest[totals:], before, rest[:totals])
            code.commit_products()
            scores = self._seen(1, scores, tile, is_full=is_full)
            most, sums, powers, old = self.softmax.weigh(most, sums, scores)
            total = code.wait_products_of(0, total)
            em.only_when(self.is_first, lambda: code.arrive(ring.free(before)))
            scaled = self.softmax.scaled(total, old)
            return [*ring.following(stage, parity), stage, *most, *sums, *scaled, *self._narrowed(powers)]

        after = em.add(first, em.number(1))
        full = after if self.mask is not None else em.op("arith.maxui", [full, after], em.index)
        carried = em.loop(after, full, 1, lambda t, c: step(t, c, is_full=True), begun) if self.mask is None else begun
        some = lambda t, c: self._if_shown(t, lambda: step(t, c, is_full=False), c)  # noqa: E731
        carried = em.loop(full, count, 1, some, carried)
        rest = code.begin_products_of(carried[ahead:])
        total = self._add_values(rest[totals:], carried[2], rest[:totals])
        code.commit_products()
        return [*carried[3:ahead], *code.wait_products_of(0, total)]

    def _queries(self) -> list[list[ir.Value]]:
        """The thread's queries: of each instruction, two rows' pairs of elements, and those eight elements further on."""
        em, code, size = self.em, self.code, self.plan.instruction.bytes
        own = code.index(code.mul(self.quarter, size))
        starts = [em.add(self.places.address(self.attention.query, self.places.row(r)), own) for r in self.rows]
        access = {"alignment": ir.IntegerAttr.get(em.integer(64), 4), "ordering": ir.IntegerAttr.get(em.integer(64), 0)}

        def pair(start: ir.Value, element: int) -> ir.Value:
            if element >= self.depth:
                return code.number(0)
            there = code.global_pointer(em.add(start, em.number(element * size)))
            return em.op("llvm.load", [there], em.i32, access)

        depth = self.plan.instruction.depth
        steps = range(0, self.plan.steps(self.depth) * depth, depth)
        return [[pair(start, first + i) for i in (0, 8) for start in starts] for first in steps]

    def _scores(self, queries: Sequence[Sequence[ir.Value]], stage: ir.Value) -> list[ir.Value]:
        """Starts products with the keys of a stage."""
        code, keys, sums = self.code, self.plan.tile.keys, None
        right = code.descriptor(code.mul(stage, self.stage_bytes), LINE // 8, EIGHT_LINES)
        for step, rows in enumerate(queries):
            block, inside = divmod(step * STEP_BYTES, LINE)
            at = code.moved(right, block * keys * LINE + inside)
            sums = code.multiply_registers(self.plan.instruction, rows, at, keys, sums, across=False)
        assert sums is not None
        return sums

    def _add_values(self, powers: Sequence[ir.Value], stage: ir.Value, total: list[ir.Value]) -> list[ir.Value]:
        """Starts products of powers with the values of a stage."""
        code, plan = self.code, self.plan
        start = code.add(code.mul(stage, self.stage_bytes), self.values_start)
        right, depth = code.descriptor(start, plan.tile.keys * LINE, EIGHT_LINES), plan.instruction.depth
        for step in range(plan.tile.keys // depth):
            at = code.moved(right, step * depth * LINE)
            rows = powers[4 * step : 4 * step + 4]
            total = code.multiply_registers(plan.instruction, rows, at, self.width, total, across=True)
        return total

    def _narrowed(self, powers: Sequence[ir.Value]) -> list[ir.Value]:
        """Powers as left factors: what a thread has of sums is what it has of these."""
        em = self.em
        pair = em.vector(2, ir.Type.parse(self.plan.instruction.element, em.context))
        pairs = [em.op("arith.truncf", [self.code.pair(*powers[i : i + 2])], pair) for i in range(0, len(powers), 2)]
        return [em.op("llvm.bitcast", [p], em.i32) for p in pairs]

    def _seen(self, groups: int, scores: list[ir.Value], tile: ir.Value, *, is_full: bool) -> list[ir.Value]:
        """Scores of a tile, behind all products but those of some last groups; what rows do not see is -inf."""
        em, code, places, count = self.em, self.code, self.places, len(scores)
        first = em.add(em.mul(tile, em.number(self.plan.tile.keys)), code.index(self.quarter))
        visible = Visible([code.narrow(em.sub(places.bound(row, self.end), first)) for row in self.rows])
        held = [] if self.mask is None else self.mask.held(tile, first, visible)
        found = code.wait_products_of(groups, [*scores, *held])
        scale = self.softmax.number(self.attention.scale)
        if self.mask is not None and self.is_added:
            added = self.mask.applied(found[:count], found[count:], scale)
            return visible.limited(code, added) if self.attention.causal else added  # a sum with -inf may be NaN
        scores = [self.softmax.op("arith.mulf", s, scale) for s in found[:count]] if self.is_scaled else found[:count]
        if self.mask is not None:
            return self.mask.applied(scores, found[count:], scale)
        return scores if is_full else visible.limited(code, scores)

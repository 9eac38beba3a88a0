"""Attention of a block's rows, for Ampere and later: keys and values go by in tiles, the next of which are on their way.

::

    queries, and tiles 0 .. S-2 of keys and values, start
    for each tile t that the rows may see:
        wait for tile t; barrier                   # all have it, and nobody reads what is in the place of tile t-1 any more
        tile t+S-1 starts, in that place
        scores = queries * keys; what is not seen is -inf
        state, powers = softmax of what was seen before, and of scores
        total += powers * values
    total / sums, or all of the state, to memory

The first tiles, of which every row sees every key, have a loop of their own, without a look at bounds. Of a tile that the mask
hides from all of a warp's rows nothing is computed, whatever is in it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from .....dialect.bindings import ir
from ....kernels.structure.attention import MatchedAttention
from ..device_code import DeviceCode
from ..device_memory import DeviceMemory
from ..products.warp_code import WarpCode
from .factors import AttentionFactors
from .mask import MaskCode, Visible, is_same_for_rows
from .places import AttentionPlaces
from .plan import STRIP, WARP, AttentionPlan
from .results import AttentionResults
from .softmax import HALVES, RowState, SoftmaxCode
from .tiles import RowCopies, RowTile

__all__ = ["AttentionKernel"]


class AttentionKernel:
    """Builds one kernel.

    Attributes:
        plan: how.
        attention: what, read for the kernel.
    """

    def __init__(
        self, device: DeviceCode, memory: DeviceMemory, attention: MatchedAttention, plan: AttentionPlan, parts: ir.Value
    ):  # fmt: skip
        """Reads the operation.

        Args:
            device: where to build.
            memory: the kernel's.
            attention: read with it.
            plan: how.
            parts: how many blocks compute heads that share keys, a value of the kernel.
        """
        depth, width = attention.depth, attention.width
        assert depth is not None
        assert width is not None
        self.plan, self.attention, self.em = plan, attention, device.em
        self.width, size = width, plan.bytes
        self.code = code = WarpCode(device.em, device.shared_pointer(plan.shared_bytes(depth, width)))
        self.thread = code.narrow(device.thread())
        self.queries = RowTile(0, plan.tile.rows, depth, size)
        start = plan.tile.rows * self.queries.pitch
        self.key = RowTile(start, plan.tile.keys, depth, size)
        self.value = RowTile(start + plan.key_bytes(depth), plan.tile.keys, width, size)
        self.stage_bytes = plan.key_bytes(depth) + plan.key_bytes(width)
        self.places = AttentionPlaces(memory, attention, device.block(), parts)
        warp, self.lane = code.divide(self.thread, WARP)
        warp = code.same_in_warp(warp)
        self.warp_key, self.warp_row = code.divide(warp, plan.warps.rows)
        is_scaled = attention.mask is not None or attention.scale <= 0
        self.softmax = SoftmaxCode(code, 1.0 if is_scaled else attention.scale)
        self.is_scaled = is_scaled
        self.scale = self.softmax.number(attention.scale)
        first_row, first_key = (
            code.mul(self.warp_row, plan.strips * STRIP),
            code.mul(self.warp_key, plan.warp_keys),
        )
        self.factors = AttentionFactors(code, plan, (self.queries, self.key, self.value), self.lane, first_row, first_key)
        self.first_key = first_key

    def build(self, first_row: ir.Value, keys: tuple[ir.Value, ir.Value], results: AttentionResults) -> None:
        """Builds the kernel's code.

        Args:
            first_row: of the block, among those of the heads that share keys; a value of the kernel.
            keys: the first one that the block reads, and the one behind the last that there is for it.
            results: what writes what is found.
        """
        places = self.places
        self.first_row = first_row
        self.begin, self.end = keys
        last_row = places.last_row()
        self.rows = [places.least(r, last_row) for r in self._own_rows()]
        self.end, full = places.bounds(first_row, self.plan.tile.rows, self.end)
        self.mask = None if self.attention.mask is None else MaskCode(self.code, places, self.attention.mask, self.rows)
        state = self._tiles(self._count(self.end, up=True), self._count(full, up=False))
        results.write(places, self.softmax, [RowState.of(s) for s in self._strips(state)], self._own_rows(), self.lane)

    def _own_rows(self) -> list[ir.Value]:
        """The thread's rows, two of each strip; some may not exist."""
        em, code, plan = self.em, self.code, self.plan
        own = code.add(code.mul(self.warp_row, plan.strips * STRIP), code.bits(self.lane, 2, 3))
        start = em.add(self.first_row, code.index(own))
        return [em.add(start, em.number(STRIP * s + 8 * h)) for s in range(plan.strips) for h in range(HALVES)]

    def _count(self, end: ir.Value, *, up: bool) -> ir.Value:
        """How many tiles there are up to a key."""
        em, keys = self.em, self.plan.tile.keys
        there = em.sub(em.op("arith.maxui", [end, self.begin], em.index), self.begin)
        return em.op("arith.divui", [em.add(there, em.number(keys - 1 if up else 0)), em.number(keys)], em.index)

    def _strips(self, values: Sequence[ir.Value]) -> list[Sequence[ir.Value]]:
        size = len(values) // self.plan.strips
        return [values[i * size : (i + 1) * size] for i in range(self.plan.strips)]

    # -- tiles -----------------------------------------------------------------------------------------------------

    def _tiles(self, count: ir.Value, full: ir.Value) -> list[ir.Value]:
        """All tiles, of which the first ones are full; gives the state."""
        em, code, plan = self.em, self.code, self.plan
        self.queries.clear_padding(code, self.thread, plan.threads)
        for tile in (self.key, self.value):
            tile.clear_padding(code, self.thread, plan.threads, plan.stages, self.stage_bytes)
        self.copies = [RowCopies(code, t, self.thread, plan.threads) for t in (self.key, self.value)]
        self.sources = self._sources()
        self._start_queries()
        for i in range(plan.stages - 1):
            tile = em.number(i)
            em.only_when(em.compare("ult", tile, count), lambda t=tile, i=i: self._start(t, code.number(i * self.stage_bytes)))
            code.commit()
        self._wait()
        if plan.queries == "registers":
            self.factors.hold_queries()
        state = [v for _ in range(plan.strips) for v in self.softmax.start(self.width).values]
        free = code.number((plan.stages - 1) * self.stage_bytes)

        def step(tile: ir.Value, carried: list[ir.Value], *, is_full: bool) -> list[ir.Value]:
            here, free, *state = carried
            self._wait()
            following = em.add(tile, em.number(plan.stages - 1))
            em.only_when(em.compare("ult", following, count), lambda: self._start(following, free))
            code.commit()
            return [self._following(here), here, *self._shown(tile, here, state, is_full)]

        carried = [code.number(0), free, *state]
        carried = em.loop(em.number(0), full, 1, lambda t, c: step(t, c, is_full=True), carried)
        carried = em.loop(full, count, 1, lambda t, c: step(t, c, is_full=False), carried)
        code.wait(0)
        return carried[2:]

    def _wait(self) -> None:
        self.code.wait(self.plan.stages - 2)
        self.code.barrier()

    def _following(self, place: ir.Value) -> ir.Value:
        """Where the stage behind the one at a place is."""
        em, code = self.em, self.code
        following = code.add(place, self.stage_bytes)
        is_over = em.compare("eq", following, code.number(self.plan.stages * self.stage_bytes))
        return em.op("arith.select", [is_over, code.number(0), following], em.i32)

    def _start_queries(self) -> None:
        code, em, places = self.code, self.em, self.places
        copies = RowCopies(code, self.queries, self.thread, self.plan.threads)
        own, last = em.add(self.first_row, code.index(copies.row)), places.last_row()

        def source(row: int) -> ir.Value:
            there = places.row(places.least(em.add(own, em.number(row)), last))
            return em.add(places.address(self.attention.query, there), code.index(copies.byte))

        copies.start(code.number(0), source, code.narrow(em.sub(places.together, self.first_row)))

    def _sources(self) -> list[tuple[ir.Value, ir.Value]]:
        """The address of a thread's first piece of keys and of values, and bytes from a row to the next."""
        found = list[tuple[ir.Value, ir.Value]]()
        for operand, copies in zip((self.attention.key, self.attention.value), self.copies, strict=True):
            em, step = self.em, self.places.step(operand, self.attention.dims.key)
            own = em.add(self.begin, self.code.index(copies.row))
            start = em.add(self.places.address(operand, self.places.at), self.code.index(copies.byte))
            found.append((em.add(start, em.mul(own, step)), step))
        return found

    def _start(self, tile: ir.Value, stage: ir.Value) -> None:
        """Begins with a tile, which has keys that exist."""
        em = self.em
        moved = em.mul(tile, em.number(self.plan.tile.keys))
        left = self.code.narrow(em.sub(em.sub(self.end, self.begin), moved))
        for copies, (start, step) in zip(self.copies, self.sources, strict=True):
            there = em.add(start, em.mul(moved, step))
            source = lambda row, there=there, step=step: em.add(there, em.mul(em.number(row), step))  # noqa: E731
            copies.start(stage, source, left, self._wanted(copies, em.add(self.begin, moved)))

    def _wanted(self, copies: RowCopies, first: ir.Value) -> Callable[[int], ir.Value] | None:
        """Whether rows see the keys from the first one of a tile on: of a cache, most may be still to come.

        Where there are few rows, which do not take as long as keys take to come, and these see the same keys.
        """
        em, mask = self.em, self.mask
        if mask is None or not self.plan.blocks or not is_same_for_rows(self.attention):
            return None
        own, last = em.add(first, self.code.index(copies.row)), em.sub(self.end, em.number(1))
        return lambda row: mask.shows(self.places.least(em.add(own, em.number(row)), last))

    # -- one tile --------------------------------------------------------------------------------------------------

    def _shown(self, tile: ir.Value, stage: ir.Value, state: list[ir.Value], is_full: bool) -> list[ir.Value]:
        """The state with a tile, if the mask shows some of it."""
        em, code = self.em, self.code
        first = em.add(self.begin, em.mul(tile, em.number(self.plan.tile.keys)))
        column = code.add(self.first_key, code.mul(code.bits(self.lane, 0, 2), 2))
        own = em.add(first, code.index(column))
        visible = None if is_full else self._visible(own)
        if self.mask is None:
            return self._taken_in(stage, state, visible, None)
        last = None if is_full else em.sub(self.end, em.number(1))
        values = self.mask.read(own, self.plan.warp_keys, last)
        types = [v.type for v in state]
        shown = self.mask.is_shown(values)
        return em.when(shown, lambda: self._taken_in(stage, state, visible, values), lambda: state, types)

    def _visible(self, own: ir.Value) -> list[Visible]:
        """What a thread's rows see from its first key on."""
        found = [self.code.narrow(self.em.sub(self.places.bound(row, self.end), own)) for row in self.rows]
        return [Visible(found[i : i + HALVES]) for i in range(0, len(found), HALVES)]

    def _taken_in(
        self, stage: ir.Value, state: list[ir.Value], visible: Sequence[Visible] | None, mask: list[list[ir.Value]] | None
    ) -> list[ir.Value]:
        """The state with a tile."""
        found, powers = list[RowState](), list[list[ir.Value]]()
        scores = self.factors.scores(stage)
        for strip, values in enumerate(self._strips(state)):
            seen = self._masked(scores[strip], None if mask is None else mask[min(strip, len(mask) - 1)])
            if visible is not None:
                seen = visible[strip].limited(self.code, seen)
            state_, powers_ = self.softmax.take_in(RowState.of(values), seen)
            found.append(state_)
            powers.append(powers_)
        totals = self.factors.add_values(stage, powers, [s.total for s in found])
        return [v for s, total in zip(found, totals, strict=True) for v in (*s.most, *s.sums, *total)]

    def _masked(self, scores: list[ir.Value], mask: list[ir.Value] | None) -> list[ir.Value]:
        if mask is not None:
            assert self.mask is not None
            return self.mask.applied(scores, mask, self.scale)
        return [self.softmax.op("arith.mulf", s, self.scale) for s in scores] if self.is_scaled else scores

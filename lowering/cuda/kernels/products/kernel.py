"""A product on tensor cores, for Ampere and later: a block computes a tile, while the next stages of k are on their way.

::

    stages 0 .. S-2 start
    for each stage t of k:
        wait for stage t; barrier                  # all have it, and nobody reads what is in the place of stage t-1 any more
        stage t+S-1 starts, in that place
        fragments of stage t, products
        values of stage t+S-1 that came through registers are written
    sums through the group's scalar body to global memory
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from .....dialect.bindings import ir
from ....kernels.structure.factor import Factor
from ....kernels.structure.match import Contraction, MatchedGroup
from ....kernels.structure.row_groups import match_product
from ..device_code import DeviceCode
from ..device_memory import DeviceMemory
from .copies import AsyncCopies, Copier, Depth, ValueCopies
from .float8 import bytes_of
from .fragments import Fragments, WarpPlace, products
from .fused_products import FusedProducts
from .narrow import narrow_factor
from .plan import ProductPlan
from .results import Exchange, Results
from .scaled_products import ScaledProducts
from .shape import FactorShape, ProductShape
from .shared_tile import SharedTile
from .tile_order import RowsOfTile, TileOrder, delinearized
from .warp_code import WarpCode

__all__ = ["ProductKernel"]


#: Loop variables at which a stage of a number begins.
Step = Callable[[ir.Value], Mapping[int, ir.Value]]


class ProductKernel:
    """Builds one kernel.

    Attributes:
        plan: how.
        shape: of the product.
    """

    def __init__(self, device: DeviceCode, group: MatchedGroup, shape: ProductShape, plan: ProductPlan, limit: int):
        """Reads the operation for the kernel.

        Args:
            device: where to build; a block of it computes one tile.
            group: what is computed.
            shape: of the product.
            plan: how.
            limit: bytes of shared memory that a block may have.
        """
        self.group, self.shape, self.plan, self.em = group, shape, plan, device.em
        self.memory = DeviceMemory(device, () if group.temporary is None else (group.temporary,))
        contraction = match_product(group.contraction, self.memory)
        assert contraction is not None
        self.contraction: Contraction = contraction
        self.narrow = None if shape.group is None else narrow_factor(contraction)
        self._right = contraction.right if self.narrow is None else self.narrow.integers
        self.scaled: ScaledProducts | None = None
        self.fused: FusedProducts | None = None
        self.code = WarpCode(device.em, device.shared_pointer(plan.shared_bytes(limit)))
        self.thread = self.code.narrow(device.thread())
        self.block = self.code.narrow(device.block())
        self.results = Results(self.code, self.memory, contraction, group, plan.store)
        self.rows_at_once = plan.result_rows(limit)

    # -- what a block computes -------------------------------------------------------------------------------------

    def build(self) -> None:
        """Builds the kernel's code."""
        plan, code = self.plan, self.code
        order = TileOrder(code, self.memory, self.contraction, plan.tile, plan.raster)
        rows, columns = order.place(self.block)
        nest, k = self.contraction.nest, self.contraction.k
        depth = Depth(k, self.memory.size(nest.extents[k]), nest.extents[k].static)
        place = WarpPlace(code, plan, self.thread)
        tiles = (
            SharedTile.left(plan, self._in_lines(self.shape.left, plan.copies.left)),
            SharedTile.right(plan, self._in_lines(self.shape.right, plan.copies.right)),
        )
        copies = [
            self._copier(self.contraction.left, self.shape.left, plan.copies.left, tiles[0], rows, depth),
            self._copier(self._right, self.shape.right, plan.copies.right, tiles[1], columns, depth),
        ]
        left, right = (Fragments(code, tile, plan, place, is_left=tile is tiles[0]) for tile in tiles)
        if plan.instruction.is_fused:
            self.fused = FusedProducts(code, *tiles, plan, place)
        if self.narrow is not None:
            n = self.contraction.n
            self.scaled = ScaledProducts(code, self.memory, self.narrow, plan, columns, n, place, depth)
        sums = self._stages(copies, left, right, depth, rows.is_summed)
        self._store(sums, place, rows, columns)

    def _in_lines(self, factor: FactorShape, bytes_: int) -> bool:
        return factor.along_k or not bytes_

    def _copier(
        self, factor: Factor, shape: FactorShape, bytes_: int, tile: SharedTile, rows: RowsOfTile, depth: Depth
    ) -> Copier:
        if bytes_:
            return AsyncCopies(self.code, self.memory, factor, tile, self.plan, bytes_, rows, depth, self.thread)
        if self.plan.instruction.is_float8:
            factor = bytes_of(factor)
        given = self.code, self.memory, factor, tile, self.plan, rows, depth, self.thread, shape.along_k
        return ValueCopies(*given, in_vectors=shape.is_computed)

    def _store(self, sums: Sequence[ir.Value], place: WarpPlace, rows: RowsOfTile, columns: RowsOfTile) -> None:
        """Sums to memory, some rows of each warp at a time; all threads share them."""
        code, plan, height = self.code, self.plan, self.rows_at_once
        warp = code.mul(code.divide(place.rows, plan.warp_rows)[0], height)
        blocks = plan.warp_columns // 8

        def row_of(line: ir.Value) -> ir.Value:
            warp, rest = code.divide(line, height)
            return code.add(code.mul(warp, plan.warp_rows), rest)

        for first in range(0, plan.warp_rows, height):
            if first:
                code.barrier()
            exchange = Exchange(
                code.number(0), plan.warps.rows * height, plan.tile.columns, self.thread, plan.threads, code.barrier,
                lambda line, first=first: code.add(row_of(line), first), code.number(0),
            )  # fmt: skip
            part = sums[first // 16 * blocks * 4 :][: height // 16 * blocks * 4]
            at = warp, place.columns, place.lane
            self.results.build(part, blocks, exchange, at, rows, columns, place.share, plan.warps.depth)

    # -- stages ----------------------------------------------------------------------------------------------------

    def _stages(
        self, copies: Sequence[Copier], left: Fragments, right: Fragments, depth: Depth, is_summed: ir.Value | None
    ) -> list[ir.Value]:
        """All stages, or none where nothing is summed; gives the sums."""
        em, code, plan = self.em, self.code, self.plan
        extents = self.contraction.nest.extents
        outer = [(d, self.memory.size(extents[d])) for d in self.contraction.outer]
        steps = em.add(depth.count, em.number(plan.tile.depth - 1))
        inner = code.index(code.divide(code.narrow(steps), plan.tile.depth)[0])
        total = inner
        for _, size in outer:
            total = em.mul(total, size)
        if is_summed is not None:
            total = em.op("arith.select", [is_summed, total, em.number(0)], em.index)

        def step(stage: ir.Value) -> Mapping[int, ir.Value]:
            """Where a stage begins."""
            if not outer:
                return {depth.dim: em.mul(stage, em.number(plan.tile.depth))}
            which = em.op("arith.divui", [stage, inner], em.index)
            rest = em.op("arith.remui", [stage, inner], em.index)
            return {**delinearized(em, which, outer), depth.dim: em.mul(rest, em.number(plan.tile.depth))}

        for i in range(plan.stages - 1):
            stage, place = em.number(i), code.number(i * plan.stage_bytes)

            def begin(stage: ir.Value = stage, place: ir.Value = place) -> None:
                at = step(stage)
                for c in copies:
                    c.finish(c.start(at, place))

            em.only_when(em.compare("ult", stage, total), begin)
            code.commit()
        element = ir.Type.parse(plan.instruction.sums, em.context)
        zeros = [em.constant(0, element)] * plan.accumulators
        last = code.number((plan.stages - 1) * plan.stage_bytes)

        def body(stage: ir.Value, carried: list[ir.Value]) -> Sequence[ir.Value]:
            here, free, *sums = carried
            scales = self._scales(step(stage)[depth.dim])
            code.wait(plan.stages - 2)
            code.barrier()
            next_ = em.add(stage, em.number(plan.stages - 1))
            exists = em.compare("ult", next_, total)
            started = self._start(copies, step, next_, exists, total, free)
            code.commit()
            sums = self._products(left, right, here, sums, scales)
            for c, values in zip(copies, started, strict=True):
                if isinstance(c, ValueCopies):
                    em.only_when(exists, lambda c=c, values=values: c.finish(values))
            return [self._following(here), here, *sums]

        _, _, *sums = em.loop(em.number(0), total, 1, body, [code.number(0), last, *zeros])
        code.wait(0)
        code.barrier()
        return self.scaled.finish(sums) if self.scaled is not None and self.scaled.is_at_end else sums

    def _scales(self, k: ir.Value) -> list[list[ir.Value]]:
        """What sums of the stage at a step of k are scaled with before they are added up; none where nothing is."""
        return [] if self.scaled is None or self.scaled.is_at_end else self.scaled.scales(k)

    def _products(
        self, left: Fragments, right: Fragments, stage: ir.Value, sums: Sequence[ir.Value], scales: Sequence[Sequence[ir.Value]]
    ) -> list[ir.Value]:
        if self.fused is not None:
            return self.fused.add(stage, sums)
        if self.scaled is None or not scales:
            return products(self.code, self.plan, left, right, stage, sums)
        return self.scaled.add(left, right, stage, sums, scales)

    def _start(
        self, copies: Sequence[Copier], step: Step, stage: ir.Value, exists: ir.Value, total: ir.Value, free: ir.Value
    ) -> list[object]:
        """Begins with a stage, if it exists: values that pass registers are read in any case, of the last stage behind it."""
        em = self.em

        def begin() -> None:
            at = step(stage)
            for c in copies:
                if isinstance(c, AsyncCopies):
                    c.start(at, free)

        if any(isinstance(c, AsyncCopies) for c in copies):
            em.only_when(exists, begin)
        if not any(isinstance(c, ValueCopies) for c in copies):
            return [None] * len(copies)
        there = step(em.op("arith.minui", [stage, em.sub(total, em.number(1))], em.index))
        started: list[object] = [c.start(there, free) if isinstance(c, ValueCopies) else None for c in copies]
        return started

    def _following(self, place: ir.Value) -> ir.Value:
        """Where the stage behind the one at a place is."""
        em, code, plan = self.em, self.code, self.plan
        following = code.add(place, plan.stage_bytes)
        is_over = em.compare("eq", following, code.number(plan.stages * plan.stage_bytes))
        return em.op("arith.select", [is_over, code.number(0), following], em.i32)

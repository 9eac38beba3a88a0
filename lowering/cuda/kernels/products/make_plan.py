"""The plan of a product on tensor cores: the tile of a table that takes the least time, by what it multiplies and reads."""

from __future__ import annotations

from dataclasses import replace
from math import ceil

from ...cost.kernel_time import START
from ...cuda_target import Architecture
from .instructions import INSTRUCTIONS
from .plan import CopyBytes, ProductPlan, WarpGrid
from .shape import ProductShape
from .tile_plan import ProductTile, TilePlan, can_be_cut
from .warpgroup_plan import LINE, MOST_FLOAT8_COLUMNS, ROWS, WarpgroupPlan

__all__ = ["plan_product", "plan_warpgroups"]

# Rows, columns, and warps along these. 64 x 64 sums of a warp are 128 registers of a thread, and read the least from shared
# memory for each product; rows of few warps are for few rows. Not measured: what public kernels for Ampere use.
_TILES = ((128, 256, 2, 4), (128, 128, 2, 2), (128, 64, 2, 2), (64, 128, 2, 2), (64, 64, 2, 2), (32, 64, 1, 4), (16, 64, 1, 4))
# Of factors that are computed on their way, and their scales: 64 x 64 sums leave too few registers (spills of 576 bytes, int4
# at 4096 on sm_90a; with 64 x 32 none). Of fused multiply-adds, whose threads have 8 x 8 sums then.
_NARROW_TILES = ((128, 128, 2, 4), (128, 64, 2, 2), (64, 128, 1, 4), (64, 64, 2, 2), (32, 64, 1, 4), (16, 64, 1, 4))
# Of few rows, which read each weight once: blocks for all multiprocessors, whose warps share the steps of k of a stage.
_FEW_TILES = ((16, 64), (16, 32), (16, 16))
_SHARES, _FEW_STAGES = 4, 8
# Bytes of a row of k in a stage, and stages: what hides some 600 cycles of memory behind products.
_LINE, _STAGES = 64, 4
# Warpgroups and columns.
_WARPGROUP_TILES = ((2, 256), (2, 128), (1, 256), (1, 128), (1, 64))
# Parts of k.
_PARTS = (1, 2, 4, 8, 16)
# More of them hide nothing more.
_MOST_STAGES = 8
# Rows up to which a warpgroup multiplies more rows that do not exist than others, and warps do it by tiles of 16.
_FEW_ROWS = 32
# Rows of tiles that are computed together: their left factor and some columns of the right one are in the cache.
_RASTER = 8
# Of rows or columns whose number is known at run time only.
_USUAL = 4096
# Bytes that a multiprocessor gets of the second-level cache in a cycle: a quarter of a line of 256 bytes.
_CACHE_BYTES = 64
# Bytes that shared memory gives in a cycle.
_SHARED_BYTES = 128


def plan_product(shape: ProductShape, architecture: Architecture) -> ProductPlan:
    """The plan of warps, for every architecture."""
    limit = architecture.shared_per_block
    if shape.rows is not None and shape.rows <= _FEW_TILES[0][0]:
        few = _plan_of_few_rows(shape, architecture)
        return replace(few, split=_split(few, shape, architecture))
    plans = [_plan(shape, tile) for tile in _tiles(shape)]
    fitting = [p for p in plans if p.shared_bytes(limit) <= limit]
    best = min(fitting, key=lambda p: _time(p.tile, shape, architecture, _thread_reads(p)))
    return replace(best, split=_split(best, shape, architecture, _thread_reads(best)))


def _thread_reads(plan: ProductPlan) -> float:
    """Cycles for what threads read of shared memory in 128 bytes of k, each for itself, to add products up one by one."""
    lines = plan.warp_rows // 8 + plan.warp_columns // 4
    return plan.threads * lines * LINE / _SHARED_BYTES if plan.instruction.is_fused else 0


def _tiles(shape: ProductShape) -> tuple[tuple[int, int, int, int], ...]:
    is_computed = shape.left.is_computed or shape.right.is_computed
    needs_registers = is_computed or INSTRUCTIONS[shape.by].is_fused or INSTRUCTIONS[shape.by].is_float8
    return _NARROW_TILES if needs_registers else _TILES


def _plan_of_few_rows(shape: ProductShape, architecture: Architecture) -> ProductPlan:
    """The widest tile of which there is one for each multiprocessor, else the narrowest one."""
    columns = (shape.columns or _USUAL) * (shape.batch or 1)
    chosen = next((t for t in _FEW_TILES if columns >= t[1] * architecture.part.sm_count), _FEW_TILES[-1])
    tile = ProductTile(*chosen, LINE // INSTRUCTIONS[shape.by].bytes)
    return _plan_of_warps(shape, tile, WarpGrid(1, 1, _SHARES), _FEW_STAGES)


def _plan(shape: ProductShape, tile: tuple[int, int, int, int]) -> ProductPlan:
    rows, columns, warp_rows, warp_columns = tile
    depth = _LINE // INSTRUCTIONS[shape.by].bytes
    return _plan_of_warps(shape, ProductTile(rows, columns, depth), WarpGrid(warp_rows, warp_columns), _STAGES)


def _plan_of_warps(shape: ProductShape, tile: ProductTile, warps: WarpGrid, stages: int) -> ProductPlan:
    copies = CopyBytes(shape.left.copy, shape.right.copy)
    return ProductPlan(tile=tile, warps=warps, stages=stages, by=shape.by, copies=copies, raster=_RASTER, store=shape.store)


def plan_warpgroups(shape: ProductShape, architecture: Architecture) -> WarpgroupPlan | None:
    """The plan of warpgroups, for architectures that have them; None for few rows, and for factors that tiles cannot be of."""
    wide = INSTRUCTIONS[shape.by].bits == 16
    if INSTRUCTIONS[shape.by].is_fused or not architecture.wgmma or (shape.rows is not None and shape.rows <= _FEW_ROWS):
        return None
    if not shape.is_mapped or not shape.left.along_k or not (shape.right.along_k or wide):
        return None
    most = MOST_FLOAT8_COLUMNS if INSTRUCTIONS[shape.by].is_float8 else _WARPGROUP_TILES[0][1]
    plans = [_warpgroup_plan(shape, tile, architecture) for tile in _WARPGROUP_TILES if tile[1] <= most]
    best = min(plans, key=lambda p: _time(p.tile, shape, architecture))
    return replace(best, split=_split(best, shape, architecture))


def _warpgroup_plan(shape: ProductShape, tile: tuple[int, int], architecture: Architecture) -> WarpgroupPlan:
    warpgroups, columns = tile
    sizes = ProductTile(ROWS * warpgroups, columns, LINE // INSTRUCTIONS[shape.by].bytes)

    def plan(stages: int) -> WarpgroupPlan:
        return WarpgroupPlan(
            warpgroups=warpgroups, tile=sizes, stages=stages, by=shape.by, raster=_RASTER, store=shape.store,
            blocks=architecture.part.sm_count,
        )  # fmt: skip

    counts = range(_MOST_STAGES, 1, -1)
    return next(plan(n) for n in counts if plan(n).shared_bytes <= architecture.shared_per_block)


def _split(plan: TilePlan, shape: ProductShape, architecture: Architecture, shared: float = 0) -> int:
    """Into how many parts to cut k: more pay where tiles are few, and steps of k more than it takes to add parts up."""
    if shape.depth is None or shape.rows is None or shape.columns is None:
        return 1
    part, batch, lines = architecture.part, shape.batch or 1, shape.depth * plan.instruction.bytes / LINE
    sums = 4 * shape.rows * shape.columns * batch

    def time(parts: int) -> float:
        products = _time(plan.tile, replace(shape, batch=batch * parts), architecture, shared) * lines / parts
        return products + (part.clock * (START + 2 * parts * sums / part.bandwidth) if parts > 1 else 0)

    fitting = [n for n in _PARTS if n == 1 or can_be_cut(shape, n, plan.tile.depth * plan.stages)]
    return min(fitting, key=time)


def _time(tile: ProductTile, shape: ProductShape, architecture: Architecture, shared: float = 0) -> float:
    """Cycles for a step of 128 bytes of k of all tiles: waves of blocks, each bound by products, the cache or shared memory."""
    instruction = INSTRUCTIONS[shape.by]
    peak = 2 * architecture.f32_lanes
    if not instruction.is_fused:
        peak = architecture.tensor[instruction.peak]
    rows, columns = shape.rows or _USUAL, shape.columns or _USUAL
    tiles = ceil(rows / tile.rows) * ceil(columns / tile.columns) * (shape.batch or 1)
    products = 2 * tile.rows * tile.columns * (LINE // instruction.bytes) / peak
    reads = (tile.rows + tile.columns) * LINE / _CACHE_BYTES
    return ceil(tiles / architecture.part.sm_count) * max(products, reads, shared)

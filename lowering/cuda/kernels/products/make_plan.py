"""The plan of a product on tensor cores: the tile of a table, and the parts of k, that the cost model gives the least time."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from math import inf
from typing import TypeVar

from .....dialect.errors import RelaxError
from ...cuda_target import Architecture
from .instructions import INSTRUCTIONS
from .plan import CopyBytes, ProductPlan, WarpGrid
from .plan_time import plan_time
from .shape import ProductShape
from .tile_plan import ProductTile, can_be_cut
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
# Parts of k, and what they have to leave of the time, as they take memory and another kernel: the model is a rough one.
_PARTS, _LEFT_BY_PARTS = (2, 4, 8, 16), 0.9
# More of them hide nothing more.
_MOST_STAGES = 8
# Rows up to which a warpgroup multiplies more rows that do not exist than others, and warps do it by tiles of 16.
_FEW_ROWS = 32
# Rows of tiles that are computed together: their left factor and some columns of the right one are in the cache.
_RASTER = 8

_Plan = TypeVar("_Plan", ProductPlan, WarpgroupPlan)


def plan_product(shape: ProductShape, architecture: Architecture) -> ProductPlan:
    """The plan of warps, for every architecture."""
    limit = architecture.shared_per_block
    if shape.rows is not None and shape.rows <= _FEW_TILES[0][0]:
        return _fastest([_plan_of_few_rows(shape, tile) for tile in _FEW_TILES], shape, architecture)
    plans = [_plan(shape, tile) for tile in _tiles(shape)]
    return _fastest([p for p in plans if p.shared_bytes(limit) <= limit], shape, architecture)


def _fastest(plans: Iterable[_Plan], shape: ProductShape, architecture: Architecture) -> _Plan:
    """Of some plans in one part, the one that takes the least time in as many parts of k as pay, the first of equals."""
    return min((p for plan in plans for p in _in_parts(plan, shape)), key=lambda p: _seconds(p, shape, architecture))


def _in_parts(plan: _Plan, shape: ProductShape) -> list[_Plan]:
    """A plan with as many parts of k as fit, where all sizes are known: more pay where tiles are few."""
    if shape.rows is None or shape.columns is None:
        return [plan]
    return [plan, *(replace(plan, split=n) for n in _PARTS if can_be_cut(shape, n, plan.tile.depth * plan.stages))]


def _seconds(plan: ProductPlan | WarpgroupPlan, shape: ProductShape, architecture: Architecture) -> float:
    """How long a plan takes, with what is asked of parts; for ever, where no multiprocessor holds a block."""
    try:
        return plan_time(plan, shape, architecture).seconds / (_LEFT_BY_PARTS if plan.split > 1 else 1)
    except RelaxError:
        return inf


def _tiles(shape: ProductShape) -> tuple[tuple[int, int, int, int], ...]:
    is_computed = shape.left.is_computed or shape.right.is_computed
    needs_registers = is_computed or INSTRUCTIONS[shape.by].is_fused or INSTRUCTIONS[shape.by].is_float8
    return _NARROW_TILES if needs_registers else _TILES


def _plan_of_few_rows(shape: ProductShape, tile: tuple[int, int]) -> ProductPlan:
    sizes = ProductTile(*tile, LINE // INSTRUCTIONS[shape.by].bytes)
    return _plan_of_warps(shape, sizes, WarpGrid(1, 1, _SHARES), _FEW_STAGES)


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
    return _fastest(plans, shape, architecture)


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

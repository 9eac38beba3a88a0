"""Plans of a product beside the one that the cost model chooses, for measuring."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

from .....dialect.errors import RelaxError
from ...cuda_target import Architecture
from .instructions import INSTRUCTIONS
from .make_plan import plan_product, plan_warpgroups
from .plan import ProductPlan, WarpGrid, check_plan
from .shape import ProductShape
from .tile_plan import ProductTile
from .warpgroup_plan import LINE, ROWS, WarpgroupPlan, check_warpgroup_plan

__all__ = ["alternatives_of_product"]

# Rows, columns, and warps along these and along k.
_TILES = (
    (128, 256, 2, 4, 1), (128, 128, 2, 2, 1), (128, 128, 2, 4, 1), (128, 64, 2, 2, 1), (64, 256, 1, 4, 1), (64, 128, 2, 2, 1),
    (64, 128, 1, 4, 1), (64, 64, 2, 2, 1), (32, 128, 1, 4, 1), (32, 64, 1, 4, 1), (16, 128, 1, 4, 1), (16, 64, 1, 4, 1),
    (16, 64, 1, 1, 4), (16, 32, 1, 1, 4), (16, 16, 1, 1, 4),
)  # fmt: skip
_STAGES, _LINES, _PARTS = (4, 3, 6, 8), (64, 128), (1, 2, 4, 8, 16)
_COLUMNS, _RASTERS = (256, 128, 64), (8, 16)
# Sums of a thread beyond which it has no registers left for anything else.
_MOST_SUMS = 128


def alternatives_of_product(
    shape: ProductShape, chosen: ProductPlan | WarpgroupPlan, architecture: Architecture
) -> tuple[str, ...]:
    """Lines of other plans that fit, those that differ least from the chosen one first."""
    found = {str(p): p for p in (*_of_warpgroups(shape, architecture), *_of_warps(shape, architecture))}
    found.pop(str(chosen), None)
    return tuple(sorted(found, key=lambda line: _difference(found[line], chosen)))


def _difference(plan: ProductPlan | WarpgroupPlan, chosen: ProductPlan | WarpgroupPlan) -> tuple[int, float]:
    """Whether it is of another kind, and how many times a tile, its stages and parts are doubled or halved."""
    sizes = [(p.tile.rows, p.tile.columns, p.tile.depth, p.stages, p.split) for p in (plan, chosen)]
    away = sum(max(a, b) / min(a, b) - 1 for a, b in zip(*sizes, strict=True))
    return int(type(plan) is not type(chosen)), away


def _of_warps(shape: ProductShape, architecture: Architecture) -> Iterator[ProductPlan]:
    base, limit = plan_product(shape, architecture), architecture.shared_per_block
    for rows, columns, *warps in _TILES:
        for line in _LINES:
            tile, grid = ProductTile(rows, columns, line // INSTRUCTIONS[shape.by].bytes), WarpGrid(*warps)
            for stages in _STAGES:
                for split in _PARTS:
                    plan = replace(base, tile=tile, warps=grid, stages=stages, split=split)
                    if plan.accumulators <= _MOST_SUMS and _fits(lambda p=plan: check_plan(p, shape, limit)):
                        yield plan


def _of_warpgroups(shape: ProductShape, architecture: Architecture) -> Iterator[WarpgroupPlan]:
    base, limit = plan_warpgroups(shape, architecture), architecture.shared_per_block
    if base is None:
        return
    for warpgroups in (2, 1):
        for columns in _COLUMNS:
            tile = ProductTile(ROWS * warpgroups, columns, LINE // INSTRUCTIONS[shape.by].bytes)
            for stages in _STAGES:
                for split, raster in ((s, r) for s in _PARTS for r in _RASTERS):
                    plan = replace(base, warpgroups=warpgroups, tile=tile, stages=stages, split=split, raster=raster)
                    if _fits(lambda p=plan: check_warpgroup_plan(p, shape, limit)):
                        yield plan


def _fits(check: Callable[[], None]) -> bool:
    try:
        check()
    except RelaxError:
        return False
    return True

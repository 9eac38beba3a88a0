"""How long a product takes by a plan: what plans are chosen by, and what predictions are of."""

from __future__ import annotations

from ...cost.kernel_time import Prediction
from ...cost.product_time import ProductTiling, product_time
from ...cuda_target import Architecture
from .plan import ProductPlan
from .shape import ProductShape
from .warpgroup_plan import WarpgroupPlan

__all__ = ["plan_time"]

# Of rows, columns or steps of k whose number is known at run time only.
_USUAL = 4096
# Registers of a thread beside its sums: kernels of int8, int4 and 8-bit floats that are computed on their way have 128 to 144
# (the table of device kernels), others what the cost model assumes.
_OF_COMPUTED = 140


def plan_time(
    plan: ProductPlan | WarpgroupPlan,
    shape: ProductShape,
    architecture: Architecture,
    *,
    left_bytes: float | None = None,
    right_bytes: float | None = None,
) -> Prediction:
    """How long a product takes.

    Args:
        plan: how it is computed.
        shape: of the product.
        architecture: of the GPU.
        left_bytes, right_bytes: of an element of a factor in memory, where it is not as wide as what is multiplied.

    Raises:
        RelaxError: a multiprocessor holds no block.
    """
    rows, columns, depth = (_USUAL if size is None else size for size in (shape.rows, shape.columns, shape.depth))
    kind = "f32" if plan.instruction.is_fused else plan.instruction.peak
    return product_time(
        architecture, (rows, columns, depth), _tiling(plan, shape, architecture), kind=kind, batch=shape.batch or 1,
        left_bytes=left_bytes, right_bytes=right_bytes,
    )  # fmt: skip


def _tiling(plan: ProductPlan | WarpgroupPlan, shape: ProductShape, architecture: Architecture) -> ProductTiling:
    tile = (plan.tile.rows, plan.tile.columns, plan.tile.depth)
    if isinstance(plan, WarpgroupPlan):
        return ProductTiling(
            tile, (4 * plan.warpgroups, 1), plan.stages, plan.split, plan.raster, wgmma=True, shared=plan.shared_bytes
        )
    is_computed = (shape.left.is_computed or shape.right.is_computed) and not plan.instruction.is_fused
    return ProductTiling(
        tile,
        (plan.warps.rows, plan.warps.columns),
        plan.stages,
        plan.split,
        plan.raster,
        shares=plan.warps.depth,
        own_lines=plan.warp_rows // 8 + plan.warp_columns // 4 if plan.instruction.is_fused else 0,
        registers=min(architecture.registers_per_thread, plan.accumulators + _OF_COMPUTED) if is_computed else None,
        shared=plan.shared_bytes(architecture.shared_per_block),
    )

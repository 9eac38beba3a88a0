"""How long a product takes by a plan: what plans are chosen by, and what predictions are of."""

from __future__ import annotations

from ...cost.kernel_time import Prediction
from ...cost.product_time import ProductTiling, product_time
from ...cuda_target import Architecture
from .plan import ProductPlan
from .shape import ProductShape
from .warpgroup_plan import WarpgroupPlan

__all__ = ["plan_time", "tiling_of"]

# Of rows, columns or steps of k whose number is known at run time only.
_USUAL = 4096
# Registers of a thread for each of its sums, and beside them, of factors that are computed on their way; for others the cost
# model assumes some. NVIDIA's assembler (12.9, sm_80) gives int8 128 for 64 sums, 72 for 32, 48 for 16, 40 for 8; int4, whose
# groups are summed by themselves, 208, 124, 64, 56; blocks of 8-bit floats up to 200, 108, 63, 47.
_OF_COMPUTED, _OF_GROUPS = (1.5, 30), (2.6, 36)


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
        architecture, (rows, columns, depth), tiling_of(plan, shape, architecture), kind=kind, batch=shape.batch or 1,
        left_bytes=left_bytes, right_bytes=right_bytes,
    )  # fmt: skip


def tiling_of(plan: ProductPlan | WarpgroupPlan, shape: ProductShape, architecture: Architecture) -> ProductTiling:
    """What the cost model knows of a plan."""
    tile = (plan.tile.rows, plan.tile.columns, plan.tile.depth)
    if isinstance(plan, WarpgroupPlan):
        return ProductTiling(
            tile, (4 * plan.warpgroups, 1), plan.stages, plan.split, plan.raster, wgmma=True, shared=plan.shared_bytes
        )
    return ProductTiling(
        tile,
        (plan.warps.rows, plan.warps.columns),
        plan.stages,
        plan.split,
        plan.raster,
        shares=plan.warps.depth,
        own_lines=plan.warp_rows // 8 + plan.warp_columns // 4 if plan.instruction.is_fused else 0,
        registers=_registers(plan, shape, architecture),
        shared=plan.shared_bytes(architecture.shared_per_block),
    )


def _registers(plan: ProductPlan, shape: ProductShape, architecture: Architecture) -> int | None:
    """Of a thread, where that is known."""
    if plan.instruction.is_fused or not (shape.left.is_computed or shape.right.is_computed):
        return None
    for_each, beside = _OF_GROUPS if shape.group else _OF_COMPUTED
    return min(architecture.registers_per_thread, int(for_each * plan.accumulators) + beside)

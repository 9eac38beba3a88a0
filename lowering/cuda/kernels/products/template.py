"""The template of products: recognises them, plans and launches them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from .....dialect.bindings import func, ir
from .....dialect.errors import RelaxError
from ....kernels.emit.buffers import Buffers
from ....kernels.emit.memory import Memory
from ....kernels.structure.match import Contraction, MatchedGroup
from ....kernels.structure.row_groups import match_product
from ....marks import PLAN
from ...cuda_target import Architecture, CudaTarget
from ..device_code import DeviceCode
from ..elementwise import build_elementwise, elementwise_plan
from ..host_code import HostCode
from ..outer_sums import plan_outer
from ..plan_key import key_of_product
from ..product_group import erase_group, product_group
from .alternatives import alternatives_of_product
from .encode_maps import encoded
from .instructions import INSTRUCTIONS
from .kernel import ProductKernel
from .make_plan import plan_product, plan_warpgroups
from .plan import ProductPlan, check_plan, parse_plan
from .shape import ProductShape, describe
from .split import can_split, split_product
from .tensor_maps import MappedFactor, map_factors
from .tile_order import count_of_tiles
from .warpgroup_kernel import WarpgroupKernel
from .warpgroup_plan import LINE, WarpgroupPlan, check_warpgroup_plan, parse_warpgroup_plan

__all__ = ["PlannedProduct", "build_product", "plan_of_product"]


@dataclass(frozen=True)
class PlannedProduct:
    """A kernel function that is a product on tensor cores.

    Attributes:
        group: its operations.
        shape: of the product.
        plan: how it is computed.
    """

    group: MatchedGroup
    shape: ProductShape
    plan: ProductPlan | WarpgroupPlan

    def __str__(self) -> str:
        return str(self.plan)

    @property
    def key(self) -> str:
        """What decides the plan."""
        return key_of_product(self.shape, self.group)

    def alternatives(self, architecture: Architecture) -> tuple[str, ...]:
        """Lines of other plans, the most promising first."""
        return alternatives_of_product(self.shape, self.plan, architecture)


def plan_of_product(function: func.FuncOp, target: CudaTarget) -> PlannedProduct | None:
    """The plan of a kernel function that is one product and what is fused with it, None for others.

    Raises:
        RelaxError: the plan that stands on the product does not fit, at its location.
    """
    group = product_group(function)
    contraction = None if group is None else match_product(group.contraction, Buffers(group.contraction.location))
    shape = None if contraction is None else describe(contraction, target)
    if group is None or shape is None or (_is_computed(shape) and not shape.groups and plan_outer(function, target)):
        return None  # the right factor of few rows is read once, with no use for shared memory
    shape = replace(shape, splits=not shape.group and not shape.groups and can_split(group))
    return PlannedProduct(group, shape, _plan(group.contraction, shape, target))


def _is_computed(shape: ProductShape) -> bool:
    """Whether few rows have other templates than tensor cores."""
    return shape.left.is_computed or shape.right.is_computed or INSTRUCTIONS[shape.by].is_fused


def _plan(operation: ir.Operation, shape: ProductShape, target: CudaTarget) -> ProductPlan | WarpgroupPlan:
    if PLAN not in operation.attributes:
        return plan_warpgroups(shape, target.architecture) or plan_product(shape, target.architecture)
    try:
        return _edited(ir.StringAttr(operation.attributes[PLAN]).value, shape, target)
    except RelaxError as error:
        raise RelaxError(f"'{operation.name}' op {error}", operation.location) from None


def _edited(text: str, shape: ProductShape, target: CudaTarget) -> ProductPlan | WarpgroupPlan:
    """The plan of a line. Raises RelaxError where it is none, or does not fit."""
    limit = target.architecture.shared_per_block
    if not text.startswith("warpgroups="):
        plan = parse_plan(text)
        check_plan(plan, shape, limit)
        return plan
    if plan_warpgroups(shape, target.architecture) is None:
        raise RelaxError(f"expected a plan of warps for this product and {target.architecture.name}, got '{text}'")
    grouped = parse_warpgroup_plan(text)
    check_warpgroup_plan(grouped, shape, limit)
    return grouped


def build_product(code: HostCode, planned: PlannedProduct, target: CudaTarget) -> None:
    """Puts the launch in the place of a product's operations."""
    group, plan = planned.group, planned.plan
    if plan.split > 1:
        _build_split(code, planned, target)
        return
    with code.em.before(group.epilogue or group.contraction):
        memory = Memory(code.em)
        contraction = match_product(group.contraction, memory)
        assert contraction is not None
        tiles = count_of_tiles(memory, contraction, plan.tile)
        if isinstance(plan, WarpgroupPlan):
            _launch_warpgroups(code, group, plan, contraction, memory, tiles)
        else:
            _launch_warps(code, planned, plan, tiles, target.architecture.shared_per_block)
    erase_group(group)


def _build_split(code: HostCode, planned: PlannedProduct, target: CudaTarget) -> None:
    """The launch of all parts, and of what adds them up."""
    group = planned.group
    with code.em.before(group.epilogue or group.contraction):
        made = split_product(code.em, group, planned.plan.split)
    build_product(code, PlannedProduct(made.parts, planned.shape, replace(planned.plan, split=1)), target)
    erase_group(replace(group, fill=None))
    build_elementwise(code, elementwise_plan(made.total), target)


def _launch_warps(code: HostCode, planned: PlannedProduct, plan: ProductPlan, tiles: ir.Value, limit: int) -> None:
    def build(device: DeviceCode) -> None:
        ProductKernel(device, planned.group, planned.shape, plan, limit).build()

    code.launch([tiles], [plan.threads], build, resident=1 if plan.instruction.is_fused else None)


def _launch_warpgroups(
    code: HostCode, group: MatchedGroup, plan: WarpgroupPlan, contraction: Contraction, memory: Memory, tiles: ir.Value
) -> None:
    em = code.em
    factors = map_factors(contraction)
    assert factors is not None
    pointers = [encoded(memory, f, _box(f, plan, n)) for f, n in zip(factors, (plan.tile.rows, plan.tile.columns), strict=True)]
    blocks = em.op("arith.minui", [tiles, em.number(plan.blocks)], em.index)

    def build(device: DeviceCode) -> None:
        maps = [(f, device.descriptor(p)) for f, p in zip(factors, pointers, strict=True)]
        WarpgroupKernel(device, group, plan, maps).build()

    code.launch([blocks], [plan.threads], build)


def _box(factor: MappedFactor, plan: WarpgroupPlan, rows: int) -> Sequence[int]:
    """What is copied at once: 128 bytes along the innermost dimension, a tile's rows or steps of k along the next."""
    line = LINE // plan.instruction.bytes
    return line, rows if factor.along_k else plan.tile.depth, *[1] * len(factor.batch)

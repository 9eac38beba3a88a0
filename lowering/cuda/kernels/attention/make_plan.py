"""The plan of attention: the tile of a table that takes the least time, by what it multiplies, reads, and exponentiates.

What is assumed of all GPUs is what :mod:`relaxir.lowering.cuda.cost` assumes of products, of shared memory, the second-level
cache and how much of their peak tensor cores sustain, and that a multiprocessor computes 16 exponentials in a cycle. A block
does one part of a tile after the other, and others meanwhile what they can; copies are beside both. None is faster than its
next tile comes.
"""

from __future__ import annotations

from dataclasses import replace
from math import ceil

from ...cost.kernel_time import L2_BYTES_PER_CYCLE
from ...cost.product_time import SHARED_BYTES_PER_CYCLE, tensor_share
from ...cuda_target import Architecture, CudaTarget
from ..products.warpgroup_plan import ROWS
from .plan import STRIP, THIRDS, AttentionPlan, AttentionTile, AttentionWarps
from .shape import BOOLEAN, AttentionShape
from .warpgroup_plan import WarpgroupAttentionPlan

__all__ = ["FEW_ROWS", "key_cycles", "plan_few", "plan_many", "plan_warpgroups", "warpgroup_cycles"]

#: Rows, of all heads that share keys, up to which blocks share keys: an instruction's.
FEW_ROWS = STRIP
# Rows, keys, and warps, which are along rows. Not measured: what public kernels for Ampere use, and smaller ones.
_TILES = ((128, 64, 4), (128, 32, 4), (64, 64, 4), (64, 32, 4), (64, 16, 4), (32, 32, 2), (32, 16, 2), (16, 16, 1))
_STAGES = 2
# Of warpgroups: what they multiply, how many there are, and keys; their elements; sums, scores, powers and queries of a thread,
# up to which ptxas 13.0 spills nothing (128 elements and keys).
_HALVES = ("bf16", "f16")
_GROUP_TILES = ((2, 128), (2, 64), (1, 128), (1, 64))
_LEAST_ELEMENTS, _MOST_ELEMENTS, _MOST_GROUP_REGISTERS = 32, 128, 224
# Of the exponentials' time, what no products are beside; cycles for barriers and the first product of a tile.
_UNHIDDEN, _TILE_CYCLES = 0.125, 60
# Of few rows: keys of a tile, the warps that share them, and stages, which a block asks for before it needs them.
_FEW_TILES = ((64, 4, 3), (64, 4, 2), (32, 2, 3), (32, 2, 2), (16, 1, 2))
# Registers of a thread but for what is counted: addresses and what the compiler wants.
_OTHER_REGISTERS, _MOST_REGISTERS = 48, 240
# Of those, the parts of factors that are sums of two tf32, for each strip: of what is in shared memory, and of queries that are
# in registers as well (with 36 of these, 96 elements spill 12 bytes).
_THIRDS_REGISTERS, _HELD_THIRDS_REGISTERS = 24, 42
_EXPONENTIALS = 16
# Cycles from asking the second-level cache for a tile to having it.
_LATENCY = 400
# Blocks that multiprocessors have at once where rows are few.
_RESIDENT = 2
# Of sizes that are known at run time only.
_USUAL_ROWS, _USUAL_PAIRS = 4096, 32


def plan_many(shape: AttentionShape, target: CudaTarget) -> AttentionPlan | None:
    """The plan of many rows; None where none fits."""
    plans = [_plan(shape, tile, target) for tile in _TILES]
    limit = target.architecture.shared_per_block
    fitting = [p for p in plans if p.shared_bytes(shape.depth, shape.width) <= limit]
    fitting = [p for p in fitting if _registers(p, shape) <= _MOST_REGISTERS]
    return min(fitting, key=lambda p: key_cycles(p, shape, target.architecture), default=None)


def plan_warpgroups(shape: AttentionShape, target: CudaTarget) -> WarpgroupAttentionPlan | None:
    """The plan of many rows for warpgroups; None for architectures without, and for what others compute."""
    architecture, together = target.architecture, shape.together
    if not architecture.wgmma or not shape.is_mapped or shape.element not in _HALVES:
        return None
    if (together is not None and together <= ROWS) or not all(
        _LEAST_ELEMENTS <= n <= _MOST_ELEMENTS for n in (shape.depth, shape.width)
    ):
        return None
    plans = [p for tile in _GROUP_TILES for p in _plans_of_warpgroups(shape, tile)]
    fitting = [p for p in plans if p.shared_bytes(shape.depth, shape.width) <= architecture.shared_per_block]
    fitting = [p for p in fitting if _group_registers(p, shape) <= _MOST_GROUP_REGISTERS]
    return min(fitting, key=lambda p: warpgroup_cycles(p, shape, architecture), default=None)


def _group_registers(plan: WarpgroupAttentionPlan, shape: AttentionShape) -> int:
    """Of a thread, with what a mask adds to scores, or with a bit for each of these."""
    scores = plan.tile.keys // 2
    masks = 0 if shape.mask is None else ceil(scores / 32) if shape.mask == BOOLEAN else scores
    return plan.registers(shape.depth, shape.width) + masks


def _plans_of_warpgroups(shape: AttentionShape, tile: tuple[int, int]) -> list[WarpgroupAttentionPlan]:
    """Those with more stages first."""
    groups, keys = tile
    sizes = AttentionTile(ROWS * groups, keys)
    return [WarpgroupAttentionPlan(groups, sizes, stages, shape.element) for stages in (4, 3, 2)]


def warpgroup_cycles(plan: WarpgroupAttentionPlan, shape: AttentionShape, architecture: Architecture) -> float:
    """Cycles for a key of all rows, on all multiprocessors, each of which has one block; as :func:`key_cycles`.

    The softmax of a tile is beside products, but for what it waits for and is waited for: an eighth of it, for each warpgroup.
    """
    rows, peak = plan.tile.rows, architecture.tensor[plan.by]
    depth, width = plan.steps(shape.depth) * plan.instruction.depth, shape.width
    products, powers = 2 * rows * (depth + width) / peak / tensor_share(architecture, wgmma=True), rows / _EXPONENTIALS
    bytes_ = plan.stage_bytes(shape.depth, shape.width) / plan.tile.keys
    together = (_USUAL_ROWS if shape.rows is None else shape.rows) * (shape.shared or 1)
    blocks = ceil(together / rows) * (shape.pairs or _USUAL_PAIRS)
    of_tile = max(products, 2 * powers, bytes_ / L2_BYTES_PER_CYCLE) + _UNHIDDEN * powers + _TILE_CYCLES / plan.tile.keys
    return ceil(blocks / architecture.part.sm_count) * of_tile


def plan_few(shape: AttentionShape, target: CudaTarget) -> AttentionPlan | None:
    """The plan of at most :data:`FEW_ROWS` rows; None where none fits."""
    blocks, by = _RESIDENT * target.architecture.part.sm_count, _instruction(shape, target)
    limit = target.architecture.shared_per_block
    plans = [AttentionPlan(AttentionTile(STRIP, k), AttentionWarps(1, w), n, by, "shared", blocks) for k, w, n in _FEW_TILES]
    needed = {p: p.shared_bytes(shape.depth, shape.width) for p in plans}
    together = (p for p in plans if needed[p] <= limit // _RESIDENT)
    return next(together, next((p for p in plans if needed[p] <= limit), None))


def _instruction(shape: AttentionShape, target: CudaTarget) -> str:
    if shape.element != "f32":
        return shape.element
    return "tf32" if target.tf32 else THIRDS


def _plan(shape: AttentionShape, sizes: tuple[int, int, int], target: CudaTarget) -> AttentionPlan:
    rows, keys, warps = sizes
    made = AttentionPlan(AttentionTile(rows, keys), AttentionWarps(warps, 1), _STAGES, _instruction(shape, target), "registers")
    fits = _registers(made, shape) <= _MOST_REGISTERS
    return made if fits else replace(made, queries="shared")


def _registers(plan: AttentionPlan, shape: AttentionShape) -> int:
    """Of a thread: sums, scores, what the mask adds to them, and queries."""
    scores = plan.warp_keys // 2
    masks = scores if shape.mask is not None else 0
    is_held = plan.queries == "registers"
    held = _HELD_THIRDS_REGISTERS if is_held else _THIRDS_REGISTERS
    thirds, of_factor = (held, 2) if plan.by == THIRDS else (0, 1)
    queries = of_factor * shape.depth * plan.bytes // 8 if is_held else 4
    return plan.strips * (shape.width // 2 + scores + masks + queries + thirds) + _OTHER_REGISTERS


def key_cycles(plan: AttentionPlan, shape: AttentionShape, architecture: Architecture) -> float:
    """Cycles for a key of all rows, on all multiprocessors; rows and heads that are not known are many."""
    tile, times = plan.tile, 3 if plan.by == THIRDS else 1
    peak = architecture.tensor[plan.instruction.name] * tensor_share(architecture)
    products = 2 * tile.rows * (shape.depth + shape.width) * times / peak
    keys = (shape.depth + shape.width) * plan.bytes
    queries = shape.depth * plan.bytes * tile.rows / tile.keys if plan.queries == "shared" else 0
    shared = (plan.warps.rows * keys + keys + queries) / SHARED_BYTES_PER_CYCLE
    own, copies = (products, shared, tile.rows / _EXPONENTIALS), keys / L2_BYTES_PER_CYCLE
    together = (_USUAL_ROWS if shape.rows is None else shape.rows) * (shape.shared or 1)
    blocks = ceil(together / tile.rows) * (shape.pairs or _USUAL_PAIRS)
    resident = min(_resident(plan, shape, architecture), ceil(blocks / architecture.part.sm_count))
    of_tile = max(resident * max(*own, copies), sum(own), _LATENCY / tile.keys / (plan.stages - 1))
    return ceil(blocks / architecture.part.sm_count / max(1, resident)) * of_tile


def _resident(plan: AttentionPlan, shape: AttentionShape, architecture: Architecture) -> int:
    """Blocks of a multiprocessor."""
    registers = architecture.registers_per_sm // (plan.threads * (_registers(plan, shape) + 8))
    return min(registers, architecture.shared_per_sm // (plan.shared_bytes(shape.depth, shape.width) + 1024))

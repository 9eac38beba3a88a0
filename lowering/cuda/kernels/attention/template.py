"""The template of attention: recognises it, plans and launches it."""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil

from .....dialect.bindings import func, ir
from .....dialect.functions import body_of
from .....dialect.traversal import operations
from ....kernels.emit.buffers import Buffers
from ....kernels.emit.memory import Memory
from ....kernels.structure.attention import MatchedAttention, read_attention
from ...cuda_target import CudaTarget
from ..device_code import DeviceCode
from ..device_memory import DeviceMemory
from ..host_code import HostCode
from ..memory import address_of
from ..products.encode_maps import encoded
from ..products.tensor_maps import MappedFactor
from .kernel import AttentionKernel
from .key_maps import map_keys, map_values
from .make_plan import FEW_ROWS, plan_few, plan_many, plan_warpgroups
from .mask_tiles import THREADS, MaskTiles, build_mask_tiles
from .merge import build_merge, merge_threads
from .places import SharedHeads
from .plan import THIRDS, AttentionPlan
from .results import PartialResults, WholeResults
from .shape import AttentionShape, describe
from .warpgroup_kernel import WarpgroupAttention
from .warpgroup_plan import WarpgroupAttentionPlan

__all__ = ["PlannedAttention", "build_attention", "plan_of_attention"]


@dataclass(frozen=True)
class PlannedAttention:
    """A kernel function that is attention on tensor cores.

    Attributes:
        shape: of what it computes.
        many: how, for many rows; None where rows are known to be few.
        few: how, for few rows; None where they are known to be many.
    """

    shape: AttentionShape
    many: AttentionPlan | WarpgroupAttentionPlan | None
    few: AttentionPlan | None

    def __str__(self) -> str:
        return "attention " + " else ".join(str(p) for p in (self.many, self.few) if p is not None)


def plan_of_attention(function: func.FuncOp, target: CudaTarget) -> PlannedAttention | None:
    """The plan of a kernel function that is attention, None for others, and for types and sizes that tensor cores have not.

    Raises:
        RelaxError: the mark of the function does not fit it.
    """
    attention = read_attention(function, Buffers(function.location))
    shape = None if attention is None else describe(attention)
    if shape is None:
        return None
    together = shape.together
    many = (plan_warpgroups(shape, target) or plan_many(shape, target)) if together is None or together > FEW_ROWS else None
    few = plan_few(shape, target) if together is None or together <= FEW_ROWS else None
    missing = many is None if together is None or together > FEW_ROWS else few is None
    return None if missing or (together is None and few is None) else PlannedAttention(shape, many, few)


def build_attention(code: HostCode, planned: PlannedAttention, target: CudaTarget) -> None:
    """Puts launches in the place of a function's operations."""
    del target
    block = body_of(code.function)
    assert block is not None
    *old, end = operations(block)
    with code.em.before(end):
        _Launches(code, planned).build()
    for op in old[::-1]:
        if op.name != "arith.constant":  # the first one is where others are put
            op.erase()


def _resident(plan: AttentionPlan | WarpgroupAttentionPlan) -> int | None:
    """For :meth:`HostCode.launch`: f32 needs most registers, of which some were spilled (36 bytes, for 96 elements)."""
    return 1 if plan.by == THIRDS else None


class _Launches:
    """Builds the host code of one function."""

    def __init__(self, code: HostCode, planned: PlannedAttention):
        self.code, self.em, self.planned = code, code.em, planned
        memory = Memory(code.em)
        attention = read_attention(code.function, memory)
        assert attention is not None
        self.attention, self.memory = attention, memory
        em, dims = code.em, attention.dims
        _, self.together = SharedHeads(attention, memory.size).build(lambda n, v: em.op(n, v, em.index), em.number)
        self.pairs = memory.size(attention.extents[dims.group])
        for dim in range(dims.batch):
            self.pairs = em.mul(self.pairs, memory.size(attention.extents[dim]))
        self.keys = memory.size(attention.extents[dims.key])

    def build(self) -> None:
        many, few = self.planned.many, self.planned.few
        if many is not None and few is not None:
            self._by_rows(many, few)
        elif many is not None:
            self._launch_many(many, self._ceil(self.together, many.tile.rows))
        elif few is not None:
            self._launch_few(few, self._any_rows())

    def _any_rows(self) -> ir.Value:
        """1, or 0 where there are no rows: a block reads the last one in the place of others."""
        return self.em.op("arith.minui", [self.together, self.em.number(1)], self.em.index)

    def _by_rows(self, many: AttentionPlan | WarpgroupAttentionPlan, few: AttentionPlan) -> None:
        """Both, one of which has no blocks: what is between launches is allocated by sizes of the function's arguments."""
        em = self.em
        is_few = em.compare("ule", self.together, em.number(FEW_ROWS))
        tiles = self._ceil(self.together, many.tile.rows)
        self._launch_many(many, em.op("arith.select", [is_few, em.number(0), tiles], em.index))
        self._launch_few(few, em.op("arith.select", [is_few, self._any_rows(), em.number(0)], em.index))

    def _ceil(self, a: ir.Value, by: ir.Value | int) -> ir.Value:
        """A quotient of positive numbers, rounded up."""
        em = self.em
        by = em.number(by) if isinstance(by, int) else by
        return em.op("arith.divui", [em.sub(em.add(a, by), em.number(1)), by], em.index)

    def _launch_many(self, plan: AttentionPlan | WarpgroupAttentionPlan, tiles: ir.Value) -> None:
        """A block for some rows; of causal attention those that see most begin."""
        is_grouped = isinstance(plan, WarpgroupAttentionPlan)
        pointers = self._maps(plan) if is_grouped else []
        shown = self._mask_tiles(plan, tiles) if is_grouped and self.attention.mask is not None else None

        def build(device: DeviceCode) -> None:
            memory = DeviceMemory(device)
            attention = self._read(memory)
            parts = self._tiles_of(device, memory, attention, plan)
            results = WholeResults(attention.result)
            if isinstance(plan, WarpgroupAttentionPlan):
                maps = [(factor, device.descriptor(pointer)) for factor, pointer in pointers]
                bytes_ = None if shown is None else address_of(device.em, device.value(shown))
                grouped = WarpgroupAttention(device, memory, attention, plan, parts, maps, bytes_)
                grouped.build(self._first_row(device, attention, plan, parts, grouped.places.part), results)
            else:
                kernel = AttentionKernel(device, memory, attention, plan, parts)
                first = self._first_row(device, attention, plan, parts, kernel.places.part)
                kernel.build(first, (device.em.number(0), kernel.places.keys), results)

        self.code.launch([self.em.mul(tiles, self.pairs)], [plan.threads], build, resident=_resident(plan))

    def _first_row(
        self, device: DeviceCode, attention: MatchedAttention, plan: AttentionPlan | WarpgroupAttentionPlan,
        parts: ir.Value, part: ir.Value,
    ) -> ir.Value:  # fmt: skip
        em = device.em
        if attention.causal:
            part = em.sub(em.sub(parts, em.number(1)), part)
        return em.mul(part, em.number(plan.tile.rows))

    def _maps(self, plan: WarpgroupAttentionPlan) -> list[tuple[MappedFactor, ir.Value]]:
        """Keys and values as tensors, with pointers to their descriptors."""
        factors = [map_keys(self.attention), map_values(self.attention)]
        box = plan.block_elements, plan.tile.keys
        return [(f, encoded(self.memory, f, (*box, *[1] * len(f.batch)))) for f in factors if f is not None]

    def _mask_tiles(self, plan: WarpgroupAttentionPlan, tiles: ir.Value) -> ir.Value:
        """A byte for each tile of the mask, and the launch that writes them; none where there are no ``tiles`` of rows."""
        em, of_mask = self.em, MaskTiles(self.attention, plan.tile)
        masks, keys = of_mask.masks(em, self.memory.size), of_mask.key_tiles(em, self.memory.size)
        count = em.mul(em.mul(masks, of_mask.row_tiles(em, self.together)), keys)
        found = self._allocated(count, element=em.integer(8))

        def build(device: DeviceCode) -> None:
            memory = DeviceMemory(device)
            of_kernel = MaskTiles(self._read(memory), plan.tile)
            address = address_of(device.em, device.value(found))
            build_mask_tiles(device, memory, of_kernel, device.value(self.together), address)

        is_any = em.op("arith.minui", [tiles, em.number(1)], em.index)
        self.code.launch([em.mul(count, is_any)], [THREADS], build)
        return found

    def _read(self, memory: DeviceMemory) -> MatchedAttention:
        found = read_attention(self.code.function, memory)
        assert found is not None
        return found

    def _tiles_of(
        self,
        device: DeviceCode,
        memory: DeviceMemory,
        attention: MatchedAttention,
        plan: AttentionPlan | WarpgroupAttentionPlan,
    ) -> ir.Value:
        em = device.em
        _, together = SharedHeads(attention, memory.size).build(lambda n, v: em.op(n, v, em.index), em.number)
        rows = em.add(together, em.number(plan.tile.rows - 1))
        return em.op("arith.divui", [rows, em.number(plan.tile.rows)], em.index)

    def _launch_few(self, plan: AttentionPlan, factor: ir.Value) -> None:
        """Blocks for parts of the keys, then one for each row; ``factor``: 1, or 0 for no blocks at all."""
        em = self.em
        tiles = em.op("arith.maxui", [self._ceil(self.keys, plan.tile.keys), em.number(1)], em.index)
        pairs = em.op("arith.maxui", [self.pairs, em.number(1)], em.index)
        wanted = self._ceil(em.number(plan.blocks), pairs)
        blocks = em.op("arith.minui", [tiles, wanted], em.index)
        of_block = self._ceil(tiles, blocks)
        span = em.mul(of_block, em.number(plan.tile.keys))
        blocks = self._ceil(tiles, of_block)
        launched, warps, width = em.mul(em.mul(self.pairs, factor), blocks), plan.warps.keys, self.planned.shape.width
        most_rows = self.planned.shape.together or FEW_ROWS
        found = self._allocated(self._most_parts(plan), warps * most_rows, width + 2)

        def build(device: DeviceCode) -> None:
            self._part(device, plan, device.value(blocks), device.value(span), device.value(found))

        def merge(device: DeviceCode) -> None:
            memory = DeviceMemory(device)
            attention, parts = self._read(memory), device.em.mul(device.value(blocks), device.em.number(warps))
            address = address_of(device.em, device.value(found))
            build_merge(device, memory, attention, self._scale(attention), address, parts, device.value(self.together))

        self.code.launch([launched], [plan.threads], build, resident=_resident(plan))
        count = em.mul(em.mul(self.pairs, factor), self.together)
        self.code.launch([count], [merge_threads(width)], merge)

    def _scale(self, attention: MatchedAttention) -> float:
        return 1.0 if attention.mask is not None or attention.scale <= 0 else attention.scale

    def _part(self, device: DeviceCode, plan: AttentionPlan, blocks: ir.Value, span: ir.Value, found: ir.Value) -> None:
        """A block for some keys of heads."""
        em, memory = device.em, DeviceMemory(device)
        kernel = AttentionKernel(device, memory, self._read(memory), plan, blocks)
        places = kernel.places
        number = em.add(em.mul(places.pair, blocks), places.part)
        number = em.add(em.mul(number, em.number(plan.warps.keys)), kernel.code.index(kernel.warp_key))
        begin = em.mul(places.part, span)
        end = em.op("arith.minui", [em.add(begin, span), places.keys], em.index)
        kernel.build(em.number(0), (begin, end), PartialResults(address_of(em, found), number, places.together))

    def _most_parts(self, plan: AttentionPlan) -> ir.Value:
        """No more blocks have parts of the keys: a sum of sizes, as what belongs to the arena must be."""
        shape, em = self.planned.shape, self.em
        if shape.pairs is None or shape.keys is None:
            return em.add(em.number(plan.blocks), self.pairs)
        of_head = min(max(1, ceil(shape.keys / plan.tile.keys)), ceil(plan.blocks / max(1, shape.pairs)))
        return em.number(of_head * shape.pairs)

    def _allocated(self, *sizes: ir.Value | int, element: ir.Type | None = None) -> ir.Value:
        """A buffer, of f32 by default; sizes that are no constants come first."""
        em = self.em
        dynamic = [s for s in sizes if not isinstance(s, int)]
        with em.context, em.location:
            shape = [ir.ShapedType.get_dynamic_size()] * len(dynamic) + [s for s in sizes if isinstance(s, int)]
            segments = {"operandSegmentSizes": ir.DenseI32ArrayAttr.get([len(dynamic), 0])}
            return em.op("memref.alloc", dynamic, ir.MemRefType.get(shape, element or em.f32), segments)

"""How long a matrix product on tensor cores takes, by its tiles: what plans are chosen by where nothing can be measured.

A block computes a tile of the result, in steps of k that pass through stages of shared memory. A step keeps tensor cores,
shared memory and the way to the second-level cache busy; the slowest decides, shared by the blocks on a multiprocessor, and no
step is shorter than a load takes that was started as many stages ahead. In front of the first step a load is waited for, behind
the last the tile is stored; other blocks of the multiprocessor work meanwhile.

Beyond what :mod:`.kernel_time` assumes:

- Tensor cores sustain 0.8 of their peak by ``wgmma`` (cuBLAS on an H200: 788 of 989 TFLOP/s for random bf16; 894 for zeros,
  where power does not limit), 0.63 by ``mma.sync`` on a GPU that has ``wgmma`` (Luo et al. 2024, arXiv 2402.13499), and 0.9
  elsewhere.
- Shared memory moves 128 bytes per cycle. ``mma.sync`` reads both factors once per warp, ``wgmma`` the left one once and the
  right one once per warpgroup; the copy from memory writes both.
- Fewer than eight warps on a multiprocessor do not overlap reading of fragments with multiplying, and fused multiply-adds
  none of what threads read for themselves: both are instructions of the same warps.
- The sums of parts of k are written, and read again by another kernel, which begins when all are there.
- Sums of 8-bit floats are added in f32 after each step, beside products of other warps.
- The blocks of a wave are as square a part of the result as ``raster`` makes it, and read each of its rows and columns from
  memory once; where both factors fit half of the second-level cache, they are read once for all waves.

By these, 128 x 256 tiles by ``wgmma`` reach 624 TFLOP/s at 8192 on an H100, limited by the second-level cache, and 745 in
clusters of two that share columns; published kernels of that shape reach 630 to 660 and 700 to 764.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from ..cuda_target import Architecture
from .kernel_time import BANDWIDTH_SHARE, L2_BYTES_PER_CYCLE, LATENCY, START, Prediction, waves_of
from .occupancy import WARP, occupancy

__all__ = ["SHARED_BYTES_PER_CYCLE", "ProductTiling", "product_time", "tensor_share"]

#: Of a multiprocessor.
SHARED_BYTES_PER_CYCLE = 128
_WGMMA_SHARE, _MMA_SHARE_BESIDE_WGMMA, _MMA_SHARE = 0.8, 0.63, 0.9
_OVERLAPPING_WARPS = 8
_WGMMA_ROWS = 64
#: Bytes of an element of a factor, by its kind.
_BYTES = {"bf16": 2, "f16": 2, "tf32": 4, "f32": 4, "f8": 1, "i8": 1}
# Registers of a thread beside its sums: fragments, addresses, counters; kernels of 64 x 64 to 128 x 256 have 40 to 60.
_OTHER_REGISTERS = 48


@dataclass(frozen=True)
class ProductTiling:
    """How a product is cut.

    Attributes:
        tile: rows, columns and steps of k that a block has in a stage.
        warps: that share the rows and the columns of a tile; with ``wgmma`` those that multiply.
        stages: of shared memory.
        split: blocks that share the steps of k of one tile; their sums are added by another kernel.
        raster: rows of tiles that blocks side by side compute.
        wgmma: whether warpgroups multiply from shared memory, and others copy.
        shares: warps that share the steps of k of a stage, each of which multiplies the whole tile.
        own_lines: lines of k that each thread reads for itself, of factors that are no fragments of tensor cores; 0: they are.
        cluster: blocks one above the other that share what one of them copies of the right factor.
        registers: of a thread, if known.
        shared: bytes of a block, if not those of the stages.
    """

    tile: tuple[int, int, int]
    warps: tuple[int, int]
    stages: int
    split: int = 1
    raster: int = 8
    wgmma: bool = False
    shares: int = 1
    own_lines: int = 0
    cluster: int = 1
    registers: int | None = None
    shared: int | None = None


def product_time(
    architecture: Architecture,
    shape: tuple[int, int, int],
    tiling: ProductTiling,
    *,
    kind: str = "bf16",
    batch: int = 1,
    left_bytes: float | None = None,
    right_bytes: float | None = None,
    result_bytes: int = 2,
) -> Prediction:
    """How long ``batch`` products of ``[m, k]`` and ``[k, n]`` take.

    Args:
        architecture: of the GPU.
        shape: m, n and k.
        tiling: how they are cut.
        kind: of factors in tensor cores, a key of ``Architecture.tensor``; ``"f32"``: of fused multiply-adds.
        batch: how many products there are.
        left_bytes, right_bytes: bytes of an element in memory, where they are not those of the kind: a weight of four bits
            has 0.5 and its scales.
        result_bytes: of an element of the result.

    Raises:
        RelaxError: a block does not fit a multiprocessor.
    """
    return _Product(architecture, shape, tiling, kind, batch, left_bytes, right_bytes, result_bytes).prediction()


def tensor_share(architecture: Architecture, *, wgmma: bool = False) -> float:
    """Of their peak that tensor cores sustain, by ``wgmma`` or ``mma.sync``."""
    if wgmma:
        return _WGMMA_SHARE
    return _MMA_SHARE_BESIDE_WGMMA if architecture.wgmma else _MMA_SHARE


class _Product:
    """One product with its tiling; times are in cycles of a multiprocessor unless they are called seconds."""

    def __init__(
        self,
        architecture: Architecture,
        shape: tuple[int, int, int],
        tiling: ProductTiling,
        kind: str,
        batch: int,
        left_bytes: float | None,
        right_bytes: float | None,
        result_bytes: int,
    ):
        self.a, self.part, self.t, self.kind, self.batch = architecture, architecture.part, tiling, kind, batch
        self.m, self.n, self.k = shape
        self.size = _BYTES[kind]
        self.left = self.size if left_bytes is None else left_bytes
        self.right = self.size if right_bytes is None else right_bytes
        self.result = result_bytes
        self.rows, self.columns, self.depth = tiling.tile
        self.tiles = -(-self.m // self.rows), -(-self.n // self.columns)
        self.blocks = math.prod(self.tiles) * batch * tiling.split
        self.resident = occupancy(architecture, self._threads(), self._registers(), self._shared()).blocks
        self.latency = LATENCY * self.part.clock

    def prediction(self) -> Prediction:
        steps = -(-self.k // (self.depth * self.t.split))
        busy = {name: self._on_one(cycles) for name, cycles in self._step().items()}
        bound = max(busy, key=busy.__getitem__)
        step = busy[bound]
        wait = self.latency / max(1, self.t.stages - 1)
        if wait > step:
            bound, step = "latency", wait
        waves = waves_of(self.blocks, self.resident, self.part.sm_count)
        seconds = waves * (steps * step + self._ends()) / self.part.clock
        memory = self._memory_bytes() / (BANDWIDTH_SHARE * self.part.bandwidth)
        if memory > seconds:
            bound, seconds = "memory", memory
        overhead = START + self._adding()
        return Prediction(seconds + overhead, self._limit(), bound if seconds > overhead else "start")

    def _on_one(self, cycles: float) -> float:
        """Of a multiprocessor with all of its blocks, of which there may be fewer than fit."""
        here = min(self.resident, -(-self.blocks // self.part.sm_count))
        return here * cycles

    def _adding(self) -> float:
        """Seconds of the kernel that adds the sums of parts of k."""
        if self.t.split == 1:
            return 0
        moved = self.m * self.n * self.batch * (4 * self.t.split + self.result)
        return START + moved / (BANDWIDTH_SHARE * self.part.bandwidth)

    def _warps(self) -> int:
        return math.prod(self.t.warps) * self.t.shares

    def _threads(self) -> int:
        copying = WARP * 4 if self.t.wgmma else 0
        return self._warps() * WARP + copying

    def _registers(self) -> int:
        if self.t.registers is not None:
            return self.t.registers
        sums = self.rows * self.columns // (math.prod(self.t.warps) * WARP)
        return min(self.a.registers_per_thread, sums + _OTHER_REGISTERS) if not self.t.wgmma else 168

    def _shared(self) -> int:
        stage = (self.rows + self.columns) * self.depth * self.size
        return stage * self.t.stages if self.t.shared is None else self.t.shared

    def _peak(self) -> float:
        """Operations in a cycle."""
        return 2 * self.a.f32_lanes if self.kind == "f32" else self.a.tensor[self.kind]

    def _step(self) -> dict[str, float]:
        """What a block keeps busy in a step of k."""
        line = self.depth * self.size
        copied = (self.rows + self.columns) * line
        tensor = 2 * self.rows * self.columns * self.depth / (self._peak() * tensor_share(self.a, wgmma=self.t.wgmma))
        shared = (copied + self._fragment_bytes(line)) / SHARED_BYTES_PER_CYCLE
        if self.t.own_lines or (not self.t.wgmma and self.resident * self._warps() < _OVERLAPPING_WARPS):
            tensor += shared
        cache = (self.rows * self.left + self.columns * self.right / self.t.cluster) * self.depth / L2_BYTES_PER_CYCLE
        busy = {"tensor": tensor, "shared memory": shared, "cache": cache}
        if self.kind == "f8":
            busy["sums"] = self.rows * self.columns / self.a.f32_lanes
        return busy

    def _fragment_bytes(self, line: int) -> int:
        if self.t.wgmma:
            return (self.rows + -(-self.rows // _WGMMA_ROWS) * self.columns) * line
        if self.t.own_lines:
            return self._threads() * self.t.own_lines * line
        rows, columns = self.t.warps
        return (self.rows * columns + self.columns * rows) * line

    def _ends(self) -> float:
        """In front of the first step and behind the last one; with several blocks, their stores alone are not hidden."""
        bytes_ = self.result if self.t.split == 1 else 4
        store = self._on_one(self.rows * self.columns * bytes_ / L2_BYTES_PER_CYCLE)
        return store + self.latency * (2 if self.resident == 1 else 1)

    def _memory_bytes(self) -> float:
        left, right = self.m * self.k * self.left, self.n * self.k * self.right
        result = self.m * self.n * (self.result if self.t.split == 1 else 4 * self.t.split)
        read = left + right
        if read > self.part.l2_bytes / 2:
            at_once = min(math.prod(self.tiles), self.resident * self.part.sm_count)
            high = min(self.t.raster, self.tiles[0], at_once)
            wide = at_once / high
            wave = (high * self.rows * self.left + wide * self.columns * self.right) * self.k
            read = max(read, math.prod(self.tiles) / at_once * wave)
        return (read + result) * self.batch

    def _limit(self) -> float:
        operations = 2 * self.m * self.n * self.k / (self._peak() * self.part.sm_count * self.part.clock)
        moved = self.m * self.k * self.left + self.n * self.k * self.right + self.m * self.n * self.result
        return self.batch * max(operations, moved / self.part.bandwidth)

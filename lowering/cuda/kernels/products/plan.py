"""The plan of a kernel on tensor cores: every choice that its code is built by, as data and as a line of text.

A plan reads ``tile=128x128x32 warps=2x2 stages=4 by=bf16 copies=16:16 raster=8 store=8``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from .....dialect.errors import RelaxError
from ....plan_text import Reader, one_of, positives
from .instructions import STEP_BYTES
from .shape import ProductShape
from .tile_plan import TilePlan, check_tile_plan, fields_of_plan

__all__ = ["WARP", "CopyBytes", "ProductPlan", "WarpGrid", "check_plan", "parse_plan", "sums_pitch"]

#: Threads of a warp.
WARP = 32


@dataclass(frozen=True)
class WarpGrid:
    """How many warps share a tile along its rows, its columns, and the steps of k of a stage."""

    rows: int
    columns: int
    depth: int = 1

    @property
    def count(self) -> int:
        return self.rows * self.columns * self.depth

    def __str__(self) -> str:
        return f"{self.rows}x{self.columns}" + (f"x{self.depth}" if self.depth > 1 else "")


@dataclass(frozen=True)
class CopyBytes:
    """Bytes that a ``cp.async`` brings of the left and the right factor; 0: values go through registers."""

    left: int
    right: int

    def __str__(self) -> str:
        return f"{self.left}:{self.right}"


@dataclass(frozen=True, kw_only=True)
class ProductPlan(TilePlan):
    """How one sum of products is computed by warps; of its stages all but one are being filled.

    Attributes:
        warps: how a tile is shared; each has at least 16 rows and 16 columns.
        copies: how factors come to shared memory.
    """

    ORDER: ClassVar = ("tile", "warps", "stages", "by", "copies", "raster", "store")
    warps: WarpGrid
    copies: CopyBytes

    @property
    def threads(self) -> int:
        """Of a block."""
        return self.warps.count * WARP

    @property
    def warp_rows(self) -> int:
        return self.tile.rows // self.warps.rows

    @property
    def warp_columns(self) -> int:
        return self.tile.columns // self.warps.columns

    @property
    def warp_steps(self) -> int:
        """Instructions along k that a warp has in a stage."""
        return self.line_bytes // STEP_BYTES // self.warps.depth

    @property
    def run(self) -> int:
        """Steps of k that a warp has in a stage."""
        return self.warp_steps * self.instruction.depth

    def result_rows(self, limit: int) -> int:
        """Rows of each warp whose sums are in shared memory at once: all, if so many bytes hold them."""
        rows = self.warp_rows
        while rows > 16 and self.warps.rows * rows * sums_pitch(self.tile.columns) > max(limit, self.stages * self.stage_bytes):
            rows //= 2
        return rows

    def shared_bytes(self, limit: int) -> int:
        """Of a block; sums are where stages were."""
        return max(self.stages * self.stage_bytes, self.warps.rows * self.result_rows(limit) * sums_pitch(self.tile.columns))

    @property
    def accumulators(self) -> int:
        """Registers of a thread that hold sums."""
        return self.warp_rows * self.warp_columns // WARP


def sums_pitch(columns: int) -> int:
    """Bytes from a line of sums in shared memory to the next: 8 more, so that rows of a fragment are in different banks."""
    return (columns + 8) * 4


def parse_plan(text: str) -> ProductPlan:
    """The plan of a line. Raises RelaxError for one that :meth:`ProductPlan.__str__` does not give."""
    return ProductPlan(**fields_of_plan(text, ProductPlan, _READERS, _EXAMPLES))  # type: ignore[arg-type]


def _warps(text: str) -> WarpGrid:
    rows, columns, *depth = positives(text)
    return WarpGrid(rows, columns, *depth)


def _copies(text: str) -> CopyBytes:
    left, right = (int(one_of("0", "4", "8", "16")(part)) for part in text.split(":"))
    return CopyBytes(left, right)


def _keyed(read: Reader) -> Reader:
    """The same with too few or too many parts as ValueErrors."""

    def reading(text: str) -> object:
        try:
            return read(text)
        except TypeError:
            raise ValueError(text) from None

    return reading


_READERS: dict[str, Reader] = {"warps": _keyed(_warps), "copies": _copies}
_EXAMPLES = {
    "warps": "warps along rows, columns and perhaps depth, such as warps=2x2",
    "copies": "bytes of the left and the right factor, 16, 8, 4 or 0, such as copies=16:16",
}


def check_plan(plan: ProductPlan, shape: ProductShape, limit: int) -> None:
    """Raises RelaxError where no kernel can be built by a plan, or it needs more than so many bytes of shared memory."""
    tile, warps, bytes_ = plan.tile, plan.warps, plan.instruction.bytes
    for name, size in (("rows", tile.rows), ("columns", tile.columns), ("depth", tile.depth), ("warps", warps.count)):
        if size & (size - 1):
            raise RelaxError(f"expected a plan whose {name} are a power of two, got {size}")
    if plan.warp_rows < 16 or plan.warp_columns < 16:
        raise RelaxError(f"expected 16 rows and columns for each warp, got {plan.warp_rows} and {plan.warp_columns}")
    if not STEP_BYTES * warps.depth <= tile.depth * bytes_ <= 128:
        raise RelaxError(f"expected stages of {STEP_BYTES * warps.depth} to 128 bytes of k, got {tile.depth * bytes_}")
    for name, asked, most in (("left", plan.copies.left, shape.left.copy), ("right", plan.copies.right, shape.right.copy)):
        if asked > most:
            raise RelaxError(f"expected copies of at most {most} bytes of the {name} factor, got {asked}")
    if shape.group and shape.group % plan.run and plan.run % shape.group:
        expected = f"a part or a multiple of the {shape.group} steps of k that have one scale"
        raise RelaxError(f"expected stages that give a warp {expected}, got {plan.run}")
    check_tile_plan(plan, shape, plan.shared_bytes(limit), limit)

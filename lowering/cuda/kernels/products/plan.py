"""The plan of a kernel on tensor cores: every choice that its code is built by, as data and as a line of text.

A plan reads ``tile=128x128x32 warps=2x2 stages=4 by=bf16 copies=16:16 raster=8 store=8``.
"""

from __future__ import annotations

from dataclasses import dataclass, fields

from .....dialect.errors import RelaxError
from ....plan_text import Reader, one_of, positive, positives, print_fields, read_fields
from .instructions import INSTRUCTIONS, STEP_BYTES, TensorInstruction
from .shape import ProductShape

__all__ = ["WARP", "CopyBytes", "ProductPlan", "ProductTile", "WarpGrid", "check_plan", "parse_plan", "sums_pitch"]

#: Threads of a warp.
WARP = 32


@dataclass(frozen=True)
class ProductTile:
    """Rows and columns of the result that a block computes, and steps of k in a stage."""

    rows: int
    columns: int
    depth: int

    def __str__(self) -> str:
        return f"{self.rows}x{self.columns}x{self.depth}"


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


@dataclass(frozen=True)
class ProductPlan:
    """How one sum of products is computed.

    Attributes:
        tile: what a block computes, in how long stages.
        warps: how it is shared; each has at least 16 rows and 16 columns.
        stages: of shared memory, all but one of which are being filled.
        by: the instruction's name in :data:`.instructions.INSTRUCTIONS`.
        copies: how factors come to shared memory.
        raster: rows of tiles that are computed together, column by column, so that what they read stays in the cache.
        store: neighbouring columns that a thread computes the result of.
    """

    tile: ProductTile
    warps: WarpGrid
    stages: int
    by: str
    copies: CopyBytes
    raster: int = 8
    store: int = 8

    def __str__(self) -> str:
        return print_fields((f.name, getattr(self, f.name)) for f in fields(self))

    @property
    def instruction(self) -> TensorInstruction:
        return INSTRUCTIONS[self.by]

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

    @property
    def line_bytes(self) -> int:
        """Of a row of k in a stage."""
        return self.tile.depth * self.instruction.bytes

    @property
    def left_bytes(self) -> int:
        """Of the left factor in a stage."""
        return self.tile.rows * self.line_bytes

    @property
    def right_bytes(self) -> int:
        return self.tile.columns * self.line_bytes

    @property
    def stage_bytes(self) -> int:
        return self.left_bytes + self.right_bytes

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
    return ProductPlan(**read_fields(text, _READERS, _EXAMPLES, list(_READERS)))  # type: ignore[arg-type]


def _tile(text: str) -> ProductTile:
    rows, columns, depth = positives(text)
    return ProductTile(rows, columns, depth)


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


_READERS: dict[str, Reader] = {
    "tile": _tile,
    "warps": _keyed(_warps),
    "stages": positive,
    "by": one_of(*INSTRUCTIONS),
    "copies": _copies,
    "raster": positive,
    "store": positive,
}
_EXAMPLES = {
    "tile": "rows x columns x depth, such as tile=128x128x32",
    "warps": "warps along rows, columns and perhaps depth, such as warps=2x2",
    "stages": "a positive number of stages",
    "by": f"one of {', '.join(INSTRUCTIONS)}",
    "copies": "bytes of the left and the right factor, 16, 8, 4 or 0, such as copies=16:16",
    "raster": "a positive number of tiles",
    "store": "a positive number of columns",
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
    if plan.by != shape.by:
        raise RelaxError(f"expected by={shape.by}, got by={plan.by}")
    for name, asked, most in (("left", plan.copies.left, shape.left.copy), ("right", plan.copies.right, shape.right.copy)):
        if asked > most:
            raise RelaxError(f"expected copies of at most {most} bytes of the {name} factor, got {asked}")
    if shape.group and shape.group % plan.run and plan.run % shape.group:
        expected = f"a part or a multiple of the {shape.group} steps of k that have one scale"
        raise RelaxError(f"expected stages that give a warp {expected}, got {plan.run}")
    if shape.store % plan.store:
        raise RelaxError(f"expected store to divide {shape.store}, got {plan.store}")
    if plan.stages < 2:
        raise RelaxError(f"expected 2 stages or more, got {plan.stages}")
    needed = plan.shared_bytes(limit)
    if needed > limit:
        raise RelaxError(f"expected at most {limit} bytes of shared memory, got {needed}")

"""The plan of a kernel of warpgroups: every choice that its code is built by, as data and as a line of text.

A plan reads ``warpgroups=2 tile=128x256x64 stages=4 by=bf16 raster=8 store=8 blocks=132``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from .....dialect.errors import RelaxError
from ....plan_text import Reader, positive
from .plan import sums_pitch
from .shape import ProductShape
from .tile_plan import TilePlan, check_tile_plan, fields_of_plan

__all__ = [
    "BARRIER_BYTES",
    "EIGHT_LINES",
    "LINE",
    "MOST_FLOAT8_COLUMNS",
    "ROWS",
    "WarpgroupPlan",
    "check_warpgroup_plan",
    "parse_warpgroup_plan",
]

#: Rows that a warpgroup multiplies.
ROWS = 64
#: Columns of a tile of 8-bit floats, whose threads have sums twice: of all stages, and of one.
MOST_FLOAT8_COLUMNS = 128
#: Bytes of a line of a factor in shared memory: all of its banks.
LINE = 128
#: Eight of them, which one part of a matrix has.
EIGHT_LINES = 8 * LINE
# Columns of the result that a warp passes through shared memory at once: stages of 48 KiB leave room for four and these.
_PART = 32
#: Of a stage: a barrier of 8 bytes for when it is full, and one for when it is free.
BARRIER_BYTES = 16


@dataclass(frozen=True, kw_only=True)
class WarpgroupPlan(TilePlan):
    """How one sum of products is computed by warpgroups, fed by one thread; a stage has 128 bytes of k.

    Attributes:
        warpgroups: that multiply, 64 rows each; one more asks for what they do.
        blocks: how many run; each computes several tiles.
    """

    ORDER: ClassVar = ("warpgroups", "tile", "stages", "by", "raster", "store", "blocks")
    warpgroups: int
    blocks: int

    @property
    def threads(self) -> int:
        """Of a block."""
        return 128 * (self.warpgroups + 1)

    @property
    def part(self) -> int:
        """Columns that a warp passes through shared memory at once."""
        return _PART

    @property
    def exchange_bytes(self) -> int:
        """Of a warp, 16 rows of which pass at once."""
        return 16 * sums_pitch(_PART)

    @property
    def barriers_start(self) -> int:
        return self.stages * self.stage_bytes

    @property
    def exchange_start(self) -> int:
        return self.barriers_start + BARRIER_BYTES * self.stages

    @property
    def shared_bytes(self) -> int:
        return self.exchange_start + 4 * self.warpgroups * self.exchange_bytes


def parse_warpgroup_plan(text: str) -> WarpgroupPlan:
    """The plan of a line. Raises RelaxError for one that :meth:`WarpgroupPlan.__str__` does not give."""
    return WarpgroupPlan(**fields_of_plan(text, WarpgroupPlan, _READERS, _EXAMPLES))  # type: ignore[arg-type]


_READERS: dict[str, Reader] = {"warpgroups": positive, "blocks": positive}
_EXAMPLES = {"warpgroups": "a positive number of warpgroups", "blocks": "a positive number of blocks"}


def check_warpgroup_plan(plan: WarpgroupPlan, shape: ProductShape, limit: int) -> None:
    """Raises RelaxError where no kernel can be built by a plan, or it needs more than so many bytes of shared memory."""
    tile = plan.tile
    if plan.warpgroups not in (1, 2):
        raise RelaxError(f"expected 1 or 2 warpgroups, got {plan.warpgroups}")
    if tile.rows != ROWS * plan.warpgroups or tile.columns not in (64, 128, 256):
        expected = f"{ROWS * plan.warpgroups} rows and 64, 128 or 256 columns"
        raise RelaxError(f"expected a tile of {expected}, got {tile.rows} and {tile.columns}")
    if plan.instruction.is_float8 and tile.columns > MOST_FLOAT8_COLUMNS:
        raise RelaxError(f"expected a tile of at most {MOST_FLOAT8_COLUMNS} columns of 8-bit floats, got {tile.columns}")
    if tile.depth * plan.instruction.bytes != LINE:
        raise RelaxError(f"expected stages of {LINE} bytes of k, got {tile.depth * plan.instruction.bytes}")
    check_tile_plan(plan, shape, plan.shared_bytes, limit)

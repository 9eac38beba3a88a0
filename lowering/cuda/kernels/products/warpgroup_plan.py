"""The plan of a kernel of warpgroups: every choice that its code is built by, as data and as a line of text.

A plan reads ``warpgroups=2 tile=128x256x64 stages=4 by=bf16 raster=8 store=8 blocks=132``.
"""

from __future__ import annotations

from dataclasses import dataclass, fields

from .....dialect.errors import RelaxError
from ....plan_text import Reader, one_of, positive, positives, print_fields, read_fields
from .instructions import INSTRUCTIONS, TensorInstruction
from .plan import ProductTile, sums_pitch
from .shape import ProductShape

__all__ = ["LINE", "ROWS", "WarpgroupPlan", "check_warpgroup_plan", "parse_warpgroup_plan"]

#: Rows that a warpgroup multiplies.
ROWS = 64
#: Bytes of a line of a factor in shared memory: all of its banks.
LINE = 128
# Columns of the result that a warp passes through shared memory at once: stages of 48 KiB leave room for four and these.
_PART = 32
# A barrier of 8 bytes for stages that are full, and one for those that are free; they and what is behind is at such a multiple.
_BARRIERS, _ALIGNMENT = 16, 1024


@dataclass(frozen=True)
class WarpgroupPlan:
    """How one sum of products is computed by warpgroups, fed by one thread.

    Attributes:
        warpgroups: that multiply, 64 rows each; one more asks for what they do.
        tile: what they compute at a time; a stage has 128 bytes of k.
        stages: of shared memory.
        by: the factors' name in :data:`.instructions.INSTRUCTIONS`.
        raster: rows of tiles that are computed together, column by column.
        store: neighbouring columns that a thread computes the result of.
        blocks: how many run; each computes several tiles.
    """

    warpgroups: int
    tile: ProductTile
    stages: int
    by: str
    raster: int
    store: int
    blocks: int

    def __str__(self) -> str:
        return print_fields((f.name, getattr(self, f.name)) for f in fields(self))

    @property
    def instruction(self) -> TensorInstruction:
        return INSTRUCTIONS[self.by]

    @property
    def threads(self) -> int:
        """Of a block."""
        return 128 * (self.warpgroups + 1)

    @property
    def left_bytes(self) -> int:
        """Of the left factor in a stage."""
        return self.tile.rows * LINE

    @property
    def right_bytes(self) -> int:
        return self.tile.columns * LINE

    @property
    def stage_bytes(self) -> int:
        return self.left_bytes + self.right_bytes

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
        return self.barriers_start + _BARRIERS * self.stages

    @property
    def shared_bytes(self) -> int:
        return self.exchange_start + 4 * self.warpgroups * self.exchange_bytes


def parse_warpgroup_plan(text: str) -> WarpgroupPlan:
    """The plan of a line. Raises RelaxError for one that :meth:`WarpgroupPlan.__str__` does not give."""
    return WarpgroupPlan(**read_fields(text, _READERS, _EXAMPLES, list(_READERS)))  # type: ignore[arg-type]


def _tile(text: str) -> ProductTile:
    rows, columns, depth = positives(text)
    return ProductTile(rows, columns, depth)


_READERS: dict[str, Reader] = {
    "warpgroups": positive,
    "tile": _tile,
    "stages": positive,
    "by": one_of(*INSTRUCTIONS),
    "raster": positive,
    "store": positive,
    "blocks": positive,
}
_EXAMPLES = {
    "warpgroups": "a positive number of warpgroups",
    "tile": "rows x columns x depth, such as tile=128x256x64",
    "stages": "a positive number of stages",
    "by": f"one of {', '.join(INSTRUCTIONS)}",
    "raster": "a positive number of tiles",
    "store": "a positive number of columns",
    "blocks": "a positive number of blocks",
}


def check_warpgroup_plan(plan: WarpgroupPlan, shape: ProductShape, limit: int) -> None:
    """Raises RelaxError where no kernel can be built by a plan, or it needs more than so many bytes of shared memory."""
    tile = plan.tile
    if plan.warpgroups not in (1, 2):
        raise RelaxError(f"expected 1 or 2 warpgroups, got {plan.warpgroups}")
    if tile.rows != ROWS * plan.warpgroups or tile.columns not in (64, 128, 256):
        expected = f"{ROWS * plan.warpgroups} rows and 64, 128 or 256 columns"
        raise RelaxError(f"expected a tile of {expected}, got {tile.rows} and {tile.columns}")
    if tile.depth * plan.instruction.bytes != LINE:
        raise RelaxError(f"expected stages of {LINE} bytes of k, got {tile.depth * plan.instruction.bytes}")
    if plan.by != shape.by:
        raise RelaxError(f"expected by={shape.by}, got by={plan.by}")
    if shape.store % plan.store:
        raise RelaxError(f"expected store to divide {shape.store}, got {plan.store}")
    if plan.stages < 2:
        raise RelaxError(f"expected 2 stages or more, got {plan.stages}")
    if plan.shared_bytes > limit:
        raise RelaxError(f"expected at most {limit} bytes of shared memory, got {plan.shared_bytes}")

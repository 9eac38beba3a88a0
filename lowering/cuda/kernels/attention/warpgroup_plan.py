"""The plan of attention by warpgroups, for Hopper: every choice that its code is built by, as data and as a line of text.

A plan reads ``attention warpgroups=2 tile=128x64 stages=4 by=bf16``.
"""

from __future__ import annotations

from dataclasses import dataclass, fields

from ....plan_text import print_fields
from ..products.instructions import INSTRUCTIONS, STEP_BYTES, TensorInstruction
from ..products.warpgroup_plan import BARRIER_BYTES, LINE
from .plan import AttentionTile

__all__ = ["WarpgroupAttentionPlan"]


@dataclass(frozen=True)
class WarpgroupAttentionPlan:
    """How attention is computed by warpgroups, fed by one thread.

    Attributes:
        warpgroups: that multiply, 64 rows each; one more asks for what they do.
        tile: what a block has at once. Rows are those of all heads that share keys.
        stages: of keys and values in shared memory.
        by: the instruction's name in :data:`..products.instructions.INSTRUCTIONS`.
    """

    warpgroups: int
    tile: AttentionTile
    stages: int
    by: str

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
    def block_elements(self) -> int:
        """Of a key or value in a line."""
        return LINE // self.instruction.bytes

    def blocks(self, elements: int) -> int:
        """Lines of a key or value, the last of which is filled with zeros."""
        return -(-elements // self.block_elements)

    def steps(self, depth: int) -> int:
        """Instructions along a query."""
        return -(-depth * self.instruction.bytes // STEP_BYTES)

    def tile_bytes(self, elements: int) -> int:
        """Of the keys, or values, of a stage."""
        return self.tile.keys * LINE * self.blocks(elements)

    def stage_bytes(self, depth: int, width: int) -> int:
        return self.tile_bytes(depth) + self.tile_bytes(width)

    def shared_bytes(self, depth: int, width: int) -> int:
        """Of a block."""
        return self.stages * (self.stage_bytes(depth, width) + BARRIER_BYTES)

    def registers(self, depth: int, width: int) -> int:
        """Of a thread: sums, scores and powers of two tiles, and queries."""
        return width // 2 + self.tile.keys + 4 * self.steps(depth)

"""The plan of a kernel of attention: every choice that its code is built by, as data and as a line of text.

A plan reads ``attention tile=128x64 warps=4x1 stages=2 by=bf16 queries=registers``. Of rows whose number is known at run time
only there are two, ``... else ...``, the second one for few rows, whose blocks share the keys.
"""

from __future__ import annotations

from dataclasses import dataclass, fields

from ....plan_text import print_fields
from ..products.instructions import INSTRUCTIONS, STEP_BYTES, TensorInstruction
from .shape import PIECE

__all__ = ["STRIP", "THIRDS", "WARP", "AttentionPlan", "AttentionTile", "AttentionWarps", "padded", "pitch"]

#: Threads of a warp.
WARP = 32
#: Rows that an instruction multiplies.
STRIP = 16
#: The instruction of f32 that stays f32: each factor as a sum of two tf32, of whose products three are added.
THIRDS = "tf32x3"


@dataclass(frozen=True)
class AttentionTile:
    """Rows that a block computes, and keys that are in shared memory at once."""

    rows: int
    keys: int

    def __str__(self) -> str:
        return f"{self.rows}x{self.keys}"


@dataclass(frozen=True)
class AttentionWarps:
    """How many warps share a tile along its rows, and its keys."""

    rows: int
    keys: int

    def __str__(self) -> str:
        return f"{self.rows}x{self.keys}"


@dataclass(frozen=True)
class AttentionPlan:
    """How attention is computed.

    Attributes:
        tile: what a block has at once. Rows are those of all heads that share keys.
        warps: how it is shared.
        stages: of keys and values in shared memory, all but one of which are being filled.
        by: the instruction's name in :data:`..products.instructions.INSTRUCTIONS`, or :data:`THIRDS`.
        queries: where they are while keys go by: ``registers`` or ``shared``.
        blocks: how many blocks share the keys of as many rows as are a tile, at most, all rows together; 0: one has all keys.
    """

    tile: AttentionTile
    warps: AttentionWarps
    stages: int
    by: str
    queries: str
    blocks: int = 0

    def __str__(self) -> str:
        shown = [f for f in fields(self) if f.name != "blocks" or self.blocks]
        return print_fields((f.name, getattr(self, f.name)) for f in shown)

    @property
    def instruction(self) -> TensorInstruction:
        return INSTRUCTIONS["tf32" if self.by == THIRDS else self.by]

    @property
    def bytes(self) -> int:
        """Of an element."""
        return self.instruction.bytes

    @property
    def threads(self) -> int:
        """Of a block."""
        return self.warps.rows * self.warps.keys * WARP

    @property
    def strips(self) -> int:
        """Times 16 rows that a warp has."""
        return self.tile.rows // self.warps.rows // STRIP

    @property
    def warp_keys(self) -> int:
        """Keys of a tile that a warp has."""
        return self.tile.keys // self.warps.keys

    def key_bytes(self, depth: int) -> int:
        """Of the keys, or values, of a stage whose elements are so many."""
        return self.tile.keys * pitch(depth, self.bytes)

    def shared_bytes(self, depth: int, width: int) -> int:
        """Of a block."""
        queries = self.tile.rows * pitch(depth, self.bytes)
        return queries + self.stages * (self.key_bytes(depth) + self.key_bytes(width))


def padded(elements: int, bytes_: int) -> int:
    """Elements of a row in shared memory, with the zeros that make it a multiple of an instruction's."""
    step = STEP_BYTES // bytes_
    return -(-elements // step) * step


def pitch(elements: int, bytes_: int) -> int:
    """Bytes from a row in shared memory to the next: an odd number of pieces, so that eight rows are in different banks."""
    return (padded(elements, bytes_) * bytes_ // PIECE | 1) * PIECE

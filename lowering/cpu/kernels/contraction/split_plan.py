"""Whether factors are split for tile registers, and in which blocks."""

from __future__ import annotations

from math import lcm

from ....target import Target
from .contraction_plan import Blocks, RegisterTile, SplitTile
from .matrix_shape import TILE_WORDS, WORD_BYTES
from .shape import ContractionShape, GroupShape
from .split_factors import SPLIT_INSTRUCTION, TILE_STEPS
from .tuning import Tuning

__all__ = ["F32_PARTS", "can_split", "plan_split", "right_parts", "split_bytes"]

#: How many bf16 an f32 is the sum of.
F32_PARTS = 3
# Bytes of a part.
_PART = 2


def can_split(shape: ContractionShape, target: Target, tile: RegisterTile) -> bool:
    """Whether tile registers could multiply parts of both factors of a contraction, columns by panels of a tile."""
    if not target.multiplies_tiles(SPLIT_INSTRUCTION) or tile.lanes != TILE_WORDS or tile.vectors > 2:
        return False
    is_plain = shape.has_rows and not shape.shared and not shape.outer
    has_steps = shape.depth is not None or (shape.group is None and shape.multiples.steps % TILE_STEPS == 0)
    return is_plain and has_steps and shape.element == "f32" and shape.integers is None and shape.bytes is None


def plan_split(shape: ContractionShape, target: Target, tile: RegisterTile, sums: str, tuning: Tuning) -> SplitTile | None:
    """The parts and blocks of a contraction whose rows, columns and steps are enough, or are known at run time only.

    Blocks are the same of all sizes: their code evens them, and is one code for several.
    """
    if not can_split(shape, target, tile) or sums not in ("fma", "words", "groups"):
        return None
    is_near = bool(shape.buffers) and all(b.is_line or b.steps_per_row(tile.columns) or shape.group for b in shape.buffers)
    parts = right_parts(shape)
    least_rows = tuning.split_rows if parts > 1 else tuning.split_rows_short
    sizes = (shape.rows, least_rows), (shape.columns, tuning.split_columns), (shape.depth, tuning.split_steps)
    if not is_near or any(size is not None and size < least for size, least in sizes):
        return None
    depth = _depth(shape.group, tuning)
    if not depth:
        return None
    columns = tuning.split_panels * tile.columns
    blocks = Blocks(tuning.split_block_rows, columns, depth, least_rows - 1, tuning.split_blocks)
    return SplitTile(F32_PARTS, parts, blocks, always=shape.rows is not None)


def right_parts(shape: ContractionShape) -> int:
    """Of an element of the right factor: bf16 are one, and integers, whose sums are scaled by groups of whole registers."""
    group = shape.group
    is_scaled = group is not None and group.is_short and group.size % TILE_STEPS == 0
    return 1 if shape.is_bf16 or is_scaled else F32_PARTS


def split_bytes(split: SplitTile, tile: RegisterTile) -> int:
    """What a block takes of the stack: its sums, parts of rows, and those of two panels."""
    blocks = split.blocks
    depth = -(-blocks.depth // TILE_STEPS) * TILE_STEPS
    parts = blocks.rows * split.left + 2 * tile.columns * split.right
    return blocks.rows * blocks.columns * WORD_BYTES + depth * parts * _PART


def _depth(group: GroupShape | None, tuning: Tuning) -> int:
    """Steps of a block at most: whole groups that share a scale, or parts of one; 0: there are none."""
    size, most = 1 if group is None else group.size or 1, tuning.split_block_depth
    even = lcm(size, TILE_STEPS)
    if even > most:
        return next((d for d in range(most, 0, -TILE_STEPS) if size % d == 0), 0)
    return most // even * even

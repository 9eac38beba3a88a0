"""Whether factors are split for tile registers, and in which blocks."""

from __future__ import annotations

from math import lcm

from ....target import Target
from .contraction_plan import Blocks, RegisterTile, SplitTile
from .matrix_shape import TILE_ROWS, TILE_WORDS, WORD_BYTES
from .shape import ContractionShape
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
    is_plain = shape.has_rows and not shape.shared and not shape.outer and shape.depth is not None
    return is_plain and shape.element == "f32" and shape.integers is None and shape.bytes is None


def plan_split(shape: ContractionShape, target: Target, tile: RegisterTile, sums: str, tuning: Tuning) -> SplitTile | None:
    """The parts and blocks of a contraction whose rows, columns and steps are enough, or are known at run time only."""
    if not can_split(shape, target, tile) or sums not in ("fma", "words", "groups") or shape.depth is None:
        return None
    is_near = bool(shape.buffers) and all(b.is_line or b.steps_per_row(tile.columns) or shape.group for b in shape.buffers)
    parts = right_parts(shape)
    least_rows = tuning.split_rows if parts > 1 else tuning.split_rows_short
    sizes = (shape.rows, least_rows), (shape.columns, tuning.split_columns), (shape.depth, tuning.split_steps)
    if not is_near or any(size is not None and size < least for size, least in sizes):
        return None
    rows, depth = _rows(shape.rows, tuning), _depth(shape, tuning)
    if not depth:
        return None
    few = tuning.split_blocks if None in (shape.rows, shape.columns) else 0
    blocks = Blocks(rows, _columns(shape, rows, tile.columns, tuning), depth, least_rows - 1, few)
    return SplitTile(F32_PARTS, parts, blocks)


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


def _rows(rows: int | None, tuning: Tuning) -> int:
    """Whole registers, of blocks of similar height."""
    if rows is None:
        return tuning.split_block_rows
    blocks = -(-rows // tuning.split_block_rows)
    return -(-rows // (blocks * TILE_ROWS)) * TILE_ROWS


def _depth(shape: ContractionShape, tuning: Tuning) -> int:
    """Steps of similar blocks: whole registers, and whole groups that share a scale, or parts of one; 0: there are none."""
    assert shape.depth is not None
    size, most = 1 if shape.group is None else shape.group.size or 1, tuning.split_block_depth
    even = lcm(size, TILE_STEPS)
    if even > most:
        return next((d for d in range(most, 0, -TILE_STEPS) if size % d == 0), 0)
    blocks = -(-shape.depth // (most // even * even))
    return -(-shape.depth // (blocks * even)) * even


def _columns(shape: ContractionShape, rows: int, panel: int, tuning: Tuning) -> int:
    """As many panels as read the same parts of rows; fewer where there would be few blocks to share, or an odd number."""
    most, least = tuning.split_panels
    if shape.rows is None or shape.columns is None:
        return most * panel
    panels, blocks = -(-shape.columns // panel), -(-shape.rows // rows)
    chunks = -(-panels // most)
    while blocks * chunks < tuning.split_blocks and panels >= 2 * chunks * least:
        chunks *= 2
    chunks += chunks > 1 and chunks % 2 and panels >= (chunks + 1) * least
    return -(-panels // chunks) * panel

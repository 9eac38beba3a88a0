"""What all plans of products have: tiles of the result, and stages of shared memory that their factors pass through."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from .....dialect.errors import RelaxError
from ....plan_text import Reader, one_of, positive, positives, print_fields, read_fields
from .instructions import INSTRUCTIONS, TensorInstruction
from .shape import ProductShape

__all__ = ["ProductTile", "TilePlan", "can_be_cut", "check_tile_plan", "fields_of_plan"]


@dataclass(frozen=True)
class ProductTile:
    """Rows and columns of the result that a block computes, and steps of k in a stage."""

    rows: int
    columns: int
    depth: int

    def __str__(self) -> str:
        return f"{self.rows}x{self.columns}x{self.depth}"


@dataclass(frozen=True, kw_only=True)
class TilePlan:
    """How one sum of products is computed.

    Attributes:
        ORDER: the fields, as a line has them.
        tile: what a block computes at a time, in how long stages.
        stages: of shared memory, most of which are being filled.
        by: the instruction's name in :data:`.instructions.INSTRUCTIONS`.
        raster: rows of tiles that are computed together, column by column, so that what they read stays in the cache.
        store: neighbouring columns that a thread computes the result of.
        split: parts of k, whose sums another kernel adds up; a line has them where they are several.
    """

    ORDER: ClassVar[tuple[str, ...]]
    tile: ProductTile
    stages: int
    by: str
    raster: int
    store: int
    split: int = 1

    def __str__(self) -> str:
        names = (*self.ORDER, "split") if self.split > 1 else self.ORDER
        return print_fields((name, getattr(self, name)) for name in names)

    @property
    def instruction(self) -> TensorInstruction:
        return INSTRUCTIONS[self.by]

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


def _tile(text: str) -> ProductTile:
    rows, columns, depth = positives(text)
    return ProductTile(rows, columns, depth)


_READERS: Mapping[str, Reader] = {
    "tile": _tile,
    "stages": positive,
    "by": one_of(*INSTRUCTIONS),
    "raster": positive,
    "store": positive,
    "split": positive,
}
_EXAMPLES = {
    "tile": "rows x columns x depth, such as tile=128x128x32",
    "stages": "a positive number of stages",
    "by": f"one of {', '.join(INSTRUCTIONS)}",
    "raster": "a positive number of tiles",
    "store": "a positive number of columns",
    "split": "a positive number of parts",
}
# More of them are more sums than steps of k are saved.
_MOST_PARTS = 16


def fields_of_plan(
    text: str, kind: type[TilePlan], readers: Mapping[str, Reader], examples: Mapping[str, str]
) -> dict[str, object]:
    """The fields of a line, where those that not every plan has are read so.

    Raises:
        RelaxError: no plan of the kind has that line.
    """
    known = {**_READERS, **readers}
    return read_fields(text, {name: known[name] for name in (*kind.ORDER, "split")}, {**_EXAMPLES, **examples}, kind.ORDER)


def can_be_cut(shape: ProductShape, parts: int, depth: int) -> bool:
    """Whether k has so many parts of whole stages of such a depth."""
    return shape.splits and parts <= _MOST_PARTS and shape.depth is not None and shape.depth % (parts * depth) == 0


def check_tile_plan(plan: TilePlan, shape: ProductShape, needed: int, limit: int) -> None:
    """Raises RelaxError where a plan does not fit a product, or needs more than ``limit`` bytes of shared memory."""
    if plan.by != shape.by:
        raise RelaxError(f"expected by={shape.by}, got by={plan.by}")
    if shape.store % plan.store:
        raise RelaxError(f"expected store to divide {shape.store}, got {plan.store}")
    if plan.split > 1 and not can_be_cut(shape, plan.split, plan.tile.depth):
        raise RelaxError(f"expected split to cut {shape.depth} steps of k into at most {_MOST_PARTS} parts, got {plan.split}")
    if plan.stages < 2:
        raise RelaxError(f"expected 2 stages or more, got {plan.stages}")
    if needed > limit:
        raise RelaxError(f"expected at most {limit} bytes of shared memory, got {needed}")

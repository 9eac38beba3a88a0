"""The plan of a convolution by Winograd's filtering: every choice that its kernel is built by, as a line of text."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import prod

from .....dialect.bindings import ir
from .....dialect.errors import RelaxError
from .....dialect.winograd import PLACES
from ....kernels.emit.buffers import Buffers
from ....marks import PLAN
from ....plan_text import positives
from ....target import Target
from ..contraction.check_plan import check_plan
from ..contraction.contraction_plan import PARTS, ContractionPlan, parse_plan
from ..contraction.plan import plan_contraction
from ..contraction.shape import ContractionShape, describe
from ..contraction.tuning import Tuning, tuning_of
from .group import WinogradGroup

__all__ = ["WinogradPlan", "checked_winograd_plan"]

_NAME = "winograd="
# Units of work at least, where threads share them.
_UNITS = 4
# Rows of a register tile less than the most that are as fast, where they go into all tiles evenly.
_LESS = 1


@dataclass(frozen=True)
class WinogradPlan:
    """How the convolution is computed.

    Attributes:
        tiles: how many are transformed at once, at most, before they are multiplied.
        ranges: into how many ranges filters are cut, each of which transforms tiles for itself.
        products: how products are summed; a row of its register tile is a tile of the image.
    """

    tiles: int
    ranges: int
    products: ContractionPlan

    def __str__(self) -> str:
        return f"{_NAME}{self.tiles}x{self.ranges} {self.products}"


def checked_winograd_plan(group: WinogradGroup, target: Target) -> WinogradPlan:
    """The plan that stands on the results, or the one they get.

    Raises:
        RelaxError: the plan does not fit, at the operation.
    """
    operation = group.results.contraction
    shape, tuning = describe(group.contraction(Buffers(operation.location))), tuning_of(target)
    best = _make(shape, target, tuning)
    if PLAN not in operation.attributes:
        return best
    try:
        plan = _parsed(ir.StringAttr(operation.attributes[PLAN]).value)
        check_plan(replace(plan.products, threads=()), shape, target)
        _check(plan, best, shape, tuning)
    except RelaxError as error:
        raise RelaxError(f"'{operation.name}' op {error}", operation.location) from None
    return plan


def _make(shape: ContractionShape, target: Target, tuning: Tuning) -> WinogradPlan:
    plan = plan_contraction(shape, target)
    rows = _even_rows(plan, _total(shape), tuning)
    threads = (PARTS,) if plan.threads else ()
    products = replace(
        plan, tile=replace(plan.tile, rows=rows), panels=1, stage=None, blocks=None, parts=None, joined=False, threads=threads
    )
    most = _most_tiles(products, shape, tuning)
    if not threads:
        return WinogradPlan(most, 1, products)
    panels = -(-(shape.columns or 1) // plan.tile.columns)
    steps = -(-prod(size or 1 for size in _sizes(shape)) // rows)
    parts = -(-steps // (most // rows))
    ranges = min(panels, max(1, -(-_UNITS // parts)))
    if _total(shape) is not None and parts * ranges < _UNITS:
        most = min(most, -(-steps // -(-_UNITS // ranges)) * rows)
    return WinogradPlan(most, ranges, products)


def _most_tiles(products: ContractionPlan, shape: ContractionShape, tuning: Tuning) -> int:
    """How many tiles there can be on the stack with their sums, whole register tiles; no more than there are.

    In level 2, or so many that reading the filters for them takes no longer than multiplying.
    """
    rows, bytes_ = products.tile.rows, 4 * PLACES * ((shape.depth or 1) + products.tile.columns)
    most, total = max(rows, tuning.winograd_bytes // bytes_ // rows * rows), _total(shape)
    most = max(most, min(tuning.winograd_tiles, tuning.winograd_stack // bytes_) // rows * rows)
    return most if total is None else min(most, max(1, total // rows) * rows)


def _sizes(shape: ContractionShape) -> list[int | None]:
    """Images, tiles down and across, as far as they are known, or are not one."""
    return [*shape.shared, shape.rows]


def _total(shape: ContractionShape) -> int | None:
    sizes = _sizes(shape)
    return None if None in sizes else prod(size for size in sizes if size is not None)


def _even_rows(plan: ContractionPlan, total: int | None, tuning: Tuning) -> int:
    """Rows of a register tile: such that all are whole, where that takes few less than the target has."""
    most, vectors = plan.tile.rows, plan.tile.vectors
    if total is None:
        return most
    even = [r for r in range(most, max(0, most - _LESS - 1), -1) if total % r == 0 and r * vectors >= tuning.accumulators]
    return even[0] if even else most


def _parsed(text: str) -> WinogradPlan:
    name, _, rest = text.partition(" ")
    try:
        if not name.startswith(_NAME):
            raise ValueError(text)
        tiles, ranges = positives(name.removeprefix(_NAME))
    except ValueError:
        raise RelaxError(f"expected tiles and ranges first, such as {_NAME}64x1, got '{text}'") from None
    return WinogradPlan(tiles, ranges, parse_plan(rest))


def _check(plan: WinogradPlan, best: WinogradPlan, shape: ContractionShape, tuning: Tuning) -> None:
    products, rows = plan.products, plan.products.tile.rows
    if products.sums != "fma" or any((products.panels > 1, products.stage, products.blocks, products.parts, products.joined)):
        raise RelaxError(f"expected products by tiles of fma alone, got '{products}'")
    if products.tile.columns != best.products.tile.columns:
        raise RelaxError(f"expected register tiles of {best.products.tile.columns} columns, got '{products.tile}'")
    if set(products.threads) - {PARTS}:
        raise RelaxError(f"expected threads that share {PARTS} or nothing, got '{products}'")
    most = _most_tiles(products, shape, tuning)
    if plan.tiles % rows or plan.tiles > most:
        raise RelaxError(f"expected tiles that are a multiple of {rows}, up to {most}, got {plan.tiles}")

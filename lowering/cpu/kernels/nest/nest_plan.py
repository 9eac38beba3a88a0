"""The plan of a loop nest: every choice that its loops are built by, as data and as a line of text.

A plan reads ``order=0+2+1 vector=1 width=16 wide=64``. Fields that are off are left out. ``vector_plan`` makes one,
:func:`check_plan` says whether an edited one fits.
"""

from __future__ import annotations

from dataclasses import dataclass

from .....dialect.errors import RelaxError
from ....kernels.structure.nest import Nest
from ....plan_text import Reader, one_of, positive, print_fields, read_fields

__all__ = ["NestPlan", "check_plan", "is_nest_plan", "parse_plan"]


@dataclass(frozen=True)
class NestPlan:
    """How a nest runs.

    Attributes:
        order: its loops, outermost first; those over reductions are inside of the others.
        vector: the loop that runs in vectors, the innermost one of its kind; None: one element at a time.
        width: lanes of a vector.
        wide: lanes of the main loop.
        horizontal: whether the vector runs over a reduction; lanes are combined at the end.
        tile: the loop just outside of the vector's whose iterations are taken ``width`` at a time, to transpose operands that
            are contiguous along it and strided along the vector; of nests without reductions only.
        block: of the loop just inside of the vector's, which is no reduction, so many iterations are taken together.
        streamed: whether the loops over reductions are just outside of the vector's, and what they combine stays in memory.
        fetch: of a horizontal one with a single reduction: how many bytes ahead rows are asked for.
    """

    order: tuple[int, ...]
    vector: int | None
    width: int
    wide: int
    horizontal: bool
    tile: int | None = None
    block: int = 1
    streamed: bool = False
    fetch: int = 0

    def __str__(self) -> str:
        shown = {"order": self.order or "none"}
        shown |= {} if self.vector is None else {"vector": self.vector, "width": self.width, "wide": self.wide}
        shown |= {"horizontal": True} if self.horizontal else {}
        shown |= {} if self.tile is None else {"tile": self.tile}
        shown |= {"block": self.block} if self.block > 1 else {}
        shown |= {"streamed": True} if self.streamed else {}
        return print_fields((shown | ({"fetch": self.fetch} if self.fetch else {})).items())


def is_nest_plan(text: str) -> bool:
    """Whether a plan is one of loops, and not one of a kind of kernel."""
    return text.startswith("order=")


def parse_plan(text: str) -> NestPlan:
    """The plan of a line. Raises RelaxError for one that :class:`NestPlan` does not print."""
    vectors = ("width", "wide") if any(item.startswith("vector=") for item in text.split()) else ()
    given = read_fields(text, _READERS, _EXAMPLES, ("order", *vectors))
    return NestPlan(**{"vector": None, "width": 0, "wide": 0, "horizontal": False} | given)  # type: ignore[arg-type]


def _loop(text: str) -> int:
    if not text.isdecimal():
        raise ValueError(text)
    return int(text)


def _loops(text: str) -> tuple[int, ...]:
    return () if text == "none" else tuple(map(_loop, text.split("+")))


def _yes(text: str) -> bool:
    return one_of("yes")(text) == "yes"


_READERS: dict[str, Reader] = {
    "order": _loops,
    "vector": _loop,
    "width": positive,
    "wide": positive,
    "horizontal": _yes,
    "tile": _loop,
    "block": positive,
    "streamed": _yes,
    "fetch": positive,
}
_EXAMPLES = {
    "order": "loops, such as order=0+2+1, or order=none",
    "vector": "a loop, such as vector=1",
    "width": "a positive number of lanes",
    "wide": "a positive number of lanes",
    "horizontal": "horizontal=yes",
    "tile": "a loop, such as tile=0",
    "block": "a positive number of iterations",
    "streamed": "streamed=yes",
    "fetch": "a positive number of bytes",
}


def check_plan(plan: NestPlan, nest: Nest, combines: bool, rows: int = 0) -> None:
    """Raises RelaxError, without a place, where a plan does not fit.

    Args:
        plan: the plan.
        nest: what it is for.
        combines: whether what reductions accumulate can be split over lanes.
        rows: the loops over dimensions below are the outermost, as other operations share them.
    """
    _Check(plan, nest, combines, rows).run()


class _Check:
    """The rules: the order that the kind of plan has, then widths."""

    def __init__(self, plan: NestPlan, nest: Nest, combines: bool, rows: int):
        self.plan, self.nest, self.combines = plan, nest, combines
        self.rows = [d for d in nest.extents if d < rows]

    def run(self) -> None:
        plan, dims = self.plan, set(self.nest.extents)
        _expect(sorted(plan.order) == sorted(dims), f"each of the loops {sorted(dims)} once", plan)
        _expect(list(plan.order[: len(self.rows)]) == self.rows, f"the loops {self.rows} of rows first", plan)
        if plan.vector is None:
            is_plain = not (plan.horizontal or plan.streamed or plan.fetch or plan.tile is not None) and plan.block == 1
            _expect(is_plain, "a vector", plan)
            self._reductions_last(plan.order)
            return
        has_row = plan.horizontal and len(self.nest.reductions) == 1 and len(plan.order) > 1
        _expect(has_row or not plan.fetch, "one reduction along the vector inside of another loop, to fetch", plan)
        _expect(plan.vector in dims - set(self.rows), "a vector along a loop inside of rows", plan)
        self._widths()
        kind = {"tile": plan.tile is not None, "streamed": plan.streamed, "block": plan.block != 1}
        kinds = [name for name, there in {"horizontal": plan.horizontal, **kind}.items() if there]
        _expect(len(kinds) < 2, "one of horizontal, tile, block and streamed", plan)
        along = plan.vector in self.nest.reductions
        _expect(along == plan.horizontal, "horizontal for a vector along a reduction, and no other", plan)
        {"horizontal": self._horizontal, "tile": self._tile, "streamed": self._streamed, "block": self._block}.get(
            kinds[0] if kinds else "", self._plain
        )()

    def _widths(self) -> None:
        plan = self.plan
        powers = all(n > 0 and n & (n - 1) == 0 for n in (plan.width, plan.wide))
        _expect(powers and plan.width <= plan.wide <= 16 * plan.width, "powers of two, wide of 1 to 16 times width", plan)
        _expect(plan.width <= 64, "at most 64 lanes", plan)

    def _horizontal(self) -> None:
        _expect(self.combines, "no vector along what lanes cannot split", self.plan)
        _expect(self.plan.order[-1] == self.plan.vector, "the vector's loop as the innermost one", self.plan)
        self._reductions_last(self.plan.order)

    def _tile(self) -> None:
        plan = self.plan
        _expect(not self.nest.reductions and not self.rows, "no tile in a nest with reductions or rows", plan)
        _expect(plan.order[-2:] == (plan.tile, plan.vector), "the tile's loop just outside of the vector's", plan)
        _expect(plan.wide == plan.width, "a tile of width=wide", plan)

    def _streamed(self) -> None:
        plan, outputs = self.plan, self.nest.outputs
        fits = not self.rows and len(outputs) == 1 and bool(self.nest.reductions)
        along = fits and plan.vector is not None and outputs[0].offset.factor(plan.vector).static == 1
        _expect(along, "one result, contiguous along the vector, to stream reductions to", plan)
        _expect(plan.order[-1] == plan.vector, "the vector's loop as the innermost one", plan)
        self._reductions_last(plan.order[:-1])

    def _block(self) -> None:
        at = self.plan.order.index(self.plan.vector or 0)
        inside = self.plan.order[at + 1 : at + 2]
        fits = bool(self.nest.reductions) and bool(inside) and inside[0] not in self.nest.reductions
        _expect(fits and 1 < self.plan.block <= 16, "a block of at most 16 of a loop inside of the vector's", self.plan)
        self._innermost(at + 1)

    def _plain(self) -> None:
        self._innermost(self.plan.order.index(self.plan.vector or 0))

    def _innermost(self, at: int) -> None:
        """The loop at that place is the innermost that is no reduction."""
        self._reductions_last(self.plan.order)
        expected = len(self.plan.order) - len(self.nest.reductions) - 1
        _expect(at == expected, "the vector's loop as the innermost one that is no reduction", self.plan)

    def _reductions_last(self, order: tuple[int, ...]) -> None:
        parallel = [d for d in order if d not in self.nest.reductions]
        _expect(list(order[: len(parallel)]) == parallel, "loops over reductions inside of the others", self.plan)


def _expect(fits: bool, what: str, plan: NestPlan) -> None:
    if not fits:
        raise RelaxError(f"expected a plan with {what}, got '{plan}'")

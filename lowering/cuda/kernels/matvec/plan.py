"""The plan of a product of few rows: every choice that its kernel is built by, as data and as a line of text.

A plan reads ``columns=4 warps=2x2 steps=8 loads=2``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from .....dialect.errors import RelaxError
from ....plan_text import Reader, positive, positives, print_fields, read_fields
from ...cuda_target import Architecture
from .shape import MatvecShape

__all__ = ["LANES", "MatvecPlan", "MatvecWarps", "check_matvec_plan", "parse_matvec_plan", "plan_matvec"]

#: Threads of a warp.
LANES = 32
# Columns of a warp, which share what is read of the left factor.
_COLUMNS = 4
# Warps of a multiprocessor that read enough at a time, and of a block at least.
_WARPS_PER_SM, _WARPS = 16, 4
# Parts of k, and loads of a lane from each column that are in flight together.
_PARTS, _LOADS = 8, 2
_MOST_WARPS, _MOST_COLUMNS = 32, 8
# Of rows or columns whose number is known at run time only.
_USUAL = 4096


@dataclass(frozen=True)
class MatvecWarps:
    """Warps of a block along the columns, and along k."""

    columns: int
    depth: int

    @property
    def count(self) -> int:
        return self.columns * self.depth

    def __str__(self) -> str:
        return f"{self.columns}x{self.depth}"


@dataclass(frozen=True)
class MatvecPlan:
    """How one product of few rows is computed.

    Attributes:
        columns: of a warp.
        warps: of a block.
        steps: of k, that a lane reads of a column by one load.
        loads: of a column, that a lane waits for together.
    """

    columns: int
    warps: MatvecWarps
    steps: int
    loads: int

    def __str__(self) -> str:
        return print_fields((name, getattr(self, name)) for name in _READERS)

    @property
    def threads(self) -> int:
        """Of a block."""
        return self.warps.count * LANES

    @property
    def block_columns(self) -> int:
        """Of a block."""
        return self.warps.columns * self.columns


def plan_matvec(shape: MatvecShape, architecture: Architecture) -> MatvecPlan:
    """As few parts of k as give all multiprocessors enough warps, and few columns of a warp where that is not enough."""
    wanted = architecture.part.sm_count * _WARPS_PER_SM
    groups = (shape.columns or _USUAL) * (shape.batch or 1)
    turns = max(1, shape.depth // (LANES * shape.steps))
    columns, parts = _COLUMNS, 1
    while groups // columns * parts < wanted and 2 * parts <= min(_PARTS, turns):
        parts *= 2
    while groups // columns * parts < wanted // 2 and columns > 1:
        columns //= 2
    loads = min(_LOADS, max(1, turns // parts))
    return MatvecPlan(columns, MatvecWarps(max(1, _WARPS // parts), parts), shape.steps, loads)


def _warps(text: str) -> MatvecWarps:
    across, depth, *more = positives(text)
    if more:
        raise ValueError(text)
    return MatvecWarps(across, depth)


_READERS: Mapping[str, Reader] = {"columns": positive, "warps": _warps, "steps": positive, "loads": positive}
_EXAMPLES = {
    "columns": "a positive number of columns",
    "warps": "warps along columns and k, such as warps=2x2",
    "steps": "a positive number of steps",
    "loads": "a positive number of loads",
}


def parse_matvec_plan(text: str) -> MatvecPlan:
    """The plan of a line. Raises RelaxError for one that :meth:`MatvecPlan.__str__` does not give."""
    return MatvecPlan(**read_fields(text, _READERS, _EXAMPLES, tuple(_READERS)))  # type: ignore[arg-type]


def check_matvec_plan(plan: MatvecPlan, shape: MatvecShape) -> None:
    """Raises RelaxError where no kernel can be built by a plan."""
    if plan.warps.count > _MOST_WARPS:
        raise RelaxError(f"expected at most {_MOST_WARPS} warps, got {plan.warps.count}")
    if plan.columns > _MOST_COLUMNS:
        raise RelaxError(f"expected at most {_MOST_COLUMNS} columns of a warp, got {plan.columns}")
    if shape.steps % plan.steps or plan.steps % shape.unit:
        of = f" and to be a multiple of {shape.unit}" if shape.unit > 1 else ""
        raise RelaxError(f"expected steps to divide {shape.steps}{of}, got {plan.steps}")

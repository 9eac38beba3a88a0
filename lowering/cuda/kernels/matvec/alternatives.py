"""Plans of a product of few rows beside the one that it gets, for measuring."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

from .....dialect.errors import RelaxError
from .plan import LANES, MatvecPlan, MatvecWarps, check_matvec_plan
from .shape import MatvecShape

__all__ = ["alternatives_of_matvec"]

_COLUMNS, _ACROSS, _DEPTH, _LOADS = (1, 2, 4, 8), (1, 2, 4, 8), (1, 2, 4, 8), (1, 2, 4)


def alternatives_of_matvec(shape: MatvecShape, chosen: MatvecPlan) -> tuple[str, ...]:
    """Lines of other plans that fit, those that differ least from the chosen one first."""
    found = dict[str, float]()
    for columns, across, depth, loads in product(_COLUMNS, _ACROSS, _DEPTH, _LOADS):
        plan = replace(chosen, columns=columns, warps=MatvecWarps(across, depth), loads=loads)
        if plan != chosen and _fits(plan, shape):
            found[str(plan)] = _difference(plan, chosen)
    return tuple(sorted(found, key=found.__getitem__))


def _fits(plan: MatvecPlan, shape: MatvecShape) -> bool:
    """Whether there is a kernel, all of whose lanes have something to read."""
    try:
        check_matvec_plan(plan, shape)
    except RelaxError:
        return False
    return plan.warps.depth * plan.loads == 1 or LANES * plan.steps * plan.warps.depth * plan.loads <= shape.depth


def _difference(plan: MatvecPlan, chosen: MatvecPlan) -> float:
    """How many times something is doubled or halved, about."""
    sizes = [(p.columns, p.warps.columns, p.warps.depth, p.loads) for p in (plan, chosen)]
    return sum(max(a, b) / min(a, b) - 1 for a, b in zip(*sizes, strict=True))

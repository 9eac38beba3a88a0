"""Comparing sizes that hold symbols: what is proven for all values that the symbols may have."""

from __future__ import annotations

import itertools
from collections.abc import Mapping

from ..bindings import func, ir
from ..conventions import SYMBOL_RANGES
from ..symbolic import Dim, Expr, evaluate, substitute, symbol

__all__ = ["Ranges", "is_at_most", "is_positive", "symbol_ranges"]

#: The least and the greatest value of a symbol; None is no limit.
Ranges = Mapping[str, tuple[int, int | None]]

# A dimension of 0 makes both sides of any comparison of costs vanish, so it decides nothing.
_LEAST = 1
# Corners of a box double with each symbol; shapes of one op have at most four or five.
_MOST_CORNERS = 64


def symbol_ranges(function: func.FuncOp) -> Ranges:
    """What ``relax.symbol_ranges`` of a function says, empty when it has none."""
    if SYMBOL_RANGES not in function.attributes:
        return {}
    found: dict[str, tuple[int, int | None]] = {}
    for item in ir.DictAttr(function.attributes[SYMBOL_RANGES]):
        least, *greatest = [ir.IntegerAttr(a).value for a in ir.ArrayAttr(item.attr)]
        found[item.name] = (least, greatest[0] if greatest and greatest[0] >= 0 else None)
    return found


def is_at_most(small: int | Expr, large: int | Expr, ranges: Ranges | None = None) -> bool:
    """Whether ``small <= large`` is proven for all values in range; a symbol without a range is 1 or more.

    True is a proof, False is none. Proven is what has no negative term when counted from the symbols' least values, and what
    holds in all corners when every symbol has a greatest value and occurs linearly.
    """
    difference = large - small
    if isinstance(difference, int):
        return difference >= 0
    given = {n: (ranges or {}).get(n, (_LEAST, None)) for n in sorted(difference.names)}
    limits = {n: (max(low, _LEAST), high) for n, (low, high) in given.items()}
    shifted = substitute(difference, {n: symbol(n) + low for n, (low, _) in limits.items()})
    if isinstance(shifted, int):
        return shifted >= 0
    if isinstance(shifted, Expr) and all(factor >= 0 for _, factor in shifted.terms):
        return True
    return _holds_in_corners(difference, limits)


def is_positive(dim: Dim, ranges: Ranges) -> bool:
    """Whether a dimension is proven to be 1 or more; of a symbol without a range nothing is. True is a proof, False is none."""
    if not isinstance(dim, Expr):
        return dim is not None and dim >= 1
    if not all(atom.isidentifier() for monomial, _ in dim.terms for atom in monomial):
        return False
    if not dim.names <= ranges.keys():
        return False
    limits = {n: ranges[n][0] for n in dim.names}
    shifted = substitute(dim, {n: Expr({(n,): 1}) + low for n, low in limits.items()})
    terms = dict(shifted.terms) if isinstance(shifted, Expr) else {(): shifted or 0}
    return terms.get((), 0) >= 1 and all(factor >= 0 for factor in terms.values())


def _holds_in_corners(difference: Expr, limits: Ranges) -> bool:
    """A polynomial that is linear in each symbol is least in a corner."""
    linear = all(len(set(m)) == len(m) and all(a.isidentifier() for a in m) for m, _ in difference.terms)
    corners = [(low, high) for low, high in limits.values() if high is not None]
    if not linear or len(corners) < len(limits) or 2 ** len(corners) > _MOST_CORNERS:
        return False
    return all(evaluate(difference, dict(zip(limits, corner, strict=True))) >= 0 for corner in itertools.product(*corners))

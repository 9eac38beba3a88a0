"""The smaller and the larger one of two symbolic sizes, as an expression, and what such an expression may be."""

from __future__ import annotations

from .symbolic import Expr, divided

__all__ = ["alternatives", "is_at_least"]


def is_at_least(a: int | Expr, b: int | Expr) -> int | Expr:
    """1 where a size is another one or larger, else 0: the distance over more than its square is rounded to 0 or to -1."""
    distance = a - b
    return 1 + distance // (distance * distance + 1)


def alternatives(dim: Expr) -> tuple[int | Expr, int | Expr] | None:
    """What an expression with such a distance is where that is 0 or more, and where it is less; None for one without."""
    step = next((a for monomial, _ in dim.terms for a in monomial if not a.isidentifier() and _is_step(a)), None)
    if step is None:
        return None
    other: int | Expr = 0
    rest: int | Expr = 0
    for monomial, coefficient in dim.terms:
        count = monomial.count(step)
        factor = Expr({tuple(a for a in monomial if a != step): coefficient})
        rest = rest + (0 if count else factor)
        other = other + factor * (-1) ** count
    return rest, other


def _is_step(atom: str) -> bool:
    dividend, divisor, is_remainder = divided(atom)
    return not is_remainder and isinstance(dividend, Expr) and divisor == dividend * dividend + 1

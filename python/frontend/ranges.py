"""What can be said about a symbolic expression when each symbol lies in a known range; a cautious answer, never a wrong one."""

from __future__ import annotations

import ast
from collections.abc import Mapping

from ..dialect.size_choices import is_at_least
from ..dialect.symbolic import Dim, Expr, parse

__all__ = ["Ranges", "at_least", "at_most", "larger", "quotient_to_zero", "remainder_to_zero", "smaller", "upper_bound"]

#: Smallest and largest value by symbol; None is no bound. A symbol that is absent is 0 or more.
Ranges = Mapping[str, tuple[int, int | None]]

_Interval = tuple[int | None, int | None]


def at_least(dim: Dim, bound: int, ranges: Ranges) -> bool:
    """Whether the expression is certainly ``bound`` or more."""
    low, _ = _interval(dim, ranges)
    return low is not None and low >= bound


def at_most(dim: Dim, bound: int, ranges: Ranges) -> bool:
    """Whether the expression is certainly ``bound`` or less."""
    _, high = _interval(dim, ranges)
    return high is not None and high <= bound


def upper_bound(dim: Dim, ranges: Ranges) -> int | None:
    """A number that the expression never exceeds; None when none is known."""
    return _interval(dim, ranges)[1]


def smaller(a: int | Expr, b: int | Expr, ranges: Ranges) -> int | Expr:
    """The smaller one of two sizes."""
    first, second = _in_order(a, b)
    if at_most(first - second, 0, ranges):
        return first
    return second if at_least(first - second, 0, ranges) else first + is_at_least(first, second) * (second - first)


def larger(a: int | Expr, b: int | Expr, ranges: Ranges) -> int | Expr:
    """The larger one of two sizes."""
    first, second = _in_order(a, b)
    if at_least(first - second, 0, ranges):
        return first
    return second if at_most(first - second, 0, ranges) else second + is_at_least(first, second) * (first - second)


def quotient_to_zero(a: int | Expr, b: int | Expr, ranges: Ranges) -> int | Expr | None:
    """``a / b`` rounded towards zero; None where nothing says whether ``b`` is positive or negative.

    Raises:
        ZeroDivisionError: ``b`` is 0.
    """
    if at_most(b, -1, ranges):
        a, b = -a, -b
    if not at_least(b, 0, ranges):
        return None
    if at_least(a, 0, ranges):
        return a // b
    if at_most(a, 0, ranges):
        return -(-a // b)
    is_negative = 1 - is_at_least(a, 0)
    return (a + is_negative * (b - 1)) // b


def remainder_to_zero(a: int | Expr, b: int | Expr, ranges: Ranges) -> int | Expr | None:
    """What :func:`quotient_to_zero` leaves of ``a``, which has the sign of ``a``."""
    if at_most(b, -1, ranges):
        b = -b
    if at_least(a, 0, ranges) and at_least(b, 0, ranges):
        return a % b
    quotient = quotient_to_zero(a, b, ranges)
    return None if quotient is None else a - b * quotient


def _in_order(a: int | Expr, b: int | Expr) -> tuple[int | Expr, int | Expr]:
    """Whichever way around they are given, one expression says it."""
    return (a, b) if (isinstance(a, Expr), str(a)) <= (isinstance(b, Expr), str(b)) else (b, a)


def _interval(dim: Dim, ranges: Ranges) -> _Interval:
    if isinstance(dim, int):
        return dim, dim
    if dim is None:
        return None, None
    low: int | None = 0
    high: int | None = 0
    for atoms, coefficient in dim.terms:
        term_low, term_high = _scaled(_product(atoms, ranges), coefficient)
        low = None if low is None or term_low is None else low + term_low
        high = None if high is None or term_high is None else high + term_high
    return low, high


def _product(atoms: tuple[str, ...], ranges: Ranges) -> _Interval:
    """Bounds of factors that are 0 or more multiply; with another factor nothing is known."""
    low: int = 1
    high: int | None = 1
    for atom in atoms:
        atom_low, atom_high = _atom(atom, ranges)
        if atom_low is None or (atom_low < 0 and len(atoms) > 1):
            return None, (atom_high if len(atoms) == 1 else None)
        low *= atom_low
        high = None if high is None or atom_high is None else high * atom_high
    return low, high


def _atom(atom: str, ranges: Ranges) -> _Interval:
    """A name, or a quotient or remainder by a positive number."""
    if atom.isidentifier():
        return ranges.get(atom, (0, None))
    node = ast.parse(atom, mode="eval").body
    if not isinstance(node, ast.BinOp) or not isinstance(node.right, ast.Constant) or not isinstance(node.right.value, int):
        return None, None
    divisor = node.right.value
    if divisor <= 0:
        return None, None
    if isinstance(node.op, ast.Mod):
        return 0, divisor - 1
    low, high = _interval(parse(ast.unparse(node.left)), ranges)
    return None if low is None else low // divisor, None if high is None else high // divisor


def _scaled(interval: _Interval, factor: int) -> _Interval:
    low, high = (None if v is None else v * factor for v in interval)
    return (low, high) if factor >= 0 else (high, low)

"""What sizes have to be to each other for an op to mean something: compared by types, or noted to be checked at run time.

Inference compares dimensions by the functions here and by nothing else. Each passes where types say that the relation holds,
and raises RelaxError where they say that it does not. Where they say neither, it passes, too; while relations are being noted
(see :mod:`.op_sizes`) it also adds a :class:`Relation`, of which lowering makes a run-time check and ``evaluate`` asks whether
it holds. Then a dimension that types say nothing about has a name of its own, see :func:`open_dim`.

An unknown dimension is never one that repeats: beside another one it has to be as large, also where it turns out to be 1.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from typing import Literal

from .errors import RelaxError
from .symbolic import Dim, Expr, dim_text, is_open, open_place

__all__ = [
    "Kind",
    "Relation",
    "holds",
    "known_first",
    "noting",
    "require_at_most",
    "require_multiple",
    "require_same",
    "require_same_shape",
    "shape_text",
]

#: ``left == right``, ``left <= right``, or that ``left`` is a whole number of times ``right``.
Kind = Literal["equal", "at most", "multiple"]


_WANTED: dict[Kind, str] = {"equal": "", "at most": "at most ", "multiple": "a multiple of "}


@dataclass(frozen=True)
class Relation:
    """A relation of two sizes that an op needs.

    Attributes:
        kind: which one.
        left, right: the sizes.
        message: what to say where it does not hold, as verification would.
    """

    kind: Kind
    left: int | Expr
    right: int | Expr
    message: str

    def decided(self) -> bool | None:
        """Whether it holds; None when that depends on what the symbols stand for."""
        left, right = self.left, self.right
        if isinstance(left, int) and isinstance(right, int):
            return holds(self.kind, left, right)
        return True if _provable(self.kind, left, right) else None

    def with_sizes(self, size_of: Callable[[int | Expr], int | Expr]) -> Relation:
        """The same relation of other sizes."""
        return replace(self, left=size_of(self.left), right=size_of(self.right))

    def failure(self, operands: Sequence[str], shown: Callable[[int | Expr], str]) -> str:
        """What to say where it does not hold, with the sizes.

        Args:
            operands: what the op calls its operands, by the first number of an open name.
            shown: what is said of a size.
        """
        left, right, wanted = self.left, self.right, _WANTED[self.kind]
        if self.kind != "multiple" and not _subject(left, operands):
            left, right, wanted = right, left, "" if self.kind == "equal" else "at least "
        subject = _subject(left, operands)
        return f"{self.message}: expected {f'{subject} to be ' if subject else ''}{wanted}{shown(right)}, got {shown(left)}"


def _subject(dim: int | Expr, operands: Sequence[str]) -> str:
    """What to call a size: the dimension of an operand that it is, or a symbolic expression; nothing when it has no name."""
    if isinstance(dim, int):
        return ""
    place = open_place(dim)
    if place is not None:
        return f"dimension {place[1]} of {operands[place[0]]}"
    return "" if is_open(dim) else f"'{dim}'"


def holds(kind: Kind, left: int, right: int) -> bool:
    """Whether two numbers are in a relation. Of 0 only 0 is a multiple."""
    if kind == "equal":
        return left == right
    return left <= right if kind == "at most" else left == left // max(right, 1) * right


def _provable(kind: Kind, left: int | Expr, right: int | Expr) -> bool:
    """Whether a relation holds whatever the symbols stand for, which is 0 or more."""
    if left == right:
        return True
    if kind == "at most":
        return _never_negative(right - left)
    return kind == "multiple" and right != 0 and (left // right) * right == left


def _never_negative(value: int | Expr) -> bool:
    """Whether it is a sum of symbols, and divisions of such, with no minus in it."""
    return value >= 0 if isinstance(value, int) else "-" not in value.text


_NOTED: ContextVar[list[Relation] | None] = ContextVar("relaxir_noted_relations", default=None)


@contextmanager
def noting() -> Generator[list[Relation]]:
    """The relations that types do not decide, of what is compared while it lasts."""
    noted: list[Relation] = []
    token = _NOTED.set(noted)
    try:
        yield noted
    finally:
        _NOTED.reset(token)


def _note(kind: Kind, left: int | Expr, right: int | Expr, message: str) -> None:
    noted = _NOTED.get()
    if noted is not None:
        noted.append(Relation(kind, left, right, message))


def require_same(left: Dim, right: Dim, message: str) -> None:
    """Refuses different sizes; different symbols are different."""
    if left is None or right is None or left == right:
        return
    if not is_open(left) and not is_open(right):
        raise RelaxError(message)
    _note("equal", left, right, message)


def require_same_shape(left: Sequence[Dim], right: Sequence[Dim], message: str) -> None:
    """Refuses shapes of different ranks or sizes."""
    if len(left) != len(right):
        raise RelaxError(message)
    for a, b in zip(left, right, strict=True):
        require_same(a, b, message)


def require_at_most(left: Dim, right: Dim, message: str) -> None:
    """Refuses a size that is greater than another one."""
    _require("at most", left, right, message)


def require_multiple(left: Dim, right: Dim, message: str) -> None:
    """Refuses a size that is no whole number of times another one."""
    _require("multiple", left, right, message)


def _require(kind: Kind, left: Dim, right: Dim, message: str) -> None:
    if left is None or right is None or _provable(kind, left, right):
        return
    if not isinstance(left, int) or not isinstance(right, int):
        _note(kind, left, right, message)
    elif not holds(kind, left, right):
        raise RelaxError(message)


def known_first(*dims: Dim) -> Dim:
    """Of dimensions that have to be the same, the one of which most is known."""
    best: Dim = None
    for dim in dims:
        if isinstance(dim, int):
            return dim
        if best is None or (is_open(best) and not is_open(dim) and dim is not None):
            best = dim
    return best


def shape_text(shape: Sequence[Dim]) -> str:
    """A shape as diagnostics print it: ``[n, 4]``."""
    return f"[{', '.join(dim_text(d) for d in shape)}]"

"""How much scratch memory a function needs of its callers, as an attribute: ``relax.arena = {groups = [["n", 256]], ...}``."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field

from ..dialect.bindings import func, ir
from ..dialect.symbolic import Expr, parse
from .marks import ARENA
from .plain_attributes import from_attribute, to_attribute

__all__ = ["Arena", "ArenaPlan", "PlacedBuffer", "arena_of", "told_plans", "watching_arenas", "write_arena"]


@dataclass
class Arena:
    """The memory that all buffers of a function share.

    Attributes:
        groups: bytes per unit of each symbolic part (``1`` for the static part), in the order of their base offsets.
        reserved: bytes in front of them that are for something else.
    """

    groups: dict[int | Expr, int] = field(default_factory=dict[int | Expr, int])
    reserved: int = 0

    @property
    def size(self) -> int | Expr:
        """Bytes needed, as an expression over the entry's symbols."""
        total: int | Expr = self.reserved
        for unit, extent in self.groups.items():
            total = total + unit * extent
        return total


@dataclass(frozen=True)
class PlacedBuffer:
    """A buffer of an arena.

    Attributes:
        offset, size: in bytes, expressions over the entry's symbols.
        first, last: numbers of the calls that it lives for.
    """

    offset: int | Expr
    size: int | Expr
    first: int
    last: int


@dataclass(frozen=True)
class ArenaPlan:
    """Where the buffers of a function are, for those who watch.

    Attributes:
        function: its name.
        calls: what it calls, in order; an op with calls in it counts as one, by its own name.
        buffers: what is in the arena.
    """

    function: str
    calls: tuple[str, ...]
    buffers: tuple[PlacedBuffer, ...]


_WATCHED: ContextVar[list[ArenaPlan] | None] = ContextVar("relaxir_arenas", default=None)


@contextmanager
def watching_arenas() -> Generator[list[ArenaPlan]]:
    """A list that gets the plans of all arenas that are made meanwhile, for profiles."""
    found = list[ArenaPlan]()
    token = _WATCHED.set(found)
    try:
        yield found
    finally:
        _WATCHED.reset(token)


def told_plans() -> list[ArenaPlan] | None:
    """Where to tell of plans; None where nobody watches."""
    return _WATCHED.get()


def write_arena(function: func.FuncOp, arena: Arena) -> None:
    """Writes down what a function needs; in place."""
    groups = [[str(unit), extent] for unit, extent in arena.groups.items()]
    function.attributes[ARENA] = to_attribute({"groups": groups, "reserved": arena.reserved})


def arena_of(function: ir.OpView) -> Arena:
    """What a function needs; nothing where it does not say."""
    if ARENA not in function.attributes:
        return Arena()
    found = from_attribute(function.attributes[ARENA])
    return Arena({_unit(text): extent for text, extent in found["groups"]}, found["reserved"])


def _unit(text: str) -> int | Expr:
    unit = int(text) if text.isdecimal() else parse(text)
    assert unit is not None
    return unit

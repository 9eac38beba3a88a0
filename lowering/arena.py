"""How much scratch memory a function needs of its callers, as an attribute: ``relax.arena = {groups = [["n", 256]], ...}``."""

from __future__ import annotations

from dataclasses import dataclass, field

from ..dialect.bindings import func, ir
from ..dialect.symbolic import Expr, parse
from .marks import ARENA
from .plain_attributes import from_attribute, to_attribute

__all__ = ["Arena", "arena_of", "write_arena"]


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

"""Finds loads whose result only counts under a condition that already keeps their indices inside the buffer.

A body that pads reads ``select(inside, x[max(min(p, last), 0)], 0)`` with ``inside = p >= 0 and p <= last``. Under the mask
``inside`` the clamped index is p itself, which may still be a loop index: then the load is a masked vector load, no gather.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ....dialect.bindings import ir
from .lane_math import constant_of

__all__ = ["Guard", "find_guards"]

_CASTS = ("arith.extf", "arith.extsi", "arith.extui", "arith.sitofp", "arith.uitofp", "arith.truncf")
_SLE, _SGE = 3, 5


@dataclass(frozen=True)
class Guard:
    """The condition under which a load counts, and its indices without the clamping that the condition makes needless."""

    condition: ir.Value
    indices: tuple[ir.Value, ...]


def find_guards(operations: Sequence[ir.Operation]) -> dict[ir.Value, Guard]:
    """By result, the loads of a body that have a guard which changes an index."""
    position = {result: i for i, op in enumerate(operations) for result in op.results}
    found: dict[ir.Value, Guard] = {}
    for operation in operations:
        if operation.name != "memref.load":
            continue
        condition = _condition(operation.results[0])
        if condition is None or position.get(condition, -1) > position[operation.results[0]]:
            continue
        _, *indices = operation.operands
        terms = _conjunction(condition)
        plain = tuple(_unclamped(index, terms) for index in indices)
        if plain != tuple(indices):
            found[operation.results[0]] = Guard(condition, plain)
    return found


def _condition(value: ir.Value) -> ir.Value | None:
    """The condition of the select that is the only one to use a loaded value, and uses it where the condition holds."""
    uses = list(value.uses)
    if len(uses) != 1:
        return None
    user = uses[0].owner.operation
    if user.name in _CASTS:
        return _condition(user.results[0])
    if user.name != "arith.select" or user.operands[1] != value or user.operands[0] == value:
        return None
    return user.operands[0]


def _conjunction(condition: ir.Value) -> list[ir.Value]:
    """The truth values that all hold when the condition does."""
    owner = _owner(condition, "arith.andi")
    if owner is None:
        return [condition]
    return [condition, *_conjunction(owner.operands[0]), *_conjunction(owner.operands[1])]


def _unclamped(index: ir.Value, terms: Sequence[ir.Value]) -> ir.Value:
    """What the index is when all terms hold."""
    for name, predicate in (("arith.minsi", _SLE), ("arith.maxsi", _SGE)):
        owner = _owner(index, name)
        if owner is not None:
            inner, bound = _unclamped(owner.operands[0], terms), owner.operands[1]
            return inner if any(_compares(t, predicate, inner, bound) for t in terms) else index
    owner = _owner(index, "arith.select")
    return owner.operands[1] if owner is not None and owner.operands[0] in terms else index


def _compares(term: ir.Value, predicate: int, left: ir.Value, right: ir.Value) -> bool:
    owner = _owner(term, "arith.cmpi")
    if owner is None or ir.IntegerAttr(owner.attributes["predicate"]).value != predicate:
        return False
    number = constant_of(right)
    same = owner.operands[1] == right or (number is not None and constant_of(owner.operands[1]) == number)
    return owner.operands[0] == left and same


def _owner(value: ir.Value, name: str) -> ir.Operation | None:
    owner = value.owner
    return None if isinstance(owner, ir.Block) or owner.name != name else owner.operation

"""What is read of types and attributes, remembered for as long as their context is there."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, TypeVar
from weakref import WeakKeyDictionary

from .bindings import ir

__all__ = ["ContextTable"]

T = TypeVar("T")


class ContextTable(Generic[T]):
    """Answers by type or attribute: a context has each of them once, and a model has a few dozen.

    An object of MLIR keeps its context alive: what is remembered must have none.
    """

    def __init__(self, read: Callable[[Any], T]):
        """Args: read: gives the answer for a type or an attribute when it is asked for first."""
        self._read = read
        self._known: WeakKeyDictionary[ir.Context, dict[int, T]] = WeakKeyDictionary()

    def of(self, thing: ir.Type | ir.Attribute) -> T:
        """The answer for a type or an attribute; what reading it raises is raised each time."""
        known = self._known.get(thing.context)
        if known is None:
            known = self._known.setdefault(thing.context, {})
        place = hash(thing)  # of where the context has it
        if place not in known:
            known[place] = self._read(thing)
        return known[place]

"""Places that have to be on one device, gathered by union-find, and the device each group is known to be on."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass

from ...bindings import ir
from ...errors import DiagnosticError, RelaxError

__all__ = ["DeviceGroups"]


@dataclass(frozen=True)
class _Placement:
    """A device, and where the module says so."""

    device: str
    at: ir.Location


class DeviceGroups:
    """Groups of places: values, and positions in signatures that no value stands for. A place not seen before is alone."""

    def __init__(self) -> None:
        self._numbers: dict[Hashable, int] = {}
        self._parent: list[int] = []
        self._given: dict[int, _Placement] = {}
        self._wished: dict[int, tuple[int, str]] = {}
        self._wishes = 0
        self._common: set[int] = set()

    def place(self, where: Hashable, device: str, at: ir.Location) -> None:
        """Says that a place, not joined with any other yet, is on a device."""
        self._given.setdefault(self.group(where), _Placement(device, at))

    def suggest(self, where: Hashable, device: str) -> None:
        """Says where a group should be unless that is known; of several suggestions the first one counts."""
        self._wishes += 1
        self._wished.setdefault(self.group(where), (self._wishes, device))

    def keep_common(self, where: Hashable) -> None:
        """Says that the group of a place is the same in all calls: :meth:`in_call` makes no copies of it."""
        self._common.add(self.group(where))

    def join(self, left: Hashable, right: Hashable, op: ir.Operation) -> None:
        """Puts two places into one group.

        Raises:
            DiagnosticError: they are on different devices; at the op, with a note where each device comes from.
        """
        a, b = self.group(left), self.group(right)
        if a == b:
            return
        self._parent[b] = a
        one, other = self._given.get(a), self._given.pop(b, None)
        if one is not None and other is not None and one.device != other.device:
            raise _conflict(op, one, other)
        if other is not None:
            self._given.setdefault(a, other)
        if b in self._wished:
            wish = self._wished.pop(b)
            self._wished[a] = min(wish, self._wished.get(a, wish))
        if b in self._common:
            self._common.add(a)

    def in_call(self, where: Hashable, call: Hashable) -> Hashable:
        """The place that stands for a place of a private function in one of its calls; groups stay together.

        The group as it is now is what the call knows of it, so the function's own places have to be joined before.
        """
        group = self.group(where)
        if group in self._common:
            return where
        copy = ("in call", call, group)
        if copy not in self._numbers:
            number = self.group(copy)
            if group in self._given:
                self._given[number] = self._given[group]
            if group in self._wished:
                self.suggest(copy, self._wished[group][1])
        return copy

    def device(self, where: Hashable) -> str | None:
        """The device of a place's group, None when nothing says."""
        group = self.group(where)
        if group in self._given:
            return self._given[group].device
        return self._wished[group][1] if group in self._wished else None

    def group(self, where: Hashable) -> int:
        """The number of a place's group, which is the same until it is joined with another."""
        number = self._numbers.setdefault(where, len(self._parent))
        if number == len(self._parent):
            self._parent.append(number)
        while self._parent[number] != number:
            self._parent[number] = self._parent[self._parent[number]]
            number = self._parent[number]
        return number


def _conflict(op: ir.Operation, one: _Placement, other: _Placement) -> DiagnosticError:
    text = f"'{op.name}' op expected all tensors on one device, got '{one.device}' and '{other.device}'"
    notes = [("note", _text(p.at), f"'{p.device}' comes from here") for p in (one, other)]
    return DiagnosticError([("error", _text(op.location), text), *notes])


def _text(location: ir.Location) -> str:
    return RelaxError("", location).location or ""

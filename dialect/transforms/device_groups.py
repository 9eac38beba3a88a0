"""Places that have to be on one device, gathered by union-find, and the device each group is known to be on."""

from __future__ import annotations

from collections.abc import Hashable

from ..bindings import ir
from ..errors import RelaxError

__all__ = ["DeviceGroups"]


class DeviceGroups:
    """Groups of places: values, and positions in signatures that no value stands for. A place not seen before is alone."""

    def __init__(self) -> None:
        self._numbers: dict[Hashable, int] = {}
        self._parent: list[int] = []
        self._device: dict[int, str] = {}

    def place(self, where: Hashable, device: str, at: ir.Location) -> None:
        """Says that a place is on a device. Raises RelaxError when its group is on another one."""
        known = self._device.setdefault(self._find(where), device)
        if known != device:
            raise RelaxError(f"expected all tensors on one device, got '{known}' and '{device}'", at)

    def suggest(self, where: Hashable, device: str) -> None:
        """Says where a group should be unless that is known already."""
        self._device.setdefault(self._find(where), device)

    def join(self, left: Hashable, right: Hashable, op: ir.Operation) -> None:
        """Puts two places into one group. Raises RelaxError at the op when they are known to be on different devices."""
        a, b = self._find(left), self._find(right)
        if a == b:
            return
        one, other = self._device.get(a), self._device.get(b)
        if one is not None and other is not None and one != other:
            raise RelaxError(f"'{op.name}' op expected all tensors on one device, got '{one}' and '{other}'", op.location)
        self._parent[b] = a
        if one is None and other is not None:
            self._device[a] = other

    def device(self, where: Hashable) -> str | None:
        """The device of a place's group, None when nothing says."""
        return self._device.get(self._find(where))

    def _find(self, where: Hashable) -> int:
        number = self._numbers.setdefault(where, len(self._parent))
        if number == len(self._parent):
            self._parent.append(number)
        while self._parent[number] != number:
            self._parent[number] = self._parent[self._parent[number]]
            number = self._parent[number]
        return number

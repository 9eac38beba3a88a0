"""The devices that a module lists in ``relax.vdevices``, checked; and replacing the list."""

from __future__ import annotations

from collections.abc import Iterable

from ...bindings import ir
from ...errors import RelaxError
from ...op import VDEVICES
from ...ops.vdevice import check_device

__all__ = ["listed_devices", "set_listed_devices"]


def listed_devices(module: ir.Operation) -> list[str] | None:
    """The devices in order; None for a module without a list, in which any device may be named.

    Raises:
        RelaxError: the attribute is no list of distinct devices.
    """
    if VDEVICES not in module.attributes:
        return None
    attribute = module.attributes[VDEVICES]
    if not isinstance(attribute, ir.ArrayAttr) or not all(isinstance(item, ir.StringAttr) for item in attribute):
        raise RelaxError(f"expected a list of strings for {VDEVICES}, got {attribute}", module.location)
    devices = [ir.StringAttr(item).value for item in attribute]
    seen: set[str] = set()
    for device in devices:
        check_device(device, module.location)
        if device in seen:
            raise RelaxError(f"expected distinct devices in {VDEVICES}, got '{device}' twice", module.location)
        seen.add(device)
    return devices


def set_listed_devices(module: ir.Operation, devices: Iterable[str]) -> None:
    """Makes these the devices of a module, each once, in the order in which they first come."""
    module.attributes[VDEVICES] = ir.ArrayAttr.get([ir.StringAttr.get(d) for d in dict.fromkeys(devices)])

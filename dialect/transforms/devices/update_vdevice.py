"""Puts what is on one virtual device on another one, here with ``from=cuda:0 to=cuda:1``.

Before::

    module attributes {relax.vdevices = ["cpu:0", "cuda:0"]} {
      func.func @main(%x: tensor<4xf32, {vdevice = "cpu:0"}>) -> tensor<4xf32, {vdevice = "cuda:0"}> {
        %0 = "relax.to_vdevice"(%x) {vdevice = "cuda:0"}
        return %0
      }
    }

after::

    module attributes {relax.vdevices = ["cpu:0", "cuda:1"]} {
      func.func @main(%x: tensor<4xf32, {vdevice = "cpu:0"}>) -> tensor<4xf32, {vdevice = "cuda:1"}> {
        %0 = "relax.to_vdevice"(%x) {vdevice = "cuda:1"}
        return %0
      }
    }

The module's list, all types, hints and copies change. Where that makes one device of two, the list names it once, and copies
between the two vanish. A device that nothing is on is no error, so that a second run changes nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from ...bindings import func, ir
from ...errors import RelaxError
from ...functions import functions
from ...op import VDEVICES
from ...ops import HintOnDevice, ToVDevice
from ...ops.vdevice import check_device
from ...passes.base import Pass
from ...struct_info import vdevice_of, with_vdevice
from ...traversal import nested_operations
from .listed import listed_devices, set_listed_devices
from .places import signature_of, tensors_in

__all__ = ["UpdateVDevice"]


@dataclass(frozen=True)
class UpdateVDevice(Pass):
    """Puts what is on one virtual device on another one.

    Attributes:
        from_: the device to replace.
        index: the device to replace, by its place in the module's list; instead of ``from``. Where it becomes one with another
            device of the list, places change, and ``from`` has to name it.
        to: the device that takes its place.
    """

    name: ClassVar[str] = "relax-update-vdevice"
    from_: str = ""
    index: int = -1
    to: str = ""

    def run(self, op: ir.Operation) -> None:
        if not self.to or bool(self.from_) == (self.index != -1):
            raise RelaxError("expected option 'to' and one of 'from' and 'index'", op.location)
        check_device(self.to, op.location)
        devices = listed_devices(op)
        old = self._replaced(op, devices)
        if devices is not None:
            set_listed_devices(op, [self.to if d == old else d for d in devices])
        for function in functions(op):
            _update(function, old, self.to)

    def _replaced(self, module: ir.Operation, devices: list[str] | None) -> str:
        if self.from_:
            check_device(self.from_, module.location)
            return self.from_
        if devices is None or not 0 <= self.index < len(devices):
            known = "no list" if devices is None else f"{len(devices)} devices"
            raise RelaxError(f"expected option 'index' to be of a device in {VDEVICES}, got {self.index} of {known}",
                             module.location)  # fmt: skip
        if self.to in devices and self.to != devices[self.index]:
            raise RelaxError(f"expected option 'from' where two devices become one, got 'index' of '{devices[self.index]}'",
                             module.location)  # fmt: skip
        return devices[self.index]


def _update(function: func.FuncOp, old: str, new: str) -> None:
    ops = list(nested_operations(function.operation))
    for value in tensors_in(function.operation, ops):
        value.set_type(_updated(value.type, old, new))
    type_ = signature_of(function)
    inputs, results = ([_updated(t, old, new) for t in types] for types in (type_.inputs, type_.results))
    updated = ir.FunctionType.get(inputs, results)
    if updated != type_:
        function.attributes["function_type"] = ir.TypeAttr.get(updated)
    for op in ops:
        if isinstance(op.opview, HintOnDevice | ToVDevice) and op.opview.vdevice == old:
            op.attributes["vdevice"] = ir.StringAttr.get(new)
    for op in ops:
        if (
            op.name == ToVDevice.OPERATION_NAME
            and op.operands[0].type == op.results[0].type
            and vdevice_of(op.results[0]) == new
        ):
            op.results[0].replace_all_uses_with(op.operands[0])
            op.erase()


def _updated(type_: ir.Type, old: str, new: str) -> ir.Type:
    if isinstance(type_, ir.TupleType):
        return ir.TupleType.get_tuple([_updated(type_.get_type(i), old, new) for i in range(type_.num_types)])
    return with_vdevice(type_, new) if isinstance(type_, ir.RankedTensorType) and vdevice_of(type_) == old else type_

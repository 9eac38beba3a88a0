"""Gives tensors the devices that hints and types ask for, and turns hints into copies where two devices meet.

Before::

    func.func @main(%x: tensor<4xf32>, %y: tensor<4xf32, {vdevice = "cpu:0"}>) -> tensor<4xf32> {
      %0 = "relax.hint_on_device"(%y) {vdevice = "cuda:0"}
      %1 = "relax.add"(%x, %0)
      return %1
    }

after::

    func.func @main(%x: tensor<4xf32, {vdevice = "cuda:0"}>, %y: tensor<4xf32, {vdevice = "cpu:0"}>)
        -> tensor<4xf32, {vdevice = "cuda:0"}> {
      %0 = "relax.to_vdevice"(%y) {vdevice = "cuda:0"}
      %1 = "relax.add"(%x, %0)
      return %1
    }

All tensors of an op are on one device, and so are arguments with parameters and results with returned values, through calls,
branches and loops. What types, hints' results and copies' results say comes first; where they say nothing, a hint's operand is
taken to be on the hint's device already (the first hint's, where there are several). Constants are repeated per device. Two
devices in one op are refused, as is a device that the module's ``relax.vdevices`` does not list.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from ..bindings import func, ir
from ..functions import body_of, functions, name_of, update_type
from ..ops import ToVDevice
from ..pass_manager import Pass
from ..struct_info import vdevice_of, with_vdevice
from .device_constraints import Constraints, Use, argument_place, gather, result_place
from .device_groups import DeviceGroups

__all__ = ["RealizeVDevice"]


@dataclass(frozen=True)
class RealizeVDevice(Pass):
    """Propagates virtual devices and turns hints into copies where two devices meet."""

    name: ClassVar[str] = "relax-realize-vdevice"

    def run(self, op: ir.Operation) -> None:
        found = gather(op)
        for hint in found.hints:
            found.groups.suggest(hint.operands[0], _wanted(hint))
        for value in found.values:
            _set_device(value, found.groups.device(value))
        _place_constants(found)
        for hint in found.hints:
            _replace_hint(hint)
        for function in functions(op):
            _update_signature(function, found.groups)


def _wanted(hint: ir.Operation) -> str:
    return ir.StringAttr(hint.attributes["vdevice"]).value


def _set_device(value: ir.Value, device: str | None) -> None:
    if device is not None and vdevice_of(value) != device:
        value.set_type(with_vdevice(value.type, device))


def _place_constants(found: Constraints) -> None:
    for value, uses in found.constants.items():
        by_device: dict[str | None, list[Use]] = {}
        for use in uses:
            device = None if use.partner is None else found.groups.device(use.partner)
            by_device.setdefault(device, []).append(use)
        _place_constant(value, by_device)


def _place_constant(value: ir.Value, by_device: dict[str | None, list[Use]]) -> None:
    """The constant itself serves the uses on no device, if any, else those on the first one; copies serve the others."""
    own = None if None in by_device else next(iter(by_device), None)
    for device, uses in by_device.items():
        if device == own:
            continue
        copy = value.owner.operation.clone(ip=ir.InsertionPoint.after(value.owner)).operation.results[0]
        _set_device(copy, device)
        for use in uses:
            use.op.operands[use.position] = copy
    _set_device(value, own)


def _replace_hint(hint: ir.Operation) -> None:
    value, result = hint.operands[0], hint.results[0]
    if value.type != result.type:
        with hint.location, ir.InsertionPoint(hint):
            value = ToVDevice.create(value, result_types=[result.type], vdevice=_wanted(hint)).results[0]
    result.replace_all_uses_with(value)
    hint.erase()


def _update_signature(function: func.FuncOp, groups: DeviceGroups) -> None:
    if body_of(function) is not None:
        update_type(function)
        return
    type_ = ir.FunctionType(ir.TypeAttr(function.attributes["function_type"]).value)
    name = name_of(function)
    inputs = [_placed(t, groups.device(argument_place(name, i))) for i, t in enumerate(type_.inputs)]
    results = [_placed(t, groups.device(result_place(name, i))) for i, t in enumerate(type_.results)]
    if inputs != list(type_.inputs) or results != list(type_.results):
        function.attributes["function_type"] = ir.TypeAttr.get(ir.FunctionType.get(inputs, results))


def _placed(type_: ir.Type, device: str | None) -> ir.Type:
    return with_vdevice(type_, device) if device is not None and isinstance(type_, ir.RankedTensorType) else type_

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
branches and loops, and from a transform function to the function that it prepares. What types, hints' results and copies'
results say comes first; where they say nothing, a hint's operand is taken to be on the hint's device already (the first
hint's, where there are several). A value hinted elsewhere is copied right after its definition, once per device.

Constants are repeated per device. A private function that calls want on different devices is repeated per placement; one that
something else refers to, or that calls itself, has one placement. ``tensor.extract`` reads from any device: what only serves
conditions and sizes is on none. Two devices in one op are refused, as is a device that the module's ``relax.vdevices`` does
not list; without that list, any is right.

Types change in place, all at once, as no op verifies in between: that is no pattern. Constants and hints are rewritten by some.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from typing import ClassVar

from ...bindings import ir
from ...ops import Constant, HintOnDevice, ToVDevice
from ...passes.base import Pass
from ...passes.rewriting import Patterns, Rewriter, walk
from ...struct_info import vdevice_of, with_vdevice
from ...traversal import nested_operations
from .constraints import Constraints, gather
from .groups import DeviceGroups
from .listed import listed_devices
from .places import PlacedFunction, Use, element_place, signature_of, signature_places, tensors_in

__all__ = ["RealizeVDevice"]

#: The devices of a function's arguments and results; None for what is on none, or no tensor.
Placement = tuple[str | None, ...]
#: The symbol of each version of a function.
Versions = dict[Placement, str]


@dataclass(frozen=True)
class RealizeVDevice(Pass):
    """Propagates virtual devices and turns hints into copies where two devices meet."""

    name: ClassVar[str] = "relax-realize-vdevice"

    def run(self, op: ir.Operation) -> None:
        found = gather(op, listed_devices(op))
        versions = _versions(found)
        for name, body in found.bodies.items():
            wanted = versions[name]
            copies = [body.function.operation.clone(ip=ir.InsertionPoint.after(body.function)) for _ in range(1, len(wanted))]
            functions = [body.function.operation, *(c.operation for c in copies[::-1])]
            # The original changes last: its values are how those of the copies are found.
            for function, placement in reversed(list(zip(functions, wanted, strict=True))):
                _Version(body, function, _resolver(found.groups, body, placement)).place(wanted[placement], versions)


def _versions(found: Constraints) -> dict[str, Versions]:
    """The placements that each function is needed in; the first one keeps the function's name."""
    taken = set(found.bodies)
    versions: dict[str, Versions] = {name: {} for name in found.bodies}
    for name, body in found.bodies.items():  # callers come first: here all placements of the function are known
        if not versions[name]:
            versions[name][tuple(found.groups.device(p) for p in signature_places(body.function))] = name
        for placement in versions[name]:
            resolve = _resolver(found.groups, body, placement)
            for call in body.calls:
                wanted = versions[call.callee]
                placed = tuple(resolve(p) for p in call.partners)
                if placed not in wanted:
                    wanted[placed] = _unused(call.callee, taken) if wanted else call.callee
    return versions


def _unused(name: str, taken: set[str]) -> str:
    candidate, number = name, 0
    while candidate in taken:
        number += 1
        candidate = f"{name}_{number}"
    taken.add(candidate)
    return candidate


def _resolver(groups: DeviceGroups, body: PlacedFunction, placement: Placement) -> Callable[[Hashable], str | None]:
    """Where the places of a function's body are when its arguments and results are placed like this."""
    bound = {groups.group(p): d for p, d in zip(signature_places(body.function), placement, strict=True)}

    def resolve(where: Hashable) -> str | None:
        group = groups.group(where)
        return bound[group] if group in bound else groups.device(where)

    return resolve


class _Version:
    """A function, or a copy of it, that gets one placement."""

    def __init__(self, body: PlacedFunction, function: ir.Operation, resolve: Callable[[Hashable], str | None]):
        self.body, self.function, self.resolve = body, function, resolve
        self.ops = list(nested_operations(function))
        self.values = dict(zip(body.values, tensors_in(function, self.ops), strict=True))
        self._constants = {self.values[c]: c for c in body.constants}

    def place(self, symbol: str, versions: dict[str, Versions]) -> None:
        """Changes the function; it then has this symbol and calls these versions of others."""
        for place, value in self.values.items():
            if place not in self.body.constants:
                self._set_type(value, place)
        for call in self.body.calls:
            callee = versions[call.callee][tuple(self.resolve(p) for p in call.partners)]
            self.ops[call.op].attributes["callee"] = ir.FlatSymbolRefAttr.get(callee)
        walk(self.function, self.patterns())
        self._place_signature()
        self.function.attributes["sym_name"] = ir.StringAttr.get(symbol)

    def patterns(self) -> Patterns:
        constants = dict.fromkeys(self.values[c].owner.operation.name for c in self.body.constants)
        return [
            *((name, self._repeat_per_device) for name in constants),
            (HintOnDevice, _Copies().copy_or_nothing),
        ]

    def _repeat_per_device(self, op: ir.OpView, rewriter: Rewriter) -> bool:
        place = self._constants.get(op.results[0])
        if place is None:
            return False
        self._place_constant(op.results[0], self.body.constants[place])
        return True

    def _set_type(self, value: ir.Value, place: Hashable) -> None:
        type_ = self._placed(value.type, place)
        if type_ != value.type:
            value.set_type(type_)

    def _placed(self, type_: ir.Type, place: Hashable) -> ir.Type:
        if isinstance(type_, ir.TupleType):
            elements = [(type_.get_type(i), element_place(place, i)) for i in range(type_.num_types)]
            return ir.TupleType.get_tuple([self._placed(t, p) for t, p in elements])
        device = self.resolve(place) if isinstance(type_, ir.RankedTensorType) else None
        return type_ if device is None or vdevice_of(type_) == device else with_vdevice(ir.RankedTensorType(type_), device)

    def _place_constant(self, value: ir.Value, uses: list[Use]) -> None:
        """The constant itself serves the uses on no device, if any, else those on the first one; copies serve the others."""
        by_device: dict[str | None, list[Use]] = {}
        for use in uses:
            by_device.setdefault(self.resolve(use.partner), []).append(use)
        own = None if None in by_device or _is_upstream(value) else next(iter(by_device), None)
        for device in by_device:
            if device == own:
                continue
            copy = _constant_on(value, device)
            for use in by_device[device]:
                self.ops[use.op].operands[use.position] = copy
        _set_device(value, own)

    def _place_signature(self) -> None:
        type_ = signature_of(self.function)
        count, types = len(type_.inputs), [*type_.inputs, *type_.results]
        places = signature_places(self.body.function)
        placed = [self._placed(t, p) for t, p in zip(types, places, strict=True)]
        if placed != types:
            self.function.attributes["function_type"] = ir.TypeAttr.get(ir.FunctionType.get(placed[:count], placed[count:]))


@dataclass
class _Copies:
    """The copies made in one function: each value once per device, right after its definition."""

    _made: dict[tuple[ir.Value, ir.Type], ir.Value] = field(default_factory=dict[tuple[ir.Value, ir.Type], ir.Value])
    _last: dict[ir.Value | ir.Block, ir.Operation] = field(default_factory=dict["ir.Value | ir.Block", ir.Operation])

    def copy_or_nothing(self, hint: HintOnDevice, rewriter: Rewriter) -> bool:
        """A hint's operand takes its place where that is on the device, else a copy does."""
        value, result = hint.operands[0], hint.results[0]
        if value.type != result.type:
            value = self._copy(value, result.type, hint)
        return rewriter.replace(hint, [value])

    def _copy(self, value: ir.Value, type_: ir.Type, hint: HintOnDevice) -> ir.Value:
        if (value, type_) not in self._made:
            # Copies of one value, and of the arguments of one block, stay in order.
            after = value.owner if isinstance(value.owner, ir.Block) else value
            with hint.location, self._place_after(value, self._last.get(after)):
                copy = ToVDevice.create(value, result_types=[type_], vdevice=vdevice_of(type_))
            self._made[value, type_], self._last[after] = copy.results[0], copy
        return self._made[value, type_]

    def _place_after(self, value: ir.Value, last: ir.Operation | None) -> ir.InsertionPoint:
        if last is None and isinstance(value.owner, ir.Block):
            return ir.InsertionPoint.at_block_begin(value.owner)
        return ir.InsertionPoint.after(last or value.owner)


def _is_upstream(constant: ir.Value) -> bool:
    """Whether a constant is MLIR's own, whose type has no device."""
    return constant.owner.name == "arith.constant"


def _constant_on(constant: ir.Value, device: str | None) -> ir.Value:
    """A copy of a constant on a device."""
    owner, where = constant.owner.operation, ir.InsertionPoint.after(constant.owner)
    if device is not None and _is_upstream(constant):
        type_ = with_vdevice(constant.type, device)
        return Constant.create(value=owner.attributes["value"], result_types=[type_], loc=owner.location, ip=where).results[0]
    copy = owner.clone(ip=where).operation.results[0]
    _set_device(copy, device)
    return copy


def _set_device(value: ir.Value, device: str | None) -> None:
    if device is not None and vdevice_of(value) != device:
        value.set_type(with_vdevice(value.type, device))

"""What the ops of a module say about devices: which places are on one device, and which are given.

A constant can be on any device: its uses do not tie each other together, and each gets the constant on its own device. A
private function has places of its own in every call, unless something else than calls refers to it, or it calls itself.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass

from ...bindings import ir
from ...call_graph import CallGraph, collect_symbols
from ...errors import RelaxError
from ...functions import (
    body_of,
    full_argument_names,
    functions,
    is_private,
    name_of,
    num_input,
    result_names,
    transform_targets,
)
from ...op import VDEVICES, Op
from ...ops import GetParam, HintOnDevice, ToVDevice
from ...ops.vdevice import check_device
from ...struct_info import vdevice_of
from ...traversal import nested_operations
from .groups import DeviceGroups
from .places import (
    PlacedFunction,
    argument_place,
    leaves,
    prepared_place,
    result_place,
    signature_of,
    signature_places,
    tensors_in,
)
from .uses import BodyReader

__all__ = ["Constraints", "gather"]


@dataclass
class Constraints:
    """Everything that is known.

    Attributes:
        groups: places by device.
        bodies: functions by name, callers before what they call.
    """

    groups: DeviceGroups
    bodies: dict[str, PlacedFunction]


def gather(module: ir.Operation, devices: Sequence[str] | None) -> Constraints:
    """Reads all constraints.

    Args:
        module: the module.
        devices: those there are; None for any.

    Raises:
        RelaxError: at the op that joins different devices or names an unknown one.
    """
    return _Gatherer(module, devices).gather()


class _Gatherer:
    def __init__(self, module: ir.Operation, devices: Sequence[str] | None):
        self.devices = devices
        self.groups = DeviceGroups()
        self.graph = CallGraph(module)
        self.bodies: dict[str, PlacedFunction] = {}
        for function in functions(module):
            ops = list(nested_operations(function.operation))
            self.bodies[name_of(function)] = PlacedFunction(function, ops, tensors_in(function.operation, ops))
        self.copied = self._copied(module)

    def gather(self) -> Constraints:
        for name, body in self.bodies.items():
            self._read_signature(name, body)
            self._read_definitions(body)
        self._read_prepared()
        order = [name for name, _ in self.graph.callees_first()]
        for name in order:
            BodyReader(self.bodies[name], self.groups, self.copied).read()
        return Constraints(self.groups, {name: self.bodies[name] for name in reversed(order)})

    def _copied(self, module: ir.Operation) -> frozenset[str]:
        """Private functions that only calls refer to, that are not recursive and that neither take nor return a tuple."""
        named: set[str] = set()
        for body in self.bodies.values():
            for op in (body.function.operation, *body.ops):
                if op.name != "func.call" and not op.name.startswith("relax."):
                    for _, attribute in op.attributes.items():
                        collect_symbols(attribute, named)
            if transform_targets(body.function):
                named.add(name_of(body.function))
        for _, attribute in module.attributes.items():
            collect_symbols(attribute, named)
        bodies = self.bodies.items()
        private = {name for name, body in bodies if is_private(body.function) and body_of(body.function) is not None}
        tupled = {name for name in private if _has_tuple(signature_of(self.bodies[name].function))}
        return frozenset(private - named - tupled - self.graph.recursive)

    def _place(self, where: Hashable, device: str | None, at: ir.Location) -> None:
        if device is None:
            return
        check_device(device, at)
        if self.devices is not None and device not in self.devices:
            known = ", ".join(f"'{d}'" for d in self.devices)
            raise RelaxError(f"expected a device of {VDEVICES} ({known}), got '{device}'", at)
        self.groups.place(where, device, at)

    def _place_all(self, where: Hashable, type_: ir.Type, at: ir.Location) -> None:
        for place, tensor in leaves(where, type_):
            self._place(place, vdevice_of(tensor), at)

    def _read_signature(self, name: str, body: PlacedFunction) -> None:
        block, type_ = body_of(body.function), signature_of(body.function)
        places = signature_places(body.function)
        arguments: list[ir.Value] = [] if block is None else list(block.arguments)
        for argument, place in zip(arguments, places, strict=False):
            for (inside, _), (outside, _) in zip(leaves(argument, argument.type), leaves(place, argument.type), strict=True):
                self.groups.join(inside, outside, body.function.operation)
            self._place_all(argument, argument.type, argument.location)
        for place, tensor in zip(places, [*type_.inputs, *type_.results], strict=True):
            self._place_all(place, tensor, body.function.location)
            for leaf, _ in leaves(place, tensor) if name not in self.copied else ():
                self.groups.keep_common(leaf)

    def _read_definitions(self, body: PlacedFunction) -> None:
        for value in body.values:
            op = None if isinstance(value.owner, ir.Block) else value.owner.operation
            if op is not None and _is_constant(op):
                body.constants[value] = []
            elif op is not None and isinstance(op.opview, HintOnDevice | ToVDevice):
                self._place(value, op.opview.vdevice, value.location)
            else:
                self._place_all(value, value.type, value.location)

    def _read_prepared(self) -> None:
        """What a transform function returns is where the function that it prepares takes it; either may be lazy."""
        for name, body in self.bodies.items():
            for target in transform_targets(body.function):
                for i, given in enumerate(result_names(body.function)):
                    self._join_prepared(result_place(name, i), target, given, body.function.operation)
                if target in self.bodies:
                    self._read_weights(target, self.bodies[target])

    def _read_weights(self, name: str, body: PlacedFunction) -> None:
        inputs = num_input(body.function) or 0
        for i, weight in enumerate(full_argument_names(body.function)[inputs:]):
            self._join_prepared(argument_place(name, inputs + i), name, weight, body.function.operation)
        for op in body.ops:
            if op.name == GetParam.OPERATION_NAME:
                self._join_prepared(op.results[0], name, op.opview.name, op)

    def _join_prepared(self, where: Hashable, target: str, name: str | None, op: ir.Operation) -> None:
        if name is not None:
            self.groups.join(prepared_place(target, name), where, op)


def _has_tuple(type_: ir.FunctionType) -> bool:
    return any(isinstance(t, ir.TupleType) for t in (*type_.inputs, *type_.results))


#: MLIR's ops of scalars, and of numbers.
_OF_SCALARS = ("arith.constant", "tensor.from_elements")


def _is_constant(op: ir.Operation) -> bool:
    """Whether an op makes one tensor of no other, which may be made on any device."""
    one_result = (isinstance(op.opview, Op) and not len(op.operands) and len(op.results) == 1) or op.name in _OF_SCALARS
    return one_result and vdevice_of(op.results[0]) is None

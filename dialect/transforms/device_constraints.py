"""What the ops of a module say about devices: which places are on one device, and which are given.

A place is a tensor value, or ``("argument", function, i)`` / ``("result", function, i)`` in a signature. A constant can be on
any device: its uses do not tie each other together, and each gets the constant on its own device.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from dataclasses import dataclass, field

from ..bindings import func, ir
from ..call_graph import callee_of
from ..errors import RelaxError
from ..functions import body_of, functions, name_of
from ..op import Op, op_class
from ..ops import HintOnDevice, ToVDevice
from ..struct_info import is_tensor, vdevice_of
from ..traversal import blocks_of, nested_operations, operations
from .device_groups import DeviceGroups

__all__ = ["Constraints", "Use", "argument_place", "gather", "result_place"]

VDEVICES = "relax.vdevices"


@dataclass(frozen=True)
class Use:
    """A use of a constant: operand ``position`` of ``op``, which wants it where ``partner`` is (None: anywhere)."""

    op: ir.Operation
    position: int
    partner: Hashable


@dataclass
class Constraints:
    """Everything that is known.

    Attributes:
        groups: places by device.
        values: all tensor values but constants.
        constants: results of ops without operands whose type names no device, with their uses.
        hints: ``relax.hint_on_device`` ops, in order.
    """

    groups: DeviceGroups = field(default_factory=DeviceGroups)
    values: list[ir.Value] = field(default_factory=list)
    constants: dict[ir.Value, list[Use]] = field(default_factory=dict)
    hints: list[ir.Operation] = field(default_factory=list)


def argument_place(function: str, position: int) -> Hashable:
    """The place of an argument in a signature."""
    return ("argument", function, position)


def result_place(function: str, position: int) -> Hashable:
    """The place of a result in a signature."""
    return ("result", function, position)


def gather(module: ir.Operation) -> Constraints:
    """Reads all constraints. Raises RelaxError at the op that joins different devices or names an unknown one."""
    return _Gatherer(module).gather()


class _Gatherer:
    def __init__(self, module: ir.Operation):
        self.module = module
        self.found = Constraints()
        self.functions = {name_of(f): f for f in functions(module)}
        self.devices = _known_devices(module)

    def gather(self) -> Constraints:
        bodies = [(f, list(nested_operations(f.operation))) for f in self.functions.values()]
        for function, ops in bodies:
            self._read_signature(function)
            self._read_values((a for block in blocks_of(function.operation) for a in block.arguments), function.location)
            for op in ops:
                self._read_definitions(op)
        for function, ops in bodies:
            for op in ops:
                self._read_uses(op, name_of(function))
        return self.found

    def _place(self, where: Hashable, device: str | None, at: ir.Location) -> None:
        if device is None:
            return
        if self.devices is not None and device not in self.devices:
            known = ", ".join(f"'{d}'" for d in self.devices)
            raise RelaxError(f"expected a device of {VDEVICES} ({known}), got '{device}'", at)
        self.found.groups.place(where, device, at)

    def _read_values(self, values: Iterable[ir.Value], at: ir.Location) -> None:
        for value in values:
            if is_tensor(value):
                self.found.values.append(value)
                self._place(value, vdevice_of(value), at)

    def _read_signature(self, function: func.FuncOp) -> None:
        name, groups, block = name_of(function), self.found.groups, body_of(function)
        type_ = ir.FunctionType(ir.TypeAttr(function.attributes["function_type"]).value)
        for i, argument in enumerate(type_.inputs):
            self._place(argument_place(name, i), vdevice_of(argument), function.location)
            if block is not None:
                groups.join(argument_place(name, i), block.arguments[i], function.operation)
        for i, result in enumerate(type_.results):
            self._place(result_place(name, i), vdevice_of(result), function.location)

    def _read_definitions(self, op: ir.Operation) -> None:
        self._read_values((a for block in blocks_of(op) for a in block.arguments), op.location)
        if _is_constant(op):
            self.found.constants.update({r: [] for r in op.results})
            return
        view = op.opview
        if not isinstance(view, HintOnDevice | ToVDevice):
            self._read_values(op.results, op.location)
            return
        self.found.values.append(op.results[0])
        self._place(op.results[0], view.vdevice, op.location)
        if isinstance(view, HintOnDevice):
            self.found.hints.append(op)

    def _read_uses(self, op: ir.Operation, function: str) -> None:
        if op.name == "relax.hint_on_device":
            self._link(op, 0, op.results[0], constants_only=True)
        elif op.name == "func.call":
            self._link_all(op, 0, [argument_place(callee_of(op), i) for i in range(len(op.operands))])
            for i, result in enumerate(op.results):
                self._join(result, result_place(callee_of(op), i), op)
        elif op.name == "func.return":
            self._link_all(op, 0, [result_place(function, i) for i in range(len(op.operands))])
        elif op.name in _CONTROL_FLOW:
            _CONTROL_FLOW[op.name](self, op)
        elif op.name not in _TERMINATORS:
            self._read_plain(op)

    def _read_plain(self, op: ir.Operation) -> None:
        """All tensors of an ordinary op are on one device."""
        cls = op_class(op)
        if cls is not None and not cls.same_vdevice:
            return
        inner = (a for block in blocks_of(op) for a in block.arguments)
        places = [v for v in (*op.results, *op.operands, *inner) if is_tensor(v) and v not in self.found.constants]
        partner = places[0] if places else None
        for other in places[1:]:
            self.found.groups.join(partner, other, op)
        for i, value in enumerate(op.operands):
            if value in self.found.constants:
                self.found.constants[value].append(Use(op, i, partner))

    def _link_all(self, op: ir.Operation, first: int, partners: Iterable[Hashable]) -> None:
        """Operands from ``first`` on are where their partners are."""
        for i, partner in enumerate(partners):
            self._link(op, first + i, partner)

    def _link(self, op: ir.Operation, position: int, partner: Hashable, constants_only: bool = False) -> None:
        value = op.operands[position]
        if value in self.found.constants:
            self.found.constants[value].append(Use(op, position, partner))
        elif not constants_only:
            self._join(value, partner, op)

    def _join(self, value: ir.Value, partner: Hashable, op: ir.Operation) -> None:
        if is_tensor(value):
            self.found.groups.join(value, partner, op)

    def read_if(self, op: ir.Operation) -> None:
        """Both branches yield the results."""
        for block in blocks_of(op):
            self._link_all(operations(block)[-1], 0, op.results)

    def read_for(self, op: ir.Operation) -> None:
        """Initial values, the body's arguments, what it yields, and results go together; bounds and step come first."""
        (block,) = blocks_of(op)
        carried = list(block.arguments)[1:]
        self._link_all(op, 3, carried)
        self._link_all(operations(block)[-1], 0, carried)
        for result, argument in zip(op.results, carried, strict=True):
            self._join(result, argument, op)

    def read_while(self, op: ir.Operation) -> None:
        """Initial values and yields go into the first region; the condition's operands into the second and to the results."""
        before, after = blocks_of(op)
        self._link_all(op, 0, before.arguments)
        self._link_all(operations(after)[-1], 0, before.arguments)
        self._link_all(operations(before)[-1], 1, after.arguments)
        for result, argument in zip(op.results, after.arguments, strict=True):
            self._join(result, argument, op)


_CONTROL_FLOW = {
    "scf.if": _Gatherer.read_if,
    "scf.execute_region": _Gatherer.read_if,
    "scf.for": _Gatherer.read_for,
    "scf.while": _Gatherer.read_while,
}
_TERMINATORS = frozenset({"scf.yield", "scf.condition"})


def _is_constant(op: ir.Operation) -> bool:
    one_result = isinstance(op.opview, Op) and not len(op.operands) and len(op.results) == 1
    return one_result and vdevice_of(op.results[0]) is None


def _known_devices(module: ir.Operation) -> list[str] | None:
    if VDEVICES not in module.attributes:
        return None
    attribute = module.attributes[VDEVICES]
    if not isinstance(attribute, ir.ArrayAttr) or not all(isinstance(item, ir.StringAttr) for item in attribute):
        raise RelaxError(f"expected a list of strings for {VDEVICES}, got {attribute}", module.location)
    return [item.value for item in attribute]

"""What the ops of a module say about devices: which places are on one device, and which are given.

A place is a tensor value, or ``("argument", function, i)`` / ``("result", function, i)`` in a signature. A constant can be on
any device: its uses do not tie each other together, and each gets the constant on its own device. A private function has
places of its own in every call, unless something else than calls refers to it, or it calls itself.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass, field

from ..bindings import func, ir
from ..call_graph import CallGraph, callee_of, collect_symbols
from ..errors import RelaxError
from ..functions import body_of, functions, is_private, name_of, num_input, result_names, transform_targets
from ..op import VDEVICES, Op
from ..ops import GetParam, HintOnDevice, ToVDevice
from ..ops.vdevice import check_device
from ..signature import weight_names
from ..struct_info import is_tensor, vdevice_of
from ..traversal import blocks_of, nested_operations
from .device_groups import DeviceGroups

__all__ = ["Body", "Call", "Constraints", "Use", "gather", "signature_places", "tensors_in"]


@dataclass(frozen=True)
class Use:
    """A use of a constant: operand ``position`` of op number ``op``, which wants it where ``partner`` is (None: anywhere)."""

    op: int
    position: int
    partner: Hashable


@dataclass(frozen=True)
class Call:
    """Op number ``op``, a call; ``partners`` are the places that stand for the callee's :func:`signature_places`."""

    op: int
    callee: str
    partners: Sequence[Hashable]


@dataclass
class Body:
    """What is known of one function. Ops are numbered as ``nested_operations`` goes, so that it holds for copies as well.

    Attributes:
        function: the function, a declaration has no ops.
        ops: its ops.
        values: its tensors, as :func:`tensors_in` goes.
        constants: those of them that come from an op without operands and name no device, with their uses.
        hints: ``relax.hint_on_device`` ops.
        calls: calls of functions that have one copy per placement.
    """

    function: func.FuncOp
    ops: list[ir.Operation]
    values: list[ir.Value]
    constants: dict[ir.Value, list[Use]] = field(default_factory=dict[ir.Value, list[Use]])
    hints: list[int] = field(default_factory=list[int])
    calls: list[Call] = field(default_factory=list[Call])


@dataclass
class Constraints:
    """Everything that is known.

    Attributes:
        groups: places by device.
        bodies: functions by name, callers before what they call.
    """

    groups: DeviceGroups
    bodies: dict[str, Body]


def argument_place(function: str, position: int) -> Hashable:
    """The place of an argument in a signature."""
    return ("argument", function, position)


def result_place(function: str, position: int) -> Hashable:
    """The place of a result in a signature."""
    return ("result", function, position)


def prepared_place(function: str, name: str) -> Hashable:
    """The place of a prepared weight, between the function that prepares it and the one that takes it."""
    return ("prepared", function, name)


def signature_places(function: func.FuncOp) -> list[Hashable]:
    """The places of arguments, then results; those that are no tensors have one, too."""
    name, type_ = name_of(function), _type(function)
    arguments = [argument_place(name, i) for i in range(len(type_.inputs))]
    return [*arguments, *(result_place(name, i) for i in range(len(type_.results)))]


def tensors_in(function: ir.Operation, ops: Iterable[ir.Operation]) -> list[ir.Value]:
    """The tensors of a function: arguments of its blocks, then of each op the results and the arguments of its blocks."""
    found: list[ir.Value] = [a for block in blocks_of(function) for a in block.arguments]
    for op in ops:
        found += op.results
        found += [a for block in blocks_of(op) for a in block.arguments]
    return [v for v in found if is_tensor(v)]


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
        self.bodies: dict[str, Body] = {}
        for function in functions(module):
            ops = list(nested_operations(function.operation))
            self.bodies[name_of(function)] = Body(function, ops, tensors_in(function.operation, ops))
        self.copied = self._copied(module)

    def gather(self) -> Constraints:
        for name, body in self.bodies.items():
            self._read_signature(name, body)
            self._read_definitions(body)
        self._read_prepared()
        order = [name for name, _ in self.graph.callees_first()]
        for name in order:
            _BodyReader(self, name).read()
        return Constraints(self.groups, {name: self.bodies[name] for name in reversed(order)})

    def _copied(self, module: ir.Operation) -> frozenset[str]:
        """Private functions that only calls refer to, and that are not recursive."""
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
        return frozenset(private - named - self.graph.recursive)

    def _place(self, where: Hashable, device: str | None, at: ir.Location) -> None:
        if device is None:
            return
        check_device(device, at)
        if self.devices is not None and device not in self.devices:
            known = ", ".join(f"'{d}'" for d in self.devices)
            raise RelaxError(f"expected a device of {VDEVICES} ({known}), got '{device}'", at)
        self.groups.place(where, device, at)

    def _read_signature(self, name: str, body: Body) -> None:
        block, type_ = body_of(body.function), _type(body.function)
        arguments: list[ir.Value] = [] if block is None else list(block.arguments)
        for argument, place in zip(arguments, signature_places(body.function), strict=False):
            self.groups.join(argument, place, body.function.operation)
            self._place(argument, vdevice_of(argument), argument.location)
        for place, tensor in zip(signature_places(body.function), [*type_.inputs, *type_.results], strict=True):
            self._place(place, vdevice_of(tensor), body.function.location)
            if name not in self.copied:
                self.groups.keep_common(place)

    def _read_definitions(self, body: Body) -> None:
        for value in body.values:
            op = None if isinstance(value.owner, ir.Block) else value.owner.operation
            wanted = op.opview.vdevice if op is not None and isinstance(op.opview, HintOnDevice | ToVDevice) else None
            if op is not None and wanted is None and _is_constant(op):
                body.constants[value] = []
            else:
                self._place(value, wanted or vdevice_of(value), value.location)

    def _read_prepared(self) -> None:
        """What a transform function returns is where the function that it prepares takes it; either may be lazy."""
        for name, body in self.bodies.items():
            for target in transform_targets(body.function):
                for i, given in enumerate(result_names(body.function)):
                    self._join_prepared(result_place(name, i), target, given, body.function.operation)
                if target in self.bodies:
                    self._read_weights(target, self.bodies[target])

    def _read_weights(self, name: str, body: Body) -> None:
        inputs = num_input(body.function) or 0
        for i, weight in enumerate(weight_names(body.function, inputs)):
            self._join_prepared(argument_place(name, inputs + i), name, weight, body.function.operation)
        for op in body.ops:
            if op.name == GetParam.OPERATION_NAME:
                self._join_prepared(op.results[0], name, op.opview.name, op)

    def _join_prepared(self, where: Hashable, target: str, name: str | None, op: ir.Operation) -> None:
        if name is not None:
            self.groups.join(prepared_place(target, name), where, op)


class _BodyReader:
    """Reads what the ops of one function do with tensors."""

    def __init__(self, gatherer: _Gatherer, name: str):
        self.groups, self.copied, self.name = gatherer.groups, gatherer.copied, name
        self.body = gatherer.bodies[name]
        self.targets = transform_targets(self.body.function)
        self.number = 0

    def read(self) -> None:
        for number, op in enumerate(self.body.ops):
            self.number = number
            special = _SPECIAL.get(op.name)
            if special is not None:
                special(self, op)
            elif len(op.successors):
                self._read_branch(op)
            else:
                self._read_plain(op)

    def read_hint(self, op: ir.Operation) -> None:
        """The operand may be elsewhere, except for a constant; it is thought to be there already."""
        self.body.hints.append(self.number)
        if op.operands[0] in self.body.constants:
            self._link(op, 0, op.results[0])
        else:
            self.groups.suggest(op.operands[0], op.opview.vdevice)

    def read_call(self, op: ir.Operation) -> None:
        """Operands are where the callee's parameters are, results where it returns them."""
        callee = callee_of(op)
        count = len(op.operands)
        places: list[Hashable] = [argument_place(callee, i) for i in range(count)]
        places += [result_place(callee, i) for i in range(len(op.results))]
        if callee in self.copied:
            places = [self.groups.in_call(p, (self.name, self.number)) for p in places]
            self.body.calls.append(Call(self.number, callee, places))
        self._link_all(op, 0, places[:count])
        for result, place in zip(op.results, places[count:], strict=True):
            self._join(result, place, op)

    def read_return(self, op: ir.Operation) -> None:
        """What is returned is where the signature says."""
        self._link_all(op, 0, [result_place(self.name, i) for i in range(len(op.operands))])

    def read_output(self, op: ir.Operation) -> None:
        """What a lazy transform function hands out is where the function that it prepares takes it."""
        name = op.opview.name
        for place in [prepared_place(t, name) for t in self.targets if name is not None] or [None]:
            self._link(op, 1, place)

    def read_yield(self, op: ir.Operation) -> None:
        """Branches yield the results; bodies of loops yield what their next round, or the condition, starts with."""
        parent = op.parent.operation
        if parent.name == "scf.for":
            self._link_all(op, 0, list(op.block.arguments)[1:])
        elif parent.name == "scf.while":
            self._link_all(op, 0, next(blocks_of(parent)).arguments)
        else:
            self._link_all(op, 0, parent.results)

    def read_condition(self, op: ir.Operation) -> None:
        """The condition's operands go into the second region of a while loop."""
        _, after = blocks_of(op.parent.operation)
        self._link_all(op, 1, after.arguments)

    def read_for(self, op: ir.Operation) -> None:
        """Initial values, which come after bounds and step, the body's arguments and results go together."""
        (block,) = blocks_of(op)
        carried = list(block.arguments)[1:]
        self._link_all(op, 3, carried)
        for result, argument in zip(op.results, carried, strict=True):
            self._join(result, argument, op)

    def read_while(self, op: ir.Operation) -> None:
        """Initial values go into the first region, the second region's arguments are the results."""
        before, after = blocks_of(op)
        self._link_all(op, 0, before.arguments)
        for result, argument in zip(op.results, after.arguments, strict=True):
            self._join(result, argument, op)

    def read_copy(self, op: ir.Operation) -> None:
        """The operand may be anywhere."""
        self._link(op, 0, None)

    def read_nothing(self, op: ir.Operation) -> None:
        """The yields of branches say what there is to say."""

    def _read_branch(self, op: ir.Operation) -> None:
        """The last operands of a branch are the arguments of the blocks that it can go to."""
        arguments = [a for block in op.successors for a in block.arguments]
        self._link_all(op, len(op.operands) - len(arguments), arguments)

    def _read_plain(self, op: ir.Operation) -> None:
        """All tensors of an ordinary op are on one device."""
        inner = (a for block in blocks_of(op) for a in block.arguments)
        places = [v for v in (*op.results, *op.operands, *inner) if is_tensor(v) and v not in self.body.constants]
        partner = places[0] if places else None
        for other in places[1:]:
            self.groups.join(partner, other, op)
        for i, value in enumerate(op.operands):
            if value in self.body.constants:
                self.body.constants[value].append(Use(self.number, i, partner))

    def _link_all(self, op: ir.Operation, first: int, partners: Iterable[Hashable]) -> None:
        """Operands from ``first`` on are where their partners are."""
        for i, partner in enumerate(partners):
            self._link(op, first + i, partner)

    def _link(self, op: ir.Operation, position: int, partner: Hashable) -> None:
        value = op.operands[position]
        if value in self.body.constants:
            self.body.constants[value].append(Use(self.number, position, partner))
        else:
            self._join(value, partner, op)

    def _join(self, value: ir.Value, partner: Hashable, op: ir.Operation) -> None:
        if is_tensor(value) and partner is not None:
            self.groups.join(value, partner, op)


_SPECIAL = {
    "func.call": _BodyReader.read_call,
    "func.return": _BodyReader.read_return,
    "relax.hint_on_device": _BodyReader.read_hint,
    "relax.set_output": _BodyReader.read_output,
    "relax.to_vdevice": _BodyReader.read_copy,
    "scf.condition": _BodyReader.read_condition,
    "scf.execute_region": _BodyReader.read_nothing,
    "scf.for": _BodyReader.read_for,
    "scf.if": _BodyReader.read_nothing,
    "scf.index_switch": _BodyReader.read_nothing,
    "scf.while": _BodyReader.read_while,
    "scf.yield": _BodyReader.read_yield,
}


def _is_constant(op: ir.Operation) -> bool:
    one_result = (isinstance(op.opview, Op) and not len(op.operands) and len(op.results) == 1) or op.name == "arith.constant"
    return one_result and vdevice_of(op.results[0]) is None


def _type(function: func.FuncOp) -> ir.FunctionType:
    return ir.FunctionType(ir.TypeAttr(function.attributes["function_type"]).value)

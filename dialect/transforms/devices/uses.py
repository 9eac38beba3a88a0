"""What each op of a function says about the places of its operands and results: read into groups, op by op.

A private function has places of its own in every call (:meth:`.DeviceGroups.in_call`).
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterable

from ...bindings import ir
from ...call_graph import callee_of
from ...functions import name_of, transform_targets
from ...struct_info import is_tensor
from ...traversal import blocks_of
from .groups import DeviceGroups
from .places import Call, PlacedFunction, Use, argument_place, element_place, leaves, prepared_place, result_place

__all__ = ["BodyReader"]


class BodyReader:
    """Reads what the ops of one function do with tensors.

    Args:
        body: the function; hints, calls and uses of constants are entered there.
        groups: where places are joined.
        copied: functions that have one copy per placement.
    """

    def __init__(self, body: PlacedFunction, groups: DeviceGroups, copied: Collection[str]):
        self.body, self.groups, self.copied = body, groups, copied
        self.name, self.targets = name_of(body.function), transform_targets(body.function)
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

    def read_cast(self, op: ir.Operation) -> None:
        """Packing and unpacking a tuple: its elements are the other side's values; any other cast is an ordinary op."""
        tuples = [v for v in (*op.operands, *op.results) if isinstance(v.type, ir.TupleType)]
        if len(tuples) != 1:
            self._read_plain(op)
        elif len(op.results) == 1 and op.results[0] == tuples[0]:
            self._link_all(op, 0, [element_place(tuples[0], i) for i in range(len(op.operands))])
        else:
            for i, result in enumerate(op.results):
                self._join(result, element_place(tuples[0], i), op)

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
        if partner is None:
            return
        for (mine, _), (other, _) in zip(leaves(value, value.type), leaves(partner, value.type), strict=True):
            self.groups.join(mine, other, op)


_SPECIAL = {
    "builtin.unrealized_conversion_cast": BodyReader.read_cast,
    "func.call": BodyReader.read_call,
    "func.return": BodyReader.read_return,
    "relax.hint_on_device": BodyReader.read_hint,
    "relax.set_output": BodyReader.read_output,
    "relax.to_vdevice": BodyReader.read_copy,
    "scf.condition": BodyReader.read_condition,
    "scf.execute_region": BodyReader.read_nothing,
    "scf.for": BodyReader.read_for,
    "scf.if": BodyReader.read_nothing,
    "scf.index_switch": BodyReader.read_nothing,
    "scf.while": BodyReader.read_while,
    "scf.yield": BodyReader.read_yield,
}

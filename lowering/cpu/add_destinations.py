"""Entry functions take memory for their results: one writable argument per result, which the result is made in.

Before::

    func.func @main(%x: tensor<?x64xf32>, %cache: tensor<8x64xf32>) -> (tensor<?x64xf32>, tensor<8x64xf32>) {
      ...
      return %y, %next

after, where the second result is the next value of the state that ``%cache`` is::

    func.func @main(%x: tensor<?x64xf32>, %cache: tensor<8x64xf32> {bufferization.writable = true},
                    %out: tensor<?x64xf32> {bufferization.writable = true}) -> (...) {
      ...
      %0 = bufferization.materialize_in_destination %y in %out
      %1 = bufferization.materialize_in_destination %next in %cache
      return %0, %1
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from ...dialect.bindings import func, ir
from ...dialect.function_types import argument_attributes
from ...dialect.functions import NUM_INPUT, body_of, terminator, update_type
from ..entries import entries_of
from ..fusion.tensors import empty_like
from ..kernel_function import mark_writable
from ..lowering_pass import LoweringPass
from ..marks import WRITABLE
from .carry_in_place import copied

__all__ = ["AddDestinations", "add_destinations"]

#: Ops whose result is in the memory of an operand, and of which one.
_SAME_MEMORY = {"tensor.cast": 0, "tensor.collapse_shape": 0, "tensor.expand_shape": 0, "tensor.insert_slice": 1}


@dataclass(frozen=True)
class AddDestinations(LoweringPass):
    """Gives entry functions writable arguments for their results."""

    name: ClassVar[str] = "relax-add-destinations"

    def run(self, op: ir.Operation) -> None:
        for function, entry in entries_of(op):
            if not _has_destinations(function):
                add_destinations(function, entry.updates)


def _has_destinations(function: func.FuncOp) -> bool:
    """Whether arguments say that they may be written to, or may not."""
    return any(WRITABLE in attributes for attributes in argument_attributes(function))


def add_destinations(function: func.FuncOp, state: Mapping[int, int] | None = None) -> None:
    """Gives a function on tensors one writable argument per result and makes each result that argument.

    Args:
        function: the function.
        state: results that go into an argument there is, by position: of each result, that of the argument.
    """
    block = body_of(function)
    assert block is not None
    kept = dict(state or {})
    returned = terminator(block)
    values = list(returned.operands)
    flags = [i in kept.values() for i in range(len(list(block.arguments)))]
    for position in kept.values():
        _shield_regions(block.arguments[position])
    with ir.InsertionPoint(returned), function.location:
        written: dict[ir.Value, ir.Value] = {}
        for i, value in enumerate(values):
            if i in kept:
                continue
            out = block.add_argument(value.type, function.location)
            if value not in written and not _is_yielded(value):
                _write_directly(value, out)
            # A value returned twice is copied from the output that has it: its own buffer is that output.
            current: ir.Value = returned.operands[i]
            source = written.get(value, current)
            returned.operands[i] = written[value] = _materialized(source, out)
        # All that comes from another state is read before the first one changes.
        sources: dict[int, ir.Value] = {}
        for i, position in kept.items():
            value: ir.Value = values[i]
            sources[i] = _apart(written.get(value, value), block.arguments[position])
        for i, source in sources.items():
            if source != block.arguments[kept[i]]:
                returned.operands[i] = _materialized(source, block.arguments[kept[i]])
    update_type(function)
    flags += [True] * (len(list(block.arguments)) - len(flags))
    mark_writable(function, flags)
    for name in ("res_attrs", NUM_INPUT):
        if name in function.attributes:
            del function.attributes[name]


def _shield_regions(state: ir.Value) -> None:
    """Gives control flow copies of a state, and each branch that yields it one of its own.

    Upstream's analysis takes all that the branches yield for one buffer, and refuses to let one of them write to it.
    """
    block = state.owner
    inside = [(u.owner.operation, u.operand_number) for u in state.uses if u.owner.operation.block != block or _is_scf(u.owner)]
    if not inside:
        return
    with ir.InsertionPoint.at_block_begin(block), state.location:
        copy = copied(state)
    for user, position in inside:
        user.operands[position] = copy
        if user.name == "scf.yield":
            with ir.InsertionPoint(user), user.location:
                user.operands[position] = copied(copy)


def _is_scf(op: ir.OpView) -> bool:
    return op.operation.name.startswith("scf.")


def _materialized(source: ir.Value, into: ir.Value) -> ir.Value:
    return ir.Operation.create("bufferization.materialize_in_destination", [source.type], [source, into]).result


def _apart(source: ir.Value, state: ir.Value) -> ir.Value:
    """The new value of a state: as it is where it is made in that state's memory or in new memory, else a copy of it."""
    root = source
    while not isinstance(root, ir.BlockArgument):
        owner = root.owner.operation
        if owner.name == "func.call":
            root = owner.operands[len(owner.operands) - len(owner.results) + list(owner.results).index(root)]
        elif owner.name in _SAME_MEMORY:
            root = owner.operands[_SAME_MEMORY[owner.name]]
        else:
            break
    if root == state or (not isinstance(root, ir.BlockArgument) and root.owner.name == "tensor.empty"):
        return source
    return _materialized(source, empty_like(source))


def _is_yielded(value: ir.Value) -> bool:
    """Whether a branch or loop may hand a value on."""
    return any(u.owner.operation.name.startswith("scf.") for u in value.uses)


def _write_directly(value: ir.Value, out: ir.Value) -> bool:
    """Whether the kernel that makes a result now writes to the caller's buffer: where nothing else uses its destination."""
    call = None if isinstance(value, ir.BlockArgument) else value.owner.operation
    if call is None or call.name != "func.call" or not len(call.operands):
        return False
    last = len(call.operands) - 1
    destination = call.operands[last]
    if isinstance(destination, ir.BlockArgument) or destination.owner.name != "tensor.empty" or destination.type != out.type:
        return False
    if call.block != out.owner or value != call.results[len(call.results) - 1]:
        return False
    call.operands[last] = out
    return True

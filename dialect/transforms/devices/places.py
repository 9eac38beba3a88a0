"""Places that can be on a device, and what is known of the places in one function.

A place is a tensor value, or ``("argument", function, i)`` / ``("result", function, i)`` in a signature, or a prepared weight.
Of a tuple, each element is one.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass, field

from ...bindings import func, ir
from ...functions import name_of
from ...struct_info import is_tensor
from ...traversal import blocks_of

__all__ = [
    "Call",
    "PlacedFunction",
    "Use",
    "argument_place",
    "element_place",
    "leaves",
    "prepared_place",
    "result_place",
    "signature_of",
    "signature_places",
    "tensors_in",
]  # fmt: skip


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
class PlacedFunction:
    """What is known of one function. Ops are numbered as ``nested_operations`` goes, so that it holds for copies as well.

    Attributes:
        function: the function, a declaration has no ops.
        ops: its ops.
        values: its tensors and tuples, as :func:`tensors_in` goes.
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


def argument_place(function: str, position: int) -> Hashable:
    """The place of an argument in a signature."""
    return ("argument", function, position)


def result_place(function: str, position: int) -> Hashable:
    """The place of a result in a signature."""
    return ("result", function, position)


def element_place(where: Hashable, position: int) -> Hashable:
    """The place of an element of the tuple at a place."""
    return ("element", where, position)


def leaves(where: Hashable, type_: ir.Type) -> list[tuple[Hashable, ir.Type]]:
    """The places of tensors at a place of a type: itself, the elements of a tuple, or none; each with the type there."""
    if not isinstance(type_, ir.TupleType):
        return [(where, type_)] if is_tensor(type_) else []
    elements = [(element_place(where, i), type_.get_type(i)) for i in range(type_.num_types)]
    return [leaf for place, element in elements for leaf in leaves(place, element)]


def prepared_place(function: str, name: str) -> Hashable:
    """The place of a prepared weight, between the function that prepares it and the one that takes it."""
    return ("prepared", function, name)


def signature_places(function: func.FuncOp) -> list[Hashable]:
    """The places of arguments, then results; those that are no tensors have one, too."""
    name, type_ = name_of(function), signature_of(function)
    arguments = [argument_place(name, i) for i in range(len(type_.inputs))]
    return [*arguments, *(result_place(name, i) for i in range(len(type_.results)))]


def tensors_in(function: ir.Operation, ops: Iterable[ir.Operation]) -> list[ir.Value]:
    """The tensors and tuples of a function: its blocks' arguments, then of each op the results and its blocks' arguments."""
    found: list[ir.Value] = [a for block in blocks_of(function) for a in block.arguments]
    for op in ops:
        found += op.results
        found += [a for block in blocks_of(op) for a in block.arguments]
    return [v for v in found if is_tensor(v) or isinstance(v.type, ir.TupleType)]


def signature_of(function: func.FuncOp | ir.Operation) -> ir.FunctionType:
    """The type of a function."""
    return ir.FunctionType(ir.TypeAttr(function.attributes["function_type"]).value)

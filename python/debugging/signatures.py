"""Changing what a function takes and returns, whatever its arguments are used for."""

from __future__ import annotations

from collections.abc import Sequence

from ..dialect.bindings import func, ir
from ..dialect.function_types import argument_attributes, set_argument_attributes, set_result_attributes
from ..dialect.functions import body_of, num_input, set_num_input, terminator, update_type

__all__ = ["add_arguments", "set_results"]


def add_arguments(function: func.FuncOp, inputs: Sequence[ir.Value], weights: Sequence[ir.Value]) -> None:
    """Gives a function arguments that all who read these values read instead: inputs behind the inputs, weights at the end."""
    block, split = body_of(function), num_input(function)
    assert block is not None
    old, attributes = list(block.arguments), argument_attributes(function)
    place, empty = len(old) if split is None else split, ir.DictAttr.get({})
    order = [*old[:place], *inputs, *old[place:], *weights]
    kept = [*attributes[:place], *[empty] * len(inputs), *attributes[place:], *[empty] * len(weights)]
    for value in order:
        value.replace_all_uses_with(block.add_argument(value.type, value.location))
    for position in reversed(range(len(old))):
        block.erase_argument(position)
    update_type(function)
    set_argument_attributes(function, kept)
    if split is not None:
        set_num_input(function, split + len(inputs))


def set_results(function: func.FuncOp, values: Sequence[ir.Value], attributes: Sequence[ir.DictAttr]) -> None:
    """Makes a function of one block return these values."""
    block = body_of(function)
    assert block is not None
    end = terminator(block)
    with ir.InsertionPoint(end), end.location:
        func.ReturnOp(list(values))
    end.erase()
    update_type(function)
    set_result_attributes(function, attributes)

"""Changing what private functions take and return: which ones may change, and calls with other operands and results."""

from __future__ import annotations

from collections.abc import Sequence

from ...bindings import func, ir
from ...call_graph import collect_symbols
from ...functions import TRANSFORM_FOR, body_of, functions, is_private, name_of, terminator
from ...traversal import nested_operations

__all__ = ["changeable_functions", "rebuilt_call", "set_returned_values"]

_ATTRIBUTES = ("arg_attrs", "res_attrs")


def changeable_functions(module: ir.Operation, public: bool = False) -> list[func.FuncOp]:
    """Private functions with a body of which this module shows every use: nothing refers to them but calls.

    Args:
        module: the module.
        public: public functions as well; ``relax.transform_for`` may refer to those.
    """
    named: set[str] = set()
    for op in nested_operations(module):
        for key, attribute in op.attributes.items():
            if not ((op.name == "func.call" and key == "callee") or (public and key == TRANSFORM_FOR)):
                collect_symbols(attribute, named)
    found = [f for f in functions(module) if body_of(f) is not None and name_of(f) not in named]
    return [f for f in found if public or is_private(f)]


def rebuilt_call(call: ir.Operation, operands: Sequence[int | ir.Value], results: Sequence[int | ir.Type]) -> ir.Operation:
    """A call of the same function before a call, which stays, with other operands and results.

    Args:
        call: the call.
        operands: values, or positions of operands that the call has.
        results: types, or positions of results that the call has.
    """
    values = [call.operands[v] if isinstance(v, int) else v for v in operands]
    types = [call.results[t].type if isinstance(t, int) else t for t in results]
    attributes = dict(call.attributes.items())
    for key, kept in zip(_ATTRIBUTES, (operands, results), strict=True):
        if key in attributes:
            given = list(ir.ArrayAttr(attributes[key]))
            attributes[key] = ir.ArrayAttr.get([given[i] if isinstance(i, int) else ir.DictAttr.get({}) for i in kept])
    where = ir.InsertionPoint(call)
    return ir.Operation.create(call.name, results=types, operands=values, attributes=attributes, loc=call.location, ip=where)


def set_returned_values(function: func.FuncOp, values: Sequence[ir.Value]) -> None:
    """Makes a function of one block return other values; its type is still the old one."""
    block = body_of(function)
    assert block is not None
    old = terminator(block)
    ir.Operation.create(old.name, operands=list(values), attributes=dict(old.attributes.items()), loc=old.location,
                        ip=ir.InsertionPoint(old))  # fmt: skip
    old.erase()

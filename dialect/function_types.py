"""Changing what a function takes and returns: arguments and results added or removed together with their attributes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from .bindings import func, ir
from .functions import NAME, body_of, update_type

__all__ = [
    "argument_attributes", "erase_arguments", "named", "result_attributes", "set_argument_attributes", "set_result_attributes",
    "tensor_name", "with_name", "without",
]  # fmt: skip


def argument_attributes(function: func.FuncOp) -> list[ir.DictAttr]:
    """The attributes of each argument, empty ones too."""
    return _attributes(function, "arg_attrs", len(_type(function).inputs))


def result_attributes(function: func.FuncOp) -> list[ir.DictAttr]:
    """The attributes of each result, empty ones too."""
    return _attributes(function, "res_attrs", len(_type(function).results))


def set_argument_attributes(function: func.FuncOp, items: Sequence[ir.DictAttr]) -> None:
    """Gives every argument its attributes."""
    _set(function, "arg_attrs", items)


def set_result_attributes(function: func.FuncOp, items: Sequence[ir.DictAttr]) -> None:
    """Gives every result its attributes."""
    _set(function, "res_attrs", items)


def named(name: str | None) -> ir.DictAttr:
    """The attributes of an argument or result of that name."""
    return ir.DictAttr.get({} if name is None else {NAME: ir.StringAttr.get(name)})


def with_name(attributes: ir.DictAttr, name: str | None) -> ir.DictAttr:
    """The attributes of an argument or result, with another name; None leaves them alone."""
    if name is None or tensor_name(attributes) == name:
        return attributes
    return ir.DictAttr.get({item.name: item.attr for item in attributes} | {NAME: ir.StringAttr.get(name)})


def without(attributes: ir.DictAttr, name: str) -> ir.DictAttr:
    """The attributes of an argument or result but one."""
    return ir.DictAttr.get({item.name: item.attr for item in attributes if item.name != name})


def tensor_name(attributes: ir.DictAttr) -> str | None:
    """The ``relax.name`` among the attributes of an argument or result."""
    return ir.StringAttr(attributes[NAME]).value if NAME in attributes else None


def erase_arguments(function: func.FuncOp, positions: Iterable[int]) -> None:
    """Removes unused arguments of a function with a body, and their attributes."""
    gone = set(positions)
    block = body_of(function)
    if not gone or block is None:
        return
    kept = [a for i, a in enumerate(argument_attributes(function)) if i not in gone]
    for position in sorted(gone, reverse=True):
        block.erase_argument(position)
    update_type(function)
    set_argument_attributes(function, kept)


def _type(function: func.FuncOp) -> ir.FunctionType:
    return ir.FunctionType(ir.TypeAttr(function.attributes["function_type"]).value)


def _attributes(function: func.FuncOp, key: str, count: int) -> list[ir.DictAttr]:
    if key not in function.attributes:
        return [ir.DictAttr.get({}, context=function.context)] * count
    return [ir.DictAttr(item) for item in ir.ArrayAttr(function.attributes[key])]


def _set(function: func.FuncOp, key: str, items: Sequence[ir.DictAttr]) -> None:
    if any(len(item) for item in items):
        function.attributes[key] = ir.ArrayAttr.get(list(items))
    elif key in function.attributes:
        del function.attributes[key]

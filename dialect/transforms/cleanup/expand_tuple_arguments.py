"""Replaces tuples that private functions take and return by their elements, at all calls; nested ones, too.

Before::

    func.func @main(%x, %y) {
      %p = builtin.unrealized_conversion_cast %x, %y : tensor<4xf32>, tensor<2xf32> to tuple<tensor<4xf32>, tensor<2xf32>>
      %0 = call @f(%p)
      return %0
    }
    func.func private @f(%p: tuple<tensor<4xf32>, tensor<2xf32>>) {
      %0:2 = builtin.unrealized_conversion_cast %p : tuple<tensor<4xf32>, tensor<2xf32>> to tensor<4xf32>, tensor<2xf32>
      return %0#0
    }

after::

    func.func @main(%x, %y) {
      %0 = call @f(%x, %y)
      return %0
    }
    func.func private @f(%p.0, %p.1) {
      return %p.0
    }

With ``public=true`` public functions as well, which undoes ``relax-bundle-model-params``: the elements get the names that
``relax.bundled`` has for them, or the tuple's with their positions. Functions referred to by anything but calls are left alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from ...bindings import func, ir
from ...call_graph import CallGraph
from ...errors import RelaxError
from ...function_types import (
    argument_attributes,
    named,
    result_attributes,
    set_argument_attributes,
    set_result_attributes,
    tensor_name,
    with_name,
)  # fmt: skip
from ...functions import body_of, functions, name_of, num_input, set_num_input, update_type
from ...passes.base import Pass
from ...traversal import erase_unused, nested_operations
from ...tuples import bundled_attributes, has_tuple, is_pack, is_unpack, leaf_paths, leaf_types, pack, unpack
from ...weights import argument_leaf_names
from .private_signatures import changeable_functions, rebuilt_call

__all__ = ["ExpandTupleArguments", "expand_results", "expand_weights"]


@dataclass(frozen=True)
class ExpandTupleArguments(Pass):
    """Replaces tuples that functions take and return by their elements.

    Attributes:
        public: public functions as well as private ones.
    """

    name: ClassVar[str] = "relax-expand-tuple-arguments"
    public: bool = False

    def run(self, op: ir.Operation) -> None:
        if not any(_has_tuples(f) for f in functions(op)):
            return _fold_casts(op)  # of functions that were inlined
        found = [f for f in changeable_functions(op, public=self.public) if _has_tuples(f)]
        attributes = [_expanded_attributes(f) for f in found]
        calls = CallGraph(op).calls() if found else {}
        for function, (of_arguments, of_results) in zip(found, attributes, strict=True):
            _expand_arguments(function, 0)
            _expand_returns(function)
            set_argument_attributes(function, of_arguments)
            set_result_attributes(function, of_results)
            for call in calls.get(name_of(function), ()):
                _expand_call(call)
        _fold_casts(op)


def expand_weights(function: func.FuncOp) -> None:
    """Replaces the tuples among the weights of a function that nothing calls; all weights then say what they are called."""
    first = num_input(function) or 0
    if not has_tuple(_type(function).inputs[first:]):
        return
    expanded = argument_attributes(function)[:first] + _weight_attributes(function, first)
    _expand_arguments(function, first)
    update_type(function)
    set_argument_attributes(function, expanded)
    _fold_casts(function.operation)


def _weight_attributes(function: func.FuncOp, first: int) -> list[ir.DictAttr]:
    """Of the weights' elements, each with its name: what has none goes by its position, which a tuple in front of it moves."""
    found: list[ir.DictAttr] = []
    arguments = zip(_type(function).inputs, argument_attributes(function), argument_leaf_names(function), strict=True)
    for type_, own, leaves in list(arguments)[first:]:
        is_tuple = isinstance(type_, ir.TupleType)
        given = (bundled_attributes(type_, own) or [named(None)] * len(leaves)) if is_tuple else [own]
        found += [with_name(a, n) for a, n in zip(given, leaves, strict=True)]
    return found


def expand_results(function: func.FuncOp) -> None:
    """Replaces the tuples among the results of a function that nothing calls."""
    if has_tuple(_type(function).results):
        attributes = _expanded(_type(function).results, result_attributes(function))
        _expand_returns(function)
        set_result_attributes(function, attributes)
        _fold_casts(function.operation)


def _type(function: func.FuncOp) -> ir.FunctionType:
    return ir.FunctionType(ir.TypeAttr(function.attributes["function_type"]).value)


def _has_tuples(function: func.FuncOp) -> bool:
    return has_tuple(_type(function).inputs) or has_tuple(_type(function).results)


def _expanded_attributes(function: func.FuncOp) -> tuple[list[ir.DictAttr], list[ir.DictAttr]]:
    """What the expanded arguments and results have for attributes. Raises RelaxError when a tuple has bad ones for elements."""
    try:
        arguments = _expanded_arguments(function)
        return arguments, _expanded(_type(function).results, result_attributes(function))
    except RelaxError as error:
        raise RelaxError(f"'func.func' op {error.args[0]}", function.location) from None


def _expanded_arguments(function: func.FuncOp) -> list[ir.DictAttr]:
    types, given, first = list(_type(function).inputs), argument_attributes(function), num_input(function)
    if first is None or not has_tuple(types[first:]):
        return _expanded(types, given)
    return _expanded(types[:first], given[:first]) + _weight_attributes(function, first)


def _expanded(types: Sequence[ir.Type], attributes: Sequence[ir.DictAttr]) -> list[ir.DictAttr]:
    taken = {n for a in attributes if (n := tensor_name(a)) is not None}
    found: list[ir.DictAttr] = []
    for type_, own in zip(types, attributes, strict=True):
        if not isinstance(type_, ir.TupleType):
            found.append(own)
            continue
        found += bundled_attributes(type_, own) or [_named(tensor_name(own), path, taken) for path, _ in leaf_paths(type_)]
    return found


def _named(name: str | None, path: str, taken: set[str]) -> ir.DictAttr:
    """The name of an element by its place in the tuple; underscores follow one that is taken."""
    if name is None:
        return named(None)
    name += path
    while name in taken:
        name += "_"
    taken.add(name)
    return named(name)


def _expand_arguments(function: func.FuncOp, first: int) -> None:
    """Appends the arguments from one on anew, tuples as their elements, and erases the old: the bindings insert at the end."""
    block = body_of(function)
    assert block is not None
    old = list(block.arguments)
    inputs = num_input(function)
    if inputs is not None:
        set_num_input(function, first + sum(len(leaf_types(a.type)) for a in old[first:inputs]))
    where = ir.InsertionPoint.at_block_begin(block)
    for argument in old[first:]:
        leaves = [block.add_argument(t, argument.location) for t in leaf_types(argument.type)]
        if not isinstance(argument.type, ir.TupleType) or next(iter(argument.uses), None) is not None:
            argument.replace_all_uses_with(pack(argument.type, iter(leaves), where, function.location))
    for position in reversed(range(first, len(old))):
        block.erase_argument(position)


def _expand_returns(function: func.FuncOp) -> None:
    results = [leaf for t in _type(function).results for leaf in leaf_types(t)]
    for op in list(nested_operations(function.operation)):
        if op.name == "func.return":
            where = ir.InsertionPoint(op)
            values = [leaf for v in op.operands for leaf in unpack(v, where, op.location)]
            ir.Operation.create(op.name, operands=values, attributes=dict(op.attributes.items()), loc=op.location, ip=where)
            op.erase()
    block = body_of(function)
    assert block is not None
    function.attributes["function_type"] = ir.TypeAttr.get(ir.FunctionType.get([a.type for a in block.arguments], results))


def _expand_call(call: ir.Operation) -> None:
    where = ir.InsertionPoint(call)
    operands: list[int | ir.Value] = []
    for position, value in enumerate(call.operands):
        is_tuple = isinstance(value.type, ir.TupleType)
        operands += unpack(value, where, call.location) if is_tuple else [position]
    results: list[int | ir.Type] = []
    for position, result in enumerate(call.results):
        results += leaf_types(result.type) if isinstance(result.type, ir.TupleType) else [position]
    leaves = iter(rebuilt_call(call, operands, results).results)
    for result in list(call.results):
        result.replace_all_uses_with(pack(result.type, leaves, where, call.location))
    call.erase()


def _fold_casts(module: ir.Operation) -> None:
    """Takes elements where they come from: a tuple that is packed and unpacked again goes, when nothing else needs it."""
    packs: list[ir.Operation] = []
    for op in list(nested_operations(module)):
        if is_pack(op):
            packs.append(op)
        elif is_unpack(op):
            _fold(op)
    erase_unused(packs)


def _fold(op: ir.Operation) -> None:
    owner = op.operands[0].owner
    if isinstance(owner, ir.Block) or not is_pack(owner.operation):
        return
    for result, value in zip(list(op.results), list(owner.operation.operands), strict=True):
        result.replace_all_uses_with(value)
    op.erase()

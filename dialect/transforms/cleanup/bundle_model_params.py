"""Makes the weights of every public function one tuple, for callers that hold all weights in one value.

Before::

    func.func @main(%x, %w: tensor<4xf32> {relax.name = "w"}, %b: tensor<2xf32> {relax.name = "b"})
        attributes {relax.num_input = 1 : i64}

after::

    func.func @main(%x, %p: tuple<tensor<4xf32>, tensor<2xf32>>
                    {relax.name = "model_params", relax.bundled = [{relax.name = "w"}, {relax.name = "b"}]})
        attributes {relax.num_input = 1 : i64} {
      %0:2 = builtin.unrealized_conversion_cast %p : tuple<...> to tensor<4xf32>, tensor<2xf32>

Weights without a name keep that of their position. A function without weights takes an empty tuple. Functions that read weights
from a provider, and ones without ``relax.num_input``, are left alone. ``relax-expand-tuple-arguments{public=true}`` undoes it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from ...bindings import func, ir
from ...call_graph import CallGraph
from ...errors import RelaxError
from ...function_types import argument_attributes, set_argument_attributes, tensor_name, with_name
from ...functions import NAME, body_of, full_argument_names, functions, is_private, name_of, num_input, update_type
from ...passes.base import Pass
from ...relax import OutputSink, ParamProvider
from ...tuples import BUNDLED, has_tuple, pack, unpack
from .private_signatures import rebuilt_call

__all__ = ["BundleModelParams"]


@dataclass(frozen=True)
class BundleModelParams(Pass):
    """Makes the weights of every public function one tuple.

    Attributes:
        tuple_name: the tuple's ``relax.name``.
    """

    name: ClassVar[str] = "relax-bundle-model-params"
    tuple_name: str = "model_params"

    def run(self, op: ir.Operation) -> None:
        found = [(f, inputs) for f in functions(op) if (inputs := _bundled_from(f)) is not None]
        for function, inputs in found:
            self._check_name(function, inputs)
        calls = CallGraph(op).calls() if found else {}
        for function, inputs in found:
            type_ = _bundle(function, inputs, self.tuple_name)
            for call in calls.get(name_of(function), ()):
                _pack_operands(call, inputs, type_)

    def _check_name(self, function: func.FuncOp, inputs: int) -> None:
        if self.tuple_name in (tensor_name(a) for a in argument_attributes(function)[:inputs]):
            what = f"an input of @{name_of(function)}"
            raise RelaxError(f"'func.func' op expected a name of its own for the weights, got '{self.tuple_name}', {what}",
                             function.location)  # fmt: skip


def _bundled_from(function: func.FuncOp) -> int | None:
    """The number of inputs of a function whose weights are to be bundled, None for others."""
    block = body_of(function)
    inputs = num_input(function)
    if is_private(function) or block is None or inputs is None:
        return None
    types = [a.type for a in block.arguments]
    lazy = any(isinstance(t, ParamProvider) for t in types) or any(isinstance(t, OutputSink) for t in types[inputs:])
    return None if lazy or has_tuple(types[inputs:]) else inputs


def _bundle(function: func.FuncOp, inputs: int, name: str) -> ir.TupleType:
    """Puts one argument in the place of the weights; returns its type."""
    block = body_of(function)
    assert block is not None
    weights = list(block.arguments)[inputs:]
    attributes, names = argument_attributes(function), full_argument_names(function)
    with function.location:
        type_ = ir.TupleType.get_tuple([w.type for w in weights])
        bundle = block.add_argument(type_, ir.Location.name(name, childLoc=function.location))
        for old, new in zip(weights, unpack(bundle, ir.InsertionPoint.at_block_begin(block), function.location), strict=True):
            old.replace_all_uses_with(new)
    for position in reversed(range(inputs, inputs + len(weights))):
        block.erase_argument(position)
    update_type(function)
    bundled = ir.ArrayAttr.get([with_name(a, n) for a, n in zip(attributes[inputs:], names[inputs:], strict=True)])
    own = ir.DictAttr.get({NAME: ir.StringAttr.get(name), BUNDLED: bundled})
    set_argument_attributes(function, [*attributes[:inputs], own])
    return type_


def _pack_operands(call: ir.Operation, inputs: int, type_: ir.TupleType) -> None:
    operands = list(call.operands)
    bundle = pack(type_, iter(operands[inputs:]), ir.InsertionPoint(call), call.location)
    made = rebuilt_call(call, [*range(inputs), bundle], range(len(call.results)))
    for old, new in zip(list(call.results), made.results, strict=True):
        old.replace_all_uses_with(new)
    call.erase()

"""Makes one function read its weights from a provider, or hand its results to a sink; what the lazy passes share."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ..bindings import func, ir
from ..errors import RelaxError
from ..functions import (
    NUM_INPUT,
    body_of,
    functions,
    is_private,
    name_of,
    num_input,
    returned_values,
    set_num_input,
    update_type,
)
from ..ops import GetParam, SetOutput
from ..relax import OutputSink, ParamProvider
from ..signature import (
    argument_attributes,
    named,
    result_attributes,
    set_argument_attributes,
    set_result_attributes,
    tensor_name,
    weight_names,
)
from ..struct_info import is_tensor
from ..symbol_uses import SymbolUses, bound_symbols
from ..traversal import free_values, operations
from .entries import check_not_called, transforms_by_target

__all__ = ["lazy_targets", "read_weights_lazily", "write_results_lazily"]


def lazy_targets(module: ir.Operation, wanted: Sequence[str]) -> list[func.FuncOp]:
    """The functions that a lazy pass changes: those named; by default public ones with ``relax.num_input``.

    A function that a transform function prepares weights for is left out unless named: its weights come prepared.

    Raises:
        RelaxError: a named function does not exist, has no body or no ``relax.num_input``.
    """
    known = {name_of(f): f for f in functions(module)}
    for name in wanted:
        if name not in known or NUM_INPUT not in known[name].attributes or body_of(known[name]) is None:
            raise RelaxError(f"expected functions with {NUM_INPUT} for option 'functions', got @{name}")
    if wanted:
        return [known[name] for name in dict.fromkeys(wanted)]
    prepared = transforms_by_target(module)
    return [
        f
        for name, f in known.items()
        if name not in prepared and not is_private(f) and body_of(f) is not None and num_input(f) is not None
    ]


def read_weights_lazily(module: ir.Operation, targets: Iterable[func.FuncOp]) -> None:
    """Replaces the weights of functions by one provider each, after the inputs, and a read before each weight's first use."""
    changing = [f for f in targets if _weights(f)]
    check_not_called(module, changing)
    for function in changing:
        _Reads(function).insert()


def write_results_lazily(module: ir.Operation, targets: Iterable[func.FuncOp]) -> None:
    """Replaces the results of functions by one sink each, after the inputs, and a write after each result's definition."""
    changing = [f for f in targets if len(result_attributes(f))]
    check_not_called(module, changing)
    for function in changing:
        _insert_writes(function)


def _entry(function: func.FuncOp) -> ir.Block:
    blocks = list(function.regions[0].blocks)
    if len(blocks) != 1:
        raise RelaxError(f"'func.func' op expected one block, got several in @{name_of(function)}", function.location)
    return blocks[0]


def _weights(function: func.FuncOp) -> list[ir.Value]:
    weights = list[ir.Value](_entry(function).arguments)[num_input(function) or 0 :]
    other = next((w for w in weights if not is_tensor(w)), None)
    if other is not None:
        raise RelaxError(f"'func.func' op expected only tensors as weights of @{name_of(function)}, got {other.type}",
                         function.location)  # fmt: skip
    return weights


class _Reads:
    """The reads of one function's weights: each before the first op that uses the weight, or a symbol only it defines."""

    def __init__(self, function: func.FuncOp):
        self.function, self.block = function, _entry(function)
        self.inputs = num_input(function) or 0
        self.weights = _weights(function)
        names = weight_names(function, self.inputs)
        self.pending = {w: (i, n) for i, (w, n) in enumerate(zip(self.weights, names, strict=True))}
        self.uses = SymbolUses()
        self.definer = self._definers()

    def _definers(self) -> dict[str, ir.Value]:
        """The weight that defines a symbol, for symbols that no input defines."""
        known = bound_symbols(a.type for a in list(self.block.arguments)[: self.inputs])
        found: dict[str, ir.Value] = {}
        for weight in self.weights:
            for symbol in sorted(bound_symbols([weight.type]) - known):
                found.setdefault(symbol, weight)
        return found

    def insert(self) -> None:
        provider = self.block.add_argument(ParamProvider.get(), self.function.location)
        for op in operations(self.block):
            for weight in self._wanted(op):
                index, name = self.pending.pop(weight)
                with weight.location, ir.InsertionPoint(op):
                    read = GetParam.create(provider, result_types=[weight.type], index=index, name=name)
                weight.replace_all_uses_with(read.results[0])
        for position in reversed(range(self.inputs, self.inputs + len(self.weights))):
            self.block.erase_argument(position)
        attributes = argument_attributes(self.function)[: self.inputs]
        update_type(self.function)
        set_argument_attributes(self.function, [*attributes, named(None)])
        set_num_input(self.function, self.inputs + 1)

    def _wanted(self, op: ir.Operation) -> list[ir.Value]:
        """The weights not read yet that an op needs, in argument order."""
        wanted = {v for v in free_values(op) if v in self.pending}
        if self.definer:
            wanted |= {w for s in self.uses.of_op(op) if (w := self.definer.get(s)) is not None and w in self.pending}
        return sorted(wanted, key=lambda w: self.pending[w][0])


def _insert_writes(function: func.FuncOp) -> None:
    block, inputs = _entry(function), num_input(function) or 0
    values, names = returned_values(function), [tensor_name(a) for a in result_attributes(function)]
    other = next((v for v in values if not is_tensor(v)), None)
    if other is not None:
        raise RelaxError(f"'func.func' op expected only tensors as results of @{name_of(function)}, got {other.type}",
                         function.location)  # fmt: skip
    sink, moved = _insert_sink(function, block, inputs)
    wanted: dict[ir.Value, list[int]] = {}
    for index, value in enumerate(values):
        wanted.setdefault(moved.get(value, value), []).append(index)
    body = operations(block)
    _write(block.arguments, wanted, names, sink, ir.InsertionPoint(body[0]))
    for op in body[:-1]:
        _write(op.results, wanted, names, sink, ir.InsertionPoint.after(op))
    with body[-1].location, ir.InsertionPoint(body[-1]):
        func.ReturnOp([])
    body[-1].erase()
    update_type(function)
    set_result_attributes(function, [])
    set_num_input(function, inputs + 1)


def _insert_sink(function: func.FuncOp, block: ir.Block, inputs: int) -> tuple[ir.Value, dict[ir.Value, ir.Value]]:
    """Adds the sink after the inputs. Blocks only grow at the end, so the weights move behind it; old weights to new ones.

    Weights without a name get the one that their old position gives them.
    """
    attributes = [*argument_attributes(function)[:inputs], named(None)]
    for item, name in zip(argument_attributes(function)[inputs:], weight_names(function, inputs), strict=True):
        attributes.append(item if tensor_name(item) == name else named(name))
    old = list(block.arguments)[inputs:]
    sink = block.add_argument(OutputSink.get(), function.location)
    moved: dict[ir.Value, ir.Value] = {}
    for weight in old:
        moved[weight] = block.add_argument(weight.type, weight.location)
        weight.replace_all_uses_with(moved[weight])
    for position in reversed(range(inputs, inputs + len(old))):
        block.erase_argument(position)
    # The attributes wait for the function type to agree with them.
    set_argument_attributes(function, [])
    update_type(function)
    set_argument_attributes(function, attributes)
    return sink, moved


def _write(
    values: Iterable[ir.Value],
    wanted: dict[ir.Value, list[int]],
    names: Sequence[str | None],
    sink: ir.Value,
    where: ir.InsertionPoint,
) -> None:
    for value in values:
        for index in wanted.get(value, ()):
            location = value.location if isinstance(value, ir.BlockArgument) else value.owner.location
            SetOutput.create(sink, value, index=index, name=names[index], loc=location, ip=where)

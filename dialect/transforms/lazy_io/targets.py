"""What the lazy passes share: the functions they change, and the inputs that these get."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from ...analysis.entries import transforms_by_target
from ...bindings import func, ir
from ...errors import RelaxError
from ...function_types import (
    argument_attributes,
    named,
    result_attributes,
    set_argument_attributes,
    set_result_attributes,
    tensor_name,
    with_name,
)
from ...functions import (
    NUM_INPUT,
    TRANSFORM_FOR,
    body_of,
    full_argument_names,
    functions,
    is_private,
    name_of,
    num_input,
    set_num_input,
    transform_targets,
    update_type,
)
from ...relax import OutputSink, ParamProvider
from ...struct_info import is_tensor
from ...transform_rules import unmarked_transforms
from ...tuples import leaf_types
from ...weights import full_result_names
from .emit import Declarations, WeightCalls, WeightOps
from .options import CallStyle, Extra

__all__ = ["LazyIO", "check_tensors", "entry_block", "lazy_targets", "name_results", "weights_of"]


def lazy_targets(module: ir.Operation, wanted: Sequence[str], transforms: bool = False) -> list[func.FuncOp]:
    """The functions that a lazy pass changes: those named; by default public ones with ``relax.num_input``.

    A function that a transform function prepares weights for is left out unless named: its weights come prepared.

    Args:
        module: the module.
        wanted: names of those to change; empty is all of them.
        transforms: only transform functions, private ones too.

    Raises:
        RelaxError: a named function does not exist, has no body or no ``relax.num_input``, or is no transform function; of
            transform functions there are none but by name.
    """
    known = {name_of(f): f for f in functions(module)}
    for name in wanted:
        fits = name in known and body_of(known[name]) is not None
        if not fits or not (transform_targets(known[name]) if transforms else NUM_INPUT in known[name].attributes):
            kind = "transform functions" if transforms else f"functions with {NUM_INPUT}"
            raise RelaxError(f"expected {kind} for option 'functions', got @{name}")
    if wanted:
        return [known[name] for name in dict.fromkeys(wanted)]
    if transforms:
        return _transforms(known)
    prepared = transforms_by_target(module)
    return [
        f
        for name, f in known.items()
        if name not in prepared and not is_private(f) and body_of(f) is not None and num_input(f) is not None
    ]


def _transforms(table: Mapping[str, func.FuncOp]) -> list[func.FuncOp]:
    found = [f for f in table.values() if transform_targets(f) and body_of(f) is not None]
    for function in [] if found else unmarked_transforms(table):
        raise RelaxError(f"'func.func' op expected {TRANSFORM_FOR} of the transform function @{name_of(function)}, got none",
                         function.location)  # fmt: skip
    return found


def entry_block(function: func.FuncOp) -> ir.Block:
    """The body of a function. Raises RelaxError when it has several blocks."""
    blocks = list(function.regions[0].blocks)
    if len(blocks) != 1:
        raise RelaxError(f"'func.func' op expected one block, got several in @{name_of(function)}", function.location)
    return blocks[0]


def weights_of(function: func.FuncOp) -> list[ir.Value]:
    """The arguments after the inputs. Raises RelaxError when one is no tensor, nor a tuple of tensors."""
    weights = list[ir.Value](entry_block(function).arguments)[num_input(function) or 0 :]
    check_tensors(function, "weights", weights)
    return weights


def check_tensors(function: func.FuncOp, what: str, values: Iterable[ir.Value]) -> None:
    """Raises RelaxError when one of some values is no tensor, nor a tuple of tensors."""
    other = next((t for v in values for t in leaf_types(v.type) if not is_tensor(t)), None)
    if other is not None:
        raise RelaxError(f"'func.func' op expected only tensors as {what} of @{name_of(function)}, got {other}",
                         function.location)  # fmt: skip


def name_results(transform: func.FuncOp) -> None:
    """Says the names of prepared weights: those of the functions that take them would not show any more which they are."""
    attributes, names = result_attributes(transform), full_result_names(transform)
    set_result_attributes(transform, [with_name(a, n) for a, n in zip(attributes, names, strict=True)])


@dataclass(frozen=True)
class LazyIO:
    """Opens functions of one module for reads, or for writes.

    Attributes:
        declarations: the callbacks that the module declares.
        style: how calls are made.
    """

    declarations: Declarations
    style: CallStyle

    def reader(self, function: func.FuncOp) -> WeightCalls:
        """What makes reads in a function, which gets the inputs for that."""
        return self._open(function, ParamProvider.get())

    def writer(self, function: func.FuncOp) -> WeightCalls:
        """What makes writes in a function, which gets the inputs for that."""
        return self._open(function, OutputSink.get())

    def _open(self, function: func.FuncOp, callback: ir.Type) -> WeightCalls:
        there = [_find(function, extra) for extra in self.style.extras]
        new = [] if self.style.functions else [(None, callback)]
        new += [(e.name, e.type) for e, found in zip(self.style.extras, there, strict=True) if found is None]
        added = _add_inputs(function, new)
        # Positions of inputs stay, whatever is added behind them.
        arguments = list(entry_block(function).arguments)
        rest = iter(added if self.style.functions else added[1:])
        extras = [arguments[found] if found is not None else next(rest) for found in there]
        if self.style.functions:
            return WeightCalls(self.declarations, self.style, extras)
        emitter = WeightOps(self.declarations, self.style, extras)
        with function.location, ir.InsertionPoint.at_block_begin(entry_block(function)):
            emitter.bind(added[0])
        return emitter


def _find(function: func.FuncOp, extra: Extra) -> int | None:
    """The position of the input that an extra is, None for one to add.

    Raises:
        RelaxError: there is none and its type is not known, or the argument of that name is a weight or of another type.
    """
    arguments, inputs = list(entry_block(function).arguments), num_input(function) or 0
    names = [tensor_name(a) for a in argument_attributes(function)]
    where = f"@{name_of(function)}"
    if extra.name not in names:
        if extra.type is None:
            raise RelaxError(f"'func.func' op expected an input of {where} named '{extra.name}', got none", function.location)
        return None
    position = names.index(extra.name)
    if position >= inputs:
        raise RelaxError(f"'func.func' op expected '{extra.name}' to be an input of {where}, got a weight", function.location)
    if extra.type is not None and arguments[position].type != extra.type:
        got = arguments[position].type
        raise RelaxError(f"'func.func' op expected the input '{extra.name}' of {where} to be of type {extra.type}, got {got}",
                         function.location)  # fmt: skip
    return position


def _add_inputs(function: func.FuncOp, items: Sequence[tuple[str | None, ir.Type | None]]) -> list[ir.Value]:
    """Adds arguments behind the inputs. Blocks only grow at the end, so the weights move behind them.

    Weights without a name get the one that their old position gives them.
    """
    if not items:
        return []
    block, inputs = entry_block(function), num_input(function) or 0
    attributes = [*argument_attributes(function)[:inputs], *(named(name) for name, _ in items)]
    for item, name in zip(argument_attributes(function)[inputs:], full_argument_names(function)[inputs:], strict=True):
        attributes.append(item if tensor_name(item) == name else named(name))
    old = list(block.arguments)[inputs:]
    added: list[ir.Value] = [block.add_argument(type_, function.location) for _, type_ in items if type_ is not None]
    for weight in old:
        weight.replace_all_uses_with(block.add_argument(weight.type, weight.location))
    for position in reversed(range(inputs, inputs + len(old))):
        block.erase_argument(position)
    # The attributes wait for the function type to agree with them.
    set_argument_attributes(function, [])
    update_type(function)
    set_argument_attributes(function, attributes)
    set_num_input(function, inputs + len(items))
    return added

"""The steps that make a module smaller: each has targets, and takes some of them away, in place.

A step need not leave a valid module, nor one that means the same: whoever asks for it verifies, and tests what is left.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from ..dialect.bindings import func, ir
from ..dialect.function_types import (
    argument_attributes,
    erase_arguments,
    result_attributes,
    set_argument_attributes,
    set_result_attributes,
    without,
)
from ..dialect.functions import body_of, functions, num_input, returned_values, set_num_input
from ..dialect.traversal import free_values, is_unused, nested_operations, operations
from .signatures import add_arguments, set_results

__all__ = ["STEPS", "Shrinking"]


@dataclass(frozen=True)
class Shrinking:
    """One way to make a module smaller.

    Attributes:
        count: how many targets a module has.
        apply: changes a module at the targets of these positions.
    """

    count: Callable[[ir.Module], int]
    apply: Callable[[ir.Module, Sequence[int]], None]


def _without_functions(module: ir.Module, chosen: Sequence[int]) -> None:
    found = functions(module)
    for position in chosen:
        found[position].operation.erase()


def _bodies(module: ir.Module) -> list[tuple[func.FuncOp, ir.Block]]:
    """Functions of one block, with it."""
    found = [(f, body_of(f)) for f in functions(module) if len(f.regions[0].blocks) == 1]
    return [(f, block) for f, block in found if block is not None]


def _count_ops(module: ir.Module) -> int:
    return sum(len(block.operations) - 1 for _, block in _bodies(module))


def _without_ops(module: ir.Module, chosen: Sequence[int]) -> None:
    """What they make is given as arguments, and what nobody else reads is returned."""
    wanted, start = set(chosen), 0
    for function, block in _bodies(module):
        count = len(block.operations) - 1
        gone = {p - start for p in wanted if start <= p < start + count}
        start += count
        if gone:
            _without_ops_of(function, block, gone)


def _without_ops_of(function: func.FuncOp, block: ir.Block, gone: set[int]) -> None:
    ops = operations(block)
    read_by_gone = dict.fromkeys(v for i in sorted(gone) for v in free_values(ops[i]))
    read_by_others = dict.fromkeys(v for i, op in enumerate(ops) if i not in gone for v in free_values(op))
    made = dict.fromkeys(r for i in sorted(gone) for r in ops[i].results)
    kept = {r for i, op in enumerate(ops) if i not in gone for r in op.results}
    weights = _made_of_weights(function, block)
    needed = [r for r in made if r in read_by_others]
    loose = [v for v in read_by_gone if v in kept and v not in read_by_others]
    add_arguments(function, [r for r in needed if r not in weights], [r for r in needed if r in weights])
    for i in sorted(gone, reverse=True):
        ops[i].erase()
    if loose:
        attributes = [*result_attributes(function), *[ir.DictAttr.get({})] * len(loose)]
        set_results(function, [*returned_values(function), *loose], attributes)


def _made_of_weights(function: func.FuncOp, block: ir.Block) -> set[ir.Value]:
    """The weights, and what is made of weights alone."""
    split = num_input(function)
    found = set[ir.Value](list(block.arguments)[len(block.arguments) if split is None else split :])
    for op in operations(block):
        read = free_values(op)
        if read and all(v in found for v in read):
            found.update(op.results)
    return found


def _count_results(module: ir.Module) -> int:
    return sum(len(returned_values(f)) for f, _ in _bodies(module))


def _without_results(module: ir.Module, chosen: Sequence[int]) -> None:
    """And without the ops that nothing reads then."""
    wanted, start = set(chosen), 0
    for function, _ in _bodies(module):
        values, attributes = returned_values(function), result_attributes(function)
        kept = [i for i in range(len(values)) if start + i not in wanted]
        start += len(values)
        if len(kept) < len(values):
            set_results(function, [values[i] for i in kept], [attributes[i] for i in kept])
            _erase_unread(function.operation)


def _erase_unread(inside: ir.Operation) -> None:
    """Erases ops with results that nothing reads, readers first."""
    for op in reversed(list(nested_operations(inside))):
        if len(op.results) and is_unused(op):
            op.erase()


def _count_arguments(module: ir.Module) -> int:
    return sum(len(block.arguments) for _, block in _bodies(module))


def _without_arguments(module: ir.Module, chosen: Sequence[int]) -> None:
    """Those that nothing reads."""
    wanted, start = set(chosen), 0
    for function, block in _bodies(module):
        arguments, split = list(block.arguments), num_input(function)
        gone = [i for i, a in enumerate(arguments) if start + i in wanted and next(iter(a.uses), None) is None]
        start += len(arguments)
        if not gone:
            continue
        if split is not None:
            set_num_input(function, split - sum(i < split for i in gone))
        erase_arguments(function, gone)


def _count_nested(module: ir.Module) -> int:
    return sum(1 for _ in nested_operations(module.operation))


def _chosen(module: ir.Module, chosen: Sequence[int]) -> Iterator[ir.Operation]:
    """The ops of these positions, inner ones and readers first, so that those that come later are still there."""
    found = list(nested_operations(module.operation))
    return (found[i] for i in sorted(chosen, reverse=True))


def _without_unread(module: ir.Module, chosen: Sequence[int]) -> None:
    """Ops without results, too: checks, and what has effects; no terminators, which verification wants."""
    for op in _chosen(module, chosen):
        if not isinstance(op.opview, func.FuncOp) and is_unused(op):
            op.erase()


def _with_operands(module: ir.Module, chosen: Sequence[int]) -> None:
    for op in _chosen(module, chosen):
        _replace(op, list(op.operands))


def _with_arguments(module: ir.Module, chosen: Sequence[int]) -> None:
    for op in _chosen(module, chosen):
        block = _function_block(op)
        _replace(op, [] if block is None else list(block.arguments))


def _replace(op: ir.Operation, values: Sequence[ir.Value]) -> None:
    """Those who read results read other values of the same types, where there are some, and the op goes."""
    same = [next((v for v in values if v.type == r.type), None) for r in op.results]
    if not same or any(v is None for v in same):
        return
    for result, value in zip(op.results, same, strict=True):
        assert value is not None
        result.replace_all_uses_with(value)
    op.erase()


def _function_block(op: ir.Operation) -> ir.Block | None:
    parent = op.parent
    while parent is not None and not isinstance(parent.opview, func.FuncOp):
        parent = parent.operation.parent
    return None if parent is None else body_of(parent.opview)


def _unwrapped(branch: int) -> Callable[[ir.Module, Sequence[int]], None]:
    def apply(module: ir.Module, chosen: Sequence[int]) -> None:
        for op in _chosen(module, chosen):
            if op.name in _WRAPPED and len(op.regions) > branch and len(op.regions[branch].blocks) == 1:
                _unwrap(op, op.regions[branch].blocks[0])

    return apply


#: Ops whose regions can take their place, with what the arguments of these become: operands from this one on.
_WRAPPED = {"scf.if": 1, "scf.for": 3, "scf.while": 0, "scf.execute_region": 0}


def _unwrap(op: ir.Operation, block: ir.Block) -> None:
    """What a branch, or one round of a loop, does, in the op's place."""
    *inner, end = operations(block)
    operands, arguments = list(op.operands), list(block.arguments)
    given = operands[_WRAPPED[op.name] :]
    made = list(end.operands)[end.name == "scf.condition" :]
    if op.name == "scf.for":
        given = [operands[0], *given]
    if [v.type for v in given[: len(arguments)]] != [a.type for a in arguments]:
        return
    if [v.type for v in made] != [r.type for r in op.results]:
        return
    for argument, value in zip(arguments, given, strict=False):
        argument.replace_all_uses_with(value)
    made = list(end.operands)[end.name == "scf.condition" :]
    for nested in inner:
        nested.move_before(op)
    for result, value in zip(op.results, made, strict=True):
        result.replace_all_uses_with(value)
    op.erase()


def _attributes(module: ir.Module) -> list[tuple[ir.Operation, str]]:
    """Attributes that an op can be without: those of other dialects, and all of ours, as verification says which it wants."""
    found = list[tuple[ir.Operation, str]]()
    for op in (module.operation, *nested_operations(module.operation)):
        names = [item if isinstance(item, str) else item.name for item in op.attributes]
        found += [(op, n) for n in names if "." in n or op.name.startswith("relax.")]
    return found


def _without_attributes(module: ir.Module, chosen: Sequence[int]) -> None:
    found = _attributes(module)
    for position in chosen:
        op, name = found[position]
        del op.attributes[name]


def _named(module: ir.Module) -> list[tuple[func.FuncOp, bool, int, str]]:
    """Attributes of arguments (True) and results."""
    sides = [(f, True, argument_attributes(f)) for f in functions(module)]
    sides += [(f, False, result_attributes(f)) for f in functions(module)]
    return [(f, side, i, item.name) for f, side, all_ in sides for i, given in enumerate(all_) for item in given]


def _without_names(module: ir.Module, chosen: Sequence[int]) -> None:
    found = _named(module)
    for position in chosen:
        function, is_argument, i, name = found[position]
        items = argument_attributes(function) if is_argument else result_attributes(function)
        items[i] = without(items[i], name)
        (set_argument_attributes if is_argument else set_result_attributes)(function, items)


#: In the order in which they are tried: those that take most away come first.
STEPS = (
    Shrinking(lambda module: len(functions(module)), _without_functions),
    Shrinking(_count_ops, _without_ops),
    Shrinking(_count_results, _without_results),
    Shrinking(_count_nested, _without_unread),
    Shrinking(_count_nested, _with_operands),
    Shrinking(_count_nested, _with_arguments),
    Shrinking(_count_nested, _unwrapped(0)),
    Shrinking(_count_nested, _unwrapped(1)),
    Shrinking(_count_arguments, _without_arguments),
    Shrinking(lambda module: len(_attributes(module)), _without_attributes),
    Shrinking(lambda module: len(_named(module)), _without_names),
)

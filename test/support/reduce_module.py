"""A module that fails, made small: functions, ops, uses and results go while it still fails the same way (delta debugging)."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from relaxir.dialect.bindings import func, ir
from relaxir.dialect.errors import RelaxError
from relaxir.dialect.functions import functions
from relaxir.dialect.parser import parse_module
from relaxir.dialect.traversal import nested_operations

__all__ = ["reduced"]

#: A step: changes a module that is a copy; False when there is nothing left to change at that place.
Step = Callable[[ir.Module, int], bool]


def reduced(text: str, fails: Callable[[str], bool], context: ir.Context) -> str:
    """The text of a smaller module for which ``fails`` holds, as it holds for the given one."""
    small, changed = text, True
    while changed:
        changed = False
        for step in (_without_function, _without_op, _with_operand_instead, _without_result, _without_attribute):
            for candidate in _candidates(small, step, context):
                if len(candidate) < len(small) and fails(candidate):
                    small, changed = candidate, True
                    break
    return small


def _candidates(text: str, step: Step, context: ir.Context) -> Iterator[str]:
    """What the step makes of a module, at each place where it applies, last places first."""
    for place in reversed(range(_size(text, context))):
        module = parse_module(text, "-", context)
        try:
            with context, ir.Location.unknown():
                if step(module, place) and module.operation.verify():
                    yield module.operation.get_asm(use_local_scope=True)
        except (RelaxError, ir.MLIRError):
            continue


def _size(text: str, context: ir.Context) -> int:
    return sum(1 for _ in nested_operations(parse_module(text, "-", context).operation))


def _at(module: ir.Module, place: int) -> ir.Operation:
    return list(nested_operations(module.operation))[place]


def _without_function(module: ir.Module, place: int) -> bool:
    found = functions(module.operation)
    if place >= len(found):
        return False
    found[place].operation.erase()
    return True


def _without_op(module: ir.Module, place: int) -> bool:
    op = _at(module, place)
    if isinstance(op.opview, func.FuncOp) or any(list(r.uses) for r in op.results):
        return False
    op.erase()
    return True


def _with_operand_instead(module: ir.Module, place: int) -> bool:
    """Uses of a result read another value of its type: an operand, or an argument of the function."""
    op = _at(module, place)
    values = [*op.operands, *(a for f in functions(module.operation) for b in f.regions[0].blocks for a in b.arguments)]
    same = {r: v for r in op.results for v in values if v.type == r.type and _inside(op, v)}
    if not same or len(same) != len(op.results):
        return False
    for result, value in same.items():
        result.replace_all_uses_with(value)
    op.erase()
    return True


def _inside(op: ir.Operation, value: ir.Value) -> bool:
    """Whether a value may be used where the op is: it is one of its own, or an argument of its own function."""
    if value in list(op.operands):
        return True
    parent = op
    while parent is not None and not isinstance(parent.opview, func.FuncOp):
        parent = parent.parent
    return parent is not None and value in list(parent.regions[0].blocks[0].arguments)


def _without_result(module: ir.Module, place: int) -> bool:
    """A function without callers returns one value less."""
    op = _at(module, place)
    if op.name != "func.return" or len(op.operands) < 2:
        return False
    function = op.parent.opview
    assert isinstance(function, func.FuncOp)
    kept = list(op.operands)[:-1]
    function.attributes["function_type"] = ir.TypeAttr.get(ir.FunctionType.get(function.type.inputs, [v.type for v in kept]))
    if "res_attrs" in function.attributes:
        del function.attributes["res_attrs"]
    with ir.InsertionPoint(op):
        func.ReturnOp(kept)
    op.erase()
    return True


def _without_attribute(module: ir.Module, place: int) -> bool:
    op = _at(module, place)
    for name in ("relax.lift",):
        if name in op.attributes:
            del op.attributes[name]
            return True
    return False

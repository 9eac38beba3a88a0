"""Puts device functions into the kernels that call them: arguments and results become local memory, returns become branches."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from .findings import PtxError
from .syntax import Address, Function, Instruction, Operand, Variable

__all__ = ["inlined"]


def inlined(function: Function, functions: Mapping[str, Function], callers: Sequence[str] = ()) -> Function:
    """The function without calls. Raises PtxError for calls of pointers, of what is not in the module, and of callers."""
    if not any(i.name == "call" for i in function.code):
        return function
    whole = Function(function.name, function.is_entry, function.params, function.results, dict(function.registers),
                     list(function.variables), [], {}, function.limits)  # fmt: skip
    labels_at: dict[int, list[str]] = {}
    for label, place in function.labels.items():
        labels_at.setdefault(place, []).append(label)
    for index, instruction in enumerate(function.code):
        whole.labels.update(dict.fromkeys(labels_at.get(index, ()), len(whole.code)))
        if instruction.name != "call":
            whole.code.append(instruction)
            continue
        _expand(whole, instruction, functions, [*callers, function.name])
    whole.labels.update(dict.fromkeys(labels_at.get(len(function.code), ()), len(whole.code)))
    return whole


def _expand(whole: Function, call: Instruction, functions: Mapping[str, Function], callers: Sequence[str]) -> None:
    results, name, arguments = _parts(call)
    if name not in functions:
        raise PtxError(f"line {call.line}: expected a call of a function with a body, got '{name}': {call.text}")
    if name in callers:
        raise PtxError(f"line {call.line}: expected no recursion, got a call of '{name}': {call.text}")
    callee = inlined(functions[name], functions, callers)
    if len(arguments) != len(callee.params) or len(results) != len(callee.results):
        raise PtxError(
            f"line {call.line}: expected {len(callee.params)} arguments and {len(callee.results)} results: {call.text}"
        )
    suffix = f"@{len(whole.code)}"
    names = {v.name: str(a) for v, a in zip([*callee.params, *callee.results], [*arguments, *results], strict=True)}
    end = f"return{suffix}"
    if call.guard:  # the others skip the body
        jump = Instruction("bra", (), [end], call.guard, not call.is_negated, call.line, call.text, call.place)
        whole.code.append(jump)
    for register, kind in callee.registers.items():
        names[register] = register + suffix
        whole.registers[names[register]] = kind
    for variable in callee.variables:
        _declare(whole, variable, suffix, names)
    for label in callee.labels:
        names[label] = label + suffix
    start = len(whole.code)
    whole.code += [_renamed(i, names, end) for i in callee.code]
    whole.labels.update({names[label]: start + place for label, place in callee.labels.items()})
    whole.labels[end] = len(whole.code)


def _parts(call: Instruction) -> tuple[tuple[Operand, ...], str, tuple[Operand, ...]]:
    """Results, name and arguments of a call."""
    args = list(call.args)
    results = args.pop(0) if isinstance(args[0], tuple) else ()
    name = args.pop(0)
    arguments = args.pop(0) if args else ()
    if not isinstance(results, tuple) or not isinstance(name, str) or not isinstance(arguments, tuple) or args:
        raise PtxError(f"line {call.line}: expected a call by name: {call.text}")
    return results, name, arguments


def _declare(whole: Function, variable: Variable, suffix: str, names: dict[str, str]) -> None:
    """Shared variables are one for all calls, local ones are each call's own."""
    names[variable.name] = variable.name + (suffix if variable.space == "local" else "@shared")
    if all(v.name != names[variable.name] for v in whole.variables):
        whole.variables.append(replace(variable, name=names[variable.name]))


def _renamed(instruction: Instruction, names: Mapping[str, str], end: str) -> Instruction:
    guard = names.get(instruction.guard, instruction.guard)
    if instruction.name == "ret":
        return Instruction(
            "bra", (), [end], guard, instruction.is_negated, instruction.line, instruction.text, instruction.place
        )
    args = [_operand(arg, names) for arg in instruction.args]
    return replace(instruction, args=args, guard=guard)


def _operand(operand: Operand, names: Mapping[str, str]) -> Operand:
    if isinstance(operand, tuple):
        return tuple(_operand(part, names) for part in operand)
    if isinstance(operand, Address):
        return Address(_name(operand.base, names), operand.offset, tuple(_operand(part, names) for part in operand.inner))
    return "|".join(_name(part, names) for part in operand.split("|"))


def _name(text: str, names: Mapping[str, str]) -> str:
    bang, name = ("!", text[1:]) if text.startswith("!") else ("", text)
    base, plus, offset = name.partition("+")
    return bang + names.get(base, base) + plus + offset

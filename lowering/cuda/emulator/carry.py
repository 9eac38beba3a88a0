"""Arithmetic with a carry, as instructions that are there anyway: the condition code is a register ``%cc`` of each function.

``addc.cc.u32 %d, %a, %b`` becomes, with registers that nothing else uses::

    add.u32     %cc.sum, %a, %b;
    setp.lt.u32 %cc.first, %cc.sum, %b;
    selp.u32    %cc.in, 1, 0, %cc;
    add.u32     %cc.all, %cc.sum, %cc.in;
    setp.lt.u32 %cc.second, %cc.all, %cc.in;
    or.pred     %cc, %cc.first, %cc.second;
    mov.b32     %d, %cc.all;
"""

from __future__ import annotations

import dataclasses

from .syntax import Function, Instruction, Operand

__all__ = ["expand_carries"]

_TAKES = ("addc", "subc", "madc")
_GIVES = ("add", "sub", "mad", *_TAKES)
_TYPES = {"u32": "b32", "s32": "b32", "u64": "b64", "s64": "b64"}


def expand_carries(function: Function) -> None:
    """Puts what they do in the place of all instructions with a carry, and moves labels.

    Forms that PTX does not have stay as they are, and are refused later.
    """
    code, places = list[Instruction](), list[int]()
    for instruction in function.code:
        places.append(len(code))
        code += _without_carry(instruction, function.registers)
    places.append(len(code))
    function.code = code
    function.labels = {label: places[at] for label, at in function.labels.items()}


def _without_carry(instruction: Instruction, registers: dict[str, str]) -> list[Instruction]:
    """What an instruction does; registers that are needed are added to those of the function."""
    *modifiers, kind = instruction.modifiers or ("",)
    takes, gives = instruction.name in _TAKES, "cc" in modifiers and instruction.name in _GIVES
    halves = ("lo", "hi") if instruction.name.startswith("mad") else ("",)
    half = next((m for m in modifiers if m != "cc"), "")
    if not (takes or gives) or kind not in _TYPES or half not in halves or len(modifiers) > gives + bool(half):
        return [instruction]
    return _Chain(instruction, registers, _TYPES[kind]).lines(takes, gives, half)


class _Chain:
    """The instructions that one becomes."""

    def __init__(self, instruction: Instruction, registers: dict[str, str], bits: str):
        self._instruction, self._registers, self._bits = instruction, registers, bits
        self._unsigned = f"u{bits[1:]}"
        self._lines: list[Instruction] = []

    def lines(self, takes: bool, gives: bool, half: str) -> list[Instruction]:
        operation = self._instruction.name[:3]
        result, a, b, *more = self._instruction.args
        if operation == "mad":
            a, b = self._number("product", "mul", half, a, b), more[0]
        operation = "sub" if operation == "sub" else "add"
        first = second = "0"
        total = self._number("sum", operation, "", a, b)
        if gives:
            first = self._truth("first", "setp", "lt", *((a, b) if operation == "sub" else (total, b)))
        if takes:
            carry = self._number("in", "selp", "", "1", "0", "%cc")
            before, total = total, self._number("all", operation, "", total, carry)
            if gives:
                second = self._truth("second", "setp", "lt", *((before, carry) if operation == "sub" else (total, carry)))
        if gives:
            self._registers["%cc"] = "pred"
            self._add("or" if takes else "mov", ("pred",), ["%cc", first, *([second] if takes else [])])
        self._add("mov", (self._bits,), [result, total])
        return self._lines

    def _number(self, name: str, operation: str, half: str, *operands: Operand) -> str:
        return self._new(f"{name}{self._bits[1:]}", self._bits, operation, (half, self._unsigned), *operands)

    def _truth(self, name: str, operation: str, comparison: str, *operands: Operand) -> str:
        return self._new(name, "pred", operation, (comparison, self._unsigned), *operands)

    def _new(self, name: str, kind: str, operation: str, modifiers: tuple[str, ...], *operands: Operand) -> str:
        self._registers[f"%cc.{name}"] = kind
        self._add(operation, tuple(m for m in modifiers if m), [f"%cc.{name}", *operands])
        return f"%cc.{name}"

    def _add(self, name: str, modifiers: tuple[str, ...], args: list[Operand]) -> None:
        self._lines.append(dataclasses.replace(self._instruction, name=name, modifiers=modifiers, args=args, types={}))

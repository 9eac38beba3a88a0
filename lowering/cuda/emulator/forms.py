"""Matches instructions with the tables of the instruction set, and says what is wrong with those that fit none.

A line of a table is a form: opcode, operands, and since when. In the opcode ``{.x}`` may be left out, ``<a|b>`` is one
of several, ``<T:a|b>`` one that operands refer to. Operands are

``T``, ``f32``  a value of that type: a register of its width, or a literal
``>T``          the register may be wider
``2T``          of twice the width
``{T}``         one value or several in braces
``T|p``         a value, and a predicate that may be left out
``p``  ``[]``  ``#``  ``name``   a predicate, an address, a literal integer, a name
``?x``          may be left out
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache

from .findings import PtxError
from .syntax import WIDTH, Address, Instruction, Operand

__all__ = ["Form", "Isa", "Target"]


@dataclass(frozen=True)
class Target:
    """A processor: ``sm_90a`` is number 90 with the features of its own family (``a``)."""

    number: int
    suffix: str = ""

    @classmethod
    def named(cls, name: str) -> Target:
        """Raises PtxError for what is no target."""
        found = re.fullmatch(r"(?:sm_|compute_)?(\d+)([af]?)", name)
        if found is None:
            raise PtxError(f"expected a target like 'sm_90a', got {name!r}")
        return cls(int(found[1]), found[2])

    def runs(self, needed: Target) -> bool:
        """Whether code for another target runs here."""
        return self == needed if needed.suffix else self.number >= needed.number

    def __str__(self) -> str:
        return f"sm_{self.number}{self.suffix}"


@dataclass(frozen=True)
class Form:
    """One line of a table."""

    pattern: re.Pattern[str]
    operands: tuple[str, ...]
    target: Target
    version: int


_PART = re.compile(r"\{\.((?:<[^>]*>|[\w:.])+)\}|\.((?:<[^>]*>|[\w:])+)")
_CHOICE = re.compile(r"<(?:([A-Z]):(?!:))?([^>]*)>")


def _form(line: str) -> tuple[str, Form]:
    opcode, *columns = re.split(r"\s{2,}", line.strip())
    words = [word for column in columns for word in column.split()]
    since = [w for w in words if re.fullmatch(r"sm_\d+a?|ptx\d+", w)]
    name = re.match(r"\w+", opcode)
    assert name is not None, line
    pattern = "".join(_choice(*part.groups()) for part in _PART.finditer(opcode, name.end()))
    targets = [Target.named(w) for w in since if w.startswith("sm_")]
    versions = [int(w[3:]) for w in since if w.startswith("ptx")]
    operands = tuple(w for w in words if w not in since)
    return name[0], Form(re.compile(pattern), operands, (targets or [Target(50)])[0], (versions or [10])[0])


def _choice(optional: str | None, fixed: str | None) -> str:
    pattern = _CHOICE.sub(
        lambda m: f"(?P<{m[1]}>{m[2]})" if m[1] else f"(?:{m[2]})", (optional or fixed or "").replace(".", r"\.")
    )
    return rf"(?:\.{pattern})?" if optional else rf"\.{pattern}"


class Isa:
    """The forms of all instructions."""

    def __init__(self, text: str, macros: Mapping[str, str]):
        while "$" in text:  # a macro's meaning may have macros
            text = re.sub(r"\$([A-Z]+)", lambda m: macros[m[1]], text)
        self.forms: dict[str, list[Form]] = {}
        for line in text.splitlines():
            if line.strip():
                name, form = _form(line)
                self.forms.setdefault(name, []).append(form)
        self._match = cache(self._matched)

    def check(self, instruction: Instruction, registers: Mapping[str, str], target: Target, version: int) -> None:
        """Fills in the instruction's types.

        Args:
            instruction: what is checked.
            registers: types of registers.
            target: what the module is for.
            version: the ISA's version that the module names, times ten.

        Raises:
            PtxError: it is unknown, a modifier or operand does not fit, or it needs a newer target or version.
        """
        matched = self._match(instruction.name, instruction.modifiers)
        if not matched:
            raise PtxError(f"line {instruction.line}: {self._unknown(instruction)}")
        errors = list[str]()
        for form, types in matched:
            error = _since(form, target, version) or _operands(form, types, instruction, registers)
            if not error:
                instruction.types = types
                return
            errors.append(error)
        raise PtxError(f"line {instruction.line}: {errors[0]}: {instruction.text}")

    def _matched(self, name: str, modifiers: tuple[str, ...]) -> list[tuple[Form, dict[str, str]]]:
        text = "".join(f".{m}" for m in modifiers)
        found = ((form, form.pattern.fullmatch(text)) for form in self.forms.get(name, ()))
        return [(form, {k: v for k, v in m.groupdict().items() if v}) for form, m in found if m]

    def _unknown(self, instruction: Instruction) -> str:
        name = instruction.name
        if name not in self.forms:
            return f"unknown instruction '{name}': {instruction.text}"
        known = {m for form in self.forms[name] for m in re.findall(r"[\w:]+", form.pattern.pattern)}
        for modifier in instruction.modifiers:
            if modifier not in known and not any(
                re.fullmatch(f.pattern.pattern.split(r"\.")[-1], modifier) for f in self.forms[name]
            ):
                return f"unknown modifier '.{modifier}' of '{name}': {instruction.text}"
        return f"expected a form of '{name}', got '{instruction.opcode}': {instruction.text}"


def _since(form: Form, target: Target, version: int) -> str:
    if not target.runs(form.target):
        return f"expected target {form.target} or newer, got {target}"
    if version < form.version:
        return f"expected ptx version {form.version / 10} or newer, got {version / 10}"
    return ""


def _operands(form: Form, types: Mapping[str, str], instruction: Instruction, registers: Mapping[str, str]) -> str:
    least = sum(not o.startswith("?") for o in form.operands)
    if not least <= len(instruction.args) <= len(form.operands):
        return f"expected {least} operands, got {len(instruction.args)}"
    for kind, operand in zip(form.operands, instruction.args, strict=False):
        if not _fits(kind.lstrip("?"), types, operand, registers):
            return f"expected an operand {_described(kind.lstrip('?'), types)}, got {_written(operand)}"
    return ""


def _described(kind: str, types: Mapping[str, str]) -> str:
    return re.sub(r"\b(2?)([A-Z])\b", lambda m: ("twice " if m[1] else "") + types.get(m[2], m[2]), kind)


def _written(operand: Operand) -> str:
    if isinstance(operand, Address):
        return f"[{operand.base}]"
    return operand if isinstance(operand, str) else "{" + ", ".join(map(_written, operand)) + "}"


def _fits(kind: str, types: Mapping[str, str], operand: Operand, registers: Mapping[str, str]) -> bool:
    if kind == "name" or kind == "[]":
        return isinstance(operand, Address if kind == "[]" else str | tuple)
    if kind.startswith("{"):
        parts = operand if isinstance(operand, tuple) else (operand,)
        return all(_fits(kind[1:-1], types, part, registers) for part in parts)
    if not isinstance(operand, str):
        return False
    if kind == "#":
        return re.fullmatch(r"-?(0[xX])?[0-9a-fA-F]+U?", operand) is not None
    if kind.endswith("|p"):
        value, _, predicate = operand.partition("|")
        return _fits(kind[:-2], types, value, registers) and registers.get(predicate or "", "pred") == "pred"
    return operand == "_" or _is_value(kind, types, operand, registers)


def _is_value(kind: str, types: Mapping[str, str], operand: str, registers: Mapping[str, str]) -> bool:
    if kind == "p":
        return registers.get(operand.lstrip("!"), "pred") == "pred"
    wide, twice, name = kind.startswith(">"), kind.startswith("2"), kind.lstrip(">2")
    declared, wanted = registers.get(operand), types.get(name, name)
    if declared is None:
        return not operand.startswith("!")
    if "pred" in (declared, wanted):
        return declared == wanted
    width = WIDTH[wanted] << twice
    return WIDTH[declared] >= width if wide else WIDTH[declared] == width

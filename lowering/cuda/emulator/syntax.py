"""PTX text to functions with instructions; what is declared inside of braces gets names of its own, so that each name
means one thing.

The text is what LLVM's NVPTX back end prints, with inline assembly in it, or what people write: PTX ISA 8, without macros.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TypeAlias, Union

from .findings import PtxError

__all__ = ["WIDTH", "Address", "Function", "Instruction", "Module", "Operand", "Variable", "parse"]

#: Bytes of each type; a predicate counts as one.
WIDTH = {
    "pred": 1, "b8": 1, "u8": 1, "s8": 1, "e4m3": 1, "e5m2": 1, "b16": 2, "u16": 2, "s16": 2, "f16": 2, "bf16": 2,
    "e4m3x2": 2, "e5m2x2": 2, "b32": 4, "u32": 4, "s32": 4, "f32": 4, "f16x2": 4, "bf16x2": 4, "u16x2": 4, "s16x2": 4,
    "tf32": 4, "b64": 8, "u64": 8, "s64": 8, "f64": 8,
}  # fmt: skip


@dataclass(slots=True, frozen=True)
class Address:
    """``[base+offset]``, or ``[base+offset, {inner}]`` of a tensor copy."""

    base: str
    offset: int
    inner: tuple[Operand, ...] = ()


# A name or literal, an address, or what is in braces or parentheses.
Operand: TypeAlias = Union[str, Address, "tuple[Operand, ...]"]


@dataclass(slots=True)
class Variable:
    """A variable of a state space; size 0 is memory that the launch gives (dynamic shared memory)."""

    name: str
    space: str
    size: int
    align: int
    data: bytes = b""
    offset: int = 0


@dataclass(slots=True)
class Instruction:
    """One instruction; ``types`` and ``form`` are filled in when it is matched with the instruction set."""

    name: str
    modifiers: tuple[str, ...]
    args: list[Operand]
    guard: str = ""
    is_negated: bool = False
    line: int = 0
    text: str = ""
    place: str = ""
    types: dict[str, str] = field(default_factory=dict[str, str])

    @property
    def opcode(self) -> str:
        return ".".join((self.name, *self.modifiers))


@dataclass
class Function:
    """A kernel or device function: names are unique in it."""

    name: str
    is_entry: bool
    params: list[Variable] = field(default_factory=list[Variable])
    results: list[Variable] = field(default_factory=list[Variable])
    registers: dict[str, str] = field(default_factory=dict[str, str])
    variables: list[Variable] = field(default_factory=list[Variable])
    code: list[Instruction] = field(default_factory=list[Instruction])
    labels: dict[str, int] = field(default_factory=dict[str, int])
    limits: dict[str, list[int]] = field(default_factory=dict[str, "list[int]"])

    @property
    def param_bytes(self) -> int:
        return self.params[-1].offset + self.params[-1].size if self.params else 0


@dataclass
class Module:
    """All of a PTX text. ``version`` is ten times the ISA's (86 for 8.6), ``target`` as written (``sm_90a``)."""

    text: str
    version: int
    target: str
    functions: dict[str, Function]
    variables: list[Variable]


def parse(text: str) -> Module:
    """Reads a PTX text. Raises PtxError for what is no PTX, with its line."""
    clean = _without_comments(text)
    version, target = re.search(r"\.version\s+(\d+)\.(\d+)", clean), re.search(r"\.target\s+(\w+)", clean)
    if version is None or target is None:
        raise PtxError("expected .version and .target in the ptx")
    module = Module(text, 10 * int(version[1]) + int(version[2]), target[1], {}, [])
    files = {m[1]: m[2] for m in re.finditer(r"\.file\s+(\d+)\s+\"([^\"]*)\"", clean)}
    outside, position = list[str](), 0
    while head := _HEAD.search(clean, position):
        outside.append(clean[position : head.start()])
        position = head.end()
        if head["debug"]:
            position = _closing(clean, position)
            continue
        limits = _LIMITS.match(clean, position)
        assert limits is not None
        position = limits.end()
        if clean[position : position + 1] != "{":
            continue  # a declaration
        end = _closing(clean, position + 1)
        function = _function(head, limits[0])
        line = clean.count("\n", 0, position) + 1
        _Body(function, files).read(clean[position + 1 : end - 1], line)
        module.functions[function.name] = function
        position = end
    outside.append(clean[position:])
    for statement in re.split(r";(?![^{]*\})", re.sub(r"\.(version|target|address_size)\s+[\w., ]+", ";", "\n".join(outside))):
        if _VARIABLE.match(statement.strip()):
            module.variables.append(_variable(statement.strip()))
    return module


_HEAD = re.compile(
    r"(?:\.(?:visible|weak|extern)\s+)*\.(?P<kind>entry|func)\b\s*(?:\.noreturn\s*)?"
    r"(?:\((?P<results>[^()]*)\)\s*)?(?P<name>[\w$%]+)\s*(?:\((?P<params>[^()]*)\))?|(?P<debug>\.section\s+\.\w+\s*\{)"
)
_LIMITS = re.compile(r"[^{;]*")
_VARIABLE = re.compile(r"(?:\.(?:visible|extern|weak|common)\s+)*\.(shared|global|const|local|param)\s+(.*)", re.S)
_DECLARED = re.compile(r"\s*\.(\w+)\s+([\w$%]+)\s*(\[\s*\d*\s*\])?\s*(=\s*(.*))?$", re.S)
_INSTRUCTION = re.compile(r"^(?:@(!?)([\w$%.]+)\s+)?([a-z_]\w*)((?:\.[\w:]+)*)\s*(.*)$", re.S)
_LINE = re.compile(r"\.(loc|pragma|file)\s")  # what may end without a semicolon
_LABEL = re.compile(r"([A-Za-z_$][\w$]*)\s*:(?!:)")


def _without_comments(text: str) -> str:
    """Comments as blanks, but for the registers that LLVM says are undefined on purpose."""
    text = re.sub(r"//\s*implicit-def:\s*(%\w+)[^\n]*", r"implicit_def \1;", text)
    return re.sub(r"/\*.*?\*/|//[^\n]*", lambda m: re.sub(r"[^\n]", " ", m[0]), text, flags=re.S)


def _closing(text: str, position: int) -> int:
    """The place behind the brace that closes the one in front of ``position``."""
    depth = 1
    for brace in re.finditer(r"[{}]", text[position:]):
        depth += 1 if brace[0] == "{" else -1
        if not depth:
            return position + brace.end()
    raise PtxError("expected }, got the end of the ptx")


def _function(head: re.Match[str], limits: str) -> Function:
    function = Function(head["name"], head["kind"] == "entry")
    function.params, function.results = (_laid_out(head[group]) for group in ("params", "results"))
    for key, name in (("reqntid", "reqntid"), ("maxntid", "maxntid"), ("reqnctapercluster", "cluster")):
        if found := re.search(rf"\.{key}\s+(\d+(?:\s*,\s*\d+)*)", limits):
            function.limits[name] = ([int(x) for x in found[1].split(",")] + [1, 1])[:3]
    return function


def _laid_out(text: str | None) -> list[Variable]:
    """Parameters with their offsets."""
    variables, offset = [_variable(part) for part in split(text or "")], 0
    for variable in variables:
        variable.offset = -(-offset // variable.align) * variable.align
        offset = variable.offset + variable.size
    return variables


def _variable(text: str) -> Variable:
    head = _VARIABLE.match(text.strip())
    if head is None:
        raise PtxError(f"expected a variable, got {text.strip()!r}")
    align = re.search(r"\.align\s+(\d+)", head[2])
    pointer = re.search(r"\.ptr\b", head[2])
    plain = re.sub(r"\.ptr(\s*\.(global|shared|const|local))?|\.align\s+\d+|\.attribute\([^)]*\)", "", head[2])
    declared = _DECLARED.match(plain.strip())
    if declared is None or declared[1] not in WIDTH:
        raise PtxError(f"expected a variable, got {text.strip()!r}")
    width, array = WIDTH[declared[1]], declared[3]
    number = 1 if array is None else int(array.strip("[] ") or 0)
    size = width * number
    return Variable(declared[2], head[1], size, width if pointer or align is None else int(align[1]), _initial(declared, width))


def _initial(declared: re.Match[str], width: int) -> bytes:
    """The bytes of an initialiser: integers, and floats as bits."""
    values = [
        int(v.replace("0f", "0x").replace("0d", "0x"), 0)
        for v in re.findall(r"-?(?:0[xfd][0-9A-Fa-f]+|\d+)", declared[5] or "")
    ]
    if declared[5] and re.search(r"[A-Za-z_$][\w$]*(?<!\w0)", re.sub(r"0[xfd][0-9A-Fa-f]+", "", declared[5])):
        raise PtxError(f"expected numbers in the initialiser of '{declared[2]}', got {declared[5].strip()!r}")
    return b"".join((v & ((1 << 8 * width) - 1)).to_bytes(width, "little") for v in values)


_BRACKET = re.compile(r"[{\[(]")


def split(text: str) -> list[str]:
    """What commas separate outside of brackets."""
    if not _BRACKET.search(text):
        plain = [part.strip() for part in text.split(",")]
        return plain if plain[-1] else plain[:-1]
    parts, depth, start = list[str](), 0, 0
    for place, char in enumerate(text):
        if char in "{[(":
            depth += 1
        elif char in "}])":
            depth -= 1
        elif char == "," and not depth:
            parts.append(text[start:place].strip())
            start = place + 1
    return [*parts, text[start:].strip()] if text[start:].strip() else parts


_ADDRESS = re.compile(r"^(.+?)\s*(?:\+\s*(-?\w+))?$", re.S)


def _operand(text: str) -> Operand:
    if text[0] in "{(":
        return tuple(_operand(part) for part in split(text[1:-1]))
    if text[0] != "[":
        return "|".join(part.strip() for part in text.split("|")) if "|" in text else text
    parts = split(text[1:-1])
    address = _ADDRESS.match(parts[0])
    if address is None:
        raise PtxError(f"expected an address, got {text!r}")
    return Address(address[1].strip(), int(address[2] or "0", 0), tuple(_operand(part) for part in parts[1:]))


@lru_cache(1 << 14)
def _written(text: str) -> tuple[str, str, str, tuple[str, ...], tuple[Operand, ...], str]:
    """Guard, its negation, name, modifiers and operands of an instruction, and its text in one line. Raises PtxError."""
    found = _INSTRUCTION.match(text)
    if found is None:
        raise PtxError(f"expected an instruction, got {text!r}")
    arguments = found[5]
    if found[3] == "call":  # its lists of arguments are in parentheses
        arguments = re.sub(r"\)\s*,?\s*$", ")", arguments)
    args = tuple(_operand(part) for part in split(arguments))
    return found[2] or "", found[1] or "", found[3], tuple(found[4].split(".")[1:]), args, " ".join(text.split())


class _Body:
    """Reads what is between the braces of a function."""

    def __init__(self, function: Function, files: dict[str, str]):
        self.function, self.files, self.place = function, files, ""
        self.scopes: list[dict[str, str]] = [{}]
        self.number = 0  # of the last scope
        self.suffixes = [""]
        self.pending: list[tuple[Instruction, list[dict[str, str]]]] = []

    def read(self, text: str, line: int) -> None:
        """Fills in the function. Labels are known only at the end, so names are resolved then."""
        position = 0
        while True:
            blank = re.compile(r"[\s;]*").match(text, position)
            assert blank is not None
            line += blank[0].count("\n")
            position = blank.end()
            if position >= len(text):
                break
            end = self._braces(text[position]) or self._label(text, position)
            if end:
                position += end
                continue
            end = text.find(";", position)
            if end < 0 and not text.startswith(".", position):
                raise PtxError(f"line {line}: expected ';' behind {text[position:].split()[0]!r}")
            if _LINE.match(text, position) or end < 0:
                stop = text.find("\n", position)
                end = min(e for e in (end, stop, len(text)) if e >= 0)
            self._statement(text[position:end].strip(), line)
            line += text.count("\n", position, end)
            position = end
        for instruction, scopes in self.pending:
            instruction.args = [self._resolved(arg, scopes) for arg in instruction.args]
            instruction.guard = self._name(instruction.guard, scopes)

    def _braces(self, char: str) -> int:
        if char == "{":
            self.number += 1
            self.scopes.append({})
            self.suffixes.append(f"__{self.number}")
        elif char == "}":
            self.scopes.pop()
            self.suffixes.pop()
        return int(char in "{}")

    def _label(self, text: str, position: int) -> int:
        label = _LABEL.match(text, position)
        if label is None:
            return 0
        self.function.labels[self._declare(label[1])] = len(self.function.code)
        return label.end() - position

    def _declare(self, name: str) -> str:
        self.scopes[-1][name] = name + self.suffixes[-1]
        return self.scopes[-1][name]

    def _statement(self, text: str, line: int) -> None:
        if text.startswith(".reg"):
            return self._registers(text, line)
        if re.match(r"\.loc\s", text):
            _, file, row, *_ = text.split()
            self.place = f"{self.files.get(file, file)}:{row}"
            return None
        if re.match(r"\.(shared|local|param)\b", text):
            variable = _variable(text)
            variable.name = self._declare(variable.name)
            variable.space = "local" if variable.space == "param" else variable.space  # an argument of a call
            return self.function.variables.append(variable)
        if text.startswith("."):  # .pragma, .file, prototypes of calls
            return None
        return self._instruction(text, line)

    def _registers(self, text: str, line: int) -> None:
        declared = re.match(r"\.reg\s+\.(\w+)\s+(.*)", text, re.S)
        if declared is None or declared[1] not in WIDTH:
            raise PtxError(f"line {line}: expected registers, got {text!r}")
        for part in declared[2].split(","):
            name, _, number = part.strip().partition("<")
            names = [f"{name}{i}" for i in range(int(number.strip("<> ")))] if number else [name]
            self.function.registers.update((self._declare(n), declared[1]) for n in names)

    def _instruction(self, text: str, line: int) -> None:
        try:
            guard, negation, name, modifiers, args, plain = _written(text)
        except PtxError as error:
            raise PtxError(f"line {line}: {error}") from None
        instruction = Instruction(name, modifiers, list(args), guard, bool(negation), line, plain, self.place)
        self.function.code.append(instruction)
        if len(self.scopes) > 1:  # elsewhere names are what is written
            self.pending.append((instruction, list(self.scopes)))

    def _resolved(self, operand: Operand, scopes: list[dict[str, str]]) -> Operand:
        if isinstance(operand, tuple):
            return tuple(self._resolved(part, scopes) for part in operand)
        if isinstance(operand, Address):
            inner = tuple(self._resolved(part, scopes) for part in operand.inner)
            return Address(self._name(operand.base, scopes), operand.offset, inner)
        return "|".join(self._name(part, scopes) for part in operand.split("|"))

    def _name(self, text: str, scopes: list[dict[str, str]]) -> str:
        bang, name = ("!", text[1:]) if text.startswith("!") else ("", text)
        base, plus, offset = name.partition("+")
        for scope in reversed(scopes):
            if base in scope:
                return bang + scope[base] + plus + offset
        return text

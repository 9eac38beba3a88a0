"""Operands of generated code: values of registers stay in Python variables inside of a block, and are written to arrays
at its end.

A block is a function of ``s``, the lanes that execute it, of its first instruction's index and of its own number. An
instruction with a guard is executed by ``t``, a part of the lanes, and uses the arrays. Each register has one array over
all lanes of a wave, with a view for each type it is used as.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Mapping
from dataclasses import dataclass

from .findings import PtxError
from .flow import Block, Flow, reads, writes
from .syntax import WIDTH, Address, Instruction, Operand

__all__ = ["VIEW", "Emitter", "Symbol"]

#: The NumPy type of each PTX type; bf16 and packed pairs are bits.
VIEW = {
    "b8": "u1", "u8": "u1", "s8": "i1", "b16": "u2", "u16": "u2", "s16": "i2", "f16": "f2", "bf16": "u2", "b32": "u4",
    "u32": "u4", "s32": "i4", "f32": "f4", "f16x2": "u4", "bf16x2": "u4", "u16x2": "u4", "s16x2": "u4", "tf32": "u4",
    "b64": "u8", "u64": "u8", "s64": "i8", "f64": "f8", "pred": "b1", "e4m3x2": "u2", "e5m2x2": "u2",
}  # fmt: skip

_LITERAL = re.compile(r"(-?(?:0[xX][0-9A-Fa-f]+|0[bB][01]+|\d+))U?$")
_DECIMAL = re.compile(r"-?\d+\.\d*(?:[eE][-+]?\d+)?$")
_AXES = re.compile(r"%(tid|ntid|ctaid|nctaid|clusterid|nclusterid|cluster_ctaid|cluster_nctaid)\.([xyz])$")
_SPECIAL = frozenset({
    "%laneid", "%warpid", "%nwarpid", "%smid", "%nsmid", "%gridid", "%clock", "%clock_hi", "%clock64", "%globaltimer",
    "%globaltimer_lo", "%globaltimer_hi", "%lanemask_lt", "%lanemask_le", "%lanemask_gt", "%lanemask_ge", "%lanemask_eq",
    "%cluster_ctarank", "%cluster_nctarank", "%is_explicit_cluster", "%dynamic_smem_size", "%total_smem_size",
})  # fmt: skip


@dataclass(frozen=True)
class Symbol:
    """Where a variable is: its state space and its address in it, which is known only at the launch for global ones."""

    space: str
    address: int


@dataclass
class _Value:
    """A Python variable that holds a register's value; ``root`` is the register whose array it is a view of."""

    name: str
    view: str
    root: str = ""


class Emitter:
    """Writes the lines of one function, block after block."""

    def __init__(self, flow: Flow, symbols: Mapping[str, Symbol]):
        self.flow, self.symbols, self.registers = flow, symbols, flow.function.registers
        self.arrays: dict[str, set[str]] = {name: {"u4"} for name in sorted(flow.pinned)}
        self._numbers = {name: number for number, name in enumerate(self.registers)}
        self.constants: dict[str, str] = {}
        self.lines: list[str] = []
        self.block, self.index = 0, 0  # of the instruction: its block and its index
        self._start_block(flow.blocks[0] if flow.blocks else Block(0, 0))

    # ------------------------------------------------------------------------------------------------------------ blocks
    def _start_block(self, block: Block) -> None:
        self.values: dict[str, _Value] = {}
        self.views: dict[tuple[str, str], str] = {}
        self.dirty: dict[str, None] = {}
        self.lanes, self.live_out, self.number, self._start = "s", block.live_out, 0, block.start
        self.written = {n for names in self.flow.writes[block.start : block.end] for n in names} | self.flow.pinned

    def start_block(self, number: int) -> None:
        """Begins a block: nothing is known of any register."""
        self.block, self.lines = number, []
        self._start_block(self.flow.blocks[number])

    @property
    def at(self) -> str:
        """The instruction's index, in the text of its block."""
        return f"first + {self.index - self._start}"

    def place_of(self, block: int) -> str:
        """A block's number, in the text of this one."""
        return f"own + {block - self.block}" if block >= 0 else "-1"

    def line(self, text: str) -> None:
        self.lines.append(("  " if self.lanes == "t" else "") + text)

    def finish_block(self) -> None:
        """Writes what later blocks read."""
        for name in list(self.dirty):
            if name in self.live_out:
                self._store(name)

    def start_guard(self, instruction: Instruction) -> None:
        """Begins a guarded instruction: what it uses is in arrays, and lanes are ``t``."""
        condition = self.guard(instruction)
        for name in {*reads(instruction), *writes(instruction)}:
            if name in self.dirty:
                self._store(name)
        self.line(f"t = subset(s, {condition})")
        self.line("if t is not None:")
        self.lanes = "t"
        self.line("pass")

    def finish_guard(self, instruction: Instruction) -> None:
        self.lanes = "s"
        for name in writes(instruction):
            self._forget(name)

    def guard(self, instruction: Instruction) -> str:
        """The lanes' guards."""
        return self.read(("!" if instruction.is_negated else "") + instruction.guard, "pred")

    # ------------------------------------------------------------------------------------------------------------ registers
    def array(self, name: str, view: str) -> str:
        """The array of a register in a view."""
        self.arrays.setdefault(name, set()).add(view)
        return f"r{self.register_number(name)}_{view}"

    def register_number(self, name: str) -> int:
        return self._numbers[name]

    def _store(self, name: str) -> None:
        value = self.values[name]
        self.line(f"{self.array(name, value.view)}[s] = {value.name}")
        del self.dirty[name]
        if name in self.flow.partly:
            self.line(f"core.written[{self.register_number(name)}][s] = True")

    def _forget(self, name: str) -> None:
        self.values.pop(name, None)
        self.dirty.pop(name, None)
        for key in [k for k in self.views if k[0] == name]:
            del self.views[key]

    def new(self, expression: str) -> str:
        """A variable with the value of an expression."""
        self.number += 1
        self.line(f"v{self.number} = {expression}")
        return f"v{self.number}"

    def _load(self, name: str, view: str) -> str:
        if name in self.flow.partly and not (self.lanes == "s" and name in self.values):
            written = f"core.written[{self.register_number(name)}][{self.lanes}]"
            self.line(f"if not {written}.all(): core.unwritten({name!r}, {self.lanes}, {written}, {self.at})")
        if self.lanes == "t" or name in self.flow.pinned:
            return self.new(f"{self.array(name, view)}[{self.lanes}]")
        if name not in self.values:
            own = view if view[1:] == str(WIDTH[self.registers[name]]) else f"u{WIDTH[self.registers[name]]}"
            self.values[name] = _Value(self.new(f"{self.array(name, own)}[s]"), own, name)
        value = self.values[name]
        if value.view == view:
            return value.name
        key = (name, view)
        if key not in self.views:
            self.views[key] = self.new(f"{value.name}.view({view})")
        return self.views[key]

    def bind(self, name: str, view: str, expression: str) -> None:
        """Gives a register a value, which has the type of the view and the register's width."""
        if name == "_":
            return
        if name not in self.registers:
            raise PtxError(f"expected a register as the result, got '{name}'")
        if self.lanes == "t" or name in self.flow.pinned:
            self.line(f"{self.array(name, view)}[{self.lanes}] = {expression}")
            if name in self.flow.partly:
                self.line(f"core.written[{self.register_number(name)}][{self.lanes}] = True")
            return
        variable = self.new(expression)
        self._forget(name)
        self.values[name], self.dirty[name] = _Value(variable, view), None

    def alias(self, result: str, source: str) -> None:
        """Gives a register the value of another one."""
        view = "b1" if self.registers[result] == "pred" else f"u{WIDTH[self.registers[result]]}"
        value = self._load(source, view)
        if self.lanes == "t":
            return self.bind(result, view, value)
        root = source if source in self.flow.pinned else self.values[source].root
        is_changed = root in self.written
        self.bind(result, view, f"{value}.copy()" if is_changed else value)
        if root and not is_changed and result in self.values:
            self.values[result].root = root

    # ------------------------------------------------------------------------------------------------------------ operands
    def read(self, operand: Operand, kind: str) -> str:
        """A variable or constant with the operand's value, as an array or scalar of the type."""
        if not isinstance(operand, str):
            raise PtxError(f"expected a register or literal, got {operand}")
        if operand.startswith("!"):
            return self.new(f"~{self.read(operand[1:], 'pred')}")
        view = VIEW[kind]
        if operand in self.registers:
            width = WIDTH[self.registers[operand]]
            if self.registers[operand] == "pred" or width == WIDTH[kind]:
                return self._load(operand, view)
            return self.new(f"{self._load(operand, f'u{width}')}.astype({view})")
        special = self._special(operand)
        if special:
            return special if view == "u4" else self.new(f"{special}.astype({view})")
        return self.literal(operand, kind) or self._symbol(operand, kind)

    def _special(self, operand: str) -> str:
        axis = _AXES.match(operand)
        if axis:
            return self.new(f"core.{axis[1]}[{'xyz'.index(axis[2])}][{self.lanes}]")
        return self.new(f"core.special({operand[1:]!r}, {self.lanes})") if operand in _SPECIAL else ""

    def _symbol(self, operand: str, kind: str) -> str:
        name, _, offset = operand.partition("+")
        if name not in self.symbols:
            raise PtxError(f"unknown operand '{operand}'")
        if self.symbols[name].space == "global":
            return self.new(f"{VIEW[kind]}(core.symbols[{name!r}] + {int(offset or '0', 0)})")
        return self.constant(f"np.{_NUMPY[VIEW[kind]]}({self.symbols[name].address + int(offset or '0', 0)})")

    def constant(self, expression: str) -> str:
        """A constant, by a name that says which: in all texts that have it it is called so."""
        name = self.constants.get(expression)
        if name is None:
            name = self.constants[expression] = "K_" + re.sub(r"\W", lambda m: f"_{ord(m[0]):x}_", expression)
        return name

    def literal(self, operand: str, kind: str) -> str:
        """A literal of a type, empty when it is none."""
        if kind == "pred":
            return self.constant(f"np.bool_({int(operand, 0) != 0})") if _LITERAL.match(operand) else ""
        bits = _bits(operand, kind)
        if bits is None:
            return ""
        width, view = WIDTH[kind], VIEW[kind]
        return self.constant(f"np.uint{8 * width}({bits}).view(np.{_NUMPY[view]})")

    def integer(self, operand: Operand) -> int:
        """A literal integer."""
        found = _LITERAL.match(operand) if isinstance(operand, str) else None
        if found is None:
            raise PtxError(f"expected an integer, got {operand}")
        return int(found[1], 0)

    def address(self, address: Operand) -> str:
        """An address in bytes as i8 (or a Python integer), of the instruction's state space."""
        assert isinstance(address, Address)
        base, offset = address.base, address.offset
        if base in self.registers:
            width = WIDTH[self.registers[base]]
            value = self._load(base, "i8") if width == 8 else self.new(f"{self._load(base, 'u4')}.astype(i8)")
            return f"({value} + {offset})" if offset else value
        name, _, more = base.partition("+")
        if name in self.symbols:
            offset += int(more or "0", 0)
            symbol = self.symbols[name]
            return f"(core.symbols[{name!r}] + {offset})" if symbol.space == "global" else str(symbol.address + offset)
        if _LITERAL.match(base):
            return str(int(base, 0) + offset)
        raise PtxError(f"unknown address '{base}'")

    def write(self, operand: Operand, kind: str, expression: str) -> None:
        """Gives a register, which may be wider, a value of a type."""
        if not isinstance(operand, str):
            raise PtxError(f"expected a register as the result, got {operand}")
        declared = self.registers.get(operand, kind)
        width = WIDTH[declared]
        if operand == "_" or declared == "pred" or width == WIDTH[kind]:
            return self.bind(operand, VIEW[kind], expression)
        wide = f"{'i' if kind[0] == 's' else 'u'}{width}"
        return self.bind(operand, wide, f"({expression}).astype({wide})")


_NUMPY = {
    "u1": "uint8", "u2": "uint16", "u4": "uint32", "u8": "uint64", "i1": "int8", "i2": "int16", "i4": "int32",
    "i8": "int64", "f2": "float16", "f4": "float32", "f8": "float64", "b1": "bool_",
}  # fmt: skip


def _bits(operand: str, kind: str) -> int | None:
    """The bits of a literal as a type has them."""
    width, single = WIDTH[kind], re.fullmatch(r"0[fF]([0-9A-Fa-f]{8})", operand)
    double = re.fullmatch(r"0[dD]([0-9A-Fa-f]{16})", operand)
    if single or double or _DECIMAL.match(operand):
        if single:
            value = struct.unpack("<f", bytes.fromhex(single[1])[::-1])[0]
        else:
            value = struct.unpack("<d", bytes.fromhex(double[1])[::-1])[0] if double else float(operand)
        if kind == "f64":
            return int.from_bytes(struct.pack("<d", value), "little")
        if kind != "f32" and (single or double):
            return int(operand[2:], 16)  # bits, in mov and st
        return int.from_bytes(struct.pack("<f", value), "little") if not single else int(single[1], 16)
    found = _LITERAL.match(operand)
    return int(found[1], 0) & ((1 << 8 * width) - 1) if found else None

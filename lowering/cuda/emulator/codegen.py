"""A function to Python: one function per basic block over a set of lanes.

A block returns the number of the next block, ``(condition, then, else)``, or None when its lanes sleep or have ended.
-1 ends threads. Its text names instructions and blocks by their distance, so that equal blocks of different kernels have one
text; each text is compiled once per process, when it first runs: that is most of what a launch of a new kernel costs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from types import CodeType, FunctionType
from typing import Any

import numpy as np

from . import arrays, floats, integers
from .emit_arithmetic import ARITHMETIC
from .emit_memory import MEMORY
from .emit_warp import WARP, barrier
from .emitter import Emitter, Symbol
from .findings import PtxError
from .flow import SYNCHRONISING, Flow, is_product, partial, reads, waits, writes
from .syntax import WIDTH, Function, Instruction

__all__ = ["UNITS", "Code", "generate"]

#: What generated code calls, in the order in which ``make`` takes it.
UNITS = ("core", "clocks", "mem", "warp", "bars", "clusters", "mbar", "copies", "bulk", "tma", "mma", "wgmma")

_EMIT: dict[str, Callable[[Emitter, Instruction], None]] = {**ARITHMETIC, **MEMORY, **WARP}
_SCOPE = {"np": np} | {name: getattr(module, name) for module in (arrays, integers, floats) for name in module.__all__}


@dataclass
class Code:
    """A function that can run.

    Attributes:
        starts: index of each block's first instruction.
        sizes: number of instructions of each block.
        texts: a Python function for each block.
        constants: what the texts name.
        arrays: registers that blocks hand on to each other, by their type: numbers, and the views of each.
        partly: registers whose writes are noted while running, by number.
        never: what is read and never written, with the instruction that reads it.
    """

    starts: list[int]
    sizes: list[int]
    texts: list[str]
    constants: dict[str, Any]
    arrays: dict[str, list[tuple[int, list[str]]]]
    partly: list[int]
    never: dict[str, Instruction]

    def make(self, *units: Any) -> list[Callable[[Any], Any]]:
        """The blocks, of the units (:data:`UNITS`)."""
        scope = _SCOPE | self.constants | dict(zip(UNITS, units, strict=True))
        for own, registers in self.arrays.items():
            table = scope["core"].registers(_SCOPE[own], len(registers))
            views = {view: table.view(_SCOPE[view]) for _, used in registers for view in used}
            scope |= {f"r{number}_{v}": views[v][i] for i, (number, used) in enumerate(registers) for v in used}
        places = zip(self.texts, self.starts, range(len(self.texts)), strict=True)
        return [_runnable(text, scope, start, number) for text, start, number in places]


def _runnable(text: str, scope: dict[str, Any], start: int, number: int) -> Callable[[Any], Any]:
    """A block, compiled when it first runs."""
    block: Callable[[Any], Any] | None = None

    def run(s: Any) -> Any:
        nonlocal block
        if block is None:
            block = FunctionType(_compiled(text), scope, None, (start, number))
        return block(s)

    return run


@lru_cache(4096)
def _compiled(text: str) -> CodeType:
    return next(c for c in compile(text, "<ptx>", "exec").co_consts if isinstance(c, CodeType))


@lru_cache(4096)
def _constant(expression: str) -> Any:
    return eval(expression, dict(_SCOPE))


def generate(function: Function, symbols: Mapping[str, Symbol]) -> Code:
    """Translates a function. Raises PtxError for what does not fit together."""
    try:
        flow = Flow(function)
    except KeyError as error:
        raise PtxError(f"unknown label {error} in {function.name}") from None
    emitter = Emitter(flow, symbols)
    texts = list[str]()
    for number in range(len(flow.blocks)):
        emitter.start_block(number)
        _block(emitter, flow, number)
        texts.append("def block(s, first, own):\n  " + "\n  ".join(emitter.lines) + "\n")
    starts, sizes = [b.start for b in flow.blocks], [b.end - b.start for b in flow.blocks]
    constants = {name: _constant(expression) for expression, name in emitter.constants.items()}
    partly = [emitter.register_number(name) for name in sorted(flow.partly)]
    return Code(starts, sizes, texts, constants, _arrays(emitter, function), partly, flow.never)


def _arrays(emitter: Emitter, function: Function) -> dict[str, list[tuple[int, list[str]]]]:
    by_type: dict[str, list[tuple[int, list[str]]]] = {}
    for name, views in emitter.arrays.items():
        kind = function.registers[name]
        own = "b1" if kind == "pred" else f"u{WIDTH[kind]}"
        by_type.setdefault(own, []).append((emitter.register_number(name), sorted(views)))
    return by_type


def _block(e: Emitter, flow: Flow, number: int) -> None:
    block, code = flow.blocks[number], flow.function.code
    after = e.place_of(number + 1 if number + 1 < len(flow.blocks) else -1)
    ready = 0
    for index in range(block.start, block.end):
        ins = code[index]
        e.index = index
        if ins.name in ("bra", "ret", "exit", "trap"):
            return _leave(e, flow, ins, after)
        if waits(ins) or ins.name in SYNCHRONISING:
            ready = _synchronise(e, ins, ready, after)
        if ins.name in ("bar", "barrier"):
            return barrier(e, ins, after)
        _one(e, flow, ins)
    e.finish_block()
    e.line(f"return {after}")
    return None


def _leave(e: Emitter, flow: Flow, ins: Instruction, after: str) -> None:
    """Branches, and the ends of threads."""
    condition = e.guard(ins) if ins.guard else ""
    e.finish_block()
    if ins.name == "trap":
        if condition:
            e.line(f"t = subset(s, {condition})")
            e.line(f"if t is not None: core.trap(t, {e.at})")
            return e.line(f"return {after}")
        return e.line(f"core.trap(s, {e.at})")
    try:
        target = e.place_of(flow.block_at(str(ins.args[0])) if ins.name == "bra" else -1)
    except KeyError:
        raise PtxError(f"line {ins.line}: unknown label: {ins.text}") from None
    return e.line(f"return ({condition}, {target}, {after})" if condition else f"return {target}")


def _synchronise(e: Emitter, ins: Instruction, ready: int, after: str) -> int:
    """Lets go on, of the lanes, those that have a guard, and whose warp (or warpgroup, where that is wanted) is complete."""
    if ins.guard:
        e.line(f"s = core.taken(s, {e.guard(ins)}, {after})")
        e.line("if s is None: return None")
        e.values.clear()
        e.views.clear()
        ready = 0
    if ins.name == "wgmma":
        if ready < 2:
            _wait(e, f"core.groups_ready(s, own, {e.at})")
        return 2
    if ins.name not in SYNCHRONISING or (ready and not partial(ins)):
        return ready
    mask = e.read(ins.args[-1], "u32") if ins.name in ("shfl", "vote", "match", "redux", "elect") else "u4(0xFFFFFFFF)"
    _wait(e, f"core.warps_ready(s, {mask}, own, {e.at})")
    if partial(ins):
        e.values.clear()
        e.views.clear()
    return 1


def _wait(e: Emitter, call: str) -> None:
    e.line(f"s = {call}")
    e.line("if s is None: return None")


def _one(e: Emitter, flow: Flow, ins: Instruction) -> None:
    guarded = bool(ins.guard) and not (waits(ins) or ins.name in SYNCHRONISING)
    emit = _EMIT.get(ins.name)
    if emit is None:
        raise PtxError(f"line {ins.line}: unknown instruction '{ins.name}': {ins.text}")
    if guarded:
        e.start_guard(ins)
    if flow.pinned and ins.name != "wgmma":
        _note_accumulators(e, flow, ins)
    try:
        emit(e, ins)
    except PtxError as error:
        text = str(error)
        raise PtxError(text if text.startswith("line ") else f"line {ins.line}: {text}: {ins.text}") from None
    if guarded:
        e.finish_guard(ins)


def _note_accumulators(e: Emitter, flow: Flow, ins: Instruction) -> None:
    """Tells of registers that a product under way may own."""
    assert not is_product(ins)
    written = [e.register_number(n) for n in writes(ins) if n in flow.pinned]
    read = [e.register_number(n) for n in reads(ins) if n in flow.pinned]
    if written or read:
        e.line(f"if wgmma.is_busy: wgmma.touched({e.lanes}, {written}, {read}, {e.at})")
    if written:
        e.line(f"wgmma.changed({e.lanes}, {written})")

"""Basic blocks of a function, what they read and write, and which registers have a value where."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from .syntax import Address, Function, Instruction, Operand

__all__ = ["SYNCHRONISING", "Block", "Flow", "reads", "waits", "writes"]

#: Executed by a whole warp at once.
SYNCHRONISING = frozenset({"shfl", "vote", "match", "redux", "elect", "ldmatrix", "stmatrix", "mma", "wgmma", "setmaxnreg"})

_NO_RESULT = frozenset({
    "st", "red", "bra", "ret", "exit", "trap", "brkpt", "call", "fence", "membar", "prefetch", "prefetchu", "stmatrix",
    "griddepcontrol",
    "setmaxnreg", "nanosleep", "cp", "wgmma", "applypriority", "discard", "pmevent",
})  # fmt: skip


def _names(operand: Operand) -> list[str]:
    if isinstance(operand, str):
        return [part.lstrip("!") for part in operand.split("|")] if "|" in operand else [operand.lstrip("!")]
    if isinstance(operand, Address):
        return [operand.base, *(name for part in operand.inner for name in _names(part))]
    return [name for part in operand for name in _names(part)]


def _has_result(instruction: Instruction) -> bool:
    if not instruction.args or isinstance(instruction.args[0], Address) or instruction.name in _NO_RESULT:
        return False
    return instruction.name not in ("bar", "barrier") or "red" in instruction.modifiers


def is_product(instruction: Instruction) -> bool:
    return instruction.name == "wgmma" and instruction.modifiers[0] == "mma_async"


def writes(instruction: Instruction) -> list[str]:
    """The names that an instruction writes, sinks and all."""
    if is_product(instruction) or _has_result(instruction):
        return _names(instruction.args[0])
    return []


def reads(instruction: Instruction) -> list[str]:
    """The names that an instruction reads, literals and all."""
    skip = 1 if _has_result(instruction) or is_product(instruction) else 0
    names = [name for operand in instruction.args[skip:] for name in _names(operand)]
    return [*names, instruction.guard] if instruction.guard else names


def waits(instruction: Instruction) -> bool:
    """Whether the instruction may put its lanes to sleep, and has to be alone in its block."""
    if instruction.name in ("bar", "barrier"):
        return True
    return instruction.name == "mbarrier" and instruction.modifiers[0].endswith("_wait")


@dataclass
class Block:
    """Instructions ``start`` to ``end`` (without it) and the blocks that may be next (-1: the threads end)."""

    start: int
    end: int
    next: list[int] = field(default_factory=list[int])
    live_out: set[str] = field(default_factory=set[str])


class Flow:
    """The blocks of a function.

    Attributes:
        blocks: in the order of the text.
        reads, writes: registers of each instruction.
        pinned: registers that asynchronous products write.
        partly: registers that some path reads without having written them.
    """

    def __init__(self, function: Function):
        self.function = function
        self.reads = [[n for n in reads(i) if n in function.registers] for i in function.code]
        self.writes = [[n for n in writes(i) if n in function.registers] for i in function.code]
        self.pinned = {
            n for i in function.code if is_product(i) for n in (*writes(i), *_fragments(i)) if n in function.registers
        }
        leaders = self._leaders()
        self.number = {start: index for index, start in enumerate(leaders)}
        ends = [*leaders[1:], len(function.code)]
        self.blocks = [Block(start, end) for start, end in zip(leaders, ends, strict=True)]
        for index, block in enumerate(self.blocks):
            block.next = list(self._next(block, index))
        self._find_live()
        self.partly, self.never = self._find_unwritten()

    def block_at(self, label: str) -> int:
        """The block of a label, -1 at the end of the function. Raises KeyError when there is none."""
        return self.number.get(self.function.labels[label], -1)

    def _leaders(self) -> list[int]:
        code, found = self.function.code, {0, *self.function.labels.values()}
        whole = 0  # 1: whole warps have been waited for since the last leader, 2: whole warpgroups
        for index, instruction in enumerate(code):
            if index in found:
                whole = 0
            if instruction.name in ("bra", "ret", "exit", "trap"):
                found.add(index + 1)
            elif waits(instruction) or (instruction.name in SYNCHRONISING and (instruction.guard or partial(instruction))):
                found |= {index, index + 1}
            elif instruction.name in SYNCHRONISING and whole < 1 + (instruction.name == "wgmma"):
                found.add(index)
                whole = 1 + (instruction.name == "wgmma")
        return sorted(x for x in found if x < max(1, len(code)))

    def _next(self, block: Block, index: int) -> Iterator[int]:
        after = index + 1 if index + 1 < len(self.blocks) else -1
        last = self.function.code[block.end - 1] if block.end else None
        if last is None or last.name not in ("bra", "ret", "exit", "trap"):
            yield after
            return
        if last.name == "bra":
            yield self.block_at(str(last.args[0]))
        if last.guard:
            yield after

    def _find_live(self) -> None:
        """Registers that are read before they are written, from the last block to the first until nothing changes."""
        registers, pending = self.function.registers, True
        uses = [self._uses(block) for block in self.blocks]
        live_in = [used for used, _ in uses]
        while pending:
            pending = False
            for index in range(len(self.blocks) - 1, -1, -1):
                block = self.blocks[index]
                block.live_out = {n for after in block.next if after >= 0 for n in live_in[after]}
                used, written = uses[index]
                now = used | (block.live_out - written)
                pending |= now != live_in[index]
                live_in[index] = now
        assert all(n in registers for names in live_in for n in names)

    def _uses(self, block: Block) -> tuple[set[str], set[str]]:
        """What a block reads before it writes it, and what it writes for all of its lanes."""
        used, written = set[str](), set[str]()
        for index in range(block.start, block.end):
            guard = self.function.code[index].guard
            used.update(n for n in self.reads[index] if n not in written)
            if guard:
                used.update(n for n in self.writes[index] if n not in written)
            else:
                written.update(self.writes[index])
        return used, written

    def _find_unwritten(self) -> tuple[set[str], dict[str, Instruction]]:
        """Registers that are read where only some paths, or none, have written them."""
        some: list[set[str]] = [set() for _ in self.blocks]
        every: list[set[str] | None] = [set() if not i else None for i in range(len(self.blocks))]
        pending = [0]
        while pending:
            index = pending.pop()
            block = self.blocks[index]
            may, must = self._assigned(block, some[index], every[index] or set())
            for after in block.next:
                if after < 0:
                    continue
                known = every[after]
                must_now = must if known is None else known & must
                may_now = some[after] | may
                if must_now != known or may_now != some[after]:
                    every[after], some[after] = must_now, may_now
                    pending.append(after)
        partly, never = set[str](), dict[str, Instruction]()
        for index, block in enumerate(self.blocks):
            if every[index] is not None:
                self._check(block, set(some[index]), set(every[index] or ()), partly, never)
        return partly, never

    def _assigned(self, block: Block, may: set[str], must: set[str]) -> tuple[set[str], set[str]]:
        may, must = set(may), set(must)
        for index in range(block.start, block.end):
            may.update(self.writes[index])
            if not self.function.code[index].guard:
                must.update(self.writes[index])
        return may, must

    def _check(self, block: Block, may: set[str], must: set[str], partly: set[str], never: dict[str, Instruction]) -> None:
        for index in range(block.start, block.end):
            instruction, written = self.function.code[index], self.writes[index]
            for name in self.reads[index]:
                if name not in must:
                    partly.add(name)
                    if name not in may:
                        never.setdefault(name, instruction)
            if is_product(instruction):  # which reads its accumulators when it adds to them
                partly.update(n for n in written if n not in must)
            may.update(written)
            if not instruction.guard:
                must.update(written)


def partial(instruction: Instruction) -> bool:
    """Whether a warp's instruction names lanes other than all of them."""
    if instruction.name not in ("shfl", "vote", "match", "redux", "elect"):
        return False
    return instruction.args[-1] not in ("-1", "0xffffffff", "0xFFFFFFFF", "4294967295")


def _fragments(instruction: Instruction) -> Sequence[str]:
    """The registers of A of a product, which are read while it is under way."""
    return list(_names(instruction.args[1])) if isinstance(instruction.args[1], tuple) else ()

"""How many instructions a warp executes, of a kernel that is assembled: what its time follows from where memory is fast."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence

from ..sass import Instruction, loops

__all__ = ["bytes_in_flight", "executed", "f32_operations"]

_F32 = frozenset({"FADD", "FFMA", "FMUL"})
_REGISTER = re.compile(r"\bR(\d+)\b")
# Of a load, by a modifier; without any of them 4.
_LOADED = {"U8": 1, "S8": 1, "U16": 2, "S16": 2, "64": 8, "128": 16}


def executed(kernel: tuple[Instruction, ...], trips: Sequence[float] = ()) -> Counter[str]:
    """How often a warp executes each kind of instruction.

    Every path is counted as if it were taken, so code for rare numbers makes this an upper bound.

    Args:
        kernel: its instructions.
        trips: how often each loop is passed, in the order of their first instructions; 1 for those behind the last.
    """
    weights = [1.0] * len(kernel)
    for (first, last), count in zip(sorted(loops(kernel)), trips, strict=False):
        weights[first : last + 1] = [weight * count for weight in weights[first : last + 1]]
    counts = Counter[str]()
    for instruction, weight in zip(kernel, weights, strict=True):
        counts[instruction.name] += weight  # type: ignore[assignment]
    return counts


def f32_operations(counts: Counter[str]) -> float:
    """Those of them that the lanes for f32 execute."""
    return sum(counts[name] for name in _F32)


def bytes_in_flight(kernel: tuple[Instruction, ...]) -> int:
    """The most bytes that a thread has asked memory for before it uses the first of them, as instructions follow one another.

    What is copied to shared memory (``LDGSTS``) is under way until a wait for copies.
    """
    most, waiting, copied = 0, dict[int, int](), 0
    for instruction in kernel:
        used = {int(r) for r in _REGISTER.findall(instruction.operands)}
        if instruction.name == "LDG":
            target, *_ = _REGISTER.findall(instruction.operands) or ["0"]
            waiting = _without(waiting, used) | {int(target): _loaded(instruction)}
        elif instruction.name == "LDGSTS":
            copied += _loaded(instruction)
        elif instruction.name == "DEPBAR":
            copied = 0
        else:
            waiting = _without(waiting, used)
        most = max(most, sum(waiting.values()) + copied)
    return most


def _loaded(instruction: Instruction) -> int:
    """Bytes that a load asks for."""
    return next((_LOADED[m] for m in instruction.opcode.split(".") if m in _LOADED), 4)


def _without(waiting: dict[int, int], used: set[int]) -> dict[int, int]:
    """Loads of whose results none is used; by their first register."""
    return {first: size for first, size in waiting.items() if not used & set(range(first, first + -(-size // 4)))}

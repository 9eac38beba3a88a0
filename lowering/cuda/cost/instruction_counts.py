"""How many instructions a warp executes, of a kernel that is assembled: what its time follows from where memory is fast."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from ..sass import Instruction, loops

__all__ = ["executed", "f32_operations"]

_F32 = frozenset({"FADD", "FFMA", "FMUL"})


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

"""The longest part of a block that repeats itself: operations that differ from those a period before by what they read.

Of ``p`` operations per period, ``i`` and ``i + p`` have the same name, attributes and types, and of each two operands

- both are the same value, which is older than the repetition,
- the second is the result of an operation ``p`` behind that of the first one, or
- both are arguments of the block, which the caller says follow each other: a weight, and that of the next layer.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from ...dialect.bindings import ir

__all__ = ["ARGUMENT", "LayerReads", "Repetition", "find_repetition"]

#: In place of the number of an operation: a value is an argument of the block.
ARGUMENT = -1
# Of so many distances between equal operations, those that occur most, the best is looked for: a layer's is the most frequent
# one, but where layers of two kinds take turns.
_DISTANCES = 16


@dataclass(frozen=True)
class LayerReads:
    """The operations of a block but its terminator, with who made what they read.

    Attributes:
        ops: in order.
        reads: of each, per operand: the number of the operation, or ``ARGUMENT``, and that of the result, or argument.
        returned: of each operand of the terminator, the same.
        arguments: of the block.
        end: the terminator.
    """

    ops: list[ir.Operation]
    reads: list[tuple[tuple[int, int], ...]]
    returned: list[tuple[int, int]]
    arguments: list[ir.Value]
    end: ir.Operation

    @classmethod
    def of(cls, block: ir.Block) -> LayerReads:
        """Those of a function's only block."""
        *ops, end = (op.operation for op in block.operations)
        places: dict[ir.Value, tuple[int, int]] = {a: (ARGUMENT, n) for n, a in enumerate(block.arguments)}
        reads: list[tuple[tuple[int, int], ...]] = []
        for number, op in enumerate(ops):
            reads.append(tuple([places[v] for v in op.operands]))
            for position, result in enumerate(op.results):
                places[result] = number, position
        return cls(ops, reads, [places[v] for v in end.operands], list(block.arguments), end)


@dataclass(frozen=True)
class Repetition:
    """Operations from ``first`` to before ``last``; each but those of the last period has its like ``period`` behind."""

    first: int
    last: int
    period: int

    @property
    def count(self) -> int:
        """How many whole periods there are."""
        return (self.last - self.first) // self.period


def find_repetition(block: LayerReads, follows: Callable[[int, int], bool], least: int) -> Repetition | None:
    """The longest repetition, of the shortest period; None without one of ``least`` periods.

    Args:
        follows: whether an argument may be, in the next period, in the place of another one.
    """
    names = [op.name for op in block.ops]
    if not names or max(Counter(names).values()) < least:
        return None
    kinds = _kinds(block)
    best: Repetition | None = None
    for period in _distances(kinds, least):
        found = _longest(block, kinds, period, follows)
        if found.count >= least and (best is None or found.last - found.first > best.last - best.first):
            best = found
    return best


def _kinds(block: LayerReads) -> list[int]:
    """A number per operation, equal for equal ones; one of its own for one with regions, and for other returned results."""
    returned = Counter(block.returned)
    known: dict[object, int] = {}
    kinds: list[int] = []
    for number, op in enumerate(block.ops):
        key: object = number
        if not len(op.regions):
            results = tuple([(r.type, returned[number, i]) for i, r in enumerate(op.results)])
            key = op.name, tuple(op.attributes.items()), tuple([v.type for v in op.operands]), results
        kinds.append(known.setdefault(key, len(known)))
    return kinds


def _distances(kinds: Sequence[int], least: int) -> list[int]:
    """Frequent distances between equal operations, short ones first."""
    seen: dict[int, int] = {}
    distances: Counter[int] = Counter()
    for number, kind in enumerate(kinds):
        if kind in seen:
            distances[number - seen[kind]] += 1
        seen[kind] = number
    return sorted(d for d, times in distances.most_common(_DISTANCES) if times >= least - 1)


def _longest(block: LayerReads, kinds: Sequence[int], period: int, follows: Callable[[int, int], bool]) -> Repetition:
    """The longest repetition of a period; an empty one where there is none."""
    best, first = (0, 0), 0
    for number in range(len(kinds) - period + 1):
        shared = None
        if number < len(kinds) - period and kinds[number] == kinds[number + period]:
            shared = _shared(block, number, period, follows)
        begins = number + 1 if shared is None else max(first, shared + 1)
        if begins > first:
            best = max(best, (first, number), key=lambda span: span[1] - span[0])
        first = begins
    return Repetition(best[0], best[1] + period if best[1] > best[0] else best[0], period)


def _shared(block: LayerReads, number: int, period: int, follows: Callable[[int, int], bool]) -> int | None:
    """The youngest operation whose result two operations a period apart both read, -1 without any; None: they are not alike."""
    youngest = ARGUMENT
    for one, other in zip(block.reads[number], block.reads[number + period], strict=True):
        if one == other:
            youngest = max(youngest, one[0])
        elif one[0] == ARGUMENT or other[0] == ARGUMENT:
            if one[0] != other[0] or not follows(one[1], other[1]):
                return None
        elif other[0] - one[0] != period or one[1] != other[1]:
            return None
    return youngest

"""Which ops of a block must keep their order although no value says so, and putting a block into another order.

Reads may change places, writes of different results as well; any other op with effects keeps its place among its kind and the
writes. What gives a symbol its value stays before what mentions it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ..bindings import ir
from ..lazy_calls import LazyCalls
from ..traversal import operations
from .purity import Purity
from .symbol_uses import SymbolUses, bound_symbols, substitute_type

__all__ = ["OpOrder", "rearrange"]


def rearrange(block: ir.Block, order: Sequence[int]) -> None:
    """Puts the ops before the terminator into an order, given by their positions."""
    *ops, last = operations(block)
    if list(order) == list(range(len(ops))):
        return
    for position in order:
        ops[position].move_before(last)


class OpOrder:
    """Answers for the blocks of one module."""

    def __init__(self, purity: Purity, lazy: LazyCalls):
        self.purity, self.lazy, self.uses = purity, lazy, SymbolUses()

    def edges(self, block: ir.Block) -> Mapping[int, Sequence[int]]:
        """For positions of ops in a block, positions of ops that stay before them; as few as say it."""
        ops = operations(block)[:-1]
        found = {i: set(before) for i, before in self._effects(ops).items()}
        for i, before in self._symbols(ops, block).items():
            found.setdefault(i, set()).update(before)
        return {i: sorted(before) for i, before in found.items() if before}

    def _effects(self, ops: Sequence[ir.Operation]) -> dict[int, list[int]]:
        found: dict[int, list[int]] = {}
        barrier: list[int] = []
        writes: list[int] = []
        same: dict[object, int] = {}
        for i, op in enumerate(ops):
            if self.lazy.is_read(op):
                continue
            if self.lazy.is_write(op):
                key = self._written(op)
                found[i] = [*barrier, *([same[key]] if key in same else [])]
                same[key] = i
                writes.append(i)
            elif not self.purity.is_pure(op):
                found[i] = [*barrier, *writes]
                barrier, writes, same = [i], [], {}
        return found

    def _written(self, op: ir.Operation) -> object:
        """Equal for writes of one result: their order says which one counts."""
        call = self.lazy.describe(op)
        return call.name if call.index is None else call.index

    def _symbols(self, ops: Sequence[ir.Operation], block: ir.Block) -> dict[int, set[int]]:
        """Ops that mention a symbol after those that give it a value, unless an argument does."""
        found: dict[int, set[int]] = {}
        definers = _Definers(self.uses, bound_symbols(a.type for a in block.arguments))
        for i, op in enumerate(ops):
            found[i] = {definers.last[s] for s in self.uses.of_op(op) if s in definers.last}
            if self._defines(op):
                found[i] |= definers.add(i, op.results[0].type)
        return found

    def _defines(self, op: ir.Operation) -> bool:
        return op.name in ("relax.match_cast", "tensor.cast") or self.lazy.is_read(op)


class _Definers:
    """Which ops of a block give symbols their values.

    Attributes:
        settled: the symbols that have one.
        last: the op after which a symbol has all the value that it gets so far.
    """

    def __init__(self, uses: SymbolUses, settled: set[str]):
        self.settled, self.last = settled, dict[str, int]()
        self._uses = uses
        self._open: dict[ir.Type, int] = {}

    def add(self, i: int, type_: ir.Type) -> set[int]:
        """Enters an op whose result has a type; returns the ops without which that settles less: ``k + m`` and ``k``."""
        new = self._uses.of_type(type_) - self.settled
        if not new or type_ in self._open:
            return set()
        self._open[type_] = i
        settled = bound_symbols(self._without_settled(t) for t in self._open)
        before = set(self._open.values()) - {i} if settled else set[int]()
        self.settled |= settled
        self.last.update(dict.fromkeys(new | settled, i))
        self._open = {t: j for t, j in self._open.items() if not self._uses.of_type(t) <= self.settled}
        return before

    def _without_settled(self, type_: ir.Type) -> ir.Type:
        return substitute_type(type_, dict.fromkeys(self._uses.of_type(type_) & self.settled, 1))

"""Orders the ops of functions with lazy IO so that they hold as few bytes at once as possible, and says how many.

Before::

    func.func @prepare(%provider: !relax.param_provider, %sink: !relax.output_sink) {
      %a = "relax.get_param"(%provider) {index = 0 : i64} : ... -> tensor<1024xf32>
      %b = "relax.get_param"(%provider) {index = 1 : i64} : ... -> tensor<1024xf32>
      %c = "relax.astype"(%a)
      %d = "relax.astype"(%b)
      "relax.set_output"(%sink, %c) {index = 0 : i64}
      "relax.set_output"(%sink, %d) {index = 1 : i64}

after::

    func.func @prepare(%provider: !relax.param_provider, %sink: !relax.output_sink) attributes {relax.peak_bytes = 6144 : i64} {
      %a = "relax.get_param"(%provider) {index = 0 : i64} : ... -> tensor<1024xf32>
      %c = "relax.astype"(%a)
      "relax.set_output"(%sink, %c) {index = 0 : i64}
      %b = "relax.get_param"(%provider) {index = 1 : i64} : ... -> tensor<1024xf32>
      %d = "relax.astype"(%b)
      "relax.set_output"(%sink, %d) {index = 1 : i64}

:mod:`.io_schedule` finds the order, :mod:`.peak_memory` says what counts. Blocks in regions are ordered, too. Reads may change
places, writes of different results as well; any other op with effects keeps its place among its kind and the writes. What
defines a symbol stays before what mentions it. ``relax.peak_bytes`` is there when all sizes are static; a report then says what
it was before, too.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

from .. import report
from ..bindings import func, ir
from ..call_graph import CallGraph
from ..errors import RelaxError
from ..functions import body_of, functions, name_of
from ..lazy_calls import LazyCalls
from ..pass_manager import Pass
from ..purity import Purity
from ..schedule_report import ScheduledIo
from ..symbol_uses import SymbolUses, bound_symbols, substitute_type
from ..traversal import blocks_of, nested_operations, operations
from .io_schedule import schedule
from .peak_memory import PeakMemory

__all__ = ["PEAK_BYTES", "ScheduleLazyIo"]

#: Function attribute: the bytes of tensors that the function holds at most.
PEAK_BYTES = "relax.peak_bytes"


@dataclass(frozen=True)
class ScheduleLazyIo(Pass):
    """Orders ops for a small peak of live bytes.

    Attributes:
        functions: names of the functions to change; by default all that read weights or write results lazily.
        effort: multiplies what is spent on searching; 0 leaves depth-first and greedy orders alone.
    """

    name: ClassVar[str] = "relax-schedule-lazy-io"
    functions: tuple[str, ...] = ()
    effort: int = 1

    def run(self, op: ir.Operation) -> None:
        if self.effort < 0:
            raise RelaxError(f"expected 0 or more for option 'effort', got {self.effort}")
        graph, lazy = CallGraph(op), LazyCalls(op)
        targets = {name_of(f) for f in self._targets(op, lazy)}
        called, peaks, order = graph.calls(), PeakMemory(), _Order(Purity(graph), lazy)
        for name, function in graph.callees_first():
            if name in targets:
                self._schedule(function, peaks, order)
            if name in called:
                peaks.add_callee(function)

    def _targets(self, module: ir.Operation, lazy: LazyCalls) -> list[func.FuncOp]:
        known = {name_of(f): f for f in functions(module) if body_of(f) is not None}
        unknown = next((n for n in self.functions if n not in known), None)
        if unknown is not None:
            raise RelaxError(f"expected functions with a body for option 'functions', got @{unknown}")
        targets = [known[n] for n in self.functions] if self.functions else [f for f in known.values() if _is_lazy(f, lazy)]
        several = next((f for f in targets if len(f.regions[0].blocks) > 1), None)
        if several is not None:
            raise RelaxError(f"'func.func' op expected one block, got several in @{name_of(several)}", several.location)
        return targets

    def _schedule(self, function: func.FuncOp, peaks: PeakMemory, order: _Order) -> None:
        block = body_of(function)
        assert block is not None
        before = peaks.of_function(function) if report.is_collecting() else None
        inner = [b for op in nested_operations(function.operation) for b in blocks_of(op)]
        for each in (*reversed(inner), block):
            found = schedule(peaks.graph(each, order.edges(each)), self.effort)
            _rearrange(each, found)
            peaks.settle(each)
        peak = peaks.of_function(function)
        if before is not None and peak is not None:
            report.add(ScheduledIo(name_of(function), before, peak, peaks.bound_of_function(function)))
        if peak is not None:
            function.attributes[PEAK_BYTES] = ir.IntegerAttr.get(ir.IntegerType.get_signless(64), peak)
        elif PEAK_BYTES in function.attributes:
            del function.attributes[PEAK_BYTES]


def _is_lazy(function: func.FuncOp, lazy: LazyCalls) -> bool:
    return any(lazy.is_read(op) or lazy.is_write(op) for op in nested_operations(function.operation))


def _rearrange(block: ir.Block, order: Sequence[int]) -> None:
    *ops, last = operations(block)
    if list(order) == list(range(len(ops))):
        return
    for position in order:
        ops[position].move_before(last)


class _Order:
    """Which ops must keep their order although no value says so."""

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

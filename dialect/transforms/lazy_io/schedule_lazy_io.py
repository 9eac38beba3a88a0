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

:mod:`...analysis.task_order` finds the order, :mod:`...analysis.peak_memory` says what counts. Blocks in regions are ordered,
too. Reads may change places, writes of different results as well; any other op with effects keeps its place among its kind and
the writes. What defines a symbol stays before what mentions it. ``relax.peak_bytes`` is there when all sizes are static; a
report then says what it was before, too.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from ...analysis.op_dependencies import OpOrder, rearrange
from ...analysis.peak_memory import PeakMemory
from ...analysis.purity import Purity
from ...analysis.task_order import peak_of, schedule
from ...bindings import func, ir
from ...call_graph import CallGraph
from ...errors import RelaxError
from ...functions import body_of, functions, name_of
from ...lazy_calls import LazyCalls
from ...passes.base import Pass
from ...reports import report
from ...reports.lazy_io import ScheduledIo
from ...traversal import blocks_of, nested_operations

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
        called, peaks, order = graph.calls(), PeakMemory(), OpOrder(Purity(graph), lazy)
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

    def _schedule(self, function: func.FuncOp, peaks: PeakMemory, order: OpOrder) -> None:
        block = body_of(function)
        assert block is not None
        before = peaks.of_function(function) if report.is_collecting() else None
        inner = [b for op in nested_operations(function.operation) for b in blocks_of(op)]
        for each in (*reversed(inner), block):
            graph = peaks.graph(each, order.edges(each))
            found = schedule(graph, self.effort)
            rearrange(each, found)
            peaks.settle(each, peak_of(graph, found))
        peak = peaks.of_function(function)
        if peak is not None and peak >= 1 << 63:
            raise RelaxError(f"'func.func' op expected a peak of less than 2**63 bytes, got {peak}", function.location)
        if before is not None and peak is not None:
            report.add(ScheduledIo(name_of(function), before, peak, peaks.bound_of_function(function)))
        if peak is not None:
            function.attributes[PEAK_BYTES] = ir.IntegerAttr.get(ir.IntegerType.get_signless(64), peak)
        elif PEAK_BYTES in function.attributes:
            del function.attributes[PEAK_BYTES]


def _is_lazy(function: func.FuncOp, lazy: LazyCalls) -> bool:
    return any(lazy.is_read(op) or lazy.is_write(op) for op in nested_operations(function.operation))

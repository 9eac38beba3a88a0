"""Where lifting ends: ``relax.stop_lift_params`` and ops that say ``relax.lift = "never"``.

An op that has one inside, or calls a function that does, is not lifted as a whole.
"""

from __future__ import annotations

from ...bindings import ir
from ...call_graph import CallGraph, callee_of
from ...lift_override import NEVER, override_of
from ...ops import StopLiftParams
from ...traversal import nested_operations

__all__ = ["Barriers"]


class Barriers:
    """Answers for the ops of one module."""

    def __init__(self, graph: CallGraph):
        self._functions: set[str] = set()
        for name, function in graph.callees_first():
            if any(self._is_barrier(op) for op in nested_operations(function.operation)):
                self._functions.add(name)

    def contains(self, op: ir.Operation) -> bool:
        """Whether an op is a barrier or has one inside."""
        return self._is_barrier(op) or (len(op.regions) > 0 and any(self._is_barrier(o) for o in nested_operations(op)))

    def _is_barrier(self, op: ir.Operation) -> bool:
        if op.name == StopLiftParams.OPERATION_NAME or override_of(op.attributes) == NEVER:
            return True
        return op.name == "func.call" and callee_of(op) in self._functions

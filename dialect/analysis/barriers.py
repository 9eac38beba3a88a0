"""Where computing weights ahead ends: ``relax.stop_lift_params``, and ops that say ``relax.lift = "never"``.

An op that has one inside, or calls a function that does, is not computed ahead as a whole.
"""

from __future__ import annotations

from collections.abc import Callable

from ..bindings import ir
from ..call_graph import CallGraph, callee_of
from ..lift_override import is_never
from ..ops import StopLiftParams
from ..traversal import nested_operations

__all__ = ["Barriers"]


class Barriers:
    """Answers for the ops of one module. Called functions are looked at when the first call is asked about."""

    def __init__(self, graph: CallGraph):
        self._barrier, self._stop = _Inside(graph, _is_barrier), _Inside(graph, _is_stop)

    def contains(self, op: ir.Operation) -> bool:
        """Whether an op is a barrier or has one inside."""
        return self._barrier.contains(op)

    def stops(self, op: ir.Operation) -> bool:
        """Whether an op is a ``relax.stop_lift_params`` or has one inside: its result is a run-time value like any other."""
        return self._stop.contains(op)


class _Inside:
    """Which ops are of a kind, or have one inside, or call a function that does."""

    def __init__(self, graph: CallGraph, is_one: Callable[[ir.Operation], bool]):
        self._graph, self._is_one = graph, is_one
        self._functions: set[str] | None = None

    def contains(self, op: ir.Operation) -> bool:
        return self._is(op) or (len(op.regions) > 0 and any(self._is(inner) for inner in nested_operations(op)))

    def _is(self, op: ir.Operation) -> bool:
        return self._is_one(op) or (op.name == "func.call" and callee_of(op) in self._called())

    def _called(self) -> set[str]:
        if self._functions is None:
            self._functions = set()
            for name, function in self._graph.callees_first():
                if any(self._is(op) for op in nested_operations(function.operation)):
                    self._functions.add(name)
        return self._functions


def _is_barrier(op: ir.Operation) -> bool:
    return _is_stop(op) or is_never(op)


def _is_stop(op: ir.Operation) -> bool:
    return op.name == StopLiftParams.OPERATION_NAME

"""Which operations have no effect but their results, and which may also run when they would not have."""

from __future__ import annotations

from collections.abc import Iterable

from ..bindings import func, ir
from ..call_graph import CallGraph, callee_of
from ..op import Op
from ..traversal import nested_operations

__all__ = ["PURE", "Purity"]

#: Marks a function that has no side effects: a declaration implemented elsewhere, or a body of ops that are not known here.
PURE = "relax.pure"

# Ops of these dialects compute values and do nothing else, as long as no memref is involved.
_PURE_DIALECTS = frozenset({"arith", "complex", "index", "linalg", "math", "scf", "shape", "tensor", "ub", "vector"})
_PURE_OPS = frozenset({"builtin.unrealized_conversion_cast", "func.constant"})


class Purity:
    """Answers for the ops of one module; what its functions do is settled when the first call is asked about, callees first."""

    def __init__(self, graph: CallGraph):
        self._graph = graph
        self._functions: set[str] | None = None

    def is_pure(self, op: ir.Operation) -> bool:
        """Whether an op, all it contains and all it calls have no effect but the results."""
        return self._is_pure_alone(op) and (
            not len(op.regions) or all(self._is_pure_alone(inner) for inner in nested_operations(op))
        )

    def is_speculatable(self, op: ir.Operation) -> bool:
        """Whether a pure relax op can be computed where it was not going to be: it cannot fail, whatever its operands are."""
        cls = type(op.opview)
        if not issubclass(cls, Op) or cls.may_fail:
            return False
        return not cls.may_fail_on_integers or isinstance(op.results[0].type.element_type, ir.FloatType)

    def _is_pure_alone(self, op: ir.Operation) -> bool:
        """As :meth:`is_pure`, of what an op does besides running its regions."""
        if isinstance(op.opview, Op):
            return True
        if op.name == "func.call":
            return callee_of(op) in self._pure_functions()
        if op.name not in _PURE_OPS and op.name.partition(".")[0] not in _PURE_DIALECTS:
            return False
        return not _has_memref(op.operands) and not _has_memref(op.results)

    def _pure_functions(self) -> set[str]:
        if self._functions is None:
            # A function is not yet in the set while it is looked at: a recursive call may never return, so it is not pure.
            self._functions = set()
            for name, function in self._graph.callees_first():
                if self._is_pure_function(function):
                    self._functions.add(name)
        return self._functions

    def _is_pure_function(self, function: func.FuncOp) -> bool:
        if PURE in function.attributes:
            return True
        body = nested_operations(function.operation)
        return len(function.regions[0].blocks) > 0 and all(self._is_pure_alone(op) for op in body if op.name != "func.return")


def _has_memref(values: Iterable[ir.Value]) -> bool:
    return any(isinstance(v.type, ir.MemRefType | ir.UnrankedMemRefType) for v in values)

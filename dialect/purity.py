"""Which operations have no effect but their results, and which may also run when they would not have."""

from __future__ import annotations

from collections.abc import Iterable

from .bindings import func, ir
from .call_graph import CallGraph, callee_of
from .op import Op
from .traversal import blocks_of, nested_operations, operations

__all__ = ["PURE", "Purity"]

#: Marks a declaration whose implementation, elsewhere, has no side effects.
PURE = "relax.pure"

# Ops of these dialects compute values and do nothing else, as long as no memref is involved.
_PURE_DIALECTS = frozenset({"arith", "complex", "index", "linalg", "math", "scf", "shape", "tensor", "ub", "vector"})
_PURE_OPS = frozenset({"builtin.unrealized_conversion_cast", "func.constant"})

# Their outcome is undefined, or an error, for some operands; a branch may have kept those away.
_MAY_FAIL = frozenset({"relax.match_cast", "relax.take", "relax.gather_elements", "relax.gather_nd"})
# ... and these for integers, on a divisor of zero or a shift beyond the width.
_MAY_FAIL_ON_INTEGERS = frozenset(
    {"relax.divide", "relax.floor_divide", "relax.mod", "relax.power", "relax.left_shift", "relax.right_shift"}
)


class Purity:
    """Answers for the ops of one module; what calls do is looked up once per function."""

    def __init__(self, graph: CallGraph):
        self._graph = graph
        self._functions: dict[str, bool] = {}

    def is_pure(self, op: ir.Operation) -> bool:
        """Whether an op, all it contains and all it calls have no effect but the results."""
        if isinstance(op.opview, Op):
            return True
        if op.name == "func.call":
            return self._is_pure_function(callee_of(op))
        if op.name not in _PURE_OPS and op.name.partition(".")[0] not in _PURE_DIALECTS:
            return False
        if _has_memref(op.operands) or _has_memref(op.results):
            return False
        return all(self.is_pure(inner) for block in blocks_of(op) for inner in operations(block))

    def is_speculatable(self, op: ir.Operation) -> bool:
        """Whether a pure relax op can be computed where it was not going to be: it cannot fail, whatever its operands are."""
        if not isinstance(op.opview, Op) or op.name in _MAY_FAIL:
            return False
        return op.name not in _MAY_FAIL_ON_INTEGERS or isinstance(op.results[0].type.element_type, ir.FloatType)

    def _is_pure_function(self, name: str) -> bool:
        if name not in self._functions:
            self._functions[name] = False  # a recursive call may never return
            self._functions[name] = self._computes_only(self._graph.function(name))
        return self._functions[name]

    def _computes_only(self, function: func.FuncOp | None) -> bool:
        if function is None:
            return False
        blocks = list(function.regions[0].blocks)
        if not blocks:
            return PURE in function.attributes
        return all(self.is_pure(op) for op in nested_operations(function.operation) if op.name != "func.return")


def _has_memref(values: Iterable[ir.Value]) -> bool:
    return any(isinstance(v.type, ir.MemRefType | ir.UnrankedMemRefType) for v in values)

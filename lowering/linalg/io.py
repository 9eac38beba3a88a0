"""Lazy IO has no lowering of its own: what is compiled takes and returns weights, and its preparation streams them anyway."""

from __future__ import annotations

from ...dialect.bindings import ir
from ...dialect.errors import RelaxError
from ...dialect.functions import functions
from ...dialect.lazy_calls import LazyCalls
from ...dialect.traversal import nested_operations
from .builder import LinalgBuilder
from .registry import Source, lowering

__all__ = ["refuse_lazy_io"]

_MESSAGE = "expected a module to compile without lazy IO, weights are streamed anyway"


def refuse_lazy_io(module: ir.Operation) -> None:
    """Raises RelaxError at the first op that reads a weight or hands over a result."""
    lazy = LazyCalls(module)
    for function in functions(module):
        for op in nested_operations(function.operation):
            if lazy.is_read(op) or lazy.is_write(op):
                raise RelaxError(f"'{op.name}' op {_MESSAGE}", op.location)


@lowering("relax.get_param", "relax.set_output", "relax.bind_argument")
def _lower(b: LinalgBuilder, source: Source) -> ir.Value:
    raise RelaxError(_MESSAGE)

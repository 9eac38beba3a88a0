"""Replaces every call of a private function by the function's body, and removes private functions that nothing refers to.

Before::

    func.func @main(%x, %w) {
      %0 = call @layer(%x, %w)
      %1 = call @layer(%0, %w)
      return %1
    }
    func.func private @layer(%x, %w) {
      %t = "relax.permute_dims"(%w)
      %y = "relax.matmul"(%x, %t)
      return %y
    }

after::

    func.func @main(%x, %w) {
      %t = "relax.permute_dims"(%w)
      %0 = "relax.matmul"(%x, %t)
      %t_1 = "relax.permute_dims"(%w)
      %1 = "relax.matmul"(%0, %t_1)
      return %1
    }

Declarations, functions of several blocks and functions marked ``no_inline`` stay. A recursive private function is refused.
Symbols that a body defines by ``relax.match_cast`` get new names where the caller has the same ones.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from ..bindings import func, ir
from ..call_graph import CallGraph, calls_in, unreferenced_private_functions
from ..errors import RelaxError
from ..functions import body_of, is_private
from ..pass_manager import Pass
from ..symbol_uses import SymbolUses
from .inlining import CallInliner, defined_symbols

__all__ = ["InlinePrivateFunctions"]


@dataclass(frozen=True)
class InlinePrivateFunctions(Pass):
    """Replaces calls of private functions by their bodies and removes unreferenced private functions."""

    name: ClassVar[str] = "relax-inline-private-functions"

    def run(self, op: ir.Operation) -> None:
        graph = CallGraph(op)
        _check_not_recursive(graph)
        inliner = CallInliner(graph, SymbolUses())
        for _, function in graph.callees_first():
            _inline_calls(function, inliner)
        for function in unreferenced_private_functions(op):
            function.operation.erase()


def _check_not_recursive(graph: CallGraph) -> None:
    for name in sorted(graph.recursive):
        function = graph.function(name)
        if function is not None and is_private(function):
            raise RelaxError(f"'func.func' op expected no recursion in a private function, got @{name} calling itself",
                             function.location)  # fmt: skip


def _inline_calls(function: func.FuncOp, inliner: CallInliner) -> None:
    if body_of(function) is None:
        return
    calls = [(call, callee) for call in calls_in(function.operation) if (callee := inliner.inlinable(call)) is not None]
    if not calls:
        return
    taken = defined_symbols(function, inliner.uses)
    for call, callee in calls:
        inliner.inline(call, callee, taken)

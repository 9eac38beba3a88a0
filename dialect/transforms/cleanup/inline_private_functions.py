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

Declarations, functions of several blocks and functions marked ``no_inline`` stay; so do recursive ones, with a warning.
Symbols that a body defines by ``relax.match_cast`` get new names where the caller has the same ones.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from ...analysis.symbol_uses import SymbolUses
from ...bindings import ir
from ...call_graph import CallGraph, unreferenced_private_functions
from ...errors import warn
from ...functions import functions, is_private, name_of
from ...passes.base import Pass
from .inlining import CallInliner

__all__ = ["InlinePrivateFunctions"]


def _erase_unreferenced(module: ir.Operation) -> None:
    for function in unreferenced_private_functions(module):
        function.operation.erase()


@dataclass(frozen=True)
class InlinePrivateFunctions(Pass):
    """Replaces calls of private functions by their bodies and removes unreferenced private functions."""

    name: ClassVar[str] = "relax-inline-private-functions"

    def run(self, op: ir.Operation) -> None:
        graph = CallGraph(op)
        inliner = CallInliner(graph, SymbolUses())
        # From the callers down, so that functions that go are not made larger first: a chain of calls takes linear time.
        for name, function in graph.callees_first():
            if not inliner.can_inline(name, function) or inliner.symbols_of_calls(function):
                inliner.inline_calls(function)
        _erase_unreferenced(op)
        for function in functions(op):
            inliner.inline_calls(function)
        _erase_unreferenced(op)
        for function in functions(op):
            if is_private(function) and name_of(function) in graph.recursive:
                warn(f"'func.func' op is recursive, calls of @{name_of(function)} are not inlined", function.location)

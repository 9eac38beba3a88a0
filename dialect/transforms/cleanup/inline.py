"""Replaces every call of the functions that option ``functions`` names by their bodies.

With ``functions=layer``. Before::

    func.func @main(%x, %w) {
      %0 = call @layer(%x, %w)
      %1 = call @other(%0)
      return %1
    }
    func.func @layer(%x, %w) {
      %y = "relax.matmul"(%x, %w)
      return %y
    }

after::

    func.func @main(%x, %w) {
      %0 = "relax.matmul"(%x, %w)
      %1 = call @other(%0)
      return %1
    }
    func.func @layer(%x, %w) {
      %y = "relax.matmul"(%x, %w)
      return %y
    }

The functions stay: ``symbol-dce`` erases private ones that nothing refers to, and a second run finds those that it names. What
cannot be inlined is refused: declarations, functions of several blocks, recursive ones and ones marked ``no_inline``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from ...analysis.symbol_uses import SymbolUses
from ...bindings import func, ir
from ...call_graph import CallGraph
from ...errors import RelaxError
from ...passes.base import Pass
from .inlining import NO_INLINE, CallInliner

__all__ = ["Inline"]


@dataclass(frozen=True)
class Inline(Pass):
    """Replaces calls of named functions by their bodies.

    Attributes:
        functions: names of the functions to inline, public or private.
    """

    name: ClassVar[str] = "relax-inline"
    functions: tuple[str, ...] = ()

    def run(self, op: ir.Operation) -> None:
        graph = CallGraph(op)
        if not self.functions:
            raise RelaxError("expected names of functions for option 'functions', got none")
        for name in self.functions:
            _check(graph, name, self.functions.count(name))
        inliner = CallInliner(graph, SymbolUses(), frozenset(self.functions))
        for _, function in graph.callees_first():  # the callees have no calls left then that symbols could keep
            inliner.inline_calls(function)


def _check(graph: CallGraph, name: str, times: int) -> None:
    function = graph.function(name)
    if function is None:
        raise RelaxError(f"expected functions of the module for option 'functions', got @{name}")
    if times > 1:
        raise RelaxError(f"expected distinct functions for option 'functions', got @{name} twice", function.location)
    obstacle = _obstacle(graph, name, function)
    if obstacle:
        raise RelaxError(f"'func.func' op expected a function that can be inlined, got @{name}, which {obstacle}",
                         function.location)  # fmt: skip


def _obstacle(graph: CallGraph, name: str, function: func.FuncOp) -> str:
    """Why a function cannot be inlined; empty when it can."""
    blocks = len(list(function.regions[0].blocks))
    if blocks != 1:
        return "has several blocks" if blocks else "is a declaration"
    if name in graph.recursive:
        return "calls itself"
    return f"is marked {NO_INLINE}" if NO_INLINE in function.attributes else ""

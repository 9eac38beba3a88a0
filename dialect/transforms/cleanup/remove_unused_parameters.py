"""Removes parameters of private functions that nothing depends on, and the operands that calls pass for them.

Before::

    func.func @main(%x, %w) {
      %y = call @f(%x, %w)
      return %y
    }
    func.func private @f(%x, %unused) {
      %y = "relax.exp"(%x)
      return %y
    }

after::

    func.func @main(%x, %w) {
      %y = call @f(%x)
      return %y
    }
    func.func private @f(%x) {
      %y = "relax.exp"(%x)
      return %y
    }

A parameter that is only passed on, to a parameter that goes away or back to itself, goes away too. One that is the only one to
define a symbol that its function mentions stays. Functions referred to by anything but calls are left alone.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import ClassVar

from ...analysis.symbol_uses import SymbolUses, bound_symbols
from ...bindings import func, ir
from ...call_graph import CallGraph, callee_of
from ...function_types import erase_arguments
from ...functions import NUM_INPUT, name_of, num_input, set_num_input
from ...passes.base import Pass
from ...traversal import nested_operations
from .private_signatures import changeable_functions, rebuilt_call

__all__ = ["RemoveUnusedParameters"]

Parameter = tuple[str, int]


@dataclass(frozen=True)
class RemoveUnusedParameters(Pass):
    """Removes unused parameters of private functions, in the functions and in their calls."""

    name: ClassVar[str] = "relax-remove-unused-parameters"

    def run(self, op: ir.Operation) -> None:
        graph = CallGraph(op)
        calls = graph.calls()
        unused = _Usage(changeable_functions(op)).unused()
        for name, positions in unused.items():
            for call in calls.get(name, ()):
                _drop_operands(call, positions)
        for name, positions in unused.items():
            function = graph.function(name)
            assert function is not None
            _drop_arguments(function, positions)


class _Usage:
    """Which parameters matter: found by starting from all real uses and following calls backwards."""

    def __init__(self, candidates: list[func.FuncOp]):
        self.symbols = SymbolUses()
        self.arguments = {name_of(f): list(f.regions[0].blocks[0].arguments) for f in candidates}
        self.passed_from: dict[Parameter, list[Parameter]] = {}
        self.used: set[Parameter] = set()
        for function in candidates:
            self._read_uses(name_of(function))
        self._spread(list(self.used))
        for function in candidates:
            self._keep_symbols(function)

    def unused(self) -> dict[str, list[int]]:
        """Positions of the parameters that can go, by function."""
        found = {n: [i for i in range(len(a)) if (n, i) not in self.used] for n, a in self.arguments.items()}
        return {name: positions for name, positions in found.items() if positions}

    def _read_uses(self, name: str) -> None:
        for position, argument in enumerate(self.arguments[name]):
            for use in argument.uses:
                self._read_use((name, position), use)

    def _read_use(self, parameter: Parameter, use: ir.OpOperand) -> None:
        op = use.owner.operation
        callee = callee_of(op) if op.name == "func.call" else None
        if callee in self.arguments:
            self.passed_from.setdefault((callee, use.operand_number), []).append(parameter)
        else:
            self.used.add(parameter)

    def _spread(self, pending: list[Parameter]) -> None:
        while pending:
            for parameter in self.passed_from.get(pending.pop(), ()):
                if parameter not in self.used:
                    self.used.add(parameter)
                    pending.append(parameter)

    def _keep_symbols(self, function: func.FuncOp) -> None:
        name = name_of(function)
        arguments = self.arguments[name]
        if all(not self.symbols.of_type(a.type) for a in arguments):
            return
        missing = self._mentioned(function) - bound_symbols(self._kept_types(name))
        for position, argument in enumerate(arguments):
            defines = bound_symbols([argument.type]) & missing
            if defines and (name, position) not in self.used:
                missing -= defines
                self.used.add((name, position))
                self._spread([(name, position)])

    def _mentioned(self, function: func.FuncOp) -> set[str]:
        return set().union(*(self.symbols.of_op(op) for op in nested_operations(function.operation)))

    def _kept_types(self, name: str) -> Iterable[ir.Type]:
        return [a.type for i, a in enumerate(self.arguments[name]) if (name, i) in self.used]


def _drop_operands(call: ir.Operation, positions: list[int]) -> None:
    gone = set(positions)
    kept = [i for i in range(len(call.operands)) if i not in gone]
    new = rebuilt_call(call, kept, range(len(call.results)))
    for old, result in zip(list(call.results), new.results, strict=True):
        old.replace_all_uses_with(result)
    call.erase()


def _drop_arguments(function: func.FuncOp, positions: list[int]) -> None:
    if NUM_INPUT in function.attributes:
        inputs = num_input(function) or 0
        set_num_input(function, inputs - sum(p < inputs for p in positions))
    erase_arguments(function, positions)

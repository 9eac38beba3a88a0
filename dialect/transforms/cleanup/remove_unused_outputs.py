"""Removes results of private functions that no caller uses, and all but one of results that are the same value.

Before::

    func.func @main(%x) {
      %0:3 = call @f(%x)
      return %0#0, %0#1
    }
    func.func private @f(%x) {
      %y = "relax.exp"(%x)
      %z = "relax.tanh"(%x)
      return %y, %y, %z
    }

after::

    func.func @main(%x) {
      %0 = call @f(%x)
      return %0, %0
    }
    func.func private @f(%x) {
      %y = "relax.exp"(%x)
      %z = "relax.tanh"(%x)
      return %y
    }

A result that is only passed on, as a result that goes away or to itself, goes away too; what computed it is left to others, as
``relax-canonicalize``. Functions referred to by anything but calls, and functions of several blocks, are left alone.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from ...bindings import func, ir
from ...call_graph import CallGraph, callee_of
from ...function_types import result_attributes, set_result_attributes
from ...functions import name_of, returned_values, update_type
from ...passes.base import Pass
from .private_signatures import changeable_functions, rebuilt_call, set_returned_values

__all__ = ["RemoveUnusedOutputs"]

Output = tuple[str, int]


@dataclass(frozen=True)
class RemoveUnusedOutputs(Pass):
    """Removes unused and repeated results of private functions, in the functions and in their calls."""

    name: ClassVar[str] = "relax-remove-unused-outputs"

    def run(self, op: ir.Operation) -> None:
        graph = CallGraph(op)
        changeable = {name_of(f) for f in changeable_functions(op)}
        candidates = {n: f for n, f in graph.callees_first() if n in changeable and len(list(f.regions[0].blocks)) == 1}
        calls = graph.calls() if candidates else {}
        sources = _sources(candidates, _Usage(candidates, calls).kept())
        changed = {name: found for name, found in sources.items() if found != list(range(len(found)))}
        # All returns first: they are what may still use results that calls lose.
        for name, found in changed.items():
            _drop_results(candidates[name], found)
        for name, found in changed.items():
            for call in calls.get(name, ()):
                _drop_call_results(call, found)


class _Usage:
    """Which results matter: found by starting from all real uses and following functions that pass results on."""

    def __init__(self, candidates: dict[str, func.FuncOp], calls: dict[str, list[ir.Operation]]):
        self._candidates = candidates
        self._passed_as: dict[Output, list[Output]] = {}
        self._used: set[Output] = set()
        for name in candidates:
            for result in (r for call in calls.get(name, ()) for r in call.results):
                for use in result.uses:
                    self._read_use((name, result.result_number), use)
        self._spread(list(self._used))

    def kept(self) -> dict[str, set[int]]:
        """Positions of the results that something uses, by function."""
        found: dict[str, set[int]] = {name: set() for name in self._candidates}
        for name, position in self._used:
            found[name].add(position)
        return found

    def _read_use(self, output: Output, use: ir.OpOperand) -> None:
        op = use.owner.operation
        function = op.parent if op.name == "func.return" else None
        name = None if function is None else ir.StringAttr(function.attributes["sym_name"]).value
        if name in self._candidates:
            self._passed_as.setdefault((name, use.operand_number), []).append(output)
        else:
            self._used.add(output)

    def _spread(self, pending: list[Output]) -> None:
        while pending:
            for output in self._passed_as.get(pending.pop(), ()):
                if output not in self._used:
                    self._used.add(output)
                    pending.append(output)


def _sources(candidates: dict[str, func.FuncOp], kept: dict[str, set[int]]) -> dict[str, list[int | None]]:
    """For each result of each function the first one that is the same value, None when it goes.

    Two results of a call are the same where the called function's are. Callees come first, so only recursion takes more rounds.
    """
    returned = {name: returned_values(f) for name, f in candidates.items()}
    sources: dict[str, list[int | None]] = {}
    changed = True
    while changed:
        changed = False
        for name, values in returned.items():
            found = _equal_results([_origin(v, sources) for v in values], kept[name])
            changed |= sources.get(name) != found
            sources[name] = found
    return sources


def _equal_results(values: list[ir.Value], kept: set[int]) -> list[int | None]:
    wanted = {values[i] for i in kept}
    first: dict[ir.Value, int] = {}
    return [first.setdefault(v, i) if v in wanted else None for i, v in enumerate(values)]


def _origin(value: ir.Value, sources: dict[str, list[int | None]]) -> ir.Value:
    """The first result of a call that is the same as this one; the value itself where it is no result of a known function."""
    if not isinstance(value, ir.OpResult) or value.owner.operation.name != "func.call":
        return value
    call = value.owner.operation
    known = sources.get(callee_of(call))
    source = None if known is None else known[value.result_number]
    return value if source is None else call.results[source]


def _drop_results(function: func.FuncOp, sources: list[int | None]) -> None:
    kept = [i for i, source in enumerate(sources) if source == i]
    values, attributes = returned_values(function), result_attributes(function)
    set_returned_values(function, [values[i] for i in kept])
    update_type(function)
    set_result_attributes(function, [attributes[i] for i in kept])


def _drop_call_results(call: ir.Operation, sources: list[int | None]) -> None:
    kept = [i for i, source in enumerate(sources) if source == i]
    made = rebuilt_call(call, range(len(call.operands)), kept)
    new = dict(zip(kept, made.results, strict=True))
    for old, source in zip(list(call.results), sources, strict=True):
        if source is not None:
            old.replace_all_uses_with(new[source])
    call.erase()

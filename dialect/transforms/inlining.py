"""Putting a function's body in the place of a call, with the symbols the body defines kept apart from the caller's."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from ..bindings import func, ir
from ..call_graph import CallGraph, callee_of
from ..functions import body_of, is_private
from ..ops import GetParam, MatchCast
from ..struct_info import TensorInfo, is_tensor
from ..symbol_uses import SymbolUses, substitute_symbols
from ..symbolic import Expr, symbol
from ..traversal import clone_with, nested_operations, operations

__all__ = ["DEFINING_OPS", "NO_INLINE", "CallInliner", "defined_symbols"]

#: Upstream's mark of a function that stays a function.
NO_INLINE = "no_inline"

#: Ops whose result type defines symbols that were not there before.
DEFINING_OPS = (MatchCast.OPERATION_NAME, GetParam.OPERATION_NAME)


@dataclass
class CallInliner:
    """Inlines calls into one caller after another.

    Attributes:
        graph: the module's functions; recursive ones are not inlined.
        uses: symbol lookups.
    """

    graph: CallGraph
    uses: SymbolUses

    def inlinable(self, call: ir.Operation) -> func.FuncOp | None:
        """The function called, when its body can take the call's place: private, of one block, not recursive."""
        callee = self.graph.function(callee_of(call))
        if callee is None or not is_private(callee) or NO_INLINE in callee.attributes:
            return None
        if len(list(callee.regions[0].blocks)) != 1 or callee_of(call) in self.graph.recursive:
            return None
        return callee

    def inline(self, call: ir.Operation, callee: func.FuncOp, taken: set[str]) -> list[ir.Operation]:
        """Replaces a call by the body of what it calls.

        Args:
            call: the call; it is erased.
            callee: the function it calls; it stays as it is.
            taken: the symbols that the caller knows; those that the body defines are added, under new names where needed.

        Returns:
            The operations put before the call's place, in order.
        """
        block = body_of(callee)
        assert block is not None
        body = operations(block)
        renamed = self._renamed(callee, body, taken)
        mapping: dict[ir.Value, ir.Value] = dict(zip(block.arguments, call.operands, strict=True))
        where = ir.InsertionPoint(call)
        made = [clone_with(op, mapping, where) for op in body[:-1]]
        if renamed:
            for op in made:
                substitute_symbols(op, renamed)
        results = [mapping.get(v, v) for v in list[ir.Value](body[-1].operands)]
        for result, value in zip(list(call.results), results, strict=True):
            result.replace_all_uses_with(_as_type(value, result.type, call, made))
        call.erase()
        return made

    def _renamed(self, callee: func.FuncOp, body: list[ir.Operation], taken: set[str]) -> dict[str, Expr]:
        """New names for the symbols that the body defines itself and that the caller has already."""
        bound = _symbols_of(callee.regions[0].blocks[0].arguments, self.uses)
        defined: dict[str, None] = {}
        for op in body:
            for cast in _defining_ops(op):
                defined.update(dict.fromkeys(sorted(self.uses.of_type(cast.results[0].type) - bound)))
        renamed: dict[str, Expr] = {}
        for name in defined:
            fresh = _fresh(name, taken)
            taken.add(fresh)
            if fresh != name:
                renamed[name] = symbol(fresh)
        return renamed


def defined_symbols(function: func.FuncOp, uses: SymbolUses) -> set[str]:
    """The symbols that a function's arguments, and the ops that define symbols, mention."""
    found = _symbols_of(function.regions[0].blocks[0].arguments, uses)
    for op in nested_operations(function.operation):
        if op.name in DEFINING_OPS:
            found |= _symbols_of(op.results, uses)
    return found


def _symbols_of(values: Iterable[ir.Value], uses: SymbolUses) -> set[str]:
    return set().union(*(uses.of_type(v.type) for v in values))


def _defining_ops(op: ir.Operation) -> list[ir.Operation]:
    nested = nested_operations(op) if len(op.regions) else ()
    return [o for o in (op, *nested) if o.name in DEFINING_OPS]


def _fresh(name: str, taken: set[str]) -> str:
    candidate, number = name, 0
    while candidate in taken:
        number += 1
        candidate = f"{name}_{number}"
    return candidate


def _as_type(value: ir.Value, type_: ir.Type, call: ir.Operation, made: list[ir.Operation]) -> ir.Value:
    """The value under the type that the call's users know; a symbol renamed inside is matched with its name outside."""
    if value.type == type_ or not is_tensor(type_):
        return value
    vdevice = TensorInfo.of(type_).vdevice
    assert TensorInfo.of(value).vdevice == vdevice
    cast = MatchCast.create(value, result_types=[type_], loc=call.location, ip=ir.InsertionPoint(call))
    made.append(cast)
    return cast.results[0]

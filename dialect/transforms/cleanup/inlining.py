"""Putting a function's body in the place of a call, with the symbols the body defines kept apart from the caller's.

Where the caller casts a tensor to what the function takes (``relax.match_cast`` from ``tensor<4xf32>`` to a tensor of ``n``),
the body takes the tensor itself, and ``n`` is 4 in all its types and attributes; results are cast back to what users know.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass

from ...analysis.symbol_uses import DEFINING_OPS, SymbolUses, substitute_symbols, substitute_type
from ...bindings import func, ir
from ...call_graph import CallGraph, callee_of, calls_in
from ...functions import body_of, is_private
from ...ops import MatchCast
from ...struct_info import TensorInfo, is_tensor
from ...symbolic import Expr, symbol
from ...traversal import clone_with, nested_operations, operations
from ...tuples import CAST, element_types

__all__ = ["NO_INLINE", "CallInliner", "defined_symbols", "unused_symbol"]

#: Upstream's mark of a function that stays a function.
NO_INLINE = "no_inline"

# Casts that say something about a tensor's sizes and change nothing.
_CASTS = (MatchCast.OPERATION_NAME, "tensor.cast")
# Ops whose types may change together with those of their operands; of ops of other dialects, those without tensor results.
_FOLLOWING = ("relax.", "scf.", CAST)


@dataclass
class CallInliner:
    """Inlines calls into one caller after another.

    Attributes:
        graph: the module's functions; recursive ones are not inlined.
        uses: symbol lookups.
        wanted: names of the functions to inline; None is all private ones that are not marked ``no_inline``.
    """

    graph: CallGraph
    uses: SymbolUses
    wanted: Collection[str] | None = None

    def inlinable(self, call: ir.Operation) -> func.FuncOp | None:
        """The function called, when its body is to take the call's place and can."""
        name = callee_of(call)
        callee = self.graph.function(name)
        return callee if callee is not None and self.can_inline(name, callee) else None

    def can_inline(self, name: str, function: func.FuncOp) -> bool:
        """Whether calls of a function are to be inlined and can: it is of one block, not recursive."""
        if not self._is_wanted(name, function):
            return False
        return len(list(function.regions[0].blocks)) == 1 and name not in self.graph.recursive

    def inline_calls(self, caller: func.FuncOp) -> None:
        """Inlines what can be inlined of the calls in a function, and of those that are then there in their place."""
        pending = [c for c in reversed(calls_in(caller.operation)) if self.inlinable(c) is not None]
        taken = defined_symbols(caller, self.uses) if pending else set[str]()
        while pending:
            call = pending.pop()
            callee = self.inlinable(call)
            if callee is not None and taken.isdisjoint(self.symbols_of_calls(callee)):
                made = self.inline(call, callee, taken)
                pending += reversed([op for op in _all_operations(made) if op.name == "func.call"])

    def symbols_of_calls(self, function: func.FuncOp) -> set[str]:
        """Symbols that a function defines itself and that calls in it mention: inlining may rename them, callees do not."""
        body = list(nested_operations(function.operation))
        defined = {s for op in body if op.name in DEFINING_OPS for s in self.uses.of_type(op.results[0].type)}
        defined -= _symbols_of(function.regions[0].blocks[0].arguments, self.uses)
        calls = [op for op in body if op.name == "func.call"] if defined else []
        return defined.intersection(_symbols_of((v for op in calls for v in (*op.operands, *op.results)), self.uses))

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
        sizes = self._known_sizes(call, body)
        made: list[ir.Operation] = []
        operands = [_refined(v, sizes, call, made) for v in call.operands]
        symbols = sizes | self._renamed(callee, body, taken)
        mapping: dict[ir.Value, ir.Value] = dict(zip(block.arguments, operands, strict=True))
        where = ir.InsertionPoint(call)
        made += [clone_with(op, mapping, where) for op in body[:-1]]
        for op in made[len(made) - len(body) + 1 :]:
            _place(op, call.location)
            if symbols:
                substitute_symbols(op, symbols)
        results = [mapping.get(v, v) for v in list[ir.Value](body[-1].operands)]
        for result, value in zip(list(call.results), results, strict=True):
            result.replace_all_uses_with(_as_type(value, result.type, call, made))
        call.erase()
        return made

    def _is_wanted(self, name: str, callee: func.FuncOp) -> bool:
        if self.wanted is not None:
            return name in self.wanted
        return is_private(callee) and NO_INLINE not in callee.attributes

    def _known_sizes(self, call: ir.Operation, body: list[ir.Operation]) -> dict[str, int | Expr]:
        """What the caller knows of the symbols of a call's operands: those of casts, by the tensors that were cast."""
        found: dict[str, int | Expr] = {}
        for value in call.operands:
            source = _before_cast(value)
            if source is None:
                continue
            for dim, known in zip(TensorInfo.of(value).shape, TensorInfo.of(source).shape, strict=True):
                if isinstance(dim, Expr) and dim.text.isidentifier() and known is not None and known != dim:
                    found.setdefault(dim.text, known)
        fixed = self._fixed_symbols(body) if found else set[str]()
        return {name: known for name, known in found.items() if name not in fixed}

    def _fixed_symbols(self, body: list[ir.Operation]) -> set[str]:
        """The symbols in types that other functions, or ops of other dialects, rely on."""
        found: set[str] = set()
        for op in _all_operations(body):
            if op.name.startswith(_FOLLOWING) or not (len(op.results) or op.name == "func.call"):
                continue
            if op.name == "func.call" or any(is_tensor(r) for r in op.results):
                found |= _symbols_of((*op.operands, *op.results), self.uses)
        return found

    def _renamed(self, callee: func.FuncOp, body: list[ir.Operation], taken: set[str]) -> dict[str, int | Expr]:
        """New names for the symbols that the body defines itself and that the caller has already."""
        bound = _symbols_of(callee.regions[0].blocks[0].arguments, self.uses)
        defined: dict[str, None] = {}
        for op in _all_operations(body):
            if op.name in DEFINING_OPS:
                defined.update(dict.fromkeys(sorted(self.uses.of_type(op.results[0].type) - bound)))
        renamed: dict[str, int | Expr] = {}
        for name in defined:
            fresh = unused_symbol(name, taken)
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


def _all_operations(body: Iterable[ir.Operation]) -> Iterator[ir.Operation]:
    for op in body:
        yield op
        yield from nested_operations(op)


def unused_symbol(name: str, taken: set[str]) -> str:
    """The name, or the first of ``name_1``, ``name_2`` ... that is not taken."""
    candidate, number = name, 0
    while candidate in taken:
        number += 1
        candidate = f"{name}_{number}"
    return candidate


def _before_cast(value: ir.Value) -> ir.Value | None:
    """The tensor that a value is under another type, None for a value that is not a cast."""
    owner = value.owner
    if isinstance(owner, ir.Block) or owner.operation.name not in _CASTS:
        return None
    source = owner.operation.operands[0]
    return source if is_tensor(value) and is_tensor(source) else None


def _refined(value: ir.Value, sizes: dict[str, int | Expr], call: ir.Operation, made: list[ir.Operation]) -> ir.Value:
    """An operand under the type that the inlined body takes: what it was before a cast, where that is it."""
    type_ = substitute_type(value.type, sizes)
    source = _before_cast(value) if type_ != value.type else None
    return source if source is not None and source.type == type_ else _as_type(value, type_, call, made)


def _place(op: ir.Operation, call: ir.Location) -> None:
    """Locates an inlined op, and all inside of it, at the call as well; a call of unknown place tells nothing."""
    if call == ir.Location.unknown(call.context):
        return
    for inner in _all_operations([op]):
        inner.location = ir.Location.callsite(inner.location, [call])


def _as_type(value: ir.Value, type_: ir.Type, call: ir.Operation, made: list[ir.Operation]) -> ir.Value:
    """The value under another type of the same tensor; a symbol renamed inside is matched with its name outside."""
    if isinstance(type_, ir.TupleType) and value.type != type_:
        return _tuple_as_type(value, type_, call, made)
    if value.type == type_ or not is_tensor(type_):
        return value
    vdevice = TensorInfo.of(type_).vdevice
    assert TensorInfo.of(value).vdevice == vdevice
    cast = MatchCast.create(value, result_types=[type_], loc=call.location, ip=ir.InsertionPoint(call))
    made.append(cast)
    return cast.results[0]


def _tuple_as_type(value: ir.Value, type_: ir.TupleType, call: ir.Operation, made: list[ir.Operation]) -> ir.Value:
    where = ir.InsertionPoint(call)
    made.append(ir.Operation.create(CAST, element_types(value.type), [value], loc=call.location, ip=where))
    elements = list(made[-1].results)
    wanted = [_as_type(e, t, call, made) for e, t in zip(elements, element_types(type_), strict=True)]
    made.append(ir.Operation.create(CAST, [type_], wanted, loc=call.location, ip=where))
    return made[-1].result

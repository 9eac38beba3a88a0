"""Which symbolic dimensions types, ops and attributes mention, and substitution in all of them."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Mapping
from dataclasses import replace

from .. import symbolic
from ..attributes import Attr
from ..bindings import ir
from ..op import EffectOp, op_class
from ..ops import GetParam, MatchCast
from ..struct_info import TensorInfo
from ..symbolic import Dim, Expr
from ..traversal import blocks_of, nested_operations
from ..tuples import element_types, leaf_types

__all__ = ["DEFINING_OPS", "SymbolUses", "bound_symbols", "definers", "substitute_symbols", "substitute_type"]

#: Ops whose result type defines symbols that were not there before.
DEFINING_OPS = (MatchCast.OPERATION_NAME, GetParam.OPERATION_NAME)

_NONE: frozenset[str] = frozenset()


class SymbolUses:
    """Symbols by type and op. Types are looked up in a table that lives as long as the object."""

    def __init__(self) -> None:
        self._types: dict[ir.Type, frozenset[str]] = {}

    def of_type(self, type_: ir.Type) -> frozenset[str]:
        """The symbols of a tensor type, or of the tensors in a tuple; none of any other type."""
        found = self._types.get(type_)
        if found is None:
            found = self._types[type_] = self._of_new(type_)
        return found

    def _of_new(self, type_: ir.Type) -> frozenset[str]:
        if isinstance(type_, ir.TupleType):
            return _NONE.union(*(self.of_type(t) for t in leaf_types(type_)))
        if not isinstance(type_, ir.RankedTensorType) or type_.encoding is None:
            return _NONE
        return _names(TensorInfo.of(type_).shape)

    def of_op(self, op: ir.Operation) -> frozenset[str]:
        """The symbols in result types and attributes of an op and of everything inside of it."""
        found = self._of_one(op)
        if not len(op.regions):
            return found
        return found.union(*(self._of_one(inner) for inner in nested_operations(op)))

    def _of_one(self, op: ir.Operation) -> frozenset[str]:
        found = _NONE
        for result in op.results:
            found |= self.of_type(result.type)
        for argument in (a for block in blocks_of(op) for a in block.arguments) if len(op.regions) else ():
            found |= self.of_type(argument.type)
        for key, spec in _symbolic(op_class(op)):
            if key in op.attributes:
                found |= _names(spec.read(key, op.attributes[key]))
        return found


def bound_symbols(types: Iterable[ir.Type], given: Iterable[str] = ()) -> set[str]:
    """The symbols that values of these types determine: a dimension that is the symbol, or is linear in it.

    A dimension of several symbols determines the one that the others leave open.

    Args:
        types: those of the values.
        given: symbols that are known without them; they are in the answer, too.
    """
    leaves = [leaf for t in types for leaf in leaf_types(t)]
    shapes = [TensorInfo.of(t).shape for t in leaves if isinstance(t, ir.RankedTensorType) and t.encoding is not None]
    waiting = [dim for shape in shapes for dim in shape if isinstance(dim, Expr)]
    known = set(given)
    progress = True
    while progress:
        before = len(waiting)
        waiting = [dim for dim in waiting if not _solved(dim, known)]
        progress = len(waiting) < before
    return known


def definers(values: Iterable[ir.Value], known: Iterable[str] = ()) -> dict[str, list[ir.Value]]:
    """The values that have to be there for a symbol to be determined, first ones first, for symbols that are not known already.

    A value of shape ``[n + m]`` determines ``n`` once another one has determined ``m``: then both are needed.
    """
    uses, determined = SymbolUses(), set(known)
    found: dict[str, list[ir.Value]] = {}
    waiting = [v for v in values if not uses.of_type(v.type) <= determined]
    progress = True
    while progress:
        progress, later = False, []
        for value in waiting:
            mentioned = uses.of_type(value.type)
            new = bound_symbols([value.type], determined) - determined
            others = [v for s in sorted(mentioned & found.keys()) for v in found[s]] if new else []
            found.update((symbol, list(dict.fromkeys([*others, value]))) for symbol in sorted(new))
            determined |= new
            if not mentioned <= determined:
                later.append(value)
            progress = progress or bool(new)
        waiting = later
    return found


def _solved(dim: Expr, known: set[str]) -> bool:
    """Whether a dimension can tell no more: all of it is known, or it has just made its last symbol known, or it never will."""
    unknown = dim.names - known
    if len(unknown) > 1:
        return False
    for name in unknown:
        # Known symbols count as 1 here: what is linear in the unknown one then is linear for all sizes.
        rest = symbolic.substitute(dim, dict.fromkeys(dim.names & known, 1))
        if isinstance(rest, Expr) and set(dict(rest.terms)) <= {(), (name,)}:
            known.add(name)
    return True


def substitute_symbols(op: ir.Operation, values: Mapping[str, int | Expr]) -> None:
    """Replaces symbols in the result types and symbolic attributes of an op and of everything inside of it."""
    _substitute_one(op, values)
    if not len(op.regions):
        return
    for block in blocks_of(op):
        for argument in block.arguments:
            _retype(argument, values)
    for inner in nested_operations(op):
        _substitute_one(inner, values)
        for block in blocks_of(inner):
            for argument in block.arguments:
                _retype(argument, values)


def substitute_type(type_: ir.Type, values: Mapping[str, int | Expr]) -> ir.Type:
    """A tensor type, or a tuple of such, with symbols replaced; any other type as it is."""
    if isinstance(type_, ir.TupleType):
        return ir.TupleType.get_tuple([substitute_type(t, values) for t in element_types(type_)])
    if not isinstance(type_, ir.RankedTensorType) or type_.encoding is None:
        return type_
    info = TensorInfo.of(type_)
    if _names(info.shape).isdisjoint(values):
        return type_
    return replace(info, shape=tuple(symbolic.substitute(d, values) for d in info.shape)).type


def _substitute_one(op: ir.Operation, values: Mapping[str, int | Expr]) -> None:
    for result in op.results:
        _retype(result, values)
    for key, spec in _symbolic(op_class(op)):
        if key in op.attributes:
            dims = spec.read(key, op.attributes[key])
            op.attributes[key] = spec.write(key, [symbolic.substitute(d, values) for d in dims])


def _retype(value: ir.Value, values: Mapping[str, int | Expr]) -> None:
    type_ = substitute_type(value.type, values)
    if type_ != value.type:
        value.set_type(type_)


@functools.cache
def _symbolic(cls: type[EffectOp] | None) -> list[tuple[str, Attr]]:
    """The attributes of an op that may have symbols."""
    return [] if cls is None else [(key, spec) for key, spec in cls.attrs.items() if spec.symbolic]


def _names(dims: Iterable[Dim]) -> frozenset[str]:
    return frozenset().union(*(d.names for d in dims if isinstance(d, Expr)))

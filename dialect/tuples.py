"""Tuples at the edges of a module: ``tuple<...>`` of tensors and tuples, packed and unpacked by upstream's cast.

The dialect has no tuple op, because IRDL wants one type for all operands of a variadic group. Importers, and callers that hold
all weights in one value, need tuples as arguments; there ``builtin.unrealized_conversion_cast`` makes a tuple of its elements,
or takes it apart. ``relax-expand-tuple-arguments`` takes tuples away.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from .bindings import ir
from .errors import RelaxError

__all__ = [
    "BUNDLED", "CAST", "bundled_attributes", "element_types", "has_tuple", "is_pack", "is_unpack", "leaf_paths", "leaf_types",
    "pack", "unpack",
]  # fmt: skip

CAST = "builtin.unrealized_conversion_cast"

#: Argument attribute of a tuple that was made of arguments: the attributes of each.
BUNDLED = "relax.bundled"


def element_types(type_: ir.Type) -> list[ir.Type]:
    """The types of a tuple's elements."""
    tuple_ = ir.TupleType(type_)
    return [tuple_.get_type(i) for i in range(tuple_.num_types)]


def leaf_types(type_: ir.Type) -> list[ir.Type]:
    """The types of what is in a tuple and in the tuples in it; the type itself, when it is no tuple."""
    return [leaf for _, leaf in leaf_paths(type_)]


def leaf_paths(type_: ir.Type, path: str = "") -> Iterator[tuple[str, ir.Type]]:
    """As :func:`leaf_types`, each with the positions that lead to it: ``.1.0`` is the first element of the second one."""
    if not isinstance(type_, ir.TupleType):
        yield path, type_
        return
    for position, element in enumerate(element_types(type_)):
        yield from leaf_paths(element, f"{path}.{position}")


def has_tuple(types: Iterable[ir.Type]) -> bool:
    """Whether a tuple is among some types."""
    return any(isinstance(t, ir.TupleType) for t in types)


def is_pack(op: ir.Operation) -> bool:
    """Whether an op makes a tuple of its elements."""
    if op.name != CAST or len(op.results) != 1 or not isinstance(op.results[0].type, ir.TupleType):
        return False
    return element_types(op.results[0].type) == [v.type for v in op.operands]


def is_unpack(op: ir.Operation) -> bool:
    """Whether an op takes a tuple apart into its elements."""
    if op.name != CAST or len(op.operands) != 1 or not isinstance(op.operands[0].type, ir.TupleType):
        return False
    return element_types(op.operands[0].type) == [r.type for r in op.results]


def pack(type_: ir.Type, leaves: Iterator[ir.Value], where: ir.InsertionPoint, loc: ir.Location) -> ir.Value:
    """A value of a type, made of the next leaves; of a type that is no tuple it is the next leaf."""
    if not isinstance(type_, ir.TupleType):
        return next(leaves)
    elements = [pack(t, leaves, where, loc) for t in element_types(type_)]
    return ir.Operation.create(CAST, [type_], elements, loc=loc, ip=where).result


def unpack(value: ir.Value, where: ir.InsertionPoint, loc: ir.Location) -> list[ir.Value]:
    """The leaves of a value; itself, when it is no tuple."""
    if not isinstance(value.type, ir.TupleType):
        return [value]
    types = element_types(value.type)
    if not types:
        return []
    elements = ir.Operation.create(CAST, types, [value], loc=loc, ip=where).results
    return [leaf for element in elements for leaf in unpack(element, where, loc)]


def bundled_attributes(type_: ir.Type, attributes: ir.DictAttr) -> Sequence[ir.DictAttr] | None:
    """The attributes of a tuple argument's leaves as arguments, None when it says nothing of them.

    Raises:
        RelaxError: they are no dictionaries, or not one for each leaf.
    """
    if BUNDLED not in attributes:
        return None
    found = attributes[BUNDLED]
    count = len(leaf_types(type_))
    items = [i for i in found if isinstance(i, ir.DictAttr)] if isinstance(found, ir.ArrayAttr) else []
    if not isinstance(found, ir.ArrayAttr) or not len(items) == len(found) == count:
        raise RelaxError(f"expected {count} dictionaries for {BUNDLED}, got {found}")
    return items

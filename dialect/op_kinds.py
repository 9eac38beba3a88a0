"""Kinds of ops that several passes tell apart."""

from __future__ import annotations

from .bindings import ir
from .op import op_class
from .ops import AsType, LogicalNot, StopLiftParams, Where
from .ops.binary import _Binary, _Comparison
from .ops.unary import _Predicate, _Unary

__all__ = ["ELEMENTWISE", "is_elementwise"]

#: The classes that ops on elements derive from, or are. One that derives from them is a barrier: StopLiftParams.
ELEMENTWISE = (_Unary, _Predicate, _Binary, _Comparison, AsType, LogicalNot, Where)


def is_elementwise(op: ir.Operation | ir.OpView) -> bool:
    """Whether each element of the result depends on the elements at its place alone, operands broadcast; no barrier."""
    cls = op_class(op)
    return cls is not None and issubclass(cls, ELEMENTWISE) and cls is not StopLiftParams

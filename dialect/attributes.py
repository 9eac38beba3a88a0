"""Attributes of ops as Python values: what an op declares, how values become MLIR attributes and back.

An op declares each attribute once, as an :class:`Attr`; from it come coercion in the builder, the check in the verifier,
the default, and the value handed to shape inference and reference semantics.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from operator import index
from typing import Any

import numpy as np

from . import symbolic
from .bindings import ir
from .errors import RelaxError
from .packed_layout import EXAMPLE, PackedLayout
from .symbolic import Dim, Expr

__all__ = [
    "REQUIRED",
    "Attr",
    "boolean",
    "dims",
    "dtype",
    "elements",
    "enum",
    "integer",
    "integers",
    "packed_layout",
    "real",
    "scalar",
    "string",
    "values",
]

REQUIRED: Any = object()


@dataclass(frozen=True)
class Attr:
    """One declared attribute.

    Attributes:
        expected: what the verifier says it wanted, e.g. ``"an integer"``.
        to_python: MLIR attribute to Python value; raises ValueError or TypeError when it is of the wrong kind.
        to_mlir: Python value to MLIR attribute.
        default: value when absent; ``REQUIRED`` when it must be given.
        symbolic: whether it may mention symbolic dimensions, so that inlining substitutes in it.
    """

    expected: str
    to_python: Callable[[ir.Attribute], Any]
    to_mlir: Callable[[Any], ir.Attribute]
    default: Any = REQUIRED
    symbolic: bool = False

    def read(self, name: str, attribute: ir.Attribute) -> Any:
        """The Python value. Raises RelaxError when the attribute is of another kind."""
        try:
            return self.to_python(attribute)
        except (TypeError, ValueError, RelaxError):
            raise RelaxError(f"expected {self.expected} for attribute '{name}', got {attribute}") from None

    def write(self, name: str, value: Any) -> ir.Attribute:
        """The MLIR attribute. Raises RelaxError when the value does not fit."""
        if isinstance(value, ir.Attribute):
            return value
        try:
            return self.to_mlir(value)
        except (TypeError, ValueError, OverflowError, RelaxError):
            raise RelaxError(f"expected {self.expected} for attribute '{name}', got {value!r}") from None


def integer(default: Any = REQUIRED) -> Attr:
    """A 64-bit integer."""
    return Attr("an integer", _integer, _integer_attr, default)


def boolean(default: Any = REQUIRED) -> Attr:
    """``true`` or ``false``."""
    return Attr("a boolean", lambda a: ir.BoolAttr(a).value, _boolean_attr, default)


def real(default: Any = REQUIRED) -> Attr:
    """A floating-point number, stored as f64."""
    return Attr("a number", _real, lambda v: ir.FloatAttr.get(ir.F64Type.get(), float(v)), default)


def string(default: Any = REQUIRED) -> Attr:
    """A string."""
    return Attr("a string", lambda a: ir.StringAttr(a).value, _string, default)


def enum(values: Sequence[str], default: Any = REQUIRED) -> Attr:
    """One of several strings."""

    def check(value: str) -> str:
        if value not in values:
            raise ValueError(value)
        return value

    expected = "one of " + ", ".join(f"'{v}'" for v in values)
    return Attr(expected, lambda a: check(ir.StringAttr(a).value), lambda v: ir.StringAttr.get(check(v)), default)


def integers(default: Any = REQUIRED, length: int | None = None) -> Attr:
    """A dense array of 64-bit integers, of a given length if one is stated."""

    def check(values: list[int]) -> list[int]:
        if length is not None and len(values) != length:
            raise ValueError(values)
        return values

    expected = "an i64 array" if length is None else f"an i64 array of {length}"
    return Attr(
        expected,
        lambda a: check(list(ir.DenseI64ArrayAttr(a))),
        lambda v: ir.DenseI64ArrayAttr.get(check([_in_i64(index(i)) for i in v])),
        default,
    )


def packed_layout(default: Any = REQUIRED) -> Attr:
    """How a packed weight is in memory, as text: ``"tile 16, rows 2"``, see :mod:`.packed_layout`."""
    expected = f"a packed layout such as {EXAMPLE}"
    return Attr(expected, lambda a: PackedLayout.parse(ir.StringAttr(a).value), _packed_layout_attr, default)


def dims(default: Any = REQUIRED) -> Attr:
    """Dimensions, each an integer or a symbolic expression: ``[0, "n * 2"]``."""
    return Attr("an array of integers and symbolic expressions", _dims, _dims_attr, default, symbolic=True)


def dtype(default: Any = REQUIRED) -> Attr:
    """An MLIR element type."""
    return Attr("a type", lambda a: ir.TypeAttr(a).value, lambda v: ir.TypeAttr.get(v), default)


def scalar(default: Any = REQUIRED) -> Attr:
    """An integer or floating-point number, as written."""
    return Attr("a number", _scalar, _scalar_attr, default)


def values(default: Any = REQUIRED) -> Attr:
    """Integers, floats, truth values and strings; ``unit`` (in Python ``...``) for what an operand says."""
    expected = "an array of integers, floats, truth values and strings"
    return Attr(expected, _values, lambda v: ir.ArrayAttr.get([_value_attr(item) for item in v]), default)


def elements(default: Any = REQUIRED) -> Attr:
    """Dense tensor data (``dense<...>`` or ``dense_resource<...>``)."""
    return Attr("an elements attribute", _elements, _elements, default)


def _i64() -> ir.IntegerType:
    return ir.IntegerType.get_signless(64)


def _integer(attribute: ir.Attribute) -> int:
    if isinstance(attribute, ir.BoolAttr):
        raise TypeError
    return _in_i64(ir.IntegerAttr(attribute).value)


def _in_i64(value: int) -> int:
    """The bindings crash or throw what is no Python exception on a number that does not fit."""
    if not -(2**63) <= value < 2**63:
        raise ValueError(value)
    return value


def _integer_attr(value: Any) -> ir.Attribute:
    return ir.IntegerAttr.get(_i64(), _in_i64(index(value)))


def _boolean_attr(value: Any) -> ir.Attribute:
    if not isinstance(value, bool | np.bool_):
        raise TypeError(value)
    return ir.BoolAttr.get(bool(value))


def _real(attribute: ir.Attribute) -> float:
    return float(ir.FloatAttr(attribute).value)


def _string(value: Any) -> ir.Attribute:
    if not isinstance(value, str):
        raise TypeError
    return ir.StringAttr.get(value)


def _packed_layout_attr(value: Any) -> ir.Attribute:
    layout = value if isinstance(value, PackedLayout) else PackedLayout.parse(value)
    return ir.StringAttr.get(str(layout))


def _scalar(attribute: ir.Attribute) -> int | float | bool:
    if isinstance(attribute, ir.BoolAttr):
        return ir.BoolAttr(attribute).value
    if isinstance(attribute, ir.IntegerAttr):
        return ir.IntegerAttr(attribute).value
    return _real(attribute)


def _scalar_attr(value: Any) -> ir.Attribute:
    if isinstance(value, bool):
        return ir.BoolAttr.get(value)
    if not isinstance(value, int):
        return ir.FloatAttr.get(ir.F64Type.get(), float(value))
    if 2**63 <= value < 2**64:  # in i64 it would be negative, and the bindings take no larger number
        return ir.IntegerAttr.get(ir.IntegerType.get_unsigned(64), value - 2**64)
    return _integer_attr(value)


def _dims(attribute: ir.Attribute) -> list[int | Expr]:
    return [_dim(item) for item in ir.ArrayAttr(attribute)]


def _dim(item: ir.Attribute) -> int | Expr:
    if not isinstance(item, ir.StringAttr):
        return _integer(item)
    dim = symbolic.parse(item.value)
    if dim is None:
        raise ValueError(item.value)
    return dim


def _dims_attr(values: Sequence[Dim | str]) -> ir.Attribute:
    items: list[ir.Attribute] = []
    for value in values:
        dim = symbolic.parse(value) if isinstance(value, str) else value
        if isinstance(dim, Expr):
            items.append(ir.StringAttr.get(dim.text))
        elif dim is None:
            raise ValueError(value)
        else:
            items.append(_integer_attr(dim))
    return ir.ArrayAttr.get(items)


def _values(attribute: ir.Attribute) -> list[Any]:
    return [_value(a) for a in ir.ArrayAttr(attribute)]


def _value(attribute: ir.Attribute) -> Any:
    if isinstance(attribute, ir.UnitAttr):
        return ...
    return attribute.value if isinstance(attribute, ir.StringAttr) else _scalar(attribute)


def _value_attr(value: Any) -> ir.Attribute:
    if value is ...:
        return ir.UnitAttr.get()
    return _string(value) if isinstance(value, str) else _scalar_attr(value)


def _elements(attribute: Any) -> ir.Attribute:
    # The bindings hand resources out as plain attributes, which only the constructor turns into what they are.
    return attribute if isinstance(attribute, ir.DenseElementsAttr) else ir.DenseResourceElementsAttr(attribute)

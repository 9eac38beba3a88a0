"""Attributes for which MLIR's bindings have no class are read as :class:`ir.Attribute`, instead of raising a TypeError.

Such are dense arrays of other elements than seven (``array<ui64: 1>``), dense complex numbers, and locations as attributes.
Text can have them anywhere. The error came from whatever read them, a verifier among these, and one that MLIR's C++ has called
ends the process with it (torch-mlir 20261001).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

from .bindings import ir, register_type_caster

__all__ = ["register_casters"]

# The first is by far the most frequent one.
_ARRAYS = (
    ir.DenseI64ArrayAttr,
    ir.DenseBoolArrayAttr,
    ir.DenseI32ArrayAttr,
    ir.DenseF32ArrayAttr,
    ir.DenseF64ArrayAttr,
    ir.DenseI8ArrayAttr,
    ir.DenseI16ArrayAttr,
)
_ELEMENTS = (ir.DenseFPElementsAttr, ir.DenseIntElementsAttr)
_LOCATIONS = (ir.FileLineColLoc, ir.NameLoc, ir.FusedLoc, ir.CallSiteLoc, ir.UnknownLoc)


@cache
def register_casters() -> None:
    """Does so once for the process. Must run within a context."""
    array = ir.DenseI64ArrayAttr.get([])
    elements = ir.DenseElementsAttr.get_splat(ir.RankedTensorType.get([1], ir.F32Type.get()), ir.FloatAttr.get_f32(0.0))
    for sample, classes in ((array, _ARRAYS), (elements, _ELEMENTS)):
        register_type_caster(sample.typeid, replace=True)(_first_of(classes))
    for location in _LOCATIONS:
        register_type_caster(location.static_typeid, replace=True)(_unless_attribute(location))


def _first_of(classes: tuple[Callable[[Any], Any], ...]) -> Callable[[Any], Any]:
    def cast(attribute: Any) -> Any:
        for cls in classes:
            try:
                return cls(attribute)
            except ValueError:
                continue
        return attribute

    return cast


def _unless_attribute(location: Callable[[Any], Any]) -> Callable[[Any], Any]:
    return lambda value: location(value) if isinstance(value, ir.Location) else value

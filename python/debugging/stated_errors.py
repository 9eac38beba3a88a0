"""Modules whose numbers a pass has rounded to few integers, held to what the pass states.

``relax-quantize-weights`` and ``relax-quantize-activations`` say by how much of the largest of its group an element can be off.
What comes of that further on nobody says: of a sum that was exactly zero, the sign can be anything. Each rounding is compared
with what it rounds, and the results with those of the module in which roundings of weights are taken out again.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from ..dialect.bindings import func, ir
from ..dialect.function_types import result_attributes, set_result_attributes
from ..dialect.functions import find_function, returned_values, terminator, update_type
from ..dialect.lift_override import NEVER, override_of
from ..dialect.ops import Dequantize, Quantize, QuantizedGroupedMatMul, QuantizedMatMul
from ..dialect.transforms.emit import cast
from ..dialect.traversal import nested_operations

Array = np.ndarray[Any, Any]

__all__ = ["are_within_stated_error", "returning_roundings", "without_roundings_of_weights"]

#: By how much an element can be off, as a part of the largest of its group, by bits.
BOUNDS = {8: 1 / 254, 4: 1 / 8}
# Divisions and products in f32 on the way, of a few units each; and the least scale of activations.
_ROUNDING, _LEAST = 1 + 1e-5, 1e-30
#: Scales that are rounded to f16 are off by 2**-11, and 8 of them (the largest of four bits) by eight times that.
_OF_HALF_SCALES = 1 + 8 * 2**-11


def returning_roundings(module: ir.Operation, name: str) -> tuple[ir.Operation, int]:
    """A copy whose function returns, behind its results, what is rounded, scales and integers; and how many roundings."""
    copy = module.clone(ip=False).operation
    with copy.context, ir.Location.unknown():
        function = find_function(copy, name)
        found = list(_roundings(function))
        _return_also(function, [v for op in found for v in (op.x, op.scale, op.result)])
    return copy, len(found)


def without_roundings_of_weights(module: ir.Operation, name: str) -> ir.Operation:
    """A copy in which weights that went through integers did not."""
    copy = module.clone(ip=False).operation
    with copy.context:
        for op in [o.opview for o in nested_operations(find_function(copy, name).operation)]:
            if isinstance(op, Dequantize) and _is_rounded_weight(op):
                with ir.InsertionPoint(op), op.location:
                    weight = cast(op.x.owner.x, ir.F32Type.get())
                op.result.replace_all_uses_with(weight)
    return copy


def are_within_stated_error(x: Array, scale: Array, integers: Array) -> bool:
    """Whether integers stand for numbers as exactly as the passes state."""
    x, scale = x.astype(np.float64), scale.astype(np.float64)
    shape = [part for size, blocks in zip(x.shape, scale.shape, strict=True) for part in (blocks, size // max(blocks, 1))]
    groups, steps = x.reshape(shape), scale.reshape([part for blocks in scale.shape for part in (blocks, 1)])
    off = np.abs(integers.astype(np.float64).reshape(shape) * steps - groups)
    largest = np.abs(groups).max(axis=tuple(range(1, len(shape), 2)), keepdims=True, initial=0)
    bound = BOUNDS[4 if str(integers.dtype) == "int4" else 8] * _ROUNDING
    with np.errstate(over="ignore"):
        bound *= _OF_HALF_SCALES if (scale == scale.astype(np.float16)).all() else 1
    return bool((off <= largest * bound + _LEAST).all())


def _roundings(function: func.FuncOp) -> Iterator[Quantize]:
    for op in function.regions[0].blocks[0].operations:
        if isinstance(op, Quantize) and any(_is_rounding(op, use.owner) for use in op.result.uses):
            yield op


def _is_rounding(op: Quantize, reader: ir.OpView) -> bool:
    if isinstance(reader, QuantizedMatMul | QuantizedGroupedMatMul):
        return reader.operands[0] == op.result
    return isinstance(reader, Dequantize) and _is_rounded_weight(reader)


def _is_rounded_weight(op: Dequantize) -> bool:
    made = op.x.owner
    return isinstance(made, Quantize) and made.scale == op.scale and override_of(op.attributes) == NEVER


def _return_also(function: func.FuncOp, values: list[ir.Value]) -> None:
    last, attributes = terminator(function.regions[0].blocks[0]), result_attributes(function)
    returned = [*returned_values(function), *values]
    with last.location, ir.InsertionPoint(last):
        func.ReturnOp(returned)
    last.erase()
    set_result_attributes(function, [])
    update_type(function)
    set_result_attributes(function, [*attributes, *(ir.DictAttr.get({}) for _ in values)])

"""Floats of 8 bits: which format's numbers a factor computes of bytes, found by computing it for all 256 of them.

Relax's floats of 8 bits are bytes in memory, and integer operations make f32 of them (:mod:`....linalg.float8`). However these
operations look after folding, what they give for each byte tells the format.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import ml_dtypes
import numpy as np

from .....dialect.bindings import ir
from ....kernels.structure.factor import Factor

__all__ = ["FLOAT8", "bytes_of", "float8_format"]

#: Formats by their names in PTX.
FLOAT8: Mapping[str, Any] = {"e4m3": ml_dtypes.float8_e4m3fn, "e5m2": ml_dtypes.float8_e5m2}

# Decoding takes some 15 operations: what takes more is something else.
_MOST_OPERATIONS = 24
_BYTES = np.arange(256, dtype=np.uint8)
_TYPES: Mapping[str, Any] = {
    "i1": np.bool_, "i8": np.uint8, "i16": np.uint16, "i32": np.uint32,
    "f32": np.float32, "bf16": ml_dtypes.bfloat16, "f16": np.float16,
}  # fmt: skip
_BINARY: Mapping[str, Callable[[Any, Any], Any]] = {
    "arith.andi": np.bitwise_and,
    "arith.ori": np.bitwise_or,
    "arith.xori": np.bitwise_xor,
    "arith.addi": np.add,
    "arith.subi": np.subtract,
    "arith.shli": np.left_shift,
    "arith.shrui": np.right_shift,
    "arith.mulf": np.multiply,
}
# By arith.cmpi's number.
_SIGNED: Mapping[int, Callable[[Any, Any], Any]] = {2: np.less, 3: np.less_equal, 4: np.greater, 5: np.greater_equal}
_COMPARED: Mapping[int, Callable[[Any, Any], Any]] = {
    0: np.equal, 1: np.not_equal, 6: np.less, 7: np.less_equal, 8: np.greater, 9: np.greater_equal,
}  # fmt: skip


def float8_format(factor: Factor) -> str | None:
    """The format whose numbers, as f32, a factor gives of bytes that it reads; None of one that is something else."""
    if len(factor.operands) != 1 or len(factor.operations) > _MOST_OPERATIONS or str(factor.value.type) != "f32":
        return None
    operand = factor.operands[0]
    if operand.buffer is None or str(operand.buffer.element) != "i8":
        return None
    found = _values(factor)
    return None if found is None else next((name for name in FLOAT8 if _is_decoded(found, name)), None)


def bytes_of(factor: Factor) -> Factor:
    """What a factor reads, as it is."""
    return factor.part(factor.operands[0].argument)


def _is_decoded(values: np.ndarray, name: str) -> bool:
    """Whether f32 are what all bytes mean: to the bit, but for which NaN it is."""
    meant = _BYTES.view(FLOAT8[name]).astype(np.float32)
    same = values.view(np.uint32) == meant.view(np.uint32)
    return bool((same | (np.isnan(values) & np.isnan(meant))).all())


def _values(factor: Factor) -> np.ndarray | None:
    """The f32 of each byte; None where an operation is not known here."""
    known: dict[ir.Value, Any] = {factor.operands[0].argument: _BYTES}
    with np.errstate(all="ignore"):
        for op in factor.operations:
            inputs = [known.get(v, _constant(v)) for v in op.operands]
            result = None if any(i is None for i in inputs) else _result(op, inputs)
            if result is None:
                return None
            known[op.results[0]] = result
    found = np.broadcast_to(known.get(factor.value, np.float32(0)), _BYTES.shape)
    return np.ascontiguousarray(found, np.float32)


def _result(op: ir.Operation, inputs: list[Any]) -> Any:
    """What an operation gives of values, or None."""
    kind = _TYPES.get(str(op.results[0].type))
    if kind is None:
        return None
    if op.name in _BINARY:
        return _BINARY[op.name](*inputs).astype(kind)
    if op.name == "arith.constant":
        return _constant(op.results[0])
    if op.name in ("arith.extui", "arith.extf", "arith.truncf"):
        return inputs[0].astype(kind)
    if op.name == "arith.extsi":
        return _as_signed(inputs[0]).astype(np.int64).astype(kind)
    if op.name == "arith.bitcast":
        return inputs[0].view(kind)
    if op.name == "arith.select":
        return np.where(*inputs).astype(kind)
    return _compared(op, inputs) if op.name == "arith.cmpi" else None


def _compared(op: ir.Operation, inputs: list[Any]) -> Any:
    predicate = ir.IntegerAttr(op.attributes["predicate"]).value
    if predicate in _SIGNED:
        return _SIGNED[predicate](*map(_as_signed, inputs))
    return _COMPARED[predicate](*inputs)


def _as_signed(values: Any) -> Any:
    return values.view(np.dtype(f"i{values.dtype.itemsize}")) if values.dtype.kind == "u" else values


def _constant(value: ir.Value) -> Any:
    """The number that a value is, or None."""
    if isinstance(value, ir.BlockArgument) or value.owner.name != "arith.constant":
        return None
    kind = _TYPES.get(str(value.type))
    attribute = value.owner.attributes["value"]
    if kind is None:
        return None
    if isinstance(attribute, ir.FloatAttr):
        return np.full(1, attribute.value, kind)
    number = ir.IntegerAttr(attribute).value
    return np.full(1, number, np.int64).astype(kind)

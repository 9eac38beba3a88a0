"""Arrays of ONNX's element types that relax has not: numbers of two bits, floats of four, FNUZ floats and scales, as bytes."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
from onnx import TensorProto

__all__ = ["as_codes", "coded_dtype", "from_codes", "is_coded"]

Array = np.ndarray[Any, Any]

_INTEGERS: dict[int, Any] = {TensorProto.INT2: ml_dtypes.int2, TensorProto.UINT2: ml_dtypes.uint2}
_FLOATS: dict[int, Any] = {
    TensorProto.FLOAT4E2M1: ml_dtypes.float4_e2m1fn,
    TensorProto.FLOAT8E4M3FNUZ: ml_dtypes.float8_e4m3fnuz,
    TensorProto.FLOAT8E5M2FNUZ: ml_dtypes.float8_e5m2fnuz,
    TensorProto.FLOAT8E8M0: ml_dtypes.float8_e8m0fnu,
}
_ELEMENTS = {np.dtype(dtype): element for element, dtype in {**_INTEGERS, **_FLOATS}.items()}


def is_coded(element: int) -> bool:
    """Whether an element type of ONNX is one of these."""
    return element in _INTEGERS or element in _FLOATS


def coded_dtype(element: int) -> np.dtype[Any]:
    """What NumPy has for it."""
    return np.dtype({**_INTEGERS, **_FLOATS}[element])


def as_codes(array: Array) -> Array:
    """An array of such an element type as bytes: integers as numbers, floats as their bits. Any other as it is."""
    element = _ELEMENTS.get(array.dtype)
    if element is None:
        return array
    if element in _INTEGERS:
        return array.astype(np.int8 if element == TensorProto.INT2 else np.uint8)
    return np.ascontiguousarray(array).view(np.uint8).reshape(array.shape)


def from_codes(array: Array, element: int) -> Array:
    """The other way round."""
    dtype = coded_dtype(element)
    return array.astype(dtype) if element in _INTEGERS else array.view(dtype)

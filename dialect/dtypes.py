"""Element types by name, as MLIR prints them (``f32``, ``bf16``, ``i1``), and their NumPy dtypes. Imports no MLIR."""

from __future__ import annotations

import ml_dtypes
import numpy as np
from numpy.typing import DTypeLike

from .errors import RelaxError

__all__ = ["dtype_name", "numpy_dtype"]

_NUMPY: dict[str, np.dtype] = {
    name: np.dtype(dtype)
    for name, dtype in {
        "f64": np.float64, "f32": np.float32, "f16": np.float16, "bf16": ml_dtypes.bfloat16,
        "f8E4M3FN": ml_dtypes.float8_e4m3fn, "f8E5M2": ml_dtypes.float8_e5m2, "f8E8M0FNU": ml_dtypes.float8_e8m0fnu,
        "i1": np.bool_, "i4": ml_dtypes.int4, "i8": np.int8, "i16": np.int16, "i32": np.int32, "i64": np.int64,
        "ui4": ml_dtypes.uint4, "ui8": np.uint8, "ui16": np.uint16, "ui32": np.uint32, "ui64": np.uint64,
    }.items()
}  # fmt: skip
_NAMES = {dtype: name for name, dtype in _NUMPY.items()}


def numpy_dtype(name: object) -> np.dtype:
    """The NumPy dtype of an MLIR element type or its name. Raises RelaxError when there is none."""
    found = _NUMPY.get(str(name))
    if found is None:
        raise RelaxError(f"expected an element type such as 'f32', got {name}")
    return found


def dtype_name(dtype: DTypeLike) -> str:
    """The MLIR name of a NumPy dtype. Raises RelaxError when there is none (objects, strings, complex numbers)."""
    found = _NAMES.get(np.dtype(dtype))
    if found is None:
        raise RelaxError(f"expected a numeric dtype, got {np.dtype(dtype)}")
    return found

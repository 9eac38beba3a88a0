"""How Relax dtypes are stored in linalg tensors, and in which type ops compute on them.

========================  =========  ==================================================================
Relax                     stored     computed as
========================  =========  ==================================================================
``i1``                    ``i8``     ``i1``; stored as 0 or 1
``i4``, ``ui4``           ``i8``     ``i8``, sign or zero extended; stored in the low four bits
``ui8`` ... ``ui64``      signless   signless, with unsigned operations
``f8E4M3FN``, ``f8E5M2``  ``i8``     ``f32``; stored as their bits
``f8E8M0FNU``             ``i8``     ``f32``; stored as its bits: a power of two, or NaN, which zeros become
``f16``, ``bf16``         as is      ``f32``
others                    as is      as is
========================  =========  ==================================================================
"""

from __future__ import annotations

from ...dialect.bindings import ir
from ...dialect.errors import RelaxError
from ...dialect.inference import is_float

__all__ = ["accumulator_type", "compute_type", "integer_range", "is_boolean", "is_unsigned", "storage_dtype", "storage_type"]

_FLOATS = ("f64", "f32", "f16", "bf16", "f8E4M3FN", "f8E5M2", "f8E8M0FNU")
_INTEGERS = ("i1", "i4", "i8", "i16", "i32", "i64", "ui4", "ui8", "ui16", "ui32", "ui64")


def is_boolean(dtype: ir.Type) -> bool:
    """Whether a dtype is ``i1``."""
    return isinstance(dtype, ir.IntegerType) and dtype.width == 1


def is_unsigned(dtype: ir.Type) -> bool:
    """Whether values of a dtype have no sign: unsigned integers and truth values."""
    return isinstance(dtype, ir.IntegerType) and (dtype.is_unsigned or dtype.width == 1)


def storage_dtype(dtype: ir.Type) -> ir.Type:
    """The element type that holds a dtype in memory. Raises RelaxError for a dtype that is not supported."""
    if isinstance(dtype, ir.F32Type | ir.F16Type | ir.BF16Type | ir.F64Type | ir.IndexType):
        return dtype
    if isinstance(dtype, ir.IntegerType):
        if str(dtype) not in _INTEGERS:
            raise RelaxError(f"expected one of the dtypes {', '.join(_FLOATS + _INTEGERS)}, got {dtype}")
        return ir.IntegerType.get_signless(max(8, dtype.width))
    if str(dtype) not in _FLOATS:
        raise RelaxError(f"expected one of the dtypes {', '.join(_FLOATS + _INTEGERS)}, got {dtype}")
    return ir.IntegerType.get_signless(8)


def storage_type(type_: ir.Type) -> ir.Type:
    """The plain tensor type that holds a relax tensor; types that are no ranked tensors are unchanged."""
    if not isinstance(type_, ir.RankedTensorType):
        return type_
    stored = storage_dtype(type_.element_type)
    if type_.encoding is None and stored == type_.element_type:
        return type_
    return ir.RankedTensorType.get(list(type_.shape), stored)


def compute_type(dtype: ir.Type) -> ir.Type:
    """The scalar type that ops compute in."""
    if is_float(dtype):
        return dtype if dtype.width >= 32 else ir.F32Type.get()
    return dtype if is_boolean(dtype) else storage_dtype(dtype)


def accumulator_type(dtype: ir.Type) -> ir.Type:
    """The element type of a tensor that gathers sums of a dtype: f32 for narrow floats, else how the dtype is stored."""
    return compute_type(dtype) if is_float(dtype) else storage_dtype(dtype)


def integer_range(dtype: ir.Type) -> tuple[int, int]:
    """The least and the greatest value of an integer dtype."""
    if not isinstance(dtype, ir.IntegerType):
        raise RelaxError(f"expected an integer dtype, got {dtype}")
    if is_unsigned(dtype):
        return 0, 2**dtype.width - 1
    return -(2 ** (dtype.width - 1)), 2 ** (dtype.width - 1) - 1

"""Which conversions between element types keep every value, and so can be left out on the way to a third type."""

from __future__ import annotations

from dataclasses import dataclass

import ml_dtypes
import numpy as np

from ..bindings import ir
from ..dtypes import numpy_dtype
from ..errors import RelaxError

__all__ = ["is_lossless"]


@dataclass(frozen=True)
class _Range:
    """The values of a dtype.

    Attributes:
        bits: significant binary digits.
        low, high: magnitudes other than 0 are at least ``2 ** low`` and below ``2 ** high`` (an integer's lowest is that).
        signed: whether there are negative values.
        infinite: whether there are infinities (a float without them, such as f8E4M3FN, turns them into NaN).
        is_float: whether there are fractions and NaN.
    """

    bits: int
    low: int
    high: int
    signed: bool
    infinite: bool
    is_float: bool


def is_lossless(source: ir.Type, wide: ir.Type, target: ir.Type) -> bool:
    """Whether converting through ``wide`` on the way to ``target`` gives the same as converting directly.

    What an integer target cannot hold wraps when it comes from an integer, but not always when it comes from a float; so an
    integer only passes through a float on the way to a float.
    """
    if target == source and _holds(wide, source):
        return True
    integers = isinstance(source, ir.IntegerType) and isinstance(target, ir.IntegerType)
    through_float = integers and isinstance(wide, ir.FloatType)
    return not through_float and _holds(wide, source)


def _holds(wide: ir.Type, narrow: ir.Type) -> bool:
    big, small = _range(wide), _range(narrow)
    if big is None or small is None or wide == narrow:
        return wide == narrow
    if small.is_float and not big.is_float:
        return False
    fits = big.bits >= small.bits and big.low <= small.low and big.high >= small.high
    return fits and (big.signed or not small.signed) and (big.infinite or not small.infinite)


def _range(type_: ir.Type) -> _Range | None:
    try:
        dtype = numpy_dtype(type_)
    except RelaxError:
        return None
    if dtype == np.bool_:
        return _Range(1, 0, 1, False, False, False)
    if isinstance(type_, ir.IntegerType):
        info = ml_dtypes.iinfo(dtype)
        signed = info.min < 0
        bits = type_.width - signed
        return _Range(bits, 0, bits, signed, False, False)
    limits = ml_dtypes.finfo(dtype)
    # The smallest subnormal has the exponent minexp - nmant.
    return _Range(limits.nmant + 1, int(limits.minexp - limits.nmant), int(limits.maxexp), True, "fn" not in dtype.name, True)

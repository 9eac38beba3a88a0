"""Reductions and scans along axes."""

from __future__ import annotations

from collections.abc import Sequence

from .. import attributes, dim_ties, image_rules, op_costs
from ..inference import normalize_axes, normalize_axis, require_float, require_number
from ..op import Attrs, Narrow, Op, Operand, Result, Tensor
from ..struct_info import TensorInfo
from ..symbolic import Dim

__all__ = ["CumMax", "CumMin", "CumProd", "CumSum", "Max", "Mean", "Min", "Prod", "Sum", "Variance"]


def _reduced(shape: Sequence[Dim], axes: Sequence[int], keepdims: bool) -> list[Dim]:
    if keepdims:
        return [1 if i in axes else d for i, d in enumerate(shape)]
    return [d for i, d in enumerate(shape) if i not in axes]


class _Reduction(Op):
    """Base: one value per row. ``axis`` is a list of axes (absent: all of them), ``keepdims`` keeps them with size one."""

    x: Operand[Tensor]
    result: Result[Tensor]
    attrs = {"axis": attributes.integers(default=None), "keepdims": attributes.boolean(default=False)}
    cost = op_costs.REDUCES
    image = image_rules.REDUCTION
    ties = dim_ties.REDUCED

    @staticmethod
    def infer(operands: list[TensorInfo], attrs: Attrs) -> TensorInfo:
        (x,) = operands
        return x.with_(shape=_reduced(x.shape, normalize_axes(attrs["axis"], x.rank), attrs["keepdims"]))


class _FloatReduction(_Reduction):
    """Base: like :class:`_Reduction`, floating point only."""

    @staticmethod
    def infer(operands: list[TensorInfo], attrs: Attrs) -> TensorInfo:
        require_float(operands[0])
        return _Reduction.infer(operands, attrs)


class _NumberReduction(_Reduction):
    """Base: like :class:`_Reduction`, not for truth values."""

    @staticmethod
    def infer(operands: list[TensorInfo], attrs: Attrs) -> TensorInfo:
        require_number(operands[0])
        return _Reduction.infer(operands, attrs)


class Sum(_NumberReduction, name="sum"):
    """Sum, in f32 for narrower floats, wrapping for integers; of no elements it is 0."""


class Prod(_NumberReduction, name="prod"):
    """Product, in f32 for narrower floats, wrapping for integers; of no elements it is 1."""


class Max(_Reduction, name="max"):
    """Largest element; NaN if one is NaN. Of no elements it is -inf, or the least value of an integer dtype."""

    narrow = Narrow.FOLLOWS


class Min(_Reduction, name="min"):
    """Smallest element; NaN if one is NaN. Of no elements it is inf, or the greatest value of an integer dtype."""

    narrow = Narrow.FOLLOWS


class Mean(_FloatReduction, name="mean"):
    """Sum divided by the count, in f32 for narrower floats; of no elements it is NaN."""


class Variance(_FloatReduction, name="variance"):
    """Mean squared distance from the mean (divided by the count, not by the count less one), in f32 for narrower floats."""


class _Scan(Op):
    """Base: a running value along an axis, in f32 for narrower floats; ``exclusive`` leaves the element itself out."""

    x: Operand[Tensor]
    result: Result[Tensor]
    attrs = {"axis": attributes.integer(), "exclusive": attributes.boolean(default=False)}
    image = image_rules.AXIS

    @staticmethod
    def infer(operands: list[TensorInfo], attrs: Attrs) -> TensorInfo:
        (x,) = operands
        require_number(x)
        normalize_axis(attrs["axis"], x.rank)
        return x


class CumSum(_Scan, name="cumsum"):
    """Running sum along an axis, in f32 for narrower floats; ``exclusive`` leaves the element itself out."""


class CumProd(_Scan, name="cumprod"):
    """Running product along an axis, in f32 for narrower floats; ``exclusive`` leaves the element itself out."""


class CumMax(_Scan, name="cummax"):
    """Largest element up to each along an axis, NaN from the first NaN on; ``exclusive`` leaves the element itself out.

    With ``exclusive``, the first is -inf, or the least value of an integer dtype.
    """

    narrow = Narrow.FOLLOWS


class CumMin(_Scan, name="cummin"):
    """Smallest element up to each along an axis, NaN from the first NaN on; ``exclusive`` leaves the element itself out.

    With ``exclusive``, the first is inf, or the greatest value of an integer dtype.
    """

    narrow = Narrow.FOLLOWS

"""Matrix products, and the packed weight layout that the CPU kernels read."""

from __future__ import annotations

from .. import attributes, costs
from ..bindings import ir
from ..errors import RelaxError
from ..inference import (
    broadcast_shapes,
    is_float,
    is_integer,
    require_float,
    require_number,
    require_rank,
    require_same_dtype,
)
from ..op import Attrs, Narrow, Op, Operand, Result, Tensor
from ..size_relations import require_same, shape_text
from ..struct_info import TensorInfo
from ..symbolic import Dim

__all__ = ["MatMul", "PackWeight", "PackedMatMul"]


class MatMul(Op, name="matmul"):
    """Matrix product ``[..., m, k] x [..., k, n] -> [..., m, n]`` with broadcast batch dimensions.

    A one-dimensional operand is a row (left) or a column (right), and its dimension is dropped from the result, as in NumPy.
    Products are summed in f32 (f64 for f64 operands) and rounded once to ``out_dtype``, by default the operands' dtype. Of
    integers, products and sums are in ``out_dtype`` and wrap.
    """

    lhs: Operand[Tensor]
    rhs: Operand[Tensor]
    result: Result[Tensor]
    attrs = {"out_dtype": attributes.dtype(default=None)}
    cost = costs.PRODUCT
    narrow = Narrow.ALWAYS

    @staticmethod
    def infer(operands: list[TensorInfo], attrs: Attrs) -> TensorInfo:
        lhs, rhs = operands
        require_number(lhs)
        require_same_dtype(lhs, rhs)
        _check_kind(lhs, attrs["out_dtype"])
        if not lhs.rank or not rhs.rank:
            raise RelaxError("expected operands of rank 1 or more, got a scalar")
        left = list(lhs.shape) if lhs.rank > 1 else [1, *lhs.shape]
        right = list(rhs.shape) if rhs.rank > 1 else [*rhs.shape, 1]
        _check_inner(left[-1], right[-2], lhs, rhs)
        tail = ([left[-2]] if lhs.rank > 1 else []) + ([right[-1]] if rhs.rank > 1 else [])
        shape = broadcast_shapes(left[:-2], right[:-2]) + tail
        return lhs.with_(shape=shape, dtype=attrs["out_dtype"])


class PackWeight(Op, name="pack_weight"):
    """A matrix ``[k, n]`` as panels of ``tile`` columns: ``[ceil(n / tile), k, tile]``, zero padded at the right edge.

    A kernel then reads the weight as one forward stream, and sees no edge in n. An op on weights alone, so lifting moves it to
    preparation time. With a ``group`` of rows, those of a column are neighbours, for instructions that sum their products:
    ``[ceil(n / tile), ceil(k / group), tile, group]``, zero beyond row ``k``.
    """

    x: Operand[Tensor]
    result: Result[Tensor]
    attrs = {"tile": attributes.integer(), "group": attributes.integer(default=1)}
    cost = costs.MOVES

    @staticmethod
    def infer(operands: list[TensorInfo], attrs: Attrs) -> TensorInfo:
        (x,) = operands
        require_rank(x, 2)
        tile, group = attrs["tile"], attrs["group"]
        for name, value in (("tile", tile), ("group", group)):
            if value < 1:
                raise RelaxError(f"expected a positive {name}, got {value}")
        k, n = x.shape
        panels = None if n is None else (n + tile - 1) // tile
        if group == 1:
            return x.with_(shape=[panels, k, tile])
        return x.with_(shape=[panels, None if k is None else (k + group - 1) // group, tile, group])


class PackedMatMul(Op, name="packed_matmul"):
    """``x[..., m, k]`` times a matrix of ``n`` columns packed by :class:`PackWeight`, with groups or without: ``[..., m, n]``.

    Sums as :class:`MatMul` does.
    """

    x: Operand[Tensor]
    weight: Operand[Tensor]
    result: Result[Tensor]
    attrs = {"n": attributes.integer(), "out_dtype": attributes.dtype(default=None)}
    cost = costs.PRODUCT

    @staticmethod
    def infer(operands: list[TensorInfo], attrs: Attrs) -> TensorInfo:
        x, weight = operands
        require_float(x)
        require_same_dtype(x, weight)
        _check_kind(x, attrs["out_dtype"])
        if weight.rank != 4:
            require_rank(weight, 3, "weight")
        panels, rows, tile = weight.shape[:3]
        if not x.rank:
            raise RelaxError(f"expected equal inner dimensions, got [] and {shape_text(weight.shape)}")
        _check_inner(_groups(x.shape[-1], weight), rows, x, weight)
        _check_columns(attrs["n"], panels, tile)
        return x.with_(shape=[*x.shape[:-1], attrs["n"]], dtype=attrs["out_dtype"])


def _check_inner(left: Dim, right: Dim, *operands: TensorInfo) -> None:
    shapes = " and ".join(shape_text(info.shape) for info in operands)
    require_same(left, right, f"expected equal inner dimensions, got {shapes}")


def _groups(k: Dim, weight: TensorInfo) -> Dim:
    """How many groups of rows of a packed weight ``k`` rows are. Raises RelaxError when their size is not known."""
    if weight.rank == 3 or k is None:
        return k
    group = weight.shape[3]
    if not isinstance(group, int) or group < 1:
        raise RelaxError(f"expected a packed weight of static groups, got {shape_text(weight.shape)}")
    return (k + group - 1) // group


def _check_kind(operand: TensorInfo, out_dtype: ir.Type | None) -> None:
    if out_dtype is not None and not (is_float if is_float(operand.dtype) else is_integer)(out_dtype):
        raise RelaxError(f"expected an out_dtype of the operands' kind, got {out_dtype} for {operand.dtype}")


def _check_columns(n: int, panels: Dim, tile: Dim, name: str = "n") -> int:
    """The width of a panel. Raises RelaxError when the columns would not be in that many."""
    if not isinstance(panels, int) or not isinstance(tile, int):
        raise RelaxError("expected a packed weight of static panels")
    if not (panels - 1) * tile < n <= panels * tile:
        raise RelaxError(f"expected {name} in ({(panels - 1) * tile}, {panels * tile}] for {panels} panels of {tile}, got {n}")
    return tile

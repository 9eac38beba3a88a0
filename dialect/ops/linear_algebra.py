"""Matrix products, and the packed weight layout that the CPU kernels read."""

from __future__ import annotations

from .. import attributes, dim_ties, op_costs
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
from ..packed_weights import require_elements, require_panels
from ..size_relations import require_same, shape_text
from ..struct_info import TensorInfo
from ..symbolic import Dim

__all__ = ["GroupedMatMul", "MatMul", "PackWeight", "PackedGroupedMatMul", "PackedMatMul"]


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
    cost = op_costs.PRODUCT
    narrow = Narrow.ALWAYS
    ties = dim_ties.PRODUCT

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
    """A matrix ``[k, n]`` in a :class:`~relaxir.dialect.packed_layout.PackedLayout`: panels of columns, zeros at their edges.

    A kernel then reads the weight as one forward stream, and sees no edge in n. An op on weights alone, so lifting moves it to
    preparation time. Elements stay what they are: :class:`PackNibbles` puts them in words.
    """

    x: Operand[Tensor]
    result: Result[Tensor]
    attrs = {"layout": attributes.packed_layout()}
    cost = op_costs.MOVES
    ties = dim_ties.PACKED

    @staticmethod
    def infer(operands: list[TensorInfo], attrs: Attrs) -> TensorInfo:
        (x,) = operands
        require_rank(x, 2)
        return x.with_(shape=require_elements(attrs["layout"]).shape(*x.shape))


class PackedMatMul(Op, name="packed_matmul"):
    """``x[..., m, k]`` times a matrix of ``n`` columns packed by :class:`PackWeight`: ``[..., m, n]``.

    Sums as :class:`MatMul` does.
    """

    x: Operand[Tensor]
    weight: Operand[Tensor]
    result: Result[Tensor]
    attrs = {
        "layout": attributes.packed_layout(),
        "n": attributes.integer(),
        "out_dtype": attributes.dtype(default=None),
    }
    cost = op_costs.PRODUCT
    packed = "weight"

    @staticmethod
    def infer(operands: list[TensorInfo], attrs: Attrs) -> TensorInfo:
        x, weight = operands
        require_float(x)
        require_same_dtype(x, weight)
        _check_kind(x, attrs["out_dtype"])
        if not x.rank:
            raise RelaxError("expected an operand of rank 1 or more, got a scalar")
        layout = require_elements(attrs["layout"])
        require_panels(weight, layout, attrs["n"])
        _check_inner(layout.depth(x.shape[-1]), weight.shape[1], x, weight)
        return x.with_(shape=[*x.shape[:-1], attrs["n"]], dtype=attrs["out_dtype"])


class GroupedMatMul(Op, name="grouped_matmul"):
    """Rows in groups, one after the other, each times the matrix of its group, as experts of a model compute them.

    ``lhs[m, k]`` times the block of ``n`` columns of ``rhs[k, groups * n]`` that belongs to the row's group: ``[m, n]``. The
    rows of a group end in front of row ``ends[group]``, and begin where those of the group before it end; rows behind the last
    group give 0. Ends are in ascending order and at most ``m``; of others results say nothing. Sums as :class:`MatMul` does.
    """

    lhs: Operand[Tensor]
    rhs: Operand[Tensor]
    ends: Operand[Tensor]
    result: Result[Tensor]
    attrs = {"out_dtype": attributes.dtype(default=None)}
    cost = op_costs.PRODUCT
    narrow = Narrow.ALWAYS

    @staticmethod
    def infer(operands: list[TensorInfo], attrs: Attrs) -> TensorInfo:
        lhs, rhs, ends = operands
        require_rank(rhs, 2)
        require_same_dtype(lhs, rhs)
        _check_inner(lhs.shape[-1], rhs.shape[0], lhs, rhs)
        return _grouped(lhs, rhs.shape[1], ends, attrs)


class PackedGroupedMatMul(Op, name="packed_grouped_matmul"):
    """:class:`GroupedMatMul` with a matrix packed by :class:`PackWeight`, whose columns, of all groups, are ``n``."""

    x: Operand[Tensor]
    weight: Operand[Tensor]
    ends: Operand[Tensor]
    result: Result[Tensor]
    attrs = PackedMatMul.attrs
    cost = op_costs.PRODUCT
    packed = "weight"

    @staticmethod
    def infer(operands: list[TensorInfo], attrs: Attrs) -> TensorInfo:
        x, weight, ends = operands
        require_same_dtype(x, weight)
        layout = require_elements(attrs["layout"])
        require_panels(weight, layout, attrs["n"])
        _check_inner(layout.depth(x.shape[-1]), weight.shape[1], x, weight)
        return _grouped(x, attrs["n"], ends, attrs)


def _grouped(rows: TensorInfo, columns: Dim, ends: TensorInfo, attrs: Attrs) -> TensorInfo:
    """What rows in groups give, by a matrix of so many columns."""
    require_float(rows)
    _check_kind(rows, attrs["out_dtype"])
    require_rank(rows, 2)
    return rows.with_(shape=[rows.shape[0], columns_of_group(columns, ends)], dtype=attrs["out_dtype"])


def columns_of_group(columns: Dim, ends: TensorInfo) -> int:
    """The columns that each group has of so many, by the ends of groups. Raises RelaxError where these do not fit."""
    require_rank(ends, 1)
    (groups,) = ends.shape
    if not is_integer(ends.dtype):
        raise RelaxError(f"expected ends of integers, got {ends.dtype}")
    if not isinstance(groups, int) or groups < 1:
        raise RelaxError(f"expected a known number of groups, got {shape_text(ends.shape)}")
    if not isinstance(columns, int) or columns % groups:
        raise RelaxError(f"expected columns that {groups} groups share equally, got {columns}")
    return columns // groups


def _check_inner(left: Dim, right: Dim, *operands: TensorInfo) -> None:
    shapes = " and ".join(shape_text(info.shape) for info in operands)
    require_same(left, right, f"expected equal inner dimensions, got {shapes}")


def _check_kind(operand: TensorInfo, out_dtype: ir.Type | None) -> None:
    if out_dtype is not None and not (is_float if is_float(operand.dtype) else is_integer)(out_dtype):
        raise RelaxError(f"expected an out_dtype of the operands' kind, got {out_dtype} for {operand.dtype}")

"""Products of rows in groups as one contraction, a sum over all groups and k in which a row of another group counts as zeros::

    linalg.generic {iterator_types = [parallel, parallel, reduction, reduction], relax.contraction, relax.row_groups}
        ins(%x, %w, %ends)       // x[m, k], w at column g * columns + n, ends[g]
    { sum + (begin of g <= m and m < %ends[g] ? x : 0) * w }

So it is right for every kernel, and one that knows the mark computes each row's own product alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ...dialect.bindings import ir
from ...dialect.struct_info import TensorInfo
from ..marks import ROW_GROUPS
from .builder import LinalgBuilder, Tensor, index, read
from .contraction import FactorTensor, contraction_mark, converted, factor, keeps_sums, layout_mark, sum_dtype
from .dtypes import accumulator_type, storage_dtype
from .kernel import call_kernel
from .scalar import Scalar, emit, maximum, select

__all__ = ["GROUP", "ROW", "group_mark", "group_products", "is_of_group"]

_KINDS = "pprr"
#: The loops over rows and groups.
ROW, GROUP = 0, 2


def group_products(b: LinalgBuilder, left: FactorTensor, right: FactorTensor, ends: Tensor, result: TensorInfo) -> ir.Value:
    """The products by a call.

    Args:
        b: the builder.
        left: the rows, read in loops over rows, columns, groups and k, as the other one is.
        right: the matrices.
        ends: where the rows of each group end, ``[groups]``.
        result: of the op.
    """
    dtype, source = result.dtype, sum_dtype(left.dtype, result.dtype)
    _, columns = result.shape
    assert isinstance(columns, int)
    out = b.empty([b.value_sizes(left.value)[0], columns], storage_dtype(dtype))
    key = (_KINDS, *map(str, (left.dtype, right.dtype, dtype)), str(b.map(len(_KINDS), right.exprs)))

    def body(arguments: Sequence[ir.Value]) -> ir.Value:
        x, y, ends_, out = arguments
        direct = keeps_sums(source, dtype)
        start = b.fill(out if direct else b.empty(b.value_sizes(out), accumulator_type(source)), 0)
        summed = _add_products(b, replace(left, value=x), replace(right, value=y), ends_, start, source)
        return summed if direct else converted(b, summed, source, dtype, out)

    return call_kernel(b, "contraction", [left.value, right.value, ends.value], out, key, body)


def _add_products(
    b: LinalgBuilder, left: FactorTensor, right: FactorTensor, ends: ir.Value, start: ir.Value, source: ir.Type
) -> ir.Value:
    """The contraction itself: adds the products to ``start``, in the type that ``source`` is summed in."""

    def body(x: ir.Value, y: ir.Value, end: ir.Value, total: ir.Value) -> ir.Value:
        own = select(is_of_group(ends, end), factor(x, left.dtype, source), 0)
        return (Scalar(total) + own * factor(y, right.dtype, source)).value

    inputs = [(left.value, left.exprs), (right.value, right.exprs), (ends, [GROUP])]
    mark = contraction_mark() | layout_mark(right) | group_mark()
    return b.generic(_KINDS, inputs, start, body, range(2), mark)


def group_mark() -> dict[str, ir.Attribute]:
    """What says that rows are masked by groups."""
    return {ROW_GROUPS: ir.UnitAttr.get()}


def is_of_group(ends: ir.Value, end: ir.Value) -> Scalar:
    """Whether the row is of the group, by the ends of all groups and that of this one, in a body."""
    row, group = index(ROW), index(GROUP)
    begin = select(group.compare("eq", 0), 0, _index_of(read(ends, [maximum(group - 1, 0)])))
    return row.compare("ge", begin) & row.compare("lt", _index_of(end))


def _index_of(end: ir.Value) -> Scalar:
    return Scalar(emit("arith.index_cast", ir.IndexType.get(), end))

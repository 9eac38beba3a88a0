"""Matrix products over a packed right-hand side, and packing."""

from __future__ import annotations

from ...dialect.bindings import ir
from ...dialect.inference import is_float
from ...dialect.packed_layout import PackedLayout
from ...dialect.struct_info import TensorInfo
from .builder import LinalgBuilder, Size, Tensor, value_type
from .contraction import FactorTensor, Matrix, contract, converted, factor, pack, pack_in_groups, sum_dtype
from .conversion import load
from .dtypes import accumulator_type
from .grouped_products import group_products
from .registry import Source, lowering
from .reshaping import drop_axes, restore_axes
from .scalar import Scalar

__all__: list[str] = []


@lowering("relax.pack_weight")
def _lower_pack_weight(b: LinalgBuilder, source: Source) -> ir.Value:
    (x,) = source.operands
    layout = source.attrs["layout"]
    return pack_in_groups(b, x, layout) if layout.has_neighbours else pack(b, x, layout.tile)


@lowering("relax.packed_matmul")
def _lower_packed_matmul(b: LinalgBuilder, source: Source) -> ir.Value:
    (x, weight), layout = source.operands, source.attrs["layout"]
    x = x if b.panels else _narrow(x)
    # Instructions that sum groups of rows read a factor as it is.
    row, wide = x.rank == 1, _widened(b, x) if b.panels and not layout.has_neighbours else x.value
    left = restore_axes(b, wide, [0]) if row else wide
    sizes: list[Size] = [*([1] if row else b.sizes(x)[:-1]), source.attrs["n"]]
    matrices = Matrix(left, x.dtype, range(len(sizes) - 2)), Matrix(weight.value, weight.dtype, (), layout)
    result = contract(b, *matrices, sizes, source.result.dtype)
    return drop_axes(b, result, [0]) if row else result


@lowering("relax.matmul")
def _lower_matmul(b: LinalgBuilder, source: Source) -> ir.Value:
    lhs, rhs = source.operands
    if rhs.rank == 1:
        return _matrix_vector(b, lhs, rhs, source.result)
    row, wide = lhs.rank == 1, _widened(b, lhs) if b.panels else lhs.value
    left = restore_axes(b, wide, [0]) if row else wide
    batch = source.result.with_(shape=source.result.shape[: source.result.rank - (1 if row else 2)])
    left_batch, right_batch = _batch(lhs, 1 if row else 2), _batch(rhs, 2)
    sizes = b.broadcast_sizes([left_batch, right_batch], batch)
    sizes += [1 if row else b.size(lhs, lhs.rank - 2), b.size(rhs, rhs.rank - 1)]
    right = pack(b, rhs, b.tile, widen=True) if b.panels else rhs.value
    layout = PackedLayout(b.tile) if b.panels else None
    matrices = (
        Matrix(left, lhs.dtype, b.broadcast_exprs(left_batch, batch)),
        Matrix(right, rhs.dtype, b.broadcast_exprs(right_batch, batch), layout),
    )
    result = contract(b, *matrices, sizes, source.result.dtype)
    return drop_axes(b, result, [len(sizes) - 2]) if row else result


@lowering("relax.grouped_matmul")
def _lower_grouped_matmul(b: LinalgBuilder, source: Source) -> ir.Value:
    lhs, rhs, ends = source.operands
    k, m = ir.AffineExpr.get_dim(3), ir.AffineExpr.get_dim(0)
    columns = source.result.shape[1]
    assert isinstance(columns, int)
    right = FactorTensor(rhs.value, rhs.dtype, [k, _column_of_group(columns)])
    return group_products(b, FactorTensor(lhs.value, lhs.dtype, [m, k]), right, ends, source.result)


@lowering("relax.packed_grouped_matmul")
def _lower_packed_grouped_matmul(b: LinalgBuilder, source: Source) -> ir.Value:
    (x, weight, ends), layout = source.operands, source.attrs["layout"]
    x = x if b.panels else _narrow(x)
    k, m = ir.AffineExpr.get_dim(3), ir.AffineExpr.get_dim(0)
    columns = source.result.shape[1]
    assert isinstance(columns, int)
    place = layout.place(k, _column_of_group(columns), ir.AffineExpr.get_floor_div)
    right = FactorTensor(weight.value, weight.dtype, place, layout)
    return group_products(b, FactorTensor(x.value, x.dtype, [m, k]), right, ends, source.result)


def _column_of_group(columns: int) -> ir.AffineExpr:
    """Where in the matrix of all groups a column of a group's is, in loops over rows, columns, groups and k."""
    return ir.AffineExpr.get_dim(2) * columns + ir.AffineExpr.get_dim(1)


def _widened(b: LinalgBuilder, x: Tensor) -> ir.Value:
    """Narrow floats in the type that sums are taken in, converted once instead of once per panel of columns.

    Scalars take longer to convert than to multiply: 128 rows of 1024 x 1024 on Zen 3 in times of f32, bf16 1.7 and f16 3.1
    without this.
    """
    wide = accumulator_type(x.dtype)
    if not is_float(x.dtype) or value_type(x.value).element_type == wide:
        return x.value
    loops = range(x.rank)
    out = b.empty(b.sizes(x), wide)
    return b.generic("p" * x.rank, [(x.value, loops)], out, lambda e, _: load(e, x.dtype).value)


def _narrow(x: Tensor) -> Tensor:
    """A factor of f32 that was only widened as it was, for kernels that read it so."""
    made = x.value.owner
    if isinstance(made, ir.Block) or made.name != "linalg.generic" or len(made.operands) != 2:
        return x
    widening, *others = (op.operation for op in made.regions[0].blocks[0].operations)
    same = len(set(ir.ArrayAttr(made.attributes["indexing_maps"]))) == 1
    if widening.name != "arith.extf" or len(others) != 1 or not same:
        return x
    return Tensor(made.operands[0], x.info.with_(dtype=widening.operands[0].type))


def _batch(x: Tensor, matrix: int) -> Tensor:
    """The tensor seen as if it had its batch dimensions only."""
    return Tensor(x.value, x.info.with_(shape=x.shape[: x.rank - matrix]))


def _matrix_vector(b: LinalgBuilder, lhs: Tensor, rhs: Tensor, result: TensorInfo) -> ir.Value:
    """Each row times the vector: a reduction, as there is no second column to share the row with."""
    source = sum_dtype(lhs.dtype, result.dtype)
    sizes = b.sizes(lhs)[:-1]
    rank = len(sizes)

    def body(x: ir.Value, y: ir.Value, total: ir.Value) -> ir.Value:
        return (Scalar(total) + factor(x, lhs.dtype, source) * factor(y, rhs.dtype, source)).value

    start = b.filled(sizes, accumulator_type(source), 0)
    inputs = [(lhs.value, range(rank + 1)), (rhs.value, [rank])]
    summed = b.generic("p" * rank + "r", inputs, start, body, range(rank))
    return converted(b, summed, source, result.dtype)

"""Matrix products as calls of private functions over a packed right-hand side; equal functions are one.

The right-hand side is packed (:class:`~relaxir.dialect.packed_layout.PackedLayout`), here in panels of 32 columns::

    func.func private @contraction_0(%a: tensor<?x768xf32>, %b: tensor<96x768x32xf32>,
        %out: tensor<?x3072xf32> {bufferization.writable = true}) -> tensor<?x3072xf32> attributes {no_inline, relax.kernel} {
      %0 = linalg.fill ins(%zero) outs(%out)
      %1 = linalg.generic {indexing_maps = [(m, n, k) -> (m, k), (m, n, k) -> (n floordiv 32, k, n mod 32),
                                            (m, n, k) -> (m, n)],
                           iterator_types = [parallel, parallel, reduction], relax.contraction,
                           relax.layout = "tile 32"} ins(%a, %b) outs(%0) {...}
      return %1
    }

Sums are taken in f32 for narrow floats; a result of another dtype is converted by a second generic of the same function.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from ...dialect.bindings import ir
from ...dialect.inference import is_float
from ...dialect.packed_layout import PackedLayout
from ..marks import CONTRACTION, LAYOUT
from .builder import Exprs, Input, LinalgBuilder, Size, Tensor, index, read, value_type
from .conversion import convert, load
from .dtypes import accumulator_type, storage_dtype
from .kernel import call_kernel
from .scalar import Scalar, minimum, select
from .views import permuted_from

__all__ = [
    "FactorTensor",
    "Matrix",
    "add_products",
    "contract",
    "contraction_mark",
    "converted",
    "factor",
    "keeps_sums",
    "layout_mark",
    "pack",
    "pack_in_groups",
    "products",
    "sum_dtype",
    "sum_products",
]


@dataclass(frozen=True)
class Matrix:
    """An operand of a contraction.

    Attributes:
        value: ``[batch..., m, k]`` on the left, ``[batch..., *layout.shape(k, n)]`` on the right.
        dtype: the Relax dtype of its elements.
        batch: where its batch dimensions are among the result's: loop numbers, ZERO, or expressions of them.
        layout: how one on the right is packed; None: it is ``[batch..., k, n]``.
    """

    value: ir.Value
    dtype: ir.Type
    batch: Exprs
    layout: PackedLayout | None = None


def pack(b: LinalgBuilder, x: Tensor, tile: int, *, widen: bool = False) -> ir.Value:
    """Packs matrices ``[batch..., k, n]``.

    ``widen`` stores the type that sums are taken in, which a matrix that was computed at run time is read as anyway.
    """
    *batch, k, n = b.value_sizes(x.value)
    element = accumulator_type(x.dtype) if widen and is_float(x.dtype) else value_type(x.value).element_type
    out = b.empty([*batch, b.arith("ceildivsi", n, tile), k, tile], element)
    first = len(batch)
    loops = [ir.AffineExpr.get_dim(i) for i in range(first + 3)]

    def element_of(e: ir.Value) -> ir.Value:
        return load(e, x.dtype).value if element != e.type else e

    if isinstance(n, int) and n % tile == 0:
        column = loops[first] * tile + loops[first + 2]
        places = [*loops[:first], loops[first + 1], column]
        return b.generic("p" * len(loops), [(x.value, places)], out, lambda e, _: element_of(e))
    width = Scalar(b.as_index(n))
    last = width - 1

    def padded(_: ir.Value) -> ir.Value:
        *matrix, panel, row, lane = (index(i) for i in range(len(loops)))
        position = panel * tile + lane
        inside = position.compare("lt", width)
        clamped = select(inside, position, last)
        return select(inside, Scalar(element_of(read(x.value, [*matrix, row, clamped]))), 0).value

    return b.generic("p" * len(loops), [], out, padded)


def pack_in_groups(b: LinalgBuilder, x: Tensor, layout: PackedLayout) -> ir.Value:
    """Packs a matrix ``[k, n]`` so that some rows of a column are neighbours."""
    tile, group = layout.tile, layout.rows
    k, n = b.value_sizes(x.value)
    out = b.empty(
        [b.arith("ceildivsi", n, tile), b.arith("ceildivsi", k, group), tile, group], value_type(x.value).element_type
    )
    panel, rows, lane, row = (ir.AffineExpr.get_dim(i) for i in range(4))
    if isinstance(k, int) and isinstance(n, int) and k % group == n % tile == 0:
        return b.generic("pppp", [(x.value, [rows * group + row, panel * tile + lane])], out, lambda e, _: e)

    def padded(_: ir.Value) -> ir.Value:
        panel, rows, lane, row = (index(i) for i in range(4))
        places = [(rows * group + row, Scalar(b.as_index(k))), (panel * tile + lane, Scalar(b.as_index(n)))]
        (row_exists, column_exists) = (at.compare("lt", size) for at, size in places)
        inside = row_exists & column_exists
        clamped = [minimum(at, size - 1) for at, size in places]
        return select(inside, Scalar(read(x.value, clamped)), 0).value

    return b.generic("pppp", [], out, padded)


@dataclass(frozen=True)
class FactorTensor:
    """One factor of the products of a contraction.

    Attributes:
        value: a tensor.
        dtype: the Relax dtype of its elements.
        exprs: where it is read.
        layout: how a packed one is.
    """

    value: ir.Value
    dtype: ir.Type
    exprs: Exprs
    layout: PackedLayout | None = None


def contract(b: LinalgBuilder, left: Matrix, right: Matrix, sizes: Sequence[Size], dtype: ir.Type) -> ir.Value:
    """``[batch..., m, k] x [batch..., k, n] -> [batch..., m, n]`` of those sizes and dtype, by a call."""
    factors = _factors(left, right, len(sizes))
    if not b.panels:
        factors = (_in_place(factors[0], len(sizes)), _in_place(factors[1], len(sizes)))
    return products(b, *factors, "p" * len(sizes) + "r", sizes, dtype)


def _in_place(factor: FactorTensor, k: int) -> FactorTensor:
    """A factor whose dimensions were permuted, read where it was before: as long as neighbours stay ones, or steps of k become
    neighbours, kernels that read factors as they are copy as many elements at once, and nothing is moved.
    """
    found = None if factor.layout is not None else permuted_from(factor.value)
    if found is None:
        return factor
    source, axes = found
    exprs = [factor.exprs[axis] for axis in axes]
    stays = axes[-1] == len(axes) - 1 or exprs[-1] == ir.AffineExpr.get_dim(k)
    return _in_place(replace(factor, value=source, exprs=exprs), k) if stays else factor


def products(
    b: LinalgBuilder, left: FactorTensor, right: FactorTensor, kinds: str, sizes: Sequence[Size], dtype: ir.Type
) -> ir.Value:
    """Products summed over the reductions among the loops, which are the last ones, by a call.

    Args:
        b: the builder.
        left: the factor that columns of a tile share.
        right: the factor that rows share.
        kinds: one letter per loop, as :meth:`LinalgBuilder.generic` takes them.
        sizes: of the parallel loops, which are the result's dimensions.
        dtype: that of the result.
    """
    source, out = sum_dtype(left.dtype, dtype), b.empty(sizes, storage_dtype(dtype))
    if not keeps_sums(source, dtype) and not _can_be_tiled([(f.value, f.exprs) for f in (left, right)], kinds, out):
        # No registers hold these sums, and a kernel has no memory of its own.
        return converted(b, products(b, left, right, kinds, sizes, accumulator_type(source)), source, dtype)
    maps = [str(b.map(len(kinds), f.exprs)) for f in (left, right)]
    key = (kinds, *map(str, (left.dtype, right.dtype, dtype)), *maps)

    def body(arguments: Sequence[ir.Value]) -> ir.Value:
        x, y, out = arguments
        direct = keeps_sums(source, dtype)
        start = b.fill(out if direct else b.empty(b.value_sizes(out), accumulator_type(source)), 0)
        summed = add_products(b, replace(left, value=x), replace(right, value=y), kinds, start, source)
        return summed if direct else converted(b, summed, source, dtype, out)

    return call_kernel(b, "contraction", [left.value, right.value], out, key, body)


def contraction_mark() -> dict[str, ir.Attribute]:
    """What says that a ``linalg.generic`` is the sum of products inside of a kernel."""
    return {CONTRACTION: ir.UnitAttr.get()}


def layout_mark(right: FactorTensor) -> dict[str, ir.Attribute]:
    """What says how the right factor of a contraction is packed; nothing where it is not."""
    return {} if right.layout is None else {LAYOUT: ir.StringAttr.get(str(right.layout))}


def add_products(
    b: LinalgBuilder, left: FactorTensor, right: FactorTensor, kinds: str, start: ir.Value, source: ir.Type
) -> ir.Value:
    """The contraction itself: adds the products to ``start``, in the type that ``source`` is summed in."""

    def body(x: ir.Value, y: ir.Value, total: ir.Value) -> ir.Value:
        return (Scalar(total) + factor(x, left.dtype, source) * factor(y, right.dtype, source)).value

    inputs = [(left.value, left.exprs), (right.value, right.exprs)]
    mark = dict[str, ir.Attribute]()
    if _can_be_tiled(inputs, kinds, start):
        mark = contraction_mark() | layout_mark(right)
    return b.generic(kinds, inputs, start, body, range(kinds.count("p")), mark)


def _factors(left: Matrix, right: Matrix, rank: int, turned: bool = False) -> tuple[FactorTensor, FactorTensor]:
    """Where matrices are read in loops over the result's dimensions, and then over the sum."""
    m, n, k = (ir.AffineExpr.get_dim(rank - 2 + i) for i in range(3))
    layout = right.layout
    matrix = [k, n] if layout is None else layout.place(k, n, ir.AffineExpr.get_floor_div)
    return (
        FactorTensor(left.value, left.dtype, [*left.batch, *([k, m] if turned else [m, k])]),
        FactorTensor(right.value, right.dtype, [*right.batch, *matrix], layout),
    )


def sum_products(
    b: LinalgBuilder,
    left: Matrix,
    right: Matrix,
    start: ir.Value,
    source: ir.Type,
    *,
    turned: bool = False,
) -> ir.Value:
    """Adds a matrix product to ``start``, in the type that ``source`` is summed in.

    The right-hand side may be one without a layout, where it is read only a few times.
    Where ``turned`` is true, the left-hand side is ``[batch..., k, m]``.
    """
    rank = value_type(start).rank
    return add_products(b, *_factors(left, right, rank, turned), "p" * rank + "r", start, source)


def _can_be_tiled(inputs: Sequence[Input], kinds: str, start: ir.Value) -> bool:
    """Whether there is a sum, and more than one: loops of size one are none, and what has no loops has no tiles."""
    sums = [i for i, kind in enumerate(kinds) if kind == "r"]
    sizes = [d for value, exprs in inputs for d, e in zip(value_type(value).shape, exprs, strict=True) if _is_loop(e, sums)]
    return any(d != 1 for d in sizes) and any(d != 1 for d in value_type(start).shape)


def _is_loop(expr: int | ir.AffineExpr, loops: Sequence[int]) -> bool:
    return expr in loops if isinstance(expr, int) else any(expr == ir.AffineExpr.get_dim(i) for i in loops)


def sum_dtype(operand: ir.Type, result: ir.Type) -> ir.Type:
    """The dtype that products are summed in: a float's own compute type follows from it; integers wrap.

    Integer sums in the result's own width are right as they wrap; other results are converted from the widest type.
    """
    if is_float(operand):
        return operand
    whole = isinstance(result, ir.IntegerType) and result.width >= 8
    return result if whole else ir.IntegerType.get_signless(64)


def keeps_sums(source: ir.Type, dtype: ir.Type) -> bool:
    """Whether sums are elements of the result as they are."""
    if is_float(source) != is_float(dtype):
        return False
    return accumulator_type(source) == dtype if is_float(source) else source == dtype


def factor(x: ir.Value, dtype: ir.Type, source: ir.Type) -> Scalar:
    """A stored element in the type that sums are taken in. A packed matrix may hold that type already."""
    if is_float(source):
        return Scalar(x) if x.type == accumulator_type(source) else load(x, dtype)
    return Scalar(convert(load(x, dtype), dtype, source))


def converted(b: LinalgBuilder, summed: ir.Value, source: ir.Type, dtype: ir.Type, out: ir.Value | None = None) -> ir.Value:
    """Sums as elements of the result's dtype, into ``out`` when it is given."""
    if out is None and keeps_sums(source, dtype):
        return summed
    sizes = b.value_sizes(summed) if out is None else value_type(summed).shape
    out = b.empty(sizes, storage_dtype(dtype)) if out is None else out
    loops = range(len(sizes))
    return b.generic("p" * len(sizes), [(summed, loops)], out, lambda x, _: convert(Scalar(x), source, dtype))

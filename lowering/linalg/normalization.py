"""Softmax and normalizations: row reductions, then one elementwise op; f32 for narrow floats.

Reductions and what reads them become one kernel, see :mod:`..fusion.row_groups`.
"""

from __future__ import annotations

from ...dialect.bindings import ir
from ...dialect.inference import normalize_axes, normalize_axis
from .builder import Input, LinalgBuilder, Tensor, value_type
from .conversion import load, store
from .dtypes import accumulator_type, storage_dtype
from .reduction import LARGEST, TOTAL, accumulated, reduce, reduce_elements
from .registry import Source, lowering
from .scalar import Scalar, decay, math
from .statistical import divided_by_count, mean_of, squared_distances

__all__ = ["softmax"]


@lowering("relax.softmax")
def _lower_softmax(b: LinalgBuilder, source: Source) -> ir.Value:
    (x,) = source.operands
    return softmax(b, x, normalize_axis(source.attrs["axis"], x.rank), x.dtype)


def softmax(b: LinalgBuilder, x: Tensor, axis: int, dtype: ir.Type) -> ir.Value:
    """``exp(x - max) / sum(exp(x - max))`` along an axis; a row of only -inf is NaN."""
    sizes, loops = b.sizes(x), range(x.rank)
    rows = [i for i in loops if i != axis]
    element = accumulator_type(x.dtype)
    best = reduce(b, x, [axis], LARGEST)

    def power(value: ir.Value, most: ir.Value, _: ir.Value) -> ir.Value:
        return decay(load(value, x.dtype) - Scalar(most)).value

    powers = b.generic("p" * x.rank, [(x.value, loops), (best, rows)], b.empty(sizes, element), power)
    powers_info = Tensor(powers, x.info.with_(dtype=element))
    sums = reduce(b, powers_info, [axis], TOTAL)
    out = b.empty(sizes, storage_dtype(dtype))
    # One division per row: sums are from 1 to the length of the row, so reciprocals neither overflow nor vanish.
    return b.generic(
        "p" * x.rank, [(powers, loops), (sums, rows)], out, lambda p, s, _: store(Scalar(p) * (1 / Scalar(s)), dtype)
    )  # fmt: skip


@lowering("relax.log_softmax")
def _lower_log_softmax(b: LinalgBuilder, source: Source) -> ir.Value:
    (x,) = source.operands
    axis = normalize_axis(source.attrs["axis"], x.rank)
    rows = [i for i in range(x.rank) if i != axis]
    best = reduce(b, x, [axis], LARGEST)
    sums = reduce_elements(b, x, [axis], TOTAL, lambda e, m: decay(accumulated(e, x.dtype) - Scalar(m)), (best, rows))

    def body(value: ir.Value, most: ir.Value, summed: ir.Value, _: ir.Value) -> ir.Value:
        return store(load(value, x.dtype) - Scalar(most) - math("log", Scalar(summed)), x.dtype)

    inputs: list[Input] = [(x.value, range(x.rank)), (best, rows), (sums, rows)]
    return b.generic("p" * x.rank, inputs, b.empty(b.sizes(x), storage_dtype(x.dtype)), body)


def _reciprocal_root(b: LinalgBuilder, mean_square: ir.Value, epsilon: float) -> ir.Value:
    """``1 / sqrt(v + epsilon)`` of each row."""
    sizes = b.value_sizes(mean_square)
    out = b.empty(sizes, value_type(mean_square).element_type)
    return b.generic(
        "p" * len(sizes), [(mean_square, range(len(sizes)))], out, lambda v, _: (1 / math("sqrt", Scalar(v) + epsilon)).value
    )


@lowering("relax.layer_norm")
def _lower_layer_norm(b: LinalgBuilder, source: Source) -> ir.Value:
    x, gamma, beta = source.operands
    axes = normalize_axes(source.attrs["axes"], x.rank, "axes")
    rows = [i for i in range(x.rank) if i not in axes]
    mean = mean_of(b, x, axes)
    variance = divided_by_count(b, squared_distances(b, x, axes, mean), x, axes)
    scale = _reciprocal_root(b, variance, source.attrs["epsilon"])

    def body(value: ir.Value, m: ir.Value, s: ir.Value, g: ir.Value, shift: ir.Value, _: ir.Value) -> ir.Value:
        unit = (load(value, x.dtype) - Scalar(m)) * Scalar(s)
        return store(unit * load(g, x.dtype) + load(shift, x.dtype), x.dtype)

    inputs: list[Input] = [(x.value, range(x.rank)), (mean, rows), (scale, rows), (gamma.value, axes), (beta.value, axes)]
    return b.generic("p" * x.rank, inputs, b.empty(b.sizes(x), storage_dtype(x.dtype)), body)


@lowering("relax.rms_norm")
def _lower_rms_norm(b: LinalgBuilder, source: Source) -> ir.Value:
    x, weight = source.operands
    axes = normalize_axes(source.attrs["axes"], x.rank, "axes")
    rows = [i for i in range(x.rank) if i not in axes]

    def square(value: ir.Value) -> Scalar:
        wide = accumulated(value, x.dtype)
        return wide * wide

    squares = divided_by_count(b, reduce_elements(b, x, axes, TOTAL, square), x, axes)
    scale = _reciprocal_root(b, squares, source.attrs["epsilon"])

    def body(value: ir.Value, s: ir.Value, w: ir.Value, _: ir.Value) -> ir.Value:
        return store(load(value, x.dtype) * Scalar(s) * load(w, x.dtype), x.dtype)

    inputs: list[Input] = [(x.value, range(x.rank)), (scale, rows), (weight.value, axes)]
    return b.generic("p" * x.rank, inputs, b.empty(b.sizes(x), storage_dtype(x.dtype)), body)


@lowering("relax.batch_norm")
def _lower_batch_norm(b: LinalgBuilder, source: Source) -> ir.Value:
    x = source.operands[0]
    axis = normalize_axis(source.attrs["axis"], x.rank)
    epsilon = source.attrs["epsilon"]

    def body(*elements: ir.Value) -> ir.Value:
        value, gamma, beta, mean, variance = (load(e, x.dtype) for e in elements[:-1])
        return store((value - mean) / math("sqrt", variance + epsilon) * gamma + beta, x.dtype)

    inputs: list[Input] = [(x.value, range(x.rank)), *((p.value, [axis]) for p in source.operands[1:])]
    return b.generic("p" * x.rank, inputs, b.empty(b.sizes(x), storage_dtype(x.dtype)), body)

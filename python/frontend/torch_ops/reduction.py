"""torch ops that reduce along axes, and scans."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

from ...dialect import ops
from ...dialect.bindings import ir
from ...dialect.errors import RelaxError
from ...dialect.inference import boolean, is_float, normalize_axes
from ...dialect.op import EffectOp
from ...dialect.struct_info import TensorInfo
from ...dialect.symbolic import Expr
from ..emit import (
    broadcast,
    cast,
    emit,
    extreme_flag,
    full,
    info_of,
    integer,
    multiply_all,
    reshape,
    slice_axis,
    unsqueeze,
    wide,
)
from ..ranges import upper_bound
from ..torch_op import TorchOp, handles
from .creation import sequence


def _axes(op: TorchOp, index: int, info: TensorInfo) -> list[int]:
    """An operand that is one axis, several, or none: then all, as for an empty list."""
    given = op.number(index)
    listed = None if given is None or given == [] else [given] if isinstance(given, int) else given
    return normalize_axes(listed, max(info.rank, 1))[: max(info.rank, 0)] if info.rank else []


def _reduce(op: TorchOp, op_class: type[EffectOp], dtype: ir.Type, axis: int | None = 1) -> ir.Value:
    return _reduced(op, op_class, cast(op.tensor(0), dtype), axis)


def _reduced(op: TorchOp, op_class: type[EffectOp], x: ir.Value, axis: int | None) -> ir.Value:
    """``axis`` is the operand that lists axes, followed by whether to keep them; None: all axes."""
    return emit(op_class, x, **_how(op, info_of(x), axis)) if info_of(x).rank else x


def _how(op: TorchOp, info: TensorInfo, axis: int | None) -> dict[str, Any]:
    axes = list(range(info.rank)) if axis is None else _axes(op, axis, info)
    return {"axis": axes, "keepdims": axis is not None and bool(op.number(axis + 1, False))}


@handles("aten.sum.dim_IntList", "aten.sum")
def _sum(op: TorchOp) -> ir.Value:
    return _reduce(op, ops.Sum, op.dtype, None if op.key == "aten.sum" else 1)


@handles("aten.mean.dim", "aten.mean")
def _mean(op: TorchOp) -> ir.Value:
    return _reduce(op, ops.Mean, op.dtype, None if op.key == "aten.mean" else 1)


@handles("aten.amax", "aten.max")
def _max(op: TorchOp) -> ir.Value:
    return _reduce(op, ops.Max, op.dtype, None if op.key == "aten.max" else 1)


@handles("aten.amin", "aten.min")
def _min(op: TorchOp) -> ir.Value:
    return _reduce(op, ops.Min, op.dtype, None if op.key == "aten.min" else 1)


@handles("aten.prod.dim_int", "aten.prod")
def _prod(op: TorchOp) -> ir.Value:
    return _reduce(op, ops.Prod, op.dtype, None if op.key == "aten.prod" else 1)


@handles("aten.any", "aten.any.dim", "aten.any.dims", "aten.all", "aten.all.dim", "aten.all.dims", "aten._is_all_true",
         "aten._is_any_true")  # fmt: skip
def _any_all(op: TorchOp) -> ir.Value:
    x = cast(op.tensor(0), boolean())
    if info_of(x).rank:
        how = _how(op, info_of(x), 1 if ".dim" in op.key else None)
        x = extreme_flag(ops.Max if "any" in op.key else ops.Min, x, **how)
    return cast(x, op.dtype)


@handles("aten.max.dim", "aten.min.dim")
def _extreme(op: TorchOp) -> list[ir.Value | None]:
    x = op.tensor(0)
    if not info_of(x).rank:
        return [x, full(0, integer())]
    axis, keep = op.axis(1, info_of(x).rank), bool(op.number(2, False))
    values, indices = (ops.Max, ops.ArgMax) if op.key == "aten.max.dim" else (ops.Min, ops.ArgMin)
    return [emit(values, x, axis=[axis], keepdims=keep), emit(indices, x, axis=axis, keepdims=keep)]


@handles("aten.argmax", "aten.argmin")
def _arg(op: TorchOp) -> ir.Value:
    x = op.tensor(0)
    op_class = ops.ArgMax if op.key == "aten.argmax" else ops.ArgMin
    shape = info_of(x).shape
    if not shape:
        return full(0, integer())
    if op.number(1) is not None:
        return emit(op_class, x, axis=op.axis(1, len(shape)), keepdims=bool(op.number(2, False)))
    found = emit(op_class, reshape(x, (multiply_all(shape),)), axis=0)
    return reshape(found, [1] * len(shape)) if op.number(2, False) else found


@handles("aten.var.correction", "aten.std.correction", "aten.var_mean.correction")
def _var(op: TorchOp) -> list[ir.Value | None]:
    return _spread(op, op.number(1), op.number(2, 1), bool(op.number(3, False)))


@handles("aten.var.dim", "aten.std.dim")
def _var_dim(op: TorchOp) -> list[ir.Value | None]:
    return _spread(op, op.number(1), int(op.number(2, True)), bool(op.number(3, False)))


def _spread(op: TorchOp, axes: Any, correction: float, keep: bool) -> list[ir.Value | None]:
    """Variance divided by count less correction; ours divides by the count. Narrow floats are rounded once, at the end."""
    given = op.tensor(0)
    info, x = info_of(given), cast(given, wide(info_of(given).dtype))
    listed = None if axes in (None, []) else [axes] if isinstance(axes, int) else list(axes)
    reduced = normalize_axes(listed, info.rank)
    count = multiply_all([info.shape[a] for a in reduced])
    if count is None:
        raise RelaxError("expected to reduce dimensions whose sizes are known or symbolic")
    result = emit(ops.Variance, x, axis=reduced, keepdims=keep)
    if correction:
        result = _corrected(result, count, correction)
    if "std" in op.key:
        result = emit(ops.Sqrt, result)
    result = cast(result, info.dtype)
    return [result, emit(ops.Mean, given, axis=reduced, keepdims=keep)] if "mean" in op.key else [result]


def _corrected(variance: ir.Value, count: int | Expr, correction: float) -> ir.Value:
    dtype = info_of(variance).dtype
    if isinstance(count, int):
        left = max(count - correction, 0)
        return emit(ops.Multiply, variance, full(count / left if left else math.inf, dtype))
    total = full(count, dtype)
    left = emit(ops.Maximum, emit(ops.Subtract, total, full(correction, dtype)), full(0, dtype))
    return emit(ops.Divide, emit(ops.Multiply, variance, total), left)


@handles("aten.cumsum", "aten.cumprod")
def _scan(op: TorchOp) -> ir.Value:
    x = cast(op.tensor(0), op.dtype)
    rank = info_of(x).rank
    return emit(ops.CumSum if op.key == "aten.cumsum" else ops.CumProd, x, axis=op.axis(1, rank)) if rank else x


@handles("aten.cummax", "aten.cummin")
def _running_extreme(op: TorchOp) -> list[ir.Value | None]:
    """Of each element the extreme one up to it, and the last place that has it. A NaN is above all."""
    x, dtype = op.tensor(0), op.dtype
    if not info_of(x).rank:
        return [x, full(0, integer())]
    x = cast(x, integer(8)) if dtype == boolean() else x
    axis = op.axis(1, info_of(x).rank)
    size = info_of(x).shape[axis]
    if size is None:
        raise RelaxError("expected a dimension whose size is known or symbolic")
    found = emit(ops.CumMax if op.key == "aten.cummax" else ops.CumMin, x, axis=axis)
    same = emit(ops.Equal, x, found)
    if is_float(info_of(x).dtype):
        same = emit(ops.LogicalOr, same, emit(ops.IsNan, x))
    here = reshape(sequence(0, size, 1, integer()), [size if a == axis else 1 for a in range(info_of(x).rank)])
    places = emit(ops.Where, same, here, full(0, integer()))
    return [cast(found, dtype), emit(ops.CumMax, places, axis=axis)]


def _places(x: ir.Value, axis: int, size: int | Expr) -> tuple[ir.Value, ir.Value]:
    """Of elements, along the axis and along the one behind it."""
    places = reshape(sequence(0, size, 1, integer()), [size if a == axis else 1 for a in range(info_of(x).rank)])
    return unsqueeze(places, axis), unsqueeze(places, axis + 1)


def _up_to_each(x: ir.Value, axis: int, size: int | Expr) -> ir.Value:
    """Which elements, along the second axis, come up to each, along the first."""
    return emit(ops.LessEqual, *_places(x, axis, size))


@handles("aten.softmax.int", "aten._softmax", "aten.log_softmax.int", "aten._log_softmax")
def _softmax(op: TorchOp) -> ir.Value:
    x = cast(op.tensor(0), op.dtype)
    op_class = ops.LogSoftmax if "log" in op.key else ops.Softmax
    if not info_of(x).rank:
        return reshape(emit(op_class, reshape(x, (1,)), axis=0), ())
    return emit(op_class, x, axis=op.axis(1, info_of(x).rank))


@handles("aten.linalg_vector_norm")
def _vector_norm(op: TorchOp) -> ir.Value:
    x, order = emit(ops.Abs, cast(op.tensor(0), op.dtype)), float(op.number(1, 2))
    return norm(x, order, lambda op_class, terms: _reduced(op, op_class, terms, 2))


@handles("aten.dist")
def _dist(op: TorchOp) -> ir.Value:
    x = emit(ops.Abs, emit(ops.Subtract, *broadcast([op.value_in(0, op.dtype), op.value_in(1, op.dtype)])))
    return norm(x, float(op.number(2, 2)), lambda op_class, terms: _reduced(op, op_class, terms, None))


def norm(x: ir.Value, order: float, reduced: Callable[[type[EffectOp], ir.Value], ir.Value]) -> ir.Value:
    """``sum(x ** p) ** (1 / p)`` of magnitudes; of an infinite p the largest or smallest, of 0 how many are not 0.

    Of narrow floats sums are f32, which hold the squares of all f16.

    Args:
        x: no negative number.
        order: p.
        reduced: a reduction of such terms.
    """
    given, dtype = info_of(x).dtype, wide(info_of(x).dtype)
    if math.isinf(order):
        return reduced(ops.Max if order > 0 else ops.Min, x)
    x = cast(x, dtype)
    if order == 0:
        return cast(reduced(ops.Sum, cast(emit(ops.NotEqual, x, full(0, dtype)), dtype)), given)
    if order in (1, 2):
        total = reduced(ops.Sum, emit(ops.Square, x) if order == 2 else x)
        return cast(emit(ops.Sqrt, total) if order == 2 else total, given)
    total = reduced(ops.Sum, emit(ops.Power, x, full(order, dtype)))
    return cast(emit(ops.Power, total, full(1 / order, dtype)), given)


@handles("aten.logsumexp")
def _logsumexp(op: TorchOp) -> ir.Value:
    """By the largest, but for an infinite one: infinities less infinities are no numbers."""
    x = cast(op.tensor(0), op.dtype)
    axes = _axes(op, 1, info_of(x))
    largest = emit(ops.Max, x, axis=axes, keepdims=True)
    largest = emit(ops.Where, emit(ops.IsInf, largest), full(0, op.dtype), largest)
    total = emit(ops.Log, emit(ops.Sum, emit(ops.Exp, emit(ops.Subtract, x, largest)), axis=axes, keepdims=True))
    result = emit(ops.Add, total, largest)
    return result if op.number(2, False) else emit(ops.Squeeze, result, axis=axes)


@handles("aten.logcumsumexp")
def _logcumsumexp(op: TorchOp) -> ir.Value:
    """In rounds: after k of them, an element has what the 2 ** k up to it add up to; narrow floats are rounded once.

    Where the size has no upper bound, all are compared, which takes the square of the size.
    """
    x = cast(op.tensor(0), wide(op.dtype))
    if not info_of(x).rank:
        return op.tensor(0)
    axis = op.axis(1, info_of(x).rank)
    size = info_of(x).shape[axis]
    longest = upper_bound(size, op.values.ranges)
    if size is None:
        raise RelaxError("expected a dimension whose size is known or symbolic")
    if longest is None:
        return cast(_log_of_all(x, axis, size), op.dtype)
    for step in _steps(longest):
        x = _log_of_sum(x, _moved(x, axis, size, step, -math.inf))
    return cast(x, op.dtype)


def _log_of_all(x: ir.Value, axis: int, size: int | Expr) -> ir.Value:
    """The same for each element at once, by the largest up to it."""
    largest = emit(ops.CumMax, x, axis=axis)
    finite = emit(ops.Where, emit(ops.IsInf, largest), full(0, info_of(x).dtype), largest)
    terms = emit(ops.Exp, emit(ops.Subtract, unsqueeze(x, axis), unsqueeze(finite, axis + 1)))
    terms = emit(ops.Where, _up_to_each(x, axis, size), terms, full(0, info_of(x).dtype))
    return emit(ops.Add, emit(ops.Log, emit(ops.Sum, terms, axis=[axis + 1])), finite)


def _steps(longest: int) -> Iterator[int]:
    """How far apart are what rounds join, until each of so many elements has all up to it."""
    return (1 << k for k in range(max(longest - 1, 0).bit_length()))


def _moved(x: ir.Value, axis: int, size: int | Expr, step: int, value: float) -> ir.Value:
    """The elements ``step`` places later, behind elements of that value."""
    before = [step if a == axis else 0 for a in range(info_of(x).rank)]
    padded = emit(ops.Pad, x, before=before, after=[0] * len(before), value=value)
    return slice_axis(padded, axis, 0, size)


def _log_of_sum(x: ir.Value, y: ir.Value) -> ir.Value:
    """``log(exp(x) + exp(y))``, by the larger one. Infinities less infinities are no numbers, and are left out."""
    low, high = emit(ops.Minimum, x, y), emit(ops.Maximum, x, y)
    more = emit(ops.Log1p, emit(ops.Exp, emit(ops.Subtract, low, high)))
    return emit(ops.Where, emit(ops.IsInf, high), high, emit(ops.Add, high, more))

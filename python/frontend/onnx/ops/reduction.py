"""ONNX operators that reduce along axes, scans, and softmax."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ....dialect import ops
from ....dialect.bindings import ir
from ....dialect.errors import RelaxError
from ....dialect.inference import boolean, is_float
from ....dialect.op import EffectOp
from ...emit import cast, emit, extreme_flag, full, info_of, integer, multiply_all, reshape, sequence, wide
from ..node import Node, handles


def _axes(node: Node) -> list[int] | None:
    """The axes to reduce; None for no reduction at all."""
    given = node.listed("axes", 1)
    if not given and node.attribute("noop_with_empty_axes", 0):
        return None
    return node.axes(given or None, node.rank(0))


def _reduced(node: Node, reduce: Callable[[ir.Value, dict[str, Any]], ir.Value]) -> ir.Value:
    axes = _axes(node)
    x = node.tensor(0)
    if axes is None:
        return reduce(x, {"axis": [], "keepdims": True}) if node.key not in ("ReduceSum", "ReduceMean") else x
    return reduce(x, {"axis": axes, "keepdims": bool(node.attribute("keepdims", 1))})


_PLAIN: dict[str, type[EffectOp]] = {"ReduceSum": ops.Sum, "ReduceProd": ops.Prod}


def _register() -> None:
    for key, op_class in _PLAIN.items():
        handles(key)(lambda node, c=op_class: _reduced(node, lambda x, how: emit(c, x, **how)))
    handles("ReduceMean")(lambda node: _reduced(node, _mean))
    for key, op_class in (("ReduceMax", ops.Max), ("ReduceMin", ops.Min)):
        handles(key)(lambda node, c=op_class: _reduced(node, lambda x, how: _extreme(x, how, c)))


_register()


def _mean(x: ir.Value, how: dict[str, Any]) -> ir.Value:
    """That of integers is rounded towards zero."""
    info = info_of(x)
    if is_float(info.dtype):
        return emit(ops.Mean, x, **how)
    axes = how["axis"] or range(info.rank)
    count = multiply_all([info.shape[a] for a in axes])
    if count is None:
        raise RelaxError("expected dimensions that are known or symbolic")
    return emit(ops.Divide, emit(ops.Sum, x, **how), full(count, info.dtype))


def _extreme(x: ir.Value, how: dict[str, Any], op_class: type[EffectOp]) -> ir.Value:
    if info_of(x).dtype != boolean():
        return emit(op_class, x, **how)
    return extreme_flag(op_class, x, **how)


@handles("ReduceL1")
def _l1(node: Node) -> ir.Value:
    return _reduced(node, lambda x, how: emit(ops.Sum, emit(ops.Abs, x), **how))


@handles("ReduceL2")
def _l2(node: Node) -> ir.Value:
    dtype = node.dtype()

    def reduce(x: ir.Value, how: dict[str, Any]) -> ir.Value:
        x = cast(x, wide(dtype))
        total = emit(ops.Sum, emit(ops.Multiply, x, x), **how)
        return cast(emit(ops.Sqrt, total if is_float(dtype) else cast(total, ir.F64Type.get())), dtype)

    return _reduced(node, reduce)


@handles("ReduceSumSquare")
def _sum_square(node: Node) -> ir.Value:
    return _reduced(node, lambda x, how: emit(ops.Sum, emit(ops.Multiply, x, x), **how))


@handles("ReduceLogSum")
def _log_sum(node: Node) -> ir.Value:
    """That of integers is of their sum in their own width, and rounded towards zero."""
    dtype = node.dtype()
    return _reduced(
        node, lambda x, how: cast(emit(ops.Log, cast(emit(ops.Sum, cast(x, wide(dtype)), **how), _real(dtype))), dtype)
    )


def _real(dtype: ir.Type) -> ir.Type:
    """What logarithms are computed in."""
    return wide(dtype) if is_float(dtype) else ir.F64Type.get()


@handles("ReduceLogSumExp")
def _log_sum_exp(node: Node) -> ir.Value:
    """Around the largest element, or 0 where that is infinite, so that nothing overflows; of integers rounded towards zero."""

    def reduce(x: ir.Value, how: dict[str, Any]) -> ir.Value:
        given, dtype = info_of(x).dtype, _real(info_of(x).dtype)
        x = cast(x, dtype)
        largest = emit(ops.Max, x, axis=how["axis"], keepdims=True)
        largest = emit(ops.Where, emit(ops.IsFinite, largest), largest, full(0, dtype))
        total = emit(ops.Log, emit(ops.Sum, emit(ops.Exp, emit(ops.Subtract, x, largest)), axis=how["axis"], keepdims=True))
        result = cast(emit(ops.Add, total, largest), given)
        return result if how["keepdims"] or not how["axis"] else emit(ops.Squeeze, result, axis=how["axis"])

    return _reduced(node, reduce)


@handles("ArgMax", "ArgMin")
def _arg(node: Node) -> ir.Value:
    """The first of equals, or the last one: that is the first from the other end."""
    x, axis = node.tensor(0), node.axis(0, node.rank(0))
    op_class = ops.ArgMax if node.key == "ArgMax" else ops.ArgMin
    keep = bool(node.attribute("keepdims", 1))
    if not node.attribute("select_last_index", 0):
        return emit(op_class, x, axis=axis, keepdims=keep)
    found = emit(op_class, emit(ops.Flip, x, axis=axis), axis=axis, keepdims=keep)
    return emit(ops.Subtract, full(node.size(0, axis) - 1, integer()), found)


@handles("CumSum", "CumProd")
def _scan(node: Node) -> ir.Value:
    x = node.tensor(0)
    axis = node.axes([node.number(1)], node.rank(0))[0]
    backwards = bool(node.attribute("reverse", 0))
    x = emit(ops.Flip, x, axis=axis) if backwards else x
    op_class = ops.CumSum if node.key == "CumSum" else ops.CumProd
    result = emit(op_class, x, axis=axis, exclusive=bool(node.attribute("exclusive", 0)))
    return emit(ops.Flip, result, axis=axis) if backwards else result


@handles("Softmax", "LogSoftmax")
def _softmax(node: Node) -> ir.Value:
    op_class = ops.Softmax if node.key == "Softmax" else ops.LogSoftmax
    return _along(node, lambda x, axis: emit(op_class, x, axis=axis))


def _along(node: Node, compute: Callable[[ir.Value, int], ir.Value]) -> ir.Value:
    """What is computed along an axis; up to operator set 12 all dimensions from that axis on are one."""
    x, rank = node.tensor(0), node.rank(0)
    if node.version >= 13:
        return compute(x, node.axis(-1, rank))
    given = node.attribute("axis", 1)
    axis = node.axis(1, rank) if given < 0 else node.axis(1, rank + 1)  # a negative one counts from the rank
    shape = info_of(x).shape
    flat = reshape(x, (multiply_all(shape[:axis]), multiply_all(shape[axis:])))
    return reshape(compute(flat, 1), shape)


@handles("Hardmax")
def _hardmax(node: Node) -> ir.Value:
    """1 at the first largest element, else 0."""
    return _along(node, _hottest)


def _hottest(x: ir.Value, axis: int) -> ir.Value:
    info = info_of(x)
    size = info.shape[axis]
    if size is None:
        raise RelaxError("expected a dimension that is known or symbolic")
    found = emit(ops.ArgMax, x, axis=axis, keepdims=True)
    places = reshape(sequence(0, size, 1), [size if a == axis else 1 for a in range(info.rank)])
    return cast(emit(ops.Equal, found, places), info.dtype)


@handles("LpNormalization")
def _lp_normalization(node: Node) -> ir.Value:
    """What has norm 0 stays 0."""
    dtype, axis = wide(node.dtype()), node.axis(-1, node.rank(0))
    x = cast(node.tensor(0), dtype)
    squares = node.attribute("p", 2) == 2
    size = emit(ops.Sum, emit(ops.Square, x) if squares else emit(ops.Abs, x), axis=[axis], keepdims=True)
    size = emit(ops.Sqrt, size) if squares else size
    zero = full(0, dtype)
    return cast(emit(ops.Where, emit(ops.Equal, size, zero), zero, emit(ops.Divide, x, size)), node.dtype())

"""torch ops that measure distances between rows."""

from __future__ import annotations

from ...dialect import ops
from ...dialect.bindings import ir
from ...dialect.errors import RelaxError
from ...dialect.inference import broadcast_shapes
from ..emit import cast, emit, full, info_of, integer, multiply_all, sequence, unsqueeze
from ..torch_op import TorchOp, handles
from .reduction import norm


@handles("aten._cdist_forward")
def _distances(op: TorchOp) -> ir.Value:
    """Of each row of one matrix from each row of another: [..., n, k] and [..., m, k] to [..., n, m]."""
    x, y = op.value_in(0, op.dtype), op.value_in(1, op.dtype)
    x, y = unsqueeze(x, info_of(x).rank - 1), unsqueeze(y, info_of(y).rank - 2)
    return _distance(op, x, y, float(op.number(2)))


@handles("aten._pdist_forward")
def _distances_of_pairs(op: TorchOp) -> ir.Value:
    """Of the rows of a matrix from one another, [n, k] to [n * (n - 1) / 2]: of the first from those behind it, and so on."""
    x = op.tensor(0)
    count = info_of(x).shape[0]
    if count is None:
        raise RelaxError("expected rows whose number is known or symbolic")
    pairs = multiply_all([count, count - 1])
    assert pairs is not None
    f64 = ir.F64Type.get()
    place, n = cast(sequence(0, pairs // 2, 1, integer()), f64), full(count, f64)
    # The pairs of row i start at i * (2 n - i - 1) / 2; solved for i. f64 is exact for up to 60 million rows.
    width = emit(ops.Subtract, emit(ops.Multiply, n, full(2, f64)), full(1, f64))
    root = emit(ops.Sqrt, emit(ops.Subtract, emit(ops.Square, width), emit(ops.Multiply, place, full(8, f64))))
    row = emit(ops.Floor, emit(ops.Divide, emit(ops.Subtract, width, root), full(2, f64)))
    start = emit(ops.Divide, emit(ops.Multiply, row, emit(ops.Subtract, width, row)), full(2, f64))
    other = emit(ops.Add, emit(ops.Add, emit(ops.Subtract, place, start), row), full(1, f64))
    first, second = (emit(ops.Take, x, cast(places, integer()), axis=0) for places in (row, other))
    return _distance(op, first, second, float(op.number(1, 2)))


def _distance(op: TorchOp, x: ir.Value, y: ir.Value, order: float) -> ir.Value:
    """Along the last dimension. Rows of no elements are at the same place."""
    shape = broadcast_shapes(info_of(x).shape, info_of(y).shape)
    if shape[-1] == 0:
        return full(0, op.dtype, shape[:-1])
    apart = emit(ops.Abs, emit(ops.Subtract, x, y))
    return norm(apart, order, lambda op_class, terms: emit(op_class, terms, axis=[len(shape) - 1]))

"""torch's batch norms: by statistics that a model has learnt, by those of the tensor itself, and in training."""

from __future__ import annotations

from collections.abc import Sequence

from ...dialect import ops
from ...dialect.bindings import ir
from ...dialect.errors import RelaxError
from ...dialect.symbolic import Dim
from ..emit import cast, emit, full, info_of, integer, multiply_all, wide
from ..torch_op import TorchOp, handles

__all__ = ["parameter"]


def parameter(op: TorchOp, index: int, default: float, shape: Sequence[Dim], dtype: ir.Type) -> ir.Value:
    """A scale or shift; one that is absent is a tensor of ones or zeros."""
    given = op.optional(index)
    return full(default, dtype, shape) if given is None else cast(given, dtype)


@handles("aten.batch_norm", "aten._native_batch_norm_legit_no_training")
def _by_learnt(op: TorchOp) -> list[ir.Value | None]:
    has_flag = op.key == "aten.batch_norm"
    if has_flag and op.number(5):
        raise RelaxError("expected batch norm by statistics that a model has learnt, got one that moves them")
    x, parts = op.tensor(0), [op.optional(i) for i in range(1, 5)]
    x = cast(x, max([info_of(p).dtype for p in (x, *parts) if p is not None], key=lambda dtype: dtype.width))
    mean, variance = (parameter(op, i, i - 3, _channels(op), info_of(x).dtype) for i in (3, 4))
    result = _normalised(op, x, mean, variance, op.number(7 if has_flag else 6, 1e-5))
    return [cast(result, info_of(op.tensor(0)).dtype), None, None][: len(op.results)]


@handles("aten._native_batch_norm_legit.no_stats")
def _by_its_own(op: TorchOp) -> list[ir.Value | None]:
    """Which is how torch writes instance norm; squares of narrow floats are f32."""
    x = cast(op.tensor(0), wide(info_of(op.tensor(0)).dtype))
    mean, variance = _statistics(x)
    result = _normalised(op, x, mean, variance, op.number(5, 1e-5))
    return [cast(result, info_of(op.tensor(0)).dtype), None, None]


@handles("aten._native_batch_norm_legit_functional")
def _in_training(op: TorchOp) -> list[ir.Value | None]:
    """The result, and the learnt mean and variance moved to those of the tensor, the variance that of a sample."""
    if not op.number(5):
        mean, variance = (cast(op.tensor(i), op.dtype) for i in (3, 4))
        return [_normalised(op, op.tensor(0), mean, variance, op.number(7)), None, None, op.tensor(3), op.tensor(4)]
    x = cast(op.tensor(0), wide(info_of(op.tensor(0)).dtype))
    shape, dtype = info_of(x).shape, info_of(x).dtype
    mean, variance = _statistics(x)
    count = multiply_all([shape[0], *shape[2:]])
    if count is None:
        raise RelaxError("expected batch norm in training over dimensions whose sizes are known or symbolic")
    number = cast(full(count, integer()), dtype)
    unbiased = emit(ops.Multiply, variance, emit(ops.Divide, number, emit(ops.Subtract, number, full(1, dtype))))
    result = cast(_normalised(op, x, mean, variance, op.number(7)), op.dtype)
    return [result, None, None, *(_moved(op, i, new) for i, new in ((3, mean), (4, unbiased)))]


def _channels(op: TorchOp) -> list[Dim]:
    return [info_of(op.tensor(0)).shape[1]]


def _statistics(x: ir.Value) -> list[ir.Value]:
    """Mean and variance of each channel."""
    return [emit(c, x, axis=[0, *range(2, info_of(x).rank)]) for c in (ops.Mean, ops.Variance)]


def _normalised(op: TorchOp, x: ir.Value, mean: ir.Value, variance: ir.Value, epsilon: float) -> ir.Value:
    scale, shift = (parameter(op, i, 2 - i, _channels(op), info_of(x).dtype) for i in (1, 2))
    return emit(ops.BatchNorm, x, scale, shift, mean, variance, axis=1, epsilon=epsilon)


def _moved(op: TorchOp, index: int, new: ir.Value) -> ir.Value:
    """A learnt statistic, moved by the momentum towards a new one."""
    old, momentum, dtype = op.tensor(index), op.number(6), info_of(new).dtype
    parts = (cast(old, dtype), 1 - momentum), (new, momentum)
    return cast(emit(ops.Add, *(emit(ops.Multiply, x, full(by, dtype)) for x, by in parts)), info_of(old).dtype)

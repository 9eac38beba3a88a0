"""The rewrites of ``relax-fold-batch-norm``: a batch norm and what is around it in, weight math and a bias add out."""

from __future__ import annotations

from dataclasses import dataclass

from ...analysis.weight_flow import WeightFlow
from ...bindings import ir
from ...inference import normalize_axis
from ...ops import Add, BatchNorm, Divide, Full, MatMul, Multiply, Reshape, Sqrt, Subtract, Sum
from ...passes.rewriting import Patterns, Rewriter
from ...struct_info import TensorInfo
from ...traversal import clone_with, is_unused
from ..emit import cast, compute_dtype, insert_axes, single_use
from .axis_moves import axis_after, axis_before, is_axis_move
from .weight_axes import input_axis, output_axis, per_input_channel, weight_axis

__all__ = ["Folding"]


@dataclass(frozen=True)
class _Producer:
    """What a batch norm reads.

    Attributes:
        op: the convolution or matrix product.
        weight: which operand of it is scaled, and along which dimension.
        path: the ops between it and the batch norm, last one first: axis moves, and additions of a bias.
        biases: what those add, one number per channel or one for all.
    """

    op: ir.OpView
    weight: tuple[int, int]
    path: list[ir.OpView]
    biases: list[ir.Value]


@dataclass(frozen=True)
class _Consumer:
    """What reads a batch norm.

    Attributes:
        op: the convolution or matrix product.
        path: the axis moves between the batch norm and it.
    """

    op: ir.OpView
    path: list[ir.OpView]


class Folding:
    """Folds the batch norms of one function.

    Attributes:
        flow: what comes from weights; new weights and biases are entered.
        remaining: the batch norms that did not fold into what they read.
    """

    def __init__(self, flow: WeightFlow):
        self.flow = flow
        self.remaining: list[ir.Value] = []

    def patterns(self) -> Patterns:
        return [(BatchNorm, self._fold_into_producer)]

    def _fold_into_producer(self, norm: BatchNorm, rewriter: Rewriter) -> bool:
        if not self._is_candidate(norm):
            return False
        producer = self._producer(norm)
        if producer is None:
            self.remaining.append(norm.result)
            return False
        result, op, (operand, axis) = norm.result, producer.op, producer.weight
        weight, here = op.operands[operand], ir.InsertionPoint(norm)
        with here, norm.location:
            scale, shift = _scale_and_shift(norm, producer.biases)
            mapping = {weight: _scaled(weight, insert_axes(scale, [axis], _rank(weight)))}
            bias = _spread_bias(shift, result, normalize_axis(norm.axis, _rank(result)))
        clone_with(op.operation, mapping, here)
        for step in reversed(producer.path):
            if is_axis_move(step):
                clone_with(step.operation, mapping, here)
            else:  # a bias, which the shift has
                mapping[step.results[0]] = next(mapping[v] for v in step.operands if not self.flow.is_known(v))
        total = self._biased(norm, mapping[norm.x], bias, mapping[weight])
        rewriter.replace(norm, [total])
        _erase([*producer.path, op])
        return True

    def _is_candidate(self, norm: BatchNorm) -> bool:
        """A batch norm of run-time values with known parameters; one on weights alone is lifted as a whole."""
        x, *parameters = norm.operands
        channels = TensorInfo.of(parameters[0]).shape[0]
        known = self.flow.is_known
        return not known(x) and all(map(known, parameters)) and isinstance(channels, int)

    def into_consumer(self, result: ir.Value) -> bool:
        """Folds a batch norm into the op that reads its result; False when that is not possible."""
        norm: BatchNorm = result.owner
        consumer = self._consumer(norm)
        if consumer is None:
            return False
        op, (last, other) = consumer.op, self._following_bias(consumer.op)
        weight = op.operands[1]
        with ir.InsertionPoint(op), norm.location:
            scale, shift = _scale_and_shift(norm, [])
            mapping = {result: norm.x, weight: _scaled(weight, per_input_channel(op, scale))}
            shift = _sum_of_inputs(op, shift)
        for step in [*consumer.path, op]:
            clone_with(step.operation, mapping, ir.InsertionPoint(op))
        with ir.InsertionPoint(last), last.location:
            if other is not None:
                shift = Add.create(shift, _flat(other, TensorInfo.of(shift).dtype)).result
            bias = _spread_bias(shift, last.results[0], output_axis(op))
        last.results[0].replace_all_uses_with(self._biased(last, mapping[op.results[0]], bias, mapping[weight]))
        _erase([*([last] if other is not None else []), op, *reversed(consumer.path), norm])
        return True

    def _biased(self, op: ir.OpView, value: ir.Value, bias: ir.Value, weight: ir.Value) -> ir.Value:
        """The addition of a bias that takes the place of an op; bias and weight are known to the next fold."""
        with ir.InsertionPoint(op), op.location:
            total = Add.create(value, bias, result_types=[op.results[0].type])
        self.flow.add_known(bias, weight)
        return total.results[0]

    def _producer(self, norm: BatchNorm) -> _Producer | None:
        """Follows what the batch norm reads back to an op with a weight, through values that nothing else reads."""
        path: list[ir.OpView] = []
        biases: list[ir.Value] = []
        value, axis = norm.x, normalize_axis(norm.axis, _rank(norm.x))
        while True:
            op = value.owner
            if isinstance(op, ir.Block) or op.operation.block != norm.operation.block or single_use(value) is None:
                return None
            weight = self._scalable(op, axis)
            if weight is not None:
                return _Producer(op, weight, path, biases)
            if is_axis_move(op):
                before, value = axis_before(op, axis), op.operands[0]
                if before is None:
                    return None
                axis = before
            else:
                bias = self._bias(op, axis)
                if bias is None:
                    return None
                biases.append(bias)
                value = _other(op, bias)
            path.append(op)

    def _scalable(self, op: ir.OpView, axis: int) -> tuple[int, int] | None:
        """The weight, an operand, of which scaling a dimension scales that of the result."""
        place = weight_axis(op, axis)
        if place is None or not self.flow.is_known(op.operands[place[0]]):
            return None
        return place if isinstance(TensorInfo.of(op.operands[place[0]]).shape[place[1]], int) else None

    def _consumer(self, norm: BatchNorm) -> _Consumer | None:
        """Follows the only use of a batch norm to an op with a weight; nothing but moves of dimensions is between."""
        path: list[ir.OpView] = []
        value, axis = norm.result, normalize_axis(norm.axis, _rank(norm.x))
        if norm.x.type != value.type:
            return None
        while True:
            op = single_use(value)
            if op is None or op.operation.block != norm.operation.block:
                return None
            if input_axis(op) == axis and op.operands[0] == value:
                return _Consumer(op, path) if self._is_static_weight(op.operands[1]) else None
            after = axis_after(op, axis) if is_axis_move(op) else None
            if after is None:
                return None
            value, axis = op.results[0], after
            path.append(op)

    def _is_static_weight(self, value: ir.Value) -> bool:
        return self.flow.is_known(value) and all(isinstance(d, int) for d in TensorInfo.of(value).shape)

    def _following_bias(self, op: ir.OpView) -> tuple[ir.OpView, ir.Value | None]:
        """The addition of a bias that is all that reads the op's result, and the bias; else the op itself and None."""
        following = single_use(op.results[0])
        if following is None or following.operation.block != op.operation.block:
            return op, None
        bias = self._bias(following, output_axis(op))
        return (op, None) if bias is None else (following, bias)

    def _bias(self, op: ir.OpView, axis: int) -> ir.Value | None:
        """What an addition adds, when that is a weight with one number per place in a dimension, or one number."""
        if not isinstance(op, Add):
            return None
        bias = next((v for v in op.operands if self.flow.is_known(v)), None)
        if bias is None or _other(op, bias).type != op.results[0].type:
            return None
        first = _rank(op.results[0]) - _rank(bias)
        flat = all(d == 1 or (i + first == axis and isinstance(d, int)) for i, d in enumerate(TensorInfo.of(bias).shape))
        return bias if flat else None


def _other(op: Add, operand: ir.Value) -> ir.Value:
    """The operand that is not that one."""
    return op.rhs if op.lhs == operand else op.lhs


def _rank(value: ir.Value) -> int:
    return TensorInfo.of(value).rank


def _scale_and_shift(norm: BatchNorm, biases: list[ir.Value]) -> tuple[ir.Value, ir.Value]:
    """``gamma / sqrt(variance + epsilon)`` and ``beta + (bias - mean) * scale``."""
    dtype = compute_dtype(TensorInfo.of(norm.x).dtype)
    gamma, beta, mean, variance = (cast(p, dtype) for p in list(norm.operands)[1:])
    epsilon = Full.create(result_types=[TensorInfo((), dtype).type], value=norm.epsilon).result
    scale = Divide.create(gamma, Sqrt.create(Add.create(variance, epsilon).result).result).result
    if not biases:
        return scale, Subtract.create(beta, Multiply.create(mean, scale).result).result
    total, *more = (_flat(b, dtype) for b in reversed(biases))
    for bias in more:
        total = Add.create(total, bias).result
    moved = Multiply.create(Subtract.create(total, mean).result, scale).result
    return scale, Add.create(beta, moved).result


def _flat(bias: ir.Value, dtype: ir.Type) -> ir.Value:
    """A bias as a vector: all its dimensions but one are 1."""
    info = TensorInfo.of(bias)
    if info.rank != 1:
        size = next((d for d in info.shape if d != 1), 1)
        bias = Reshape.create(bias, result_types=[info.with_(shape=[size]).type]).result
    return cast(bias, dtype)


def _spread_bias(shift: ir.Value, like: ir.Value, axis: int) -> ir.Value:
    """A vector as a bias along a dimension of a value: ``[c, 1, 1]`` for dimension 1 of 4."""
    info = TensorInfo.of(like)
    return insert_axes(cast(shift, info.dtype), [0], info.rank - axis)


def _scaled(weight: ir.Value, scale: ir.Value) -> ir.Value:
    """The product in the scale's dtype, rounded once to the weight's."""
    wide = Multiply.create(cast(weight, TensorInfo.of(scale).dtype), scale).result
    return cast(wide, TensorInfo.of(weight).dtype)


def _sum_of_inputs(op: ir.OpView, shift: ir.Value) -> ir.Value:
    """What an op computes of an input that is the shift of its channel everywhere: a number per output channel."""
    wide = cast(op.operands[1], TensorInfo.of(shift).dtype)
    if isinstance(op, MatMul):
        return MatMul.create(shift, wide).result
    products = Multiply.create(wide, per_input_channel(op, shift)).result
    outputs = op.kernel_layout.index("O")
    return Sum.create(products, axis=[i for i in range(4) if i != outputs]).result


def _erase(ops: list[ir.OpView]) -> None:
    """Erases ops that nothing reads any more, users first."""
    for op in ops:
        assert is_unused(op.operation)
        op.operation.erase()

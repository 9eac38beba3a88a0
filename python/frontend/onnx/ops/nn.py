"""ONNX operators of neural networks: normalisations."""

from __future__ import annotations

from ....dialect import ops
from ....dialect.bindings import ir
from ...emit import cast, emit, expand, full, info_of, multiply_all, reshape, unsqueeze, wide
from ...norms import normalised_groups
from ..equal_sizes import agreed_operands, with_size
from ..node import Node, UnmappedError, handles


@handles("BatchNormalization")
def _batch_norm(node: Node) -> ir.Value | list[ir.Value]:
    """Statistics are given: in training they would be those of the batch."""
    if node.attribute("training_mode", 0):
        return _batch_norm_in_training(node)
    if not node.attribute("spatial", 1):
        return _batch_norm_of_elements(node)
    dtype = node.dtype()
    parameters = [cast(node.tensor(i), dtype) for i in range(1, 5)]
    x = with_size(node.tensor(0), 1, info_of(parameters[0]).shape[0])
    return emit(ops.BatchNorm, x, *parameters, axis=1, epsilon=node.attribute("epsilon", 1e-5))


def _batch_norm_of_elements(node: Node) -> ir.Value:
    """Up to operator set 8 each element of an image may have statistics of its own."""
    dtype = wide(node.dtype())
    x, scale, shift, mean, variance = agreed_operands(*(cast(node.tensor(i), dtype) for i in range(5)))
    deviation = emit(ops.Sqrt, emit(ops.Add, variance, full(node.attribute("epsilon", 1e-5), dtype)))
    normal = emit(ops.Divide, emit(ops.Subtract, x, mean), deviation)
    return cast(emit(ops.Add, emit(ops.Multiply, normal, scale), shift), node.dtype())


def _batch_norm_in_training(node: Node) -> list[ir.Value]:
    """With the statistics of the batch itself, which are results, too."""
    dtype = wide(node.dtype())
    x, axes = cast(node.tensor(0), dtype), [0, *range(2, node.rank(0))]
    mean, variance = (emit(c, x, axis=axes) for c in (ops.Mean, ops.Variance))
    scale, shift = (cast(node.tensor(i), dtype) for i in (1, 2))
    result = emit(ops.BatchNorm, x, scale, shift, mean, variance, axis=1, epsilon=node.attribute("epsilon", 1e-5))
    result = cast(result, node.dtype())
    momentum = node.attribute("momentum", 0.9)
    return [result, *(_blended(node.tensor(i), s, momentum) for i, s in ((3, mean), (4, variance)))]


def _blended(old: ir.Value, new: ir.Value, momentum: float) -> ir.Value:
    dtype = info_of(old).dtype
    kept = emit(ops.Multiply, old, full(momentum, dtype))
    return emit(ops.Add, kept, emit(ops.Multiply, cast(new, dtype), full(1 - momentum, dtype)))


@handles("InstanceNormalization")
def _instance_norm(node: Node) -> ir.Value:
    """Squares of narrow floats are f32."""
    dtype = wide(node.dtype())
    x = cast(with_size(node.tensor(0), 1, node.operand(1).shape[0]), dtype)
    axes = list(range(2, node.rank(0)))
    mean, variance = (emit(c, x, axis=axes, keepdims=True) for c in (ops.Mean, ops.Variance))
    deviation = emit(ops.Sqrt, emit(ops.Add, variance, full(node.attribute("epsilon", 1e-5), dtype)))
    normal = emit(ops.Divide, emit(ops.Subtract, x, mean), deviation)
    scale, shift = (cast(unsqueeze(node.tensor(i), *range(1, len(axes) + 1)), dtype) for i in (1, 2))
    return cast(emit(ops.Add, emit(ops.Multiply, normal, scale), shift), node.dtype())


@handles("LayerNormalization")
def _layer_norm(node: Node) -> list[ir.Value]:
    x, axis, epsilon = node.tensor(0), node.axis(-1, node.rank(0)), node.attribute("epsilon", 1e-5)
    shape = info_of(x).shape[axis:]
    dtype = node.dtype()
    scale = _spread(node.tensor(1), shape)
    shift = _spread(node.tensor(2), shape) if node.has(2) else full(0, dtype, shape)
    axes = list(range(axis, node.rank(0)))
    result = emit(ops.LayerNorm, x, scale, shift, axes=axes, epsilon=epsilon)
    if not node.wants(1) and not node.wants(2):
        return [result]
    wide = cast(x, ir.F32Type.get()) if dtype.width < 32 else x
    mean, variance = (emit(c, wide, axis=axes, keepdims=True) for c in (ops.Mean, ops.Variance))
    inverse = emit(ops.Rsqrt, emit(ops.Add, variance, full(epsilon, info_of(wide).dtype)))
    return [result, mean, inverse]


@handles("RMSNormalization", "SimplifiedLayerNormalization", "com.microsoft.SimplifiedLayerNormalization")
def _rms_norm(node: Node) -> ir.Value:
    x, axis = node.tensor(0), node.axis(-1, node.rank(0))
    if node.wants(1):
        raise UnmappedError("expected no use of the deviation")
    shape = info_of(x).shape[axis:]
    scale = cast(_spread(node.tensor(1), shape), node.dtype())
    return emit(ops.RMSNorm, x, scale, axes=list(range(axis, node.rank(0))), epsilon=node.attribute("epsilon", 1e-5))


def _spread(parameter: ir.Value, shape: object) -> ir.Value:
    """Scale and shift may broadcast to the dimensions that are normalised."""
    wanted: tuple[int, ...] = tuple(shape)  # pyright: ignore[reportArgumentType]
    rank = info_of(parameter).rank
    if rank > len(wanted):
        extra = info_of(parameter).shape[: rank - len(wanted)]
        if any(d != 1 for d in extra):
            raise UnmappedError("expected parameters of the dimensions that are normalised")
        parameter = reshape(parameter, info_of(parameter).shape[len(extra) :])
    return expand(parameter, wanted)


@handles("GroupNormalization")
def _group_norm(node: Node) -> ir.Value:
    """Layer norm over each group's channels and positions; scale and shift per group, from operator set 21 on per channel."""
    x, groups = node.tensor(0), node.attribute("num_groups")
    result, info = normalised_groups(x, groups, node.attribute("epsilon", 1e-5)), info_of(x)
    each = info_of(result).shape[2]
    shape = (groups, each, 1) if node.version >= 21 else (groups, 1, 1)
    scale, shift = (reshape(cast(node.tensor(i), info.dtype), shape) for i in (1, 2))
    return reshape(emit(ops.Add, emit(ops.Multiply, result, scale), shift), info.shape)


@handles("LRN")
def _lrn(node: Node) -> ir.Value:
    """Across channels: the squares of ``size`` neighbours are an average pool over channels as rows, times their number."""
    x, size = node.tensor(0), node.attribute("size")
    info = info_of(x)
    alpha, beta, bias = (node.attribute(k, d) for k, d in (("alpha", 1e-4), ("beta", 0.75), ("bias", 1.0)))
    n, c = info.shape[:2]
    squares = reshape(emit(ops.Square, x), (n, 1, c, multiply_all(info.shape[2:])))
    before = (size - 1) // 2
    pads = [before, 0, size - 1 - before, 0]
    mean = emit(ops.AvgPool2D, squares, pool_size=[size, 1], padding=pads, count_include_pad=True)
    scaled = emit(ops.Add, full(bias, info.dtype), emit(ops.Multiply, mean, full(alpha, info.dtype)))
    return emit(ops.Divide, x, reshape(emit(ops.Power, scaled, full(beta, info.dtype)), info.shape))


@handles("MeanVarianceNormalization")
def _mvn(node: Node) -> ir.Value:
    dtype, axes = wide(node.dtype()), node.axes(node.attribute("axes", [0, 2, 3]), node.rank(0))
    x = cast(node.tensor(0), dtype)
    mean, variance = (emit(c, x, axis=axes, keepdims=True) for c in (ops.Mean, ops.Variance))
    deviation = emit(ops.Add, emit(ops.Sqrt, variance), full(1e-9, dtype))
    return cast(emit(ops.Divide, emit(ops.Subtract, x, mean), deviation), node.dtype())

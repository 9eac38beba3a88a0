"""Neural-network operators: activations, normalisations, attention, convolution and pooling."""

from __future__ import annotations

from .. import attributes, dim_ties, image_rules, op_costs
from ..bindings import ir
from ..errors import RelaxError
from ..inference import (
    boolean,
    broadcast_shapes,
    normalize_axes,
    normalize_axis,
    require_float,
    require_held,
    require_number,
    require_rank,
    require_same_dtype,
)  # fmt: skip
from ..layouts import DATA_LAYOUTS, KERNEL_LAYOUTS, reordered
from ..op import Attrs, Narrow, Op, Operand, Result, Tensor
from ..packed_weights import require_elements, require_panels
from ..size_relations import require_at_most, require_multiple, require_same, require_same_shape, shape_text
from ..struct_info import TensorInfo
from ..symbolic import Dim, Expr, dim_text
from .unary import _FloatUnary

__all__ = [
    "AdaptiveAvgPool2D",
    "Attention",
    "AvgPool2D",
    "BatchNorm",
    "Conv2D",
    "Gelu",
    "GeluTanh",
    "HardSwish",
    "LayerNorm",
    "LeakyRelu",
    "LogSoftmax",
    "MaxPool2D",
    "PackedConv2D",
    "Pad",
    "RMSNorm",
    "Relu",
    "Silu",
    "Softmax",
    "Softplus",
]  # fmt: skip


class Relu(_FloatUnary, name="relu"):
    """``max(x, 0)``; a NaN stays NaN, and -0.0 what it is, as in torch."""

    narrow = Narrow.FOLLOWS


class Gelu(_FloatUnary, name="gelu"):
    """``x / 2 * (1 + erf(x / sqrt(2)))``; NaN of minus infinity, as in torch."""

    narrow = Narrow.FOLLOWS


class GeluTanh(_FloatUnary, name="gelu_tanh"):
    """``x / 2 * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 x^3)))``; NaN of minus infinity, as in torch."""

    narrow = Narrow.FOLLOWS


class Silu(_FloatUnary, name="silu"):
    """``x * sigmoid(x)``; NaN of minus infinity, as in torch."""

    narrow = Narrow.FOLLOWS


class HardSwish(_FloatUnary, name="hardswish"):
    """``x * (clip(x + 3, 0, 6) / 6)``; NaN of minus infinity, as in torch."""

    narrow = Narrow.FOLLOWS


class Softplus(_FloatUnary, name="softplus"):
    """``log(1 + exp(beta * x)) / beta``, but ``x`` where ``beta * x`` is above the threshold.

    ``beta`` and ``threshold`` are rounded to the dtype that it computes in.
    """

    attrs = {"beta": attributes.real(default=1.0), "threshold": attributes.real(default=20.0)}


class LeakyRelu(_FloatUnary, name="leaky_relu"):
    """``x`` where positive, else ``alpha * x``; ``alpha`` is rounded to the dtype that it computes in."""

    attrs = {"alpha": attributes.real(default=0.01)}
    narrow = Narrow.FOLLOWS


class _AlongAxis(Op):
    """Base: floating point, same shape, along one axis."""

    x: Operand[Tensor]
    result: Result[Tensor]
    attrs = {"axis": attributes.integer(default=-1)}
    cost = op_costs.per_element(5)
    image = image_rules.AXIS

    @staticmethod
    def infer(operands: list[TensorInfo], attrs: Attrs) -> TensorInfo:
        (x,) = operands
        require_float(x)
        normalize_axis(attrs["axis"], x.rank)
        return x


class Softmax(_AlongAxis, name="softmax"):
    """``exp(x - max) / sum(exp(x - max))``; computed in f32 for narrower floats. A row of only -inf is NaN."""


class LogSoftmax(_AlongAxis, name="log_softmax"):
    """``x - max - log(sum(exp(x - max)))``; computed in f32 for narrower floats."""


def _check_affine(x: TensorInfo, axes: list[int], *parameters: TensorInfo) -> None:
    require_float(x)
    require_same_dtype(x, *parameters)
    wanted = [x.shape[a] for a in axes]
    for parameter in parameters:
        message = f"expected parameters of shape {shape_text(wanted)}, got {shape_text(parameter.shape)}"
        require_same_shape(parameter.shape, wanted, message)


class LayerNorm(Op, name="layer_norm"):
    """``(x - mean) / sqrt(variance + epsilon) * gamma + beta`` over ``axes``; computed in f32 for narrower floats.

    Source: Ba, Kiros and Hinton, Layer Normalization, arXiv:1607.06450.
    """

    x: Operand[Tensor]
    gamma: Operand[Tensor]
    beta: Operand[Tensor]
    result: Result[Tensor]
    attrs = {"axes": attributes.integers(default=(-1,)), "epsilon": attributes.real(default=1e-5)}
    cost = op_costs.per_element(7)

    @staticmethod
    def infer(operands: list[TensorInfo], attrs: Attrs) -> TensorInfo:
        x, gamma, beta = operands
        _check_affine(x, normalize_axes(attrs["axes"], x.rank, "axes"), gamma, beta)
        return x


class RMSNorm(Op, name="rms_norm"):
    """``x / sqrt(mean(x * x) + epsilon) * weight`` over ``axes``; computed in f32 for narrower floats.

    Source: Zhang and Sennrich, Root Mean Square Layer Normalization, arXiv:1910.07467.
    """

    x: Operand[Tensor]
    weight: Operand[Tensor]
    result: Result[Tensor]
    attrs = {"axes": attributes.integers(default=(-1,)), "epsilon": attributes.real(default=1e-5)}
    cost = op_costs.per_element(4)

    @staticmethod
    def infer(operands: list[TensorInfo], attrs: Attrs) -> TensorInfo:
        x, weight = operands
        _check_affine(x, normalize_axes(attrs["axes"], x.rank, "axes"), weight)
        return x


class BatchNorm(Op, name="batch_norm"):
    """``(x - mean) / sqrt(variance + epsilon) * gamma + beta`` per channel of ``axis``, with given statistics (inference)."""

    x: Operand[Tensor]
    gamma: Operand[Tensor]
    beta: Operand[Tensor]
    mean: Operand[Tensor]
    variance: Operand[Tensor]
    result: Result[Tensor]
    attrs = {"axis": attributes.integer(default=1), "epsilon": attributes.real(default=1e-5)}
    cost = op_costs.per_element(4)
    image = image_rules.AXIS

    @staticmethod
    def infer(operands: list[TensorInfo], attrs: Attrs) -> TensorInfo:
        x, *parameters = operands
        _check_affine(x, [normalize_axis(attrs["axis"], x.rank)], *parameters)
        return x


class Attention(Op, name="attention"):
    """``softmax(q @ k^T * scale + mask) @ v`` for ``q[..., h, s, d]``, ``k[..., g, t, d]``, ``v[..., g, t, e]``.

    ``h`` is a multiple of ``g``: query head ``i`` reads key head ``i // (h / g)`` (grouped queries). The mask broadcasts to
    ``[..., h, s, t]``; a boolean one keeps where true, another is of the query's dtype, or f32 for narrower floats. ``causal``
    lets query ``i`` see keys ``0 ... i`` (top-left aligned, as PyTorch's ``is_causal``). The default scale is ``1 / sqrt(d)``.
    Scores are computed in f32 for narrower floats. A query that sees none of the keys gives NaN; where there
    are no keys, it gives 0, as the sum over none is.

    Source: Vaswani et al., Attention Is All You Need, arXiv:1706.03762; Ainslie et al., GQA, arXiv:2305.13245.
    """

    query: Operand[Tensor]
    key: Operand[Tensor]
    value: Operand[Tensor]
    mask: Operand[Tensor] | None
    result: Result[Tensor]
    attrs = {"scale": attributes.real(default=None), "causal": attributes.boolean(default=False)}
    cost = op_costs.ATTENTION
    narrow = Narrow.ALWAYS

    @staticmethod
    def infer(operands: list[TensorInfo], attrs: Attrs) -> TensorInfo:
        q, k, v = operands[:3]
        require_float(q)
        require_same_dtype(q, k, v)
        if q.rank < 3 or not q.rank == k.rank == v.rank:
            raise RelaxError(f"expected query, key and value of one rank of 3 or more, got {q.rank}, {k.rank} and {v.rank}")
        _check_heads(q, k, v)
        batch = broadcast_shapes(q.shape[:-3], k.shape[:-3], v.shape[:-3])
        if len(operands) > 3:
            _check_mask(operands[3], q, [*batch, *q.shape[-3:-1], k.shape[-2]])
        return q.with_(shape=[*batch, *q.shape[-3:-1], v.shape[-1]])


def _check_heads(q: TensorInfo, k: TensorInfo, v: TensorInfo) -> None:
    shapes = f"{shape_text(q.shape)}, {shape_text(k.shape)} and {shape_text(v.shape)}"
    for left, right in ((q.shape[-1], k.shape[-1]), (k.shape[-2], v.shape[-2]), (k.shape[-3], v.shape[-3])):
        require_same(left, right, f"expected query, key and value that fit together, got {shapes}")
    heads, groups = q.shape[-3], k.shape[-3]
    counts = f"{dim_text(heads)} and {dim_text(groups)}"
    message = f"expected a number of query heads that is a multiple of the key heads, got {counts}"
    if groups == 0:
        raise RelaxError(message)
    require_multiple(heads, groups, message)


def _check_mask(mask: TensorInfo, q: TensorInfo, scores: list[Dim]) -> None:
    wider = isinstance(mask.dtype, ir.F32Type) and q.dtype.width < mask.dtype.width
    if mask.dtype != boolean() and not wider:
        require_same_dtype(q, mask)
    message = f"expected a mask that broadcasts to {shape_text(scores)}, got {shape_text(mask.shape)}"
    require_same_shape(broadcast_shapes(mask.shape, scores), scores, message)


#: Of a window's strides, dilation and padding, and of how far it reaches: what is computed of them stays within 64 bits.
_LARGEST_STEP, _LARGEST_REACH = 2**31 - 1, 2**62 - 1


def _window(size: Dim, kernel: Dim, stride: int, before: int, after: int, dilation: int = 1, ceil: bool = False) -> Dim:
    """Output size of a sliding window; with ``ceil`` a last one counts that starts inside the input or left padding."""
    if stride < 1 or dilation < 1 or before < 0 or after < 0:
        raise RelaxError("expected positive strides and dilation and no negative padding")
    if max(stride, dilation, before, after) > _LARGEST_STEP:
        raise RelaxError("expected strides, dilation and padding of less than 2**31")
    require_at_most(1, kernel, f"expected a window of 1 or more, got {dim_text(kernel)}")
    if kernel is None:
        return None
    reach = dilation * (kernel - 1) + 1
    if isinstance(reach, int) and reach > _LARGEST_REACH:
        raise RelaxError(f"expected a window of less than 2**62, got {reach}")
    if size is None:
        return None
    whole = size + before + after
    require_at_most(reach, whole, f"expected a window of at most {dim_text(whole)}, got {dim_text(reach)}")
    span = whole - reach
    if not ceil:
        return span // stride + 1
    if not isinstance(reach, int):
        return None  # no pooling: a window's size is an attribute
    # A window that reaches the last element may start beyond the image: by at most as much, whatever the image's size.
    beyond = max(after + stride - reach, 0)
    return (span + stride - 1 - beyond) // stride + 1


class Conv2D(Op, name="conv2d"):
    """Cross-correlation of ``x[n, c, h, w]`` with ``weight[o, c / groups, kh, kw]``: ``[n, o, h', w']``.

    ``padding`` is top, left, bottom, right. ``data_layout`` is the order of dimensions of ``x`` and of the result,
    ``kernel_layout`` that of the weight. Products are summed in f32 (f64 for f64 operands) and rounded once to ``out_dtype``,
    by default the operands' dtype.
    """

    x: Operand[Tensor]
    weight: Operand[Tensor]
    result: Result[Tensor]
    attrs = {
        "strides": attributes.integers(default=(1, 1), length=2),
        "padding": attributes.integers(default=(0, 0, 0, 0), length=4),
        "dilation": attributes.integers(default=(1, 1), length=2),
        "groups": attributes.integer(default=1),
        "data_layout": attributes.enum(DATA_LAYOUTS, default="NCHW"),
        "kernel_layout": attributes.enum(KERNEL_LAYOUTS, default="OIHW"),
        "out_dtype": attributes.dtype(default=None),
    }
    cost = op_costs.CONVOLUTION
    image = image_rules.CONVOLUTION
    narrow = Narrow.ALWAYS

    @staticmethod
    def infer(operands: list[TensorInfo], attrs: Attrs) -> TensorInfo:
        x, weight = operands
        out_dtype = attrs["out_dtype"]
        require_float(x)
        require_same_dtype(x, weight)
        if out_dtype is not None and not isinstance(out_dtype, ir.FloatType):
            raise RelaxError(f"expected a floating-point out_dtype, got {out_dtype}")
        return _convolved(x, weight, attrs).with_(dtype=out_dtype)


def _convolved(x: TensorInfo, weight: TensorInfo, attrs: Attrs) -> TensorInfo:
    """The image that a convolution gives, in the dtype of its operand."""
    layout = attrs["data_layout"]
    require_rank(x, 4)
    require_rank(weight, 4, "weight")
    n, c, h, w = reordered(x.shape, layout, "NCHW")
    o, cg, kh, kw = reordered(weight.shape, attrs["kernel_layout"], "OIHW")
    groups = attrs["groups"]
    message = f"expected channels that fit {groups} groups, got {shape_text(x.shape)} and {shape_text(weight.shape)}"
    if groups < 1:
        raise RelaxError(message)
    require_same(c, None if cg is None else cg * groups, message)
    require_multiple(o, groups, message)
    (sh, sw), (top, left, bottom, right), (dh, dw) = attrs["strides"], attrs["padding"], attrs["dilation"]
    shape = [n, o, _window(h, kh, sh, top, bottom, dh), _window(w, kw, sw, left, right, dw)]
    return x.with_(shape=reordered(shape, "NCHW", layout))


class PackedConv2D(Op, name="packed_conv2d"):
    """:class:`Conv2D` of ``x[n, h, w, c]`` with filters that :class:`PackWeight` packed: ``[n, h', w', channels]``.

    Packed is the matrix of filters ``[kh * kw * c / groups, channels]``, of the layout HWIO with the first three dimensions
    as one, ``rows`` channels of which are side by side: channels of a group are a multiple of these. Panels do not span groups.
    """

    x: Operand[Tensor]
    weight: Operand[Tensor]
    result: Result[Tensor]
    attrs = {
        "layout": attributes.packed_layout(),
        "channels": attributes.integer(),
        "kernel_size": attributes.integers(length=2),
        "strides": attributes.integers(default=(1, 1), length=2),
        "padding": attributes.integers(default=(0, 0, 0, 0), length=4),
        "dilation": attributes.integers(default=(1, 1), length=2),
        "groups": attributes.integer(default=1),
        "out_dtype": attributes.dtype(default=None),
    }
    cost = op_costs.PACKED_CONVOLUTION
    packed = "weight"

    @staticmethod
    def infer(operands: list[TensorInfo], attrs: Attrs) -> TensorInfo:
        x, weight = operands
        channels, (kh, kw), groups = attrs["channels"], attrs["kernel_size"], attrs["groups"]
        layout = require_elements(attrs["layout"])
        require_panels(weight, layout, channels, "channels")
        taps, width = weight.shape[1], layout.tile
        if min(kh, kw) < 1 or not isinstance(taps, int) or taps % (kh * kw):
            raise RelaxError(f"expected filters of {kh} by {kw} elements, got {shape_text(weight.shape)}")
        if groups > 1 and channels // groups % width:
            raise RelaxError(f"expected groups of whole panels, got {channels} channels in {groups} groups, panels of {width}")
        filters = weight.with_(shape=[kh, kw, taps // (kh * kw) * layout.rows, channels])
        layouts = {"data_layout": "NHWC", "kernel_layout": "HWIO"}
        return Conv2D.infer([x, filters], {**attrs, **layouts})


class _Pool2D(Op):
    """Base: a window of ``pool_size`` over ``x[n, c, h, w]``; ``padding`` is top, left, bottom, right.

    ``layout`` is the order of dimensions of ``x`` and of the result.
    """

    x: Operand[Tensor]
    result: Result[Tensor]
    attrs = {
        "pool_size": attributes.integers(length=2),
        "strides": attributes.integers(default=(1, 1), length=2),
        "padding": attributes.integers(default=(0, 0, 0, 0), length=4),
        "dilation": attributes.integers(default=(1, 1), length=2),
        "ceil_mode": attributes.boolean(default=False),
        "layout": attributes.enum(DATA_LAYOUTS, default="NCHW"),
    }
    cost = op_costs.POOLS
    image = image_rules.WINDOW

    @staticmethod
    def infer(operands: list[TensorInfo], attrs: Attrs) -> TensorInfo:
        (x,) = operands
        require_float(x)
        return _pooled(x, attrs)


def _pooled(x: TensorInfo, attrs: Attrs) -> TensorInfo:
    """The image that windows over an image give."""
    require_rank(x, 4)
    (kh, kw), (sh, sw), (dh, dw) = attrs["pool_size"], attrs["strides"], attrs["dilation"]
    top, left, bottom, right = attrs["padding"]
    ceil, layout = attrs["ceil_mode"], attrs["layout"]
    n, c, h, w = reordered(x.shape, layout, "NCHW")
    shape = [n, c, _window(h, kh, sh, top, bottom, dh, ceil), _window(w, kw, sw, left, right, dw, ceil)]
    return x.with_(shape=reordered(shape, "NCHW", layout))


class MaxPool2D(_Pool2D, name="max_pool2d"):
    """The largest element of each window, NaN if one is NaN; padding never wins.

    A window of padding only is -inf, of integers the least of the dtype.
    """

    narrow = Narrow.FOLLOWS

    @staticmethod
    def infer(operands: list[TensorInfo], attrs: Attrs) -> TensorInfo:
        (x,) = operands
        require_number(x)
        return _pooled(x, attrs)


class AvgPool2D(_Pool2D, name="avg_pool2d"):
    """The mean of each window; ``count_include_pad`` counts the padding's zeros (never those beyond it in ceil mode)."""

    attrs = {**_Pool2D.attrs, "count_include_pad": attributes.boolean(default=False)}


class AdaptiveAvgPool2D(Op, name="adaptive_avg_pool2d"):
    """Means over windows chosen so that the result is ``output_size``.

    Output ``i`` of ``o`` over a dimension of ``h`` averages elements from ``floor(i h / o)`` to before ``ceil((i + 1) h / o)``.
    ``layout`` is the order of dimensions of ``x`` and of the result.
    """

    x: Operand[Tensor]
    result: Result[Tensor]
    attrs = {
        "output_size": attributes.integers(length=2),
        "layout": attributes.enum(DATA_LAYOUTS, default="NCHW"),
    }
    cost = op_costs.REDUCES
    image = image_rules.WINDOW

    @staticmethod
    def infer(operands: list[TensorInfo], attrs: Attrs) -> TensorInfo:
        (x,) = operands
        require_float(x)
        require_rank(x, 4)
        if any(size < 1 for size in attrs["output_size"]):
            raise RelaxError(f"expected a positive output_size, got {attrs['output_size']}")
        n, c, h, w = reordered(x.shape, attrs["layout"], "NCHW")
        for size in (h, w):
            require_at_most(1, size, f"expected an image of 1 row and column or more, got {shape_text(x.shape)}")
        return x.with_(shape=reordered([n, c, *attrs["output_size"]], "NCHW", attrs["layout"]))


class Pad(Op, name="pad"):
    """Adds ``before[i]`` and ``after[i]`` elements of ``value`` around each dimension."""

    x: Operand[Tensor]
    result: Result[Tensor]
    attrs = {
        "before": attributes.integers(),
        "after": attributes.integers(),
        "value": attributes.scalar(default=0),
    }
    cost = op_costs.MOVES
    image = image_rules.PAD
    narrow = Narrow.FOLLOWS
    ties = dim_ties.PADDED

    @staticmethod
    def infer(operands: list[TensorInfo], attrs: Attrs) -> TensorInfo:
        (x,) = operands
        before, after = attrs["before"], attrs["after"]
        if len(before) != x.rank or len(after) != x.rank or any(p < 0 for p in [*before, *after]):
            raise RelaxError(f"expected {x.rank} amounts of 0 or more before and after, got {before} and {after}")
        require_held(attrs["value"], x.dtype)
        return x.with_(shape=[_plus(d, b + a) for d, b, a in zip(x.shape, before, after, strict=True)])


def _plus(dim: Dim, amount: int) -> int | Expr | None:
    return None if dim is None else dim + amount

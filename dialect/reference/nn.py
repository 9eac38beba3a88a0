"""Neural-network operators; floats narrower than f32 compute in f32 throughout and round once at the end."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..errors import RelaxError
from ..layouts import permutation
from ..packed_layout import PackedLayout
from .numeric import Array, convert, lowest, matmul, number, wide
from .packed import unpacked
from .registry import reference
from .statistical import mean_values, variance_values
from .unary import apply, at_least, erf_values

__all__: list[str] = []


@reference
def relu(x: Array) -> Array:
    return apply(lambda v: at_least(v, v.dtype.type(0)), x)


@reference
def gelu(x: Array) -> Array:
    return apply(lambda v: v / 2 * (1 + erf_values(v / v.dtype.type(math.sqrt(2)))), x)


@reference
def gelu_tanh(x: Array) -> Array:
    return apply(_gelu_tanh, x)


def _gelu_tanh(v: Array) -> Array:
    """``(1 + tanh(u)) / 2`` is the sigmoid of ``2 * u``, which keeps what the sum cancels."""
    scale, cubic = v.dtype.type(2 * math.sqrt(2 / math.pi)), v.dtype.type(0.044715)
    return v / (1 + np.exp(-scale * v * (1 + cubic * v * v)))


@reference
def silu(x: Array) -> Array:
    return apply(lambda v: v / (1 + np.exp(-v)), x)


@reference
def hardswish(x: Array) -> Array:
    return apply(lambda v: v * (np.minimum(np.maximum(v + 3, 0), 6) / 6), x)


@reference
def softplus(x: Array, *, beta: float = 1.0, threshold: float = 20.0) -> Array:
    return apply(lambda v: _softplus(v, v.dtype.type(beta), v.dtype.type(threshold)), x)


def _softplus(values: Array, beta: Any, threshold: Any) -> Array:
    scaled = values * beta
    return np.where(scaled > threshold, values, np.logaddexp(beta.dtype.type(0), scaled) / beta)


@reference
def leaky_relu(x: Array, *, alpha: float) -> Array:
    return apply(lambda v: np.where(v > 0, v, v.dtype.type(alpha) * v), x)


@reference
def softmax(x: Array, *, axis: int) -> Array:
    return apply(lambda v: _softmax(v, axis), x)


def _softmax(values: Array, axis: int) -> Array:
    powers = np.exp(values - np.max(values, axis=axis, keepdims=True, initial=-np.inf))
    return powers / np.sum(powers, axis=axis, keepdims=True)


@reference
def log_softmax(x: Array, *, axis: int) -> Array:
    return apply(lambda v: _log_softmax(v, axis), x)


def _log_softmax(values: Array, axis: int) -> Array:
    shifted = values - np.max(values, axis=axis, keepdims=True, initial=-np.inf)
    return shifted - np.log(np.sum(np.exp(shifted), axis=axis, keepdims=True))


def _along(parameter: Array, rank: int, axes: tuple[int, ...]) -> Array:
    """A parameter over some axes (ascending), shaped to broadcast against an array of that rank."""
    sizes = dict(zip(axes, parameter.shape, strict=True))
    return wide(parameter).reshape([sizes.get(i, 1) for i in range(rank)])


def _ascending(axes: list[int], rank: int) -> tuple[int, ...]:
    return tuple(sorted(a % rank for a in axes))


@reference
def layer_norm(x: Array, gamma: Array, beta: Array, *, axes: list[int], epsilon: float) -> Array:
    normal, values = _ascending(axes, x.ndim), wide(x)
    deviation = np.sqrt(variance_values(values, normal, True) + values.dtype.type(epsilon))
    unit = (values - mean_values(values, normal, True)) / deviation
    return convert(unit * _along(gamma, x.ndim, normal) + _along(beta, x.ndim, normal), x.dtype)


@reference
def rms_norm(x: Array, weight: Array, *, axes: list[int], epsilon: float) -> Array:
    normal, values = _ascending(axes, x.ndim), wide(x)
    size = np.sqrt(mean_values(np.square(values), normal, True) + values.dtype.type(epsilon))
    return convert(values / size * _along(weight, x.ndim, normal), x.dtype)


@reference
def batch_norm(
    x: Array, gamma: Array, beta: Array, mean: Array, variance: Array, *, axis: int, epsilon: float
) -> Array:  # fmt: skip
    values = wide(x)
    g, b, m, v = (_along(p, x.ndim, (axis % x.ndim,)) for p in (gamma, beta, mean, variance))
    return convert((values - m) / np.sqrt(v + values.dtype.type(epsilon)) * g + b, x.dtype)


@reference
def attention(
    query: Array, key: Array, value: Array, mask: Array | None = None, *, scale: float | None, causal: bool
) -> Array:  # fmt: skip
    q, k, v = wide(query), _per_query_head(wide(key), query), _per_query_head(wide(value), query)
    factor = 1 / math.sqrt(q.shape[-1]) if scale is None and q.shape[-1] else scale or 0.0
    scores = matmul(q, np.swapaxes(k, -1, -2)) * q.dtype.type(factor)
    if mask is not None:
        scores = np.where(mask, scores, -np.inf) if mask.dtype == np.bool_ else scores + wide(mask)
    if causal:
        scores = np.where(np.tri(*scores.shape[-2:], dtype=np.bool_), scores, -np.inf)
    return convert(matmul(_softmax(scores.astype(q.dtype, copy=False), -1), v), query.dtype)


def _per_query_head(x: Array, query: Array) -> Array:
    """Each key or value head repeated for the query heads that read it."""
    heads, groups = query.shape[-3], x.shape[-3]
    if heads != groups and (not groups or heads % groups):
        raise RelaxError(f"expected a number of query heads that is a multiple of the key heads, got {heads} and {groups}")
    return x if heads == groups else np.repeat(x, heads // groups, axis=-3)


_Pair = list[int]


def _padded(values: Array, before: _Pair, after: _Pair, fill: float) -> Array:
    """An image ``[n, c, h, w]`` with rows and columns of ``fill`` around it."""
    n, c, h, w = values.shape
    out = np.full((n, c, h + before[0] + after[0], w + before[1] + after[1]), fill, values.dtype)
    out[:, :, before[0] : before[0] + h, before[1] : before[1] + w] = values
    return out


def _windows(values: Array, kernel: _Pair, strides: _Pair, dilation: _Pair) -> Array:
    """All windows of a padded image: ``[n, c, h', w', kh, kw]``, a view."""
    extent = [d * (k - 1) + 1 for k, d in zip(kernel, dilation, strict=True)]
    view = np.lib.stride_tricks.sliding_window_view(values, extent, axis=(2, 3))
    return view[:, :, :: strides[0], :: strides[1], :: dilation[0], :: dilation[1]]


@reference
def conv2d(
    x: Array, weight: Array, *, strides: _Pair, padding: list[int], dilation: _Pair, groups: int,
    data_layout: str = "NCHW", kernel_layout: str = "OIHW", out_dtype: np.dtype[Any] | None = None,
) -> Array:  # fmt: skip
    layouts = data_layout, kernel_layout
    return convert(_convolved(wide(x), wide(weight), 0, strides, padding, dilation, groups, layouts), out_dtype or x.dtype)


def _convolved(
    x: Array, weight: Array, beyond: int, strides: _Pair, padding: list[int], dilation: _Pair, groups: int,
    layouts: tuple[str, str],
) -> Array:  # fmt: skip
    """Sums in the operands' own dtype; ``beyond`` is what is outside of the image."""
    data_layout, kernel_layout = layouts
    x, weight = _laid_out(x, data_layout, "NCHW"), _laid_out(weight, kernel_layout, "OIHW")
    n, channels = x.shape[:2]
    outputs, per_group, kh, kw = weight.shape
    if channels != per_group * groups or outputs % groups:
        raise RelaxError(f"expected channels that fit {groups} groups, got {channels} and {outputs} of {per_group}")
    padded = _padded(x, padding[:2], padding[2:], beyond)
    windows = _windows(padded, [kh, kw], strides, dilation)
    oh, ow = windows.shape[2:4]
    split = windows.reshape(n, groups, per_group, oh, ow, kh, kw).transpose(1, 0, 3, 4, 2, 5, 6)
    columns = split.reshape(groups, n * oh * ow, per_group * kh * kw)
    filters = weight.reshape(groups, outputs // groups, per_group * kh * kw)
    product = matmul(columns, filters.transpose(0, 2, 1)).reshape(groups, n, oh, ow, outputs // groups)
    image = product.transpose(1, 0, 4, 2, 3).reshape(n, outputs, oh, ow)
    return _laid_out(image, "NCHW", data_layout)


@reference
def packed_conv2d(
    x: Array, weight: Array, *, layout: PackedLayout, channels: int, kernel_size: _Pair, strides: _Pair, padding: list[int],
    dilation: _Pair, groups: int, out_dtype: np.dtype[Any] | None = None,
) -> Array:  # fmt: skip
    filters = unpacked(weight, layout, channels).reshape(*kernel_size, x.shape[-1] // groups, channels)
    return conv2d(
        x, filters, strides=strides, padding=padding, dilation=dilation, groups=groups,
        data_layout="NHWC", kernel_layout="HWIO", out_dtype=out_dtype,
    )  # fmt: skip


def _laid_out(values: Array, source: str, target: str) -> Array:
    """A view with the dimensions in the order of another layout."""
    return values.transpose(permutation(source, target))


def _pool_windows(
    image: Array, fill: float, beyond: float, pool_size: _Pair, strides: _Pair, padding: list[int], dilation: _Pair, ceil: bool
) -> Array:  # fmt: skip
    """The windows of an image with ``fill`` around it; those of ceil mode may reach over the padding's end, to ``beyond``.

    They start inside the image or in the padding before it.
    """
    padded = _padded(image, padding[:2], padding[2:], fill)
    if not ceil:
        return _windows(padded, pool_size, strides, dilation)
    found = _windows(_padded(padded, [0, 0], [s - 1 for s in strides], beyond), pool_size, strides, dilation)
    rows, columns = (-(-(n + p) // s) for n, p, s in zip(image.shape[2:], padding[:2], strides, strict=True))
    return found[:, :, :rows, :columns]


@reference
def max_pool2d(
    x: Array, *, pool_size: _Pair, strides: _Pair, padding: list[int], dilation: _Pair, ceil_mode: bool, layout: str = "NCHW"
) -> Array:  # fmt: skip
    x = _laid_out(x, layout, "NCHW")
    least = lowest(x.dtype)
    windows = _pool_windows(wide(x), least, least, pool_size, strides, padding, dilation, ceil_mode)
    return convert(_laid_out(np.max(windows, axis=(-2, -1), initial=least), "NCHW", layout), x.dtype)


@reference
def avg_pool2d(
    x: Array, *, pool_size: _Pair, strides: _Pair, padding: list[int], dilation: _Pair, ceil_mode: bool,
    count_include_pad: bool, layout: str = "NCHW",
) -> Array:  # fmt: skip
    x = _laid_out(x, layout, "NCHW")
    values = wide(x)

    def sums(image: Array, fill: float) -> Array:
        return np.sum(_pool_windows(image, fill, 0, pool_size, strides, padding, dilation, ceil_mode), axis=(-2, -1))

    counted = np.ones((1, 1, *x.shape[2:]), values.dtype)
    means = sums(values, 0) / sums(counted, 1 if count_include_pad else 0)
    return convert(_laid_out(means, "NCHW", layout), x.dtype)


@reference
def adaptive_avg_pool2d(x: Array, *, output_size: _Pair, layout: str = "NCHW") -> Array:
    values = _laid_out(wide(x), layout, "NCHW")
    rows, columns = (_adaptive_bounds(size, out) for size, out in zip(values.shape[2:], output_size, strict=True))
    result = np.zeros((*values.shape[:2], *output_size), values.dtype)
    for i, (top, bottom) in enumerate(rows):
        for j, (left, right) in enumerate(columns):
            result[:, :, i, j] = mean_values(values[:, :, top:bottom, left:right], (2, 3), False)
    return convert(_laid_out(result, "NCHW", layout), x.dtype)


def _adaptive_bounds(size: int, out: int) -> list[tuple[int, int]]:
    return [(i * size // out, -(-(i + 1) * size // out)) for i in range(out)]


@reference
def pad(x: Array, *, before: list[int], after: list[int], value: float) -> Array:
    result = np.full([b + d + a for b, d, a in zip(before, x.shape, after, strict=True)], number(value, x.dtype), x.dtype)
    result[tuple(slice(b, b + d) for b, d in zip(before, x.shape, strict=True))] = x
    return result

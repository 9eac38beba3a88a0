"""Neural-network operators, against PyTorch in f64."""

from __future__ import annotations

import math
from typing import Any

import ml_dtypes
import numpy as np
import pytest
import torch
import torch.nn.functional as fn
from hypothesis import given, settings
from hypothesis import strategies as st

import relaxir as rx
from relaxir.dialect.dtypes import numpy_dtype
from relaxir.dialect.errors import RelaxError
from relaxir.dialect.layouts import permutation
from relaxir.dialect.packed_layout import PackedLayout
from relaxir.dialect.reference.registry import reference_of
from support.float_checks import floats, wide

DTYPES = ["f64", "f32", "f16", "bf16"]
Array = np.ndarray[Any, Any]


def double(x: Array) -> torch.Tensor:
    return torch.from_numpy(np.array(wide(x)))


def close(got: Array, exact: Array | torch.Tensor, dtype: str, slack: float = 1.0) -> None:
    """Within one rounding of the dtype and a few of f32 (f64) on the way; NaN and infinities in the same places."""
    exact = np.asarray(exact)
    assert got.dtype == numpy_dtype(dtype)
    assert got.shape == exact.shape
    eps = float(ml_dtypes.finfo(got.dtype).eps)
    tolerance = 1e-13 if dtype == "f64" else 2e-6
    np.testing.assert_allclose(wide(got), exact, rtol=0.51 * eps + tolerance * slack, atol=tolerance * slack)


ACTIVATIONS = {
    "relu": fn.relu,
    "gelu": fn.gelu,
    "gelu_tanh": lambda x: fn.gelu(x, approximate="tanh"),
    "silu": fn.silu,
    "hardswish": fn.hardswish,
    "softplus": lambda x: fn.softplus(x, threshold=1000),
}


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", ACTIVATIONS)
def test_activations(name: str, dtype: str) -> None:
    rng = np.random.default_rng(1)
    for shape in [(), (0,), (7,), (3, 1, 2)]:
        x = floats(rng, shape, dtype, specials=False)
        close(reference_of(name).function(x), ACTIVATIONS[name](double(x)), dtype)


@pytest.mark.parametrize("name", [*ACTIVATIONS, "leaky_relu"])
def test_activations_of_special_values(name: str) -> None:
    attrs = {"alpha": 0.1} if name == "leaky_relu" else {}
    x = np.array([np.nan, np.inf, 0.0], np.float32)
    got = reference_of(name).function(x, **attrs)
    assert np.isnan(got[0])
    assert got[1] == np.inf
    assert float(got[2]) == pytest.approx(math.log(2) if name == "softplus" else 0)


def test_softplus_does_not_overflow() -> None:
    got = reference_of("softplus").function(np.array([100, -100, 1e30], np.float32))
    np.testing.assert_allclose(got, [100, math.exp(-100), 1e30], rtol=1e-5, atol=1e-44)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("alpha", [0.01, 0.3, -1.0, 2.0])
def test_leaky_relu(alpha: float, dtype: str) -> None:
    x = floats(np.random.default_rng(2), (30,), dtype, specials=False)
    close(reference_of("leaky_relu").function(x, alpha=alpha), fn.leaky_relu(double(x), alpha), dtype)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(("name", "oracle"), [("softmax", torch.softmax), ("log_softmax", torch.log_softmax)])
def test_softmax(name: str, oracle: Any, dtype: str) -> None:
    rng = np.random.default_rng(3)
    for shape in [(5,), (2, 3), (2, 1, 4), (0, 3), (3, 0)]:
        x = floats(rng, shape, dtype, specials=False)
        for axis in range(-len(shape), len(shape)):
            close(reference_of(name).function(x, axis=axis), oracle(double(x), axis), dtype, 4)


def test_softmax_of_special_rows() -> None:
    x = np.array([[-np.inf, -np.inf], [-np.inf, 3], [1e38, -1e38], [np.nan, 1]], np.float32)
    got = reference_of("softmax").function(x, axis=1)
    assert np.isnan(got[0]).all()
    assert got[1].tolist() == [0, 1]
    assert got[2].tolist() == [1, 0]
    assert np.isnan(got[3]).all()
    assert reference_of("log_softmax").function(x, axis=1)[1].tolist() == [-np.inf, 0]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(
    ("shape", "axes"), [((5,), [0]), ((2, 5), [-1]), ((2, 3, 4), [1, 2]), ((2, 3, 4), [-1, -2]), ((0, 4), [1]), ((3,), [])]
)
def test_layer_norm(shape: tuple[int, ...], axes: list[int], dtype: str) -> None:
    rng = np.random.default_rng(4)
    x = floats(rng, shape, dtype, specials=False)
    normal = sorted(a % len(shape) for a in axes)
    gamma, beta = (floats(rng, tuple(shape[a] for a in normal), dtype, specials=False) for _ in range(2))
    got = reference_of("layer_norm").function(x, gamma, beta, axes=axes, epsilon=1e-3)
    if normal:
        exact = fn.layer_norm(double(x), [shape[a] for a in normal], double(gamma), double(beta), 1e-3)
    else:
        exact = torch.zeros(shape, dtype=torch.float64) + double(beta)
    close(got, exact, dtype, 20)


def test_layer_norm_over_a_leading_axis() -> None:
    rng = np.random.default_rng(5)
    x, gamma, beta = (floats(rng, s, "f32", specials=False) for s in ((3, 4), (3,), (3,)))
    got = reference_of("layer_norm").function(x, gamma, beta, axes=[0], epsilon=1e-5)
    close(got, fn.layer_norm(double(x).T, [3], double(gamma), double(beta), 1e-5).T, "f32", 20)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(("shape", "axes"), [((5,), [0]), ((2, 5), [-1]), ((2, 3, 4), [1, 2]), ((0, 4), [1])])
def test_rms_norm(shape: tuple[int, ...], axes: list[int], dtype: str) -> None:
    rng = np.random.default_rng(6)
    x = floats(rng, shape, dtype, specials=False)
    sizes = [shape[a] for a in sorted(a % len(shape) for a in axes)]
    weight = floats(rng, tuple(sizes), dtype, specials=False)
    got = reference_of("rms_norm").function(x, weight, axes=axes, epsilon=1e-4)
    close(got, fn.rms_norm(double(x), sizes, double(weight), 1e-4), dtype, 10)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(("shape", "axis"), [((2, 3), 1), ((2, 3, 4, 5), 1), ((2, 4, 3), -1), ((3, 2), 0), ((0, 3), 1)])
def test_batch_norm(shape: tuple[int, ...], axis: int, dtype: str) -> None:
    rng = np.random.default_rng(7)
    x = floats(rng, shape, dtype, specials=False)
    gamma, beta, mean = (floats(rng, (3,), dtype, specials=False) for _ in range(3))
    variance = np.abs(floats(rng, (3,), "f32", specials=False)).astype(numpy_dtype(dtype))
    got = reference_of("batch_norm").function(x, gamma, beta, mean, variance, axis=axis, epsilon=1e-3)
    channel = [-1 if i == axis % len(shape) else 1 for i in range(len(shape))]
    g, b, m, v = (wide(p).reshape(channel) for p in (gamma, beta, mean, variance))
    close(got, (wide(x) - m) / np.sqrt(v + 1e-3) * g + b, dtype, 20)


SHAPES_OF_ATTENTION = [
    ((2, 4, 5, 8), (2, 4, 6, 8), (2, 4, 6, 3)),
    ((4, 5, 8), (4, 5, 8), (4, 5, 8)),
    ((1, 6, 3, 4), (1, 2, 7, 4), (1, 2, 7, 5)),
    ((2, 4, 3, 4), (1, 1, 3, 4), (1, 1, 3, 4)),
    ((2, 2, 0, 4), (2, 2, 3, 4), (2, 2, 3, 4)),
]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("shapes", SHAPES_OF_ATTENTION)
def test_attention(shapes: tuple[tuple[int, ...], ...], causal: bool, dtype: str) -> None:
    rng = np.random.default_rng(8)
    q, k, v = (floats(rng, s, dtype, specials=False) for s in shapes)
    heads = q.shape[-3] // k.shape[-3]
    keys, values = (torch.repeat_interleave(double(t), heads, dim=-3) for t in (k, v))
    batch = np.broadcast_shapes(q.shape[:-3], k.shape[:-3])
    tensors = [t.expand(*batch, *t.shape[-3:]) for t in (double(q), keys, values)]
    for scale in (None, 0.3):
        got = reference_of("attention").function(q, k, v, scale=scale, causal=causal)
        exact = fn.scaled_dot_product_attention(*tensors, is_causal=causal, scale=scale)
        close(got, exact, dtype, 20)


@pytest.mark.parametrize("dtype", ["f64", "f32", "bf16"])
@pytest.mark.parametrize("mask_shape", [(5, 6), (1, 6), (4, 5, 6), (2, 1, 5, 6), (2, 4, 5, 6), (6,)])
def test_attention_with_masks(mask_shape: tuple[int, ...], dtype: str) -> None:
    rng = np.random.default_rng(9)
    q, k, v = (floats(rng, s, dtype, specials=False) for s in ((2, 4, 5, 8), (2, 4, 6, 8), (2, 4, 6, 3)))
    keep = rng.random(mask_shape) < 0.7
    keep[..., 0] = True
    bias = floats(rng, mask_shape, dtype, specials=False)
    for mask, oracle in ((keep, torch.from_numpy(keep)), (bias, double(bias))):
        exact = fn.scaled_dot_product_attention(double(q), double(k), double(v), attn_mask=oracle.expand(2, 4, 5, 6))
        close(reference_of("attention").function(q, k, v, mask, scale=None, causal=False), exact, dtype, 20)


def test_a_query_that_sees_no_key_is_nan() -> None:
    x = np.ones((1, 2, 4), np.float32)
    mask = np.array([[True, True], [False, False]])
    got = reference_of("attention").function(x, x, x, mask, scale=None, causal=False)
    assert np.isnan(got[0]).any(axis=1).tolist() == [False, True]


@pytest.mark.parametrize("masked", [False, True])
def test_where_there_are_no_keys_attention_is_0(masked: bool) -> None:
    """As torch's is: a sum over nothing."""
    q, k, v = (np.ones((1, 2, n, 4), np.float32) for n in (3, 0, 0))
    mask = np.ones((3, 0), np.bool_) if masked else None
    got = reference_of("attention").function(q, k, v, mask, scale=None, causal=False)
    np.testing.assert_array_equal(got, np.zeros_like(q))


def test_causal_and_mask_together() -> None:
    rng = np.random.default_rng(10)
    q, k, v = (floats(rng, (1, 3, 4), "f32", specials=False) for _ in range(3))
    bias = floats(rng, (3, 3), "f32", specials=False)
    got = reference_of("attention").function(q, k, v, bias, scale=None, causal=True)
    both = double(bias) + torch.triu(torch.full((3, 3), -math.inf, dtype=torch.float64), 1)
    close(got, fn.scaled_dot_product_attention(double(q), double(k), double(v), attn_mask=both), "f32", 20)


def test_heads_that_do_not_divide() -> None:
    q, k = np.ones((3, 2, 4), np.float32), np.ones((2, 2, 4), np.float32)
    with pytest.raises(RelaxError, match="expected a number of query heads that is a multiple of the key heads, got 3 and 2"):
        reference_of("attention").function(q, k, k, scale=None, causal=False)


@settings(max_examples=30, deadline=None)
@given(st.data())
def test_conv2d(data: st.DataObject) -> None:
    draw = data.draw
    dtype = draw(st.sampled_from(["f64", "f32", "bf16"]))
    groups, per_group, filters = draw(st.integers(1, 3)), draw(st.integers(1, 2)), draw(st.integers(1, 2))
    kernel, strides, dilation = ([draw(st.integers(1, 3)) for _ in range(2)] for _ in range(3))
    padding = [draw(st.integers(0, 2)) for _ in range(4)]
    least = [d * (k - 1) + 1 for k, d in zip(kernel, dilation, strict=True)]
    size = [n + draw(st.integers(0, 4)) for n in least]
    rng = np.random.default_rng(draw(st.integers(0, 99)))
    x = floats(rng, (draw(st.integers(0, 2)), groups * per_group, *size), dtype, specials=False)
    weight = floats(rng, (groups * filters, per_group, *kernel), dtype, specials=False)
    got = reference_of("conv2d").function(x, weight, strides=strides, padding=padding, dilation=dilation, groups=groups)
    top, left, bottom, right = padding
    padded = fn.pad(double(x), (left, right, top, bottom))
    close(got, fn.conv2d(padded, double(weight), None, strides, 0, dilation, groups), dtype, 60)


def test_conv2d_of_channels_that_do_not_fit() -> None:
    x, weight = np.ones((1, 3, 4, 4), np.float32), np.ones((2, 2, 3, 3), np.float32)
    with pytest.raises(RelaxError, match="expected channels that fit 1 groups"):
        reference_of("conv2d").function(x, weight, strides=[1, 1], padding=[0] * 4, dilation=[1, 1], groups=1)


@pytest.mark.parametrize(("data", "kernel"), [("NHWC", "HWIO"), ("NHWC", "OIHW"), ("NCHW", "HWIO")])
def test_conv2d_in_other_layouts(data: str, kernel: str) -> None:
    rng = np.random.default_rng(13)
    x, weight = floats(rng, (2, 4, 5, 6), "bf16", specials=False), floats(rng, (6, 2, 3, 2), "bf16", specials=False)
    attrs = {"strides": [2, 1], "padding": [1, 0, 2, 1], "dilation": [1, 2], "groups": 2, "out_dtype": np.dtype(np.float32)}
    want = reference_of("conv2d").function(x, weight, **attrs)
    moved = (x.transpose(permutation("NCHW", data)), weight.transpose(permutation("OIHW", kernel)))
    got = reference_of("conv2d").function(*moved, **attrs, data_layout=data, kernel_layout=kernel)
    assert got.dtype == np.float32
    np.testing.assert_array_equal(got, want.transpose(permutation("NCHW", data)))
    close(got.transpose(permutation(data, "NCHW")), torch_conv(x, weight, attrs), "f32", 60)


@pytest.mark.parametrize(("outputs", "groups", "tile"), [(6, 1, 4), (8, 1, 8), (8, 2, 4), (12, 3, 2), (0, 1, 4)])
def test_packed_filters_mean_what_filters_do(outputs: int, groups: int, tile: int) -> None:
    rng = np.random.default_rng(15)
    x = floats(rng, (2, 7, 6, 2 * groups), "f32", specials=False)
    weight = floats(rng, (3, 2, 2, outputs), "f32", specials=False)
    attrs = {"strides": [2, 1], "padding": [1, 0, 2, 1], "dilation": [1, 2], "groups": groups}
    packed = reference_of("pack_weight").function(weight.reshape(12, outputs), layout=PackedLayout(tile))
    got = reference_of("packed_conv2d").function(
        x, packed, layout=PackedLayout(tile), channels=outputs, kernel_size=[3, 2], **attrs
    )
    want = reference_of("conv2d").function(x, weight, **attrs, data_layout="NHWC", kernel_layout="HWIO")
    np.testing.assert_array_equal(got, want)


def torch_conv(x: Array, weight: Array, attrs: dict[str, Any]) -> torch.Tensor:
    top, left, bottom, right = attrs["padding"]
    padded = fn.pad(double(x), (left, right, top, bottom))
    return fn.conv2d(padded, double(weight), None, attrs["strides"], 0, attrs["dilation"], attrs["groups"])


@settings(max_examples=200)
@given(
    st.integers(1, 5), st.integers(1, 4), st.integers(1, 2), st.integers(0, 4), st.integers(0, 4), st.integers(1, 14),
    st.booleans(),
)  # fmt: skip
def test_windows_of_open_sizes(
    kernel: int, stride: int, dilation: int, before: int, after: int, size: int, ceil: bool
) -> None:  # fmt: skip
    """Types say how many windows there are; those of ceil mode start inside the image or the padding before it."""
    reach = (kernel - 1) * dilation + 1
    if size + before + after < reach:
        return
    last = size + before + after - reach + (stride - 1 if ceil else 0)
    count = len([at for at in range(0, last + 1, stride) if not ceil or at < size + before])
    b = rx.Builder()
    with b.function("main"):
        how = {"padding": [before, 0, after, 0], "strides": [stride, 1], "dilation": [dilation, 1]}
        b.output(b.max_pool2d(b.input("x", (1, 1, "h", 3)), pool_size=[kernel, 1], ceil_mode=ceil, **how))
    (got,) = rx.evaluate(b.build(), "main", np.zeros((1, 1, size, 3), np.float32))
    assert got.shape == (1, 1, count, 3)


@pytest.mark.parametrize("name", ["max_pool2d", "avg_pool2d", "adaptive_avg_pool2d"])
def test_pools_in_nhwc(name: str) -> None:
    x = floats(np.random.default_rng(14), (2, 3, 7, 6), "f32", specials=False)
    window = {"pool_size": [3, 2], "strides": [2, 1], "padding": [1, 0, 0, 1], "dilation": [1, 1], "ceil_mode": True}
    attrs: dict[str, Any] = {"output_size": [2, 3]} if name.startswith("adaptive") else window
    attrs |= {"count_include_pad": False} if name == "avg_pool2d" else {}
    got = reference_of(name).function(x.transpose(0, 2, 3, 1), **attrs, layout="NHWC")
    np.testing.assert_array_equal(got, reference_of(name).function(x, **attrs).transpose(0, 2, 3, 1))


def pool_sizes(draw: Any) -> tuple[list[int], list[int], list[int], list[int]]:
    kernel = [draw(st.integers(1, 4)) for _ in range(2)]
    strides = [draw(st.integers(1, 4)) for _ in range(2)]
    padding = [draw(st.integers(0, k // 2)) for k in kernel]
    size = [k + draw(st.integers(0, 6)) for k in kernel]
    return kernel, strides, padding, size


@settings(max_examples=30, deadline=None)
@given(st.data())
def test_max_pool2d(data: st.DataObject) -> None:
    kernel, strides, padding, size = pool_sizes(data.draw)
    dilation = [data.draw(st.integers(1, 2)) for _ in range(2)]
    size = [n + (d - 1) * (k - 1) for n, d, k in zip(size, dilation, kernel, strict=True)]
    ceil = data.draw(st.booleans())
    x = floats(np.random.default_rng(sum(size)), (2, 2, *size), "f32", specials=False)
    got = reference_of("max_pool2d").function(
        x, pool_size=kernel, strides=strides, padding=[*padding, *padding], dilation=dilation, ceil_mode=ceil
    )
    close(got, fn.max_pool2d(double(x), kernel, strides, padding, dilation, ceil), "f32")


@settings(max_examples=30, deadline=None)
@given(st.data())
def test_avg_pool2d(data: st.DataObject) -> None:
    kernel, strides, padding, size = pool_sizes(data.draw)
    ceil, include = data.draw(st.booleans()), data.draw(st.booleans())
    dtype = data.draw(st.sampled_from(DTYPES))
    x = floats(np.random.default_rng(sum(size)), (2, 2, *size), dtype, specials=False)
    got = reference_of("avg_pool2d").function(
        x,
        pool_size=kernel,
        strides=strides,
        padding=[*padding, *padding],
        dilation=[1, 1],
        ceil_mode=ceil,
        count_include_pad=include,
    )
    close(got, fn.avg_pool2d(double(x), kernel, strides, padding, ceil, include), dtype, 2)


def test_pools_of_special_values() -> None:
    x = np.array([[[[np.nan, 1, -np.inf, -np.inf]]]], np.float32)
    attrs = {"pool_size": [1, 2], "strides": [1, 2], "padding": [0] * 4, "dilation": [1, 1], "ceil_mode": False}
    got = reference_of("max_pool2d").function(x, **attrs)
    assert np.isnan(got[0, 0, 0, 0])
    assert got[0, 0, 0, 1] == -np.inf
    only_padding = reference_of("max_pool2d").function(x[..., 1:2], **{**attrs, "padding": [0, 3, 0, 0]})
    assert only_padding[0, 0, 0, 0] == -np.inf


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("output", [(1, 1), (2, 3), (7, 5), (3, 9)])
def test_adaptive_avg_pool2d(output: tuple[int, int], dtype: str) -> None:
    x = floats(np.random.default_rng(11), (2, 3, 7, 6), dtype, specials=False)
    got = reference_of("adaptive_avg_pool2d").function(x, output_size=list(output))
    close(got, fn.adaptive_avg_pool2d(double(x), output), dtype, 2)


@pytest.mark.parametrize("dtype", ["f32", "bf16", "i8", "i4", "i1"])
@pytest.mark.parametrize(
    ("shape", "before", "after"), [((3,), [1], [2]), ((2, 3), [0, 1], [2, 0]), ((), [], []), ((0, 2), [1, 0], [1, 0])]
)
def test_pad(shape: tuple[int, ...], before: list[int], after: list[int], dtype: str) -> None:
    x = np.zeros(shape, np.float32).astype(numpy_dtype(dtype))
    got = reference_of("pad").function(x, before=before, after=after, value=1)
    assert got.dtype == x.dtype
    expected = np.pad(np.zeros(shape, np.int64), list(zip(before, after, strict=True)), constant_values=1) if shape else 0
    np.testing.assert_array_equal(got.astype(np.int64), expected)


def test_pad_with_infinity() -> None:
    got = reference_of("pad").function(np.zeros(1, np.float16), before=[1], after=[0], value=float("-inf"))
    assert got.tolist() == [-np.inf, 0]

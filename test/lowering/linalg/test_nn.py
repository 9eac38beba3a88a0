"""Activations, normalizations, convolution and pooling keep their meaning when lowered."""

from __future__ import annotations

import numpy as np
import pytest

from relaxir.dialect.dtypes import numpy_dtype
from support.naive import Case, check

ACTIVATIONS = ["relu", "gelu", "gelu_tanh", "silu", "hardswish", "softplus", "leaky_relu"]
FLOATS = ["f64", "f32", "f16", "bf16"]


@pytest.mark.parametrize("dtype", FLOATS)
def test_activations(dtype: str) -> None:
    values = np.array([0.0, -0.0, 0.5, -0.5, 3.0, -3.0, 20.0, -20.0, 90.0, -90.0, np.inf, np.nan]).astype(numpy_dtype(dtype))
    kind = f"{len(values)}:{dtype}"
    check(*(Case(name, [kind], kind, values={0: values}) for name in ACTIVATIONS))
    check(Case("leaky_relu", ["5:f32"], "5:f32", "alpha = 0.3 : f64"))


@pytest.mark.parametrize("dtype", FLOATS)
def test_softmax(dtype: str) -> None:
    axes = ["", "axis = 0 : i64", "axis = 1 : i64"]
    names = ["softmax", "log_softmax"]
    check(*(Case(name, [f"3, 4, 33:{dtype}"], f"3, 4, 33:{dtype}", axis) for name in names for axis in axes))


def test_softmax_edges() -> None:
    inf = np.inf
    values = np.array([[-inf, -inf], [inf, 0], [1e30, 1e30], [-inf, 1], [np.nan, 0]], np.float32)
    names = ["softmax", "log_softmax"]
    check(*(Case(name, ["5, 2:f32"], "5, 2:f32", values={0: values}) for name in names))
    check(*(Case(name, ["n, m:f32"], "n, m:f32") for name in names), n=3, m=65)
    check(*(Case(name, ["n, m:f32"], "n, m:f32") for name in names), n=3, m=0)


@pytest.mark.parametrize("dtype", FLOATS)
def test_normalizations(dtype: str) -> None:
    def norm(x: str, parameter: str, attributes: str = "") -> list[Case]:
        x, parameter = f"{x}:{dtype}", f"{parameter}:{dtype}"
        return [
            Case("layer_norm", [x, parameter, parameter], x, attributes),
            Case("rms_norm", [x, parameter], x, attributes),
        ]

    check(
        *norm("3, 33", "33"), *norm("n, 8", "8", "epsilon = 0.1 : f64"), *norm("3, 4, 5", "4, 5", "axes = array<i64: 1, 2>"),
        *norm("3, n", "n"), *norm("3, 4", "3", "axes = array<i64: 0>"),
        n=7,
    )  # fmt: skip


@pytest.mark.parametrize("dtype", FLOATS)
def test_batch_norm(dtype: str) -> None:
    variance = np.array([0.5, 1.0, 2.0]).astype(numpy_dtype(dtype))
    given = {4: variance}
    check(
        Case("batch_norm", [f"2, 3, 4, 5:{dtype}", *[f"3:{dtype}"] * 4], f"2, 3, 4, 5:{dtype}", values=given),
        Case("batch_norm", [f"n, 3:{dtype}", *[f"3:{dtype}"] * 4], f"n, 3:{dtype}", "axis = -1 : i64", given),
        n=4,
    )


SAME = "padding = array<i64: 1, 1, 1, 1>"


def conv(x: str, weight: str, result: str, attributes: str = "", dtype: str = "f32") -> Case:
    return Case("conv2d", [f"{x}:{dtype}", f"{weight}:{dtype}"], f"{result}:{dtype}", attributes)


def test_conv2d() -> None:
    check(
        conv("2, 3, 6, 7", "4, 3, 3, 3", "2, 4, 4, 5"),
        conv("1, 3, 6, 7", "4, 3, 1, 1", "1, 4, 6, 7"),
        conv("2, 3, 6, 7", "4, 3, 3, 2", "2, 4, 3, 4", "strides = array<i64: 2, 2>, padding = array<i64: 1, 0, 0, 1>"),
        conv("1, 4, 6, 6", "6, 2, 3, 3", "1, 6, 6, 6", "groups = 2 : i64, padding = array<i64: 1, 1, 1, 1>"),
        conv("1, 4, 6, 6", "4, 1, 3, 3", "1, 4, 2, 2", "groups = 4 : i64, dilation = array<i64: 2, 2>"),
        conv("1, 4, 6, 6", "8, 1, 3, 3", "1, 8, 3, 3", f"groups = 4 : i64, strides = array<i64: 2, 2>, {SAME}"),
        conv("n, 3, h, 6", "3, 1, 3, 3", "n, 3, h, 6", f"groups = 3 : i64, {SAME}"),
        conv("1, 1, 6, 6", "2, 1, 3, 3", "1, 2, 4, 4"),
        conv("2, 6, 5, 7", "4, 3, 1, 1", "2, 4, 5, 7", "groups = 2 : i64"),
        conv("2, 6, 5, 7", "4, 6, 1, 1", "2, 4, 3, 4", "strides = array<i64: 2, 2>"),
        conv("n, 3, h, 7", "4, 3, 1, 1", "n, 4, h, 7"),
        conv("n, 3, h, 7", "4, 3, 3, 3", "n, 4, h, 7", SAME),
        conv("n, 3, h, 7", "4, 3, 3, 3", "n, 4, (h - 1) // 2 + 1, 4", f"{SAME}, strides = array<i64: 2, 2>"),
        n=2, h=5,
    )  # fmt: skip


@pytest.mark.parametrize("dtype", ["f64", "f16", "bf16"])
def test_conv2d_dtypes(dtype: str) -> None:
    check(
        conv("1, 3, 6, 7", "4, 3, 3, 3", "1, 4, 4, 5", dtype=dtype),
        conv("1, 3, 6, 7", "4, 3, 1, 1", "1, 4, 6, 7", dtype=dtype),
        conv("1, 3, 6, 7", "3, 1, 3, 3", "1, 3, 4, 5", "groups = 3 : i64", dtype),
    )


UNEVEN = "strides = array<i64: 2, 2>, padding = array<i64: 1, 0, 0, 1>"
NHWC = 'data_layout = "NHWC", kernel_layout = "HWIO"'


@pytest.mark.parametrize("dtype", ["f32", "bf16"])
def test_conv2d_in_other_layouts(dtype: str) -> None:
    check(
        conv("2, 6, 7, 3", "3, 3, 3, 4", "2, 4, 5, 4", NHWC, dtype),
        conv("1, 6, 7, 3", "1, 1, 3, 4", "1, 6, 7, 4", NHWC, dtype),
        conv("2, 6, 7, 3", "3, 2, 3, 4", "2, 3, 4, 4", f"{NHWC}, {UNEVEN}", dtype),
        conv("1, 6, 6, 4", "3, 3, 2, 6", "1, 6, 6, 6", f"{NHWC}, groups = 2 : i64, {SAME}", dtype),
        conv("1, 6, 6, 4", "3, 3, 1, 8", "1, 3, 3, 8", f"{NHWC}, groups = 4 : i64, strides = array<i64: 2, 2>, {SAME}", dtype),
        conv("n, h, 7, 3", "3, 3, 3, 4", "n, h, 7, 4", f"{NHWC}, {SAME}", dtype),
        conv("n, h, 7, 3", "3, 3, 1, 3", "n, h, 7, 3", f"{NHWC}, groups = 3 : i64, {SAME}", dtype),
        conv("1, 6, 7, 3", "4, 3, 3, 3", "1, 4, 5, 4", 'data_layout = "NHWC"', dtype),
        conv("1, 3, 6, 7", "3, 3, 3, 4", "1, 4, 4, 5", 'kernel_layout = "HWIO"', dtype),
        n=2, h=5,
    )  # fmt: skip


def test_conv2d_rounds_to_its_out_dtype() -> None:
    layouts = [("1, 3, 6, 7", "4, 3, 3, 3", "1, 4, 4, 5", ""), ("1, 6, 7, 3", "3, 3, 3, 4", "1, 4, 5, 4", f", {NHWC}")]
    types = [("bf16", "f32"), ("f16", "bf16"), ("f32", "f16")]
    check(
        *(Case("conv2d", [f"{x}:{a}", f"{w}:{a}"], f"{r}:{b}", f"out_dtype = {b}{more}")
          for x, w, r, more in layouts for a, b in types),
    )  # fmt: skip


def window(size: str, strides: str = "1, 1", padding: str = "0, 0, 0, 0", more: str = "") -> str:
    return f"pool_size = array<i64: {size}>, strides = array<i64: {strides}>, padding = array<i64: {padding}>{more}"


CEIL, DILATED = ", ceil_mode = true", ", dilation = array<i64: 2, 2>"
POOLS = [
    ("2, 3, 6, 6", "2, 3, 3, 3", window("2, 2", "2, 2")),
    ("1, 2, 7, 6", "1, 2, 7, 6", window("3, 3", padding="1, 1, 1, 1")),
    ("1, 2, 7, 6", "1, 2, 4, 3", window("3, 3", "2, 2", "1, 0, 1, 1")),
    ("1, 2, 7, 7", "1, 2, 3, 4", window("3, 2", "2, 2", more=CEIL)),
    ("1, 2, 6, 6", "1, 2, 3, 3", window("3, 3", "2, 2", more=CEIL)),
    ("1, 2, 6, 6", "1, 2, 4, 4", window("3, 3", "2, 2", "1, 1, 1, 1", CEIL)),
    ("1, 1, 7, 7", "1, 1, 5, 5", window("3, 3", padding="1, 1, 1, 1", more=DILATED)),
    ("n, 2, h, 6", "n, 2, (h - 2) // 2 + 1, 3", window("2, 2", "2, 2")),
    ("n, 2, h, 6", "n, 2, (h - 2) // 2 + 1, 3", window("3, 3", "2, 2", more=CEIL)),
]


@pytest.mark.parametrize("dtype", ["f32", "bf16"])
def test_pooling(dtype: str) -> None:
    sums = [("avg_pool2d", ", count_include_pad = true"), ("avg_pool2d", ""), ("max_pool2d", "")]
    check(*(Case(name, [f"{x}:{dtype}"], f"{r}:{dtype}", a + more) for x, r, a in POOLS for name, more in sums), n=2, h=5)


def channels_last(shape: str) -> str:
    n, c, h, w = shape.split(", ")
    return ", ".join([n, h, w, c])


def test_pooling_in_nhwc() -> None:
    sums = [("avg_pool2d", ", count_include_pad = true"), ("avg_pool2d", ""), ("max_pool2d", "")]
    check(
        *(Case(name, [f"{channels_last(x)}:f32"], f"{channels_last(r)}:f32", f'{a}{more}, layout = "NHWC"')
          for x, r, a in POOLS for name, more in sums),
        *(Case("adaptive_avg_pool2d", ["2, 6, 7, 3:f32"], f"2, {s}, 3:f32", f'output_size = array<i64: {s}>, layout = "NHWC"')
          for s in ["1, 1", "3, 2", "8, 5"]),
        n=2, h=5,
    )  # fmt: skip


def test_max_pool_keeps_nan_and_never_picks_padding() -> None:
    values = np.full((1, 1, 3, 3), -5, np.float32)
    values[0, 0, 2, 2] = np.nan
    attributes = "pool_size = array<i64: 2, 2>, padding = array<i64: 1, 1, 1, 1>"
    for dtype in ("f32", "f8E5M2", "f8E4M3FN"):  # the last one has no infinity to stand for padding
        narrow = {0: values.astype(numpy_dtype(dtype))}
        check(Case("max_pool2d", [f"1, 1, 3, 3:{dtype}"], f"1, 1, 4, 4:{dtype}", attributes, narrow))


@pytest.mark.parametrize("dtype", ["i8", "ui8", "i4", "ui4", "i32", "i64"])
def test_max_pool_of_integers(dtype: str) -> None:
    """Among them windows of padding only, which are the least number, and images in whole vectors."""
    padded = window("2, 2", padding="2, 0, 2, 1")
    check(
        *(Case("max_pool2d", [f"{x}:{dtype}"], f"{r}:{dtype}", a) for x, r, a in POOLS),
        Case("max_pool2d", [f"1, 1, 3, 3:{dtype}"], f"1, 1, 6, 3:{dtype}", padded),
        Case("max_pool2d", [f"1, 6, 5, 64:{dtype}"], f"1, 5, 4, 64:{dtype}", window("2, 2", more=', layout = "NHWC"')),
        n=2, h=5,
    )  # fmt: skip


def test_adaptive_pooling() -> None:
    sizes = ["1, 1", "3, 2", "6, 7", "8, 5", "4, 4"]
    check(
        *(Case("adaptive_avg_pool2d", ["2, 3, 6, 7:f32"], f"2, 3, {s}:f32", f"output_size = array<i64: {s}>") for s in sizes),
        Case("adaptive_avg_pool2d", ["n, 3, h, 7:f32"], "n, 3, 2, 3:f32", "output_size = array<i64: 2, 3>"),
        Case("adaptive_avg_pool2d", ["2, 3, 6, 7:bf16"], "2, 3, 4, 3:bf16", "output_size = array<i64: 4, 3>"),
        n=2, h=5,
    )  # fmt: skip


@pytest.mark.parametrize("dtype", ["f32", "bf16", "i8", "i1", "f8E4M3FN"])
def test_pad(dtype: str) -> None:
    def pad(x: str, result: str, before: str, after: str, more: str = "") -> Case:
        attributes = f"before = array<i64: {before}>, after = array<i64: {after}>{more}"
        return Case("pad", [f"{x}:{dtype}"], f"{result}:{dtype}", attributes)

    one = ", value = 1 : i64"
    check(
        pad("2, 3", "3, 5", "1, 0", "0, 2"), pad("n, 3", "n + 3, 3", "1, 0", "2, 0", one), pad("2, 3", "2, 3", "0, 0", "0, 0"),
        pad("0, 3", "2, 3", "1, 0", "1, 0", one), pad("3, n", "3, n + 4", "0, 4", "0, 0"),
        n=4,
    )  # fmt: skip

"""Affine quantization, against PyTorch's quantized tensors and against exact rational arithmetic."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
import torch

from relaxir.dialect.dtypes import numpy_dtype
from relaxir.dialect.packed_layout import NIBBLES, PackedLayout
from relaxir.dialect.reference.registry import reference_of
from support.float_checks import FLOATS, floats, wide

RANGES = {
    "i4": (-8, 7),
    "ui4": (0, 15),
    "i8": (-128, 127),
    "ui8": (0, 255),
    "i16": (-(2**15), 2**15 - 1),
    "i32": (-(2**31), 2**31 - 1),
}


@pytest.mark.parametrize("dtype", RANGES)
@pytest.mark.parametrize("source", FLOATS)
def test_quantize_per_tensor(source: str, dtype: str) -> None:
    x = floats(np.random.default_rng(1), (50,), source, specials=False)
    scale, zero_point = np.array(0.25, np.float32), np.array(3, np.int8)  # a power of two: the division is exact
    got = reference_of("quantize").function(x, scale, zero_point, axis=-1, dtype=numpy_dtype(dtype))
    assert got.dtype == numpy_dtype(dtype)
    low, high = RANGES[dtype]
    assert [int(v) for v in got] == [min(max(round(Fraction(float(v)) * 4) + 3, low), high) for v in x]


def test_halves_round_to_even() -> None:
    x = np.array([0.5, 1.5, 2.5, -0.5, -1.5], np.float32)
    got = reference_of("quantize").function(x, np.array(1, np.float32), np.array(0, np.int8), axis=0, dtype=np.dtype(np.int8))
    assert got.tolist() == [0, 2, 2, 0, -2]


@pytest.mark.parametrize("dtype", [*RANGES, "i64", "ui64", "ui32"])
def test_what_is_beyond_the_range_is_its_end(dtype: str) -> None:
    x = np.array([np.inf, -np.inf, 3e38, -3e38], np.float32)
    got = reference_of("quantize").function(x, np.array(1, np.float32), np.array(0, np.int8), axis=0, dtype=numpy_dtype(dtype))
    bits = int(dtype.lstrip("ui"))
    low, high = (0, 2**bits - 1) if dtype.startswith("u") else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)
    assert [int(v) for v in got] == [high, low, high, low]


@pytest.mark.parametrize("axis", [0, 1, -1])
def test_per_channel_agrees_with_torch(axis: int) -> None:
    rng = np.random.default_rng(2)
    x = rng.normal(size=(4, 6)).astype(np.float32)
    scale = rng.uniform(0.01, 0.1, x.shape[axis]).astype(np.float32)
    zero_point = rng.integers(-5, 5, x.shape[axis]).astype(np.int8)
    got = reference_of("quantize").function(x, scale, zero_point, axis=axis, dtype=np.dtype(np.int8))
    oracle = torch.quantize_per_channel(
        torch.from_numpy(x), torch.from_numpy(scale).double(), torch.from_numpy(zero_point).long(), axis % 2, torch.qint8
    )
    # PyTorch multiplies by 1 / scale, so a value next to a half may go the other way.
    assert np.abs(got.astype(int) - oracle.int_repr().numpy().astype(int)).max() <= 1
    back = reference_of("dequantize").function(got, scale, zero_point, axis=axis)
    assert back.dtype == np.float32
    limits = np.expand_dims(scale, 1 - axis % 2) / 2 + 1e-6
    assert (np.abs(back - x) <= limits).all()


@pytest.mark.parametrize("scale_dtype", ["f64", "f32", "f16", "bf16"])
@pytest.mark.parametrize("dtype", ["i4", "ui4", "i8", "ui8", "i16"])
def test_dequantize(dtype: str, scale_dtype: str) -> None:
    rng = np.random.default_rng(3)
    low, high = RANGES[dtype]
    x = rng.integers(low, high + 1, (3, 5)).astype(numpy_dtype(dtype))
    scale = floats(rng, (5,), scale_dtype, specials=False)
    zero_point = rng.integers(low, high + 1, (5,)).astype(numpy_dtype(dtype))
    got = reference_of("dequantize").function(x, scale, zero_point, axis=1)
    assert got.dtype == scale.dtype
    exact = (x.astype(np.int64) - zero_point.astype(np.int64)) * wide(scale)
    expected = exact if scale_dtype == "f64" else exact.astype(np.float32).astype(numpy_dtype(scale_dtype))
    np.testing.assert_array_equal(wide(got), wide(np.asarray(expected)))


def test_one_scale_per_block() -> None:
    x = np.arange(24, dtype=np.int8).reshape(4, 6)
    scale = np.arange(1, 7, dtype=np.float32).reshape(2, 3)
    zero_point = np.arange(4, dtype=np.int8).reshape(4, 1)
    got = reference_of("dequantize").function(x, scale, zero_point, axis=-1)
    np.testing.assert_array_equal(got, (x - zero_point) * np.kron(scale, np.ones((2, 2), np.float32)))
    back = reference_of("quantize").function(got, scale, zero_point, axis=-1, dtype=np.dtype(np.int8))
    np.testing.assert_array_equal(back, x)


def test_minima_behind_the_scale() -> None:
    x, scale = np.array([3, 7], np.uint8), np.array([0.1, 1e8], np.float32)
    low = np.array([0.3, 7.0], np.float32)
    got = reference_of("dequantize").function(x, scale, low, axis=0)
    np.testing.assert_array_equal(got, x.astype(np.float32) * scale - low)
    rounded = reference_of("dequantize").function(x, scale, low, axis=0, out_dtype=numpy_dtype("bf16"))
    np.testing.assert_array_equal(rounded, got.astype(numpy_dtype("bf16")))


def test_tables() -> None:
    table = np.linspace(-1, 1, 16, dtype=np.float32)
    codes = np.array([[0, 15], [3, 8]], np.uint8).astype(numpy_dtype("ui4"))
    assert reference_of("look_up").function(codes, table).tolist() == table[[[0, 15], [3, 8]]].tolist()


def test_scalars() -> None:
    x = np.array(7, np.int8)
    got = reference_of("dequantize").function(x, np.array(0.5, np.float32), np.array(1, np.int8), axis=-1)
    assert got.shape == ()
    assert float(got) == 3
    back = reference_of("quantize").function(
        got, np.array(0.5, np.float32), np.array(1, np.int8), axis=-1, dtype=np.dtype(np.int8)
    )
    assert int(back) == 7


def test_f64_is_kept() -> None:
    """1 + 2**-40 and 1 differ by more than a step of 2**-41, in f64 only."""
    x, scale = np.array([1 + 2.0**-40]), np.array(2.0**-41)
    zero = np.array(0, np.int8)
    got = reference_of("quantize").function(x, scale, zero, axis=0, dtype=np.dtype(np.int64))
    assert int(got[0]) == 2**41 + 2
    assert reference_of("dequantize").function(got, scale, zero, axis=0).tolist() == x.tolist()


@pytest.mark.parametrize("dtype", ["i4", "ui4"])
@pytest.mark.parametrize("word", ["ui8", "ui16", "ui32", "ui64"])
@pytest.mark.parametrize(("shape", "axis"), [((6,), 0), ((5, 3), 0), ((2, 17, 3), 1), ((4, 0), -1)])
def test_nibbles(dtype: str, word: str, shape: tuple[int, ...], axis: int) -> None:
    low, high = RANGES[dtype]
    x = np.random.default_rng(1).integers(low, high + 1, shape).astype(numpy_dtype(dtype))
    packed = reference_of("pack_nibbles").function(x, axis=axis, dtype=numpy_dtype(word))
    assert packed.dtype == numpy_dtype(word)
    per_word = packed.itemsize * 2
    values = np.moveaxis(x.astype(np.int64), axis, 0) % 16
    for i, line in enumerate(np.moveaxis(packed, axis, 0)):
        own = values[per_word * i : per_word * (i + 1)]
        want = [sum(int(v) * 16**j for j, v in enumerate(column)) for column in own.reshape(len(own), -1).T]
        assert line.reshape(-1).tolist() == want
    back = reference_of("unpack_nibbles").function(packed, axis=axis, dtype=x.dtype, size=shape[axis])
    assert back.dtype == x.dtype
    assert (back.astype(np.int8) == x.astype(np.int8)).all()


@pytest.mark.parametrize(("rows", "words"), [(2, False), (4, False), (2, True), (4, True)])
@pytest.mark.parametrize("groups", [1, 3])
def test_quantized_products_are_those_of_what_integers_stand_for(rows: int, words: bool, groups: int) -> None:
    rng, k, n, tile, panels = np.random.default_rng(rows), 48, 13, 8, 2
    x = rng.integers(-127, 128, (2, 5, k)).astype(np.int8)
    x_scale, scale = (rng.random(s, np.float32) for s in ((2, 5, groups), (panels, groups, tile)))
    zero = rng.integers(0, 16, (panels, groups, tile)).astype(np.int8)
    integers = rng.integers(0, 16 if words else 256, (panels, k, tile)).astype(np.uint8)
    sides = integers.reshape(panels, k // rows, rows, tile).transpose(0, 1, 3, 2)
    if words:
        weight = np.zeros((panels, k // 8, tile), np.uint32)
        for i, row in enumerate(integers.swapaxes(0, 1)):
            part, place = i % 8 // rows, i % rows
            weight[:, i // 8] |= row.astype(np.uint32) << (32 // rows * place + 4 * part)
    else:
        weight = np.ascontiguousarray(sides)
    layout, every = PackedLayout(tile, rows, NIBBLES if words else None), k // groups
    wide = (integers.astype(np.float64) - zero.repeat(every, 1)) * scale.repeat(every, 1)
    want = (x * x_scale.astype(np.float64).repeat(every, -1)) @ wide.swapaxes(0, 1).reshape(k, -1)[:, :n]
    sums = x.astype(np.int32).reshape(2, 5, groups, every).sum(-1, dtype=np.int32)
    got = reference_of("quantized_matmul").function(
        x, x_scale, sums, weight, scale, zero, layout=layout, n=n, out_dtype=np.dtype(np.float32)
    )
    assert got.dtype == np.float32
    np.testing.assert_allclose(got, want, atol=1e-6 * np.abs(want).max())
    added = reference_of("quantized_matmul").function(
        x, x_scale, sums, weight, scale, zero, layout=layout, n=n, out_dtype=np.dtype(np.float32), parts=True
    )
    np.testing.assert_allclose(added, want.sum(0), atol=2e-6 * np.abs(want).max())


def test_integers_of_rows_in_groups() -> None:
    """Each row by the columns of its group, as a product of all has them; a group is empty, rows are behind the last one."""
    rng, layout, n = np.random.default_rng(0), PackedLayout(8, 4), 16
    x, scale = rng.integers(-127, 128, (7, 8)).astype(np.int8), rng.random((2, 2, 8)).astype(np.float32)
    weight = rng.integers(0, 256, layout.shape(8, n)).astype(np.uint8)
    sums, x_scale = x.astype(np.int32).reshape(7, 2, 4).sum(-1, dtype=np.int32), rng.random((7, 2)).astype(np.float32)
    given, attributes = (x, x_scale, sums, weight, scale, np.array(3, np.int32)), {"layout": layout, "n": n, "out_dtype": None}
    every = reference_of("quantized_matmul").function(*given, **attributes)
    got = reference_of("quantized_grouped_matmul").function(*given, np.array([2, 2, 5, 6]), **attributes)
    want = np.concatenate([every[:2, :4], every[2:5, 8:12], every[5:6, 12:], np.zeros((1, 4), np.float32)])
    np.testing.assert_array_equal(got, want)
    parts = (*(np.stack([a, 2 * a]) for a in (x // 2, x_scale, sums)), *given[3:])
    of_parts = [reference_of("quantized_grouped_matmul").function(*(a[i] for a in parts[:3]), *parts[3:],
                np.array([2, 2, 5, 6]), **attributes) for i in range(2)]  # fmt: skip
    got = reference_of("quantized_grouped_matmul").function(*parts, np.array([2, 2, 5, 6]), **attributes, parts=True)
    np.testing.assert_allclose(got, sum(of_parts), rtol=1e-6)


@pytest.mark.parametrize("bits", [1, 2])
def test_planes_are_where_the_layout_says(bits: int) -> None:
    """Of steps k: four bits at 4 * (k mod 8) of one word, the others in the other one, so that no nibble holds two of a row."""
    rng = np.random.default_rng(4)
    count, size = 32 // bits, 40
    low, high = (rng.integers(0, 1 << 32, (2, -(-size // per), 3), np.uint32) for per in (8, count))
    layout = PackedLayout.parse(f"tile 3, rows 8, u{bits}x{count}")
    got = reference_of("unpack_planes").function(low, high, layout=layout, size=size)
    assert (got.shape, got.dtype) == ((2, size, 3), np.uint8)
    for panel, k, column in np.ndindex(got.shape):
        nibble = int(low[panel, k // 8, column]) >> 4 * (k % 8) & 15
        place = 4 * (k % 8) + bits * (k % count // 8)
        more = int(high[panel, k // count, column]) >> place & (1 << bits) - 1
        assert got[panel, k, column] == nibble + 16 * more


@pytest.mark.parametrize(("groups", "channels"), [(1, 3), (2, 8)])
def test_convolutions_of_integers_are_those_of_floats_around_a_zero_point(groups: int, channels: int) -> None:
    rng, zero, outputs, layout = np.random.default_rng(groups), np.array(200, np.uint8), 16, PackedLayout(8, 4)
    x = rng.integers(0, 256, (2, 7, 6, channels), np.uint8)
    weight = rng.integers(-128, 128, (3, 2, channels // groups, outputs)).astype(np.int8)
    attrs = {"strides": [2, 1], "padding": [1, 0, 2, 1], "dilation": [1, 2], "groups": groups}
    image = {"data_layout": "NHWC", "kernel_layout": "HWIO"}
    got = reference_of("quantized_conv2d").function(x, weight, zero, **attrs, **image)
    floats = [x.astype(np.float64) - 200, weight.astype(np.float64)]
    want = reference_of("conv2d").function(*floats, **attrs, **image)
    np.testing.assert_array_equal(got + 0.0, want + 200 * weight.sum((0, 1, 2), dtype=np.int32))
    assert got.dtype == np.int32
    filled = np.concatenate([weight, rng.integers(-9, 9, (3, 2, -weight.shape[2] % 4, outputs)).astype(np.int8)], 2)
    packed = reference_of("pack_weight").function(filled.reshape(-1, outputs), layout=layout)
    some = np.full((*x.shape[:-1], filled.shape[2] * groups - channels), zero, np.uint8)
    want = reference_of("quantized_conv2d").function(np.concatenate([x, some], -1), filled, zero, **attrs, **image)
    got = reference_of("packed_quantized_conv2d").function(
        x, packed, zero, layout=layout, channels=outputs, kernel_size=[3, 2], **attrs
    )
    np.testing.assert_array_equal(got, want)

"""Affine quantization keeps its meaning when lowered."""

from __future__ import annotations

import numpy as np
import pytest

import relaxir as rx
from relaxir.dialect.dtypes import numpy_dtype
from support.naive import Case, check

STORED = ["i8", "ui8", "i4", "ui4", "i16", "i32"]


def scales(shape: tuple[int, ...], dtype: str) -> np.ndarray:
    return (np.random.default_rng(3).random(shape) * 0.5 + 0.01).astype(numpy_dtype(dtype))


@pytest.mark.parametrize("dtype", STORED)
def test_quantize(dtype: str) -> None:
    edges = np.array([0.5, 1.5, 2.5, -0.5, -2.5, 1e30, -1e30, np.inf, -np.inf, 3e9, -3e9, 127.5], np.float32)
    rows = {1: scales((3,), "f32")}
    one = {0: edges, 1: np.array(1, np.float32), 2: np.array(0).astype(numpy_dtype(dtype))}
    check(
        Case("quantize", ["12:f32", ":f32", f":{dtype}"], f"12:{dtype}", f"dtype = {dtype}", one),
        Case("quantize", ["3, 5:f32", "5:f32", f"5:{dtype}"], f"3, 5:{dtype}", f"dtype = {dtype}", {1: scales((5,), "f32")}),
        Case(
            "quantize",
            ["n, 5:f32", "n:f32", ":i32"],
            f"n, 5:{dtype}",
            f"axis = 0 : i64, dtype = {dtype}",
            rows,
        ),
        n=3,
    )


@pytest.mark.parametrize("dtype", STORED)
def test_dequantize(dtype: str) -> None:
    check(
        Case("dequantize", [f"3, 5:{dtype}", ":f32", f":{dtype}"], "3, 5:f32", values={1: scales((), "f32")}),
        Case("dequantize", [f"3, 5:{dtype}", "3:bf16", f"3:{dtype}"], "3, 5:bf16", "axis = 0 : i64", {1: scales((3,), "bf16")}),
        Case("dequantize", [f"n, 5:{dtype}", "5:f64", ":i32"], "n, 5:f64", "axis = -1 : i64", {1: scales((5,), "f64")}),
        n=3,
    )


def test_blocks() -> None:
    check(
        Case("dequantize", ["6, 5:i4", "3, 5:f32", "2, 1:i4"], "6, 5:f32", values={1: scales((3, 5), "f32")}),
        Case("dequantize", ["2, 4, n:i8", "1, 2, n:f16", ":i8"], "2, 4, n:f16", values={1: scales((1, 2, 3), "f16")}),
        Case("quantize", ["6, 5:f32", "1, 5:f32", "6, 1:i8"], "6, 5:i8", "dtype = i8", {1: scales((1, 5), "f32")}),
        Case("dequantize", ["6:i8", "2:f32", "3:i8"], "6:f32", values={1: scales((2,), "f32")}),
        n=3,
    )


def test_scalars_and_other_dtypes() -> None:
    check(
        Case("quantize", [":f32", ":f32", ":i8"], ":i8", "dtype = i8", {1: scales((), "f32")}),
        Case("quantize", ["4:bf16", ":f32", ":i8"], "4:i8", "dtype = i8", {1: scales((), "f32")}),
        Case("quantize", ["4:f16", ":f64", ":i8"], "4:i8", "dtype = i8", {1: scales((), "f64")}),
        Case("quantize", ["4:f64", "4:f16", "4:i64"], "4:i64", "dtype = i64", {1: scales((4,), "f16")}),
    )


@pytest.mark.parametrize(("word", "per"), [("u1x32", 32), ("u2x16", 16)])
def test_planes(word: str, per: int) -> None:
    """Lengths that are whole words of either kind, and others."""
    layout = f'layout = "tile 5, rows 8, {word}"'
    cases = [
        case
        for size in (64, 41)
        for case in (
            Case(
                "pack_nibbles", [f"2, {size}, 5:ui4"], f"2, {-(-size // per)}, 5:ui32",
                f"axis = 1 : i64, dtype = ui32, {layout}",
            ),
            Case(
                "unpack_nibbles", [f"2, {-(-size // per)}, 5:ui32"], f"2, {size}, 5:ui4",
                f"axis = 1 : i64, dtype = ui4, {layout}, size = {size} : i64",
            ),
            Case(
                "unpack_planes", [f"2, {-(-size // 8)}, 5:ui32", f"2, {-(-size // per)}, 5:ui32"], f"2, {size}, 5:ui8",
                f"{layout}, size = {size} : i64",
            ),
        )
    ]  # fmt: skip
    check(*cases)


@pytest.mark.parametrize("dtype", ["ui4", "i8", "f8E4M3FN", "f8E5M2", "f32"])
def test_minima(dtype: str) -> None:
    both = {1: scales((3, 2), "f32"), 2: scales((3, 2), "f16")}
    check(
        Case("dequantize", [f"3, 8:{dtype}", "3, 2:f32", "3, 2:f16"], "3, 8:f32", values=both),
        Case("dequantize", [f"n, 8:{dtype}", "8:bf16", "8:f32"], "n, 8:bf16", values={1: scales((8,), "bf16")}),
        Case("dequantize", [f"3, 8:{dtype}", "3, 2:f32", "3, 2:f16"], "3, 8:f16", "out_dtype = f16", values=both),
        n=3,
    )


def test_no_minimum() -> None:
    """A zero point of 0 changes nothing, of zeros and of NaN either."""
    dtype = numpy_dtype("f8E4M3FN")
    values = {0: np.arange(256, dtype=np.uint8).view(dtype), 1: scales((), "f32"), 2: np.zeros((), np.float32)}
    check(Case("dequantize", ["256:f8E4M3FN", ":f32", ":f32"], "256:f32", values=values))


def test_results_of_another_dtype() -> None:
    check(
        Case("dequantize", ["6, 5:ui8", "3, 5:f32", "2, 1:ui8"], "6, 5:bf16", "out_dtype = bf16", {1: scales((3, 5), "f32")}),
        Case("dequantize", ["6, 5:i8", "3, 5:f16", "2, 1:i8"], "6, 5:f32", "out_dtype = f32", {1: scales((3, 5), "f16")}),
    )


@pytest.mark.parametrize("dtype", ["f32", "f16", "bf16", "f8E4M3FN"])
@pytest.mark.parametrize("codes", ["ui4", "ui8"])
def test_tables(codes: str, dtype: str) -> None:
    size = 1 << int(codes[2:])
    every = np.arange(256).reshape(8, 32).astype(np.uint8).astype(numpy_dtype(codes))
    check(
        Case("look_up", [f"8, 32:{codes}", f"{size}:{dtype}"], f"8, 32:{dtype}", values={0: every}),
        Case("look_up", [f"n, 5:{codes}", f"{size}:{dtype}"], f"n, 5:{dtype}"),
        n=3,
    )


@pytest.mark.parametrize("dtype", ["i4", "ui4"])
@pytest.mark.parametrize(("word", "per"), [("ui8", 2), ("ui32", 8), ("ui64", 16)])
def test_nibbles(dtype: str, word: str, per: int) -> None:
    odd = -(-7 // per)
    check(
        Case("pack_nibbles", [f"3, {2 * per}:{dtype}"], f"3, 2:{word}", f"dtype = {word}"),
        Case("pack_nibbles", [f"2, 7, 4:{dtype}"], f"2, {odd}, 4:{word}", f"axis = 1 : i64, dtype = {word}"),
        Case("pack_nibbles", [f"n, 7:{dtype}"], f"n, {odd}:{word}", f"dtype = {word}"),
        Case("unpack_nibbles", [f"3, 2:{word}"], f"3, {2 * per}:{dtype}", f"dtype = {dtype}, size = {2 * per} : i64"),
        Case(
            "unpack_nibbles", [f"2, {odd}, 20:{word}"], f"2, 7, 20:{dtype}", f"axis = 1 : i64, dtype = {dtype}, size = 7 : i64"
        ),
        n=3,
    )


@pytest.mark.parametrize("zero", [0, 7, None])
@pytest.mark.parametrize("dtype", ["i8", "ui8", "i16"])
def test_what_is_quantized_and_dequantized_at_once(dtype: str, zero: int | None) -> None:
    """To the bit, with signs of zeros: halves, limits and what is beyond, infinities; in one kernel nothing is an integer."""
    b, width = rx.Builder(), 1 << (16 if dtype == "i16" else 8)
    with b.function("main"):
        x, s = b.input("x", ("n",), "f32"), b.input("s", (), "f32")
        z = b.input("z", (), dtype) if zero is None else b.full((), zero, dtype)
        near = b.dequantize(b.quantize(x, s, z, dtype=dtype), s, z)
        b.output(near, b.quantize(b.add(near, x), s, z, dtype=dtype))
    module = b.build()
    exe = rx.compile(module)
    points = np.arange(-width - 3, width + 3) / 2 + 0.0
    x = np.concatenate([points, points * 0.3, [-0.0, -0.2, 0.2, np.inf, -np.inf, 3e38, -3e38]]).astype(np.float32)
    for point in (0, 5) if zero is None else (zero,):
        given = [x, np.float32(0.5)] + ([np.array(point, numpy_dtype(dtype))] if zero is None else [])
        for got, want in zip(exe(*given), rx.evaluate(module, "main", *given), strict=True):
            np.testing.assert_array_equal(got, want)
            assert got.dtype != np.float32 or not (np.signbit(got) != np.signbit(want)).any()

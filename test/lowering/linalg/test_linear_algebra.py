"""Matrix products keep their meaning when lowered: sizes around the panel, batches, rows and columns, dtypes."""

from __future__ import annotations

import numpy as np
import pytest

from relaxir.dialect.dtypes import numpy_dtype
from support.naive import Case, check, compare, lowered

SIZES = [1, 31, 32, 33, 65]


@pytest.mark.parametrize("dtype", ["f64", "f32", "f16", "bf16", "i8", "i32", "i64"])
def test_dtypes(dtype: str) -> None:
    check(Case("matmul", [f"3, 7:{dtype}", f"7, 33:{dtype}"], f"3, 33:{dtype}"))


def test_sizes_around_the_panel() -> None:
    columns = [Case("matmul", ["2, 5:f32", f"5, {n}:f32"], f"2, {n}:f32") for n in SIZES]
    inner = [Case("matmul", [f"2, {k}:f32", f"{k}, 5:f32"], f"2, 5:f32") for k in SIZES]  # noqa: F541
    rows = [Case("matmul", [f"{m}, 3:f32", "3, 5:f32"], f"{m}, 5:f32") for m in SIZES]
    check(*columns, *inner, *rows)


def test_batches() -> None:
    shapes = [
        ("4, 3, 5", "5, 6", "4, 3, 6"), ("4, 3, 5", "4, 5, 6", "4, 3, 6"), ("4, 3, 5", "1, 5, 6", "4, 3, 6"),
        ("3, 5", "4, 5, 6", "4, 3, 6"), ("2, 1, 3, 5", "7, 5, 6", "2, 7, 3, 6"), ("1, 3, 5", "4, 5, 6", "4, 3, 6"),
        ("b, 3, 5", "b, 5, 6", "b, 3, 6"), ("b, n, 5", "5, m", "b, n, m"), ("n, k", "k, m", "n, m"),
        ("b, n, k", "1, k, 6", "b, n, 6"),
    ]  # fmt: skip
    check(*(Case("matmul", [f"{a}:f32", f"{b}:f32"], f"{c}:f32") for a, b, c in shapes), b=2, n=3, k=4, m=33)


def test_vectors() -> None:
    shapes = [
        ("5", "5", ""), ("5", "5, 3", "3"), ("4, 5", "5", "4"), ("2, 4, 5", "5", "2, 4"), ("5", "2, 5, 3", "2, 3"),
        ("n", "n", ""), ("n", "n, m", "m"), ("m, n", "n", "m"),
    ]  # fmt: skip
    dtypes = ["f32", "bf16", "i32"]
    check(*(Case("matmul", [f"{a}:{d}", f"{b}:{d}"], f"{c}:{d}") for a, b, c in shapes for d in dtypes), n=6, m=40)


def test_empty_dimensions() -> None:
    shapes = [("0, 3", "3, 4", "0, 4"), ("2, 0", "0, 4", "2, 4"), ("2, 3", "3, 0", "2, 0"), ("0, 2, 3", "3, 4", "0, 2, 4")]
    check(*(Case("matmul", [f"{a}:f32", f"{b}:f32"], f"{c}:f32") for a, b, c in shapes))
    check(Case("matmul", ["n, k:f32", "k, m:f32"], "n, m:f32"), n=2, k=0, m=0)


@pytest.mark.parametrize(
    ("dtype", "out"),
    [("bf16", "f32"), ("f16", "f32"), ("f32", "bf16"), ("f32", "f64"), ("f64", "f32"), ("i8", "i32"), ("i32", "i8")],
)
def test_out_dtype(dtype: str, out: str) -> None:
    attribute = f"out_dtype = {out}"
    check(
        Case("matmul", [f"3, 7:{dtype}", f"7, 33:{dtype}"], f"3, 33:{out}", attribute),
        Case("matmul", [f"3, 7:{dtype}", f"7:{dtype}"], f"3:{out}", attribute),
        rtol=1e-6 if out == "f64" else None,
    )


def test_unsigned_and_eight_bit() -> None:
    kinds = ["ui8", "ui32", "f8E4M3FN", "f8E5M2", "i4"]
    check(*(Case("matmul", [f"3, 7:{d}", f"7, 5:{d}"], f"3, 5:{d}") for d in kinds))
    check(Case("matmul", ["3, 7:ui8", "7, 5:ui8"], "3, 5:i32", "out_dtype = i32"))


@pytest.mark.parametrize("tile", [8, 32])
@pytest.mark.parametrize("dtype", ["f32", "bf16", "i8"])
def test_pack_weight(tile: int, dtype: str) -> None:
    panels = [-(-n // tile) for n in SIZES]
    attribute = f'layout = "tile {tile}"'
    sizes = zip(SIZES, panels, strict=True)
    check(
        *(Case("pack_weight", [f"3, {n}:{dtype}"], f"{p}, 3, {tile}:{dtype}", attribute) for n, p in sizes),
        Case("pack_weight", [f"k, n:{dtype}"], f"(n + {tile - 1}) // {tile}, k, {tile}:{dtype}", attribute),
        k=3, n=33,
    )  # fmt: skip


def test_packed_matmul() -> None:
    def case(x: str, n: int, result: str, dtype: str = "f32", out: str = "") -> Case:
        panels = -(-n // 32)
        attribute = f'layout = "tile 32", n = {n} : i64' + (f", out_dtype = {out}" if out else "")
        return Case(
            "packed_matmul", [f"{x}, 5:{dtype}".lstrip(", "), f"{panels}, 5, 32:{dtype}"], f"{result}:{out or dtype}", attribute
        )

    check(
        *(case("3", n, f"3, {n}") for n in SIZES),
        case("m", 33, "m, 33"), case("b, m", 33, "b, m, 33"), case("", 33, "33"), case("2, 3", 5, "2, 3, 5"),
        case("m", 33, "m, 33", "bf16"), case("m", 33, "m, 33", "bf16", "f32"), case("m", 33, "m, 33", "f64"),
        m=3, b=2,
    )  # fmt: skip


def test_pack_then_multiply_is_a_product() -> None:
    text = """
    func.func @main(%x: tensor<4x40xf32>, %w: tensor<40x70xf32>) -> tensor<4x70xf32> {
      %p = "relax.pack_weight"(%w) {layout = "tile 32"} : (tensor<40x70xf32>) -> tensor<3x40x32xf32>
      %y = "relax.packed_matmul"(%x, %p) {layout = "tile 32", n = 70 : i64}
        : (tensor<4x40xf32>, tensor<3x40x32xf32>) -> tensor<4x70xf32>
      return %y : tensor<4x70xf32>
    }"""
    rng = np.random.default_rng(0)
    x, w = rng.standard_normal((4, 40), np.float32), rng.standard_normal((40, 70), np.float32)
    (result,) = compare(text, x, w)
    np.testing.assert_allclose(result, x @ w, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(("k", "n", "group"), [(40, 64, 2), (41, 70, 2), (7, 33, 4), (12, 32, 3)])
def test_groups_of_rows(k: int, n: int, group: int) -> None:
    packed, result = f"tensor<{-(-n // 32)}x{-(-k // group)}x32x{group}xbf16>", f"tensor<4x{n}xf32>"
    text = f"""
    func.func @main(%x: tensor<4x{k}xbf16>, %w: tensor<{k}x{n}xbf16>) -> ({packed}, {result}) {{
      %p = "relax.pack_weight"(%w) {{layout = "tile 32, rows {group}"}} : (tensor<{k}x{n}xbf16>) -> {packed}
      %y = "relax.packed_matmul"(%x, %p) {{layout = "tile 32, rows {group}", n = {n} : i64, out_dtype = f32}}
        : (tensor<4x{k}xbf16>, {packed}) -> {result}
      return %p, %y : {packed}, {result}
    }}"""
    rng = np.random.default_rng(0)
    compare(text, *(rng.standard_normal(s).astype(numpy_dtype("bf16")) for s in ((4, k), (k, n))), rtol=1e-5)


def test_equal_products_share_a_function() -> None:
    kind = 'tensor<?x8xf32, {sym = ["n"]}>'
    body = "\n".join(f'%{i + 1} = "relax.matmul"(%{i}, %w) : ({kind}, tensor<8x8xf32>) -> {kind}' for i in range(5))
    text = f"func.func @main(%0: {kind}, %w: tensor<8x8xf32>) -> {kind} {{\n{body}\nreturn %5 : {kind}\n}}"
    printed = str(lowered(text))
    assert printed.count("func.func private @contraction") == 1
    assert printed.count("call @contraction_0") == 5

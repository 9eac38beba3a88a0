"""Tensors made from none keep their meaning when lowered."""

from __future__ import annotations

import re

import numpy as np
import pytest

from relaxir.dialect.errors import RelaxError
from support.naive import Case, check, compare, lowered, module_of

SYMBOLS = Case("negative", ["n, m:f32"], "n, m:f32")


@pytest.mark.parametrize("dtype", ["f64", "f32", "f16", "bf16", "i8", "i64", "ui8", "i1", "i4", "f8E4M3FN", "f8E5M2"])
def test_full(dtype: str) -> None:
    one = "value = true" if dtype == "i1" else "value = 1 : i64"
    check(SYMBOLS, *(Case("full", [], f"{shape}:{dtype}", one) for shape in ["", "3", "2, 3", "n, 2", "0"]), n=3, m=2)


def test_full_rounds_once() -> None:
    check(*(Case("full", [], f"2:{d}", "value = 0.1 : f64") for d in ["f64", "f32", "f16", "bf16", "f8E5M2"]), rtol=0)


@pytest.mark.parametrize("dtype", ["f64", "f32", "f16", "bf16", "i8", "i64", "ui8", "f8E5M2"])
def test_constants(dtype: str) -> None:
    kind = f"tensor<2x3x{dtype}>"
    rows, splat = ("[[1, 0, 3], [4, 5, 6]]", "2") if "i" in dtype else ("[[1.0, 0.0, 3.5], [4.0, 5.0, 6.0]]", "2.0")
    compare(f"""
    func.func @main() -> ({kind}, {kind}) {{
      %0 = "relax.constant"() {{value = dense<{rows}> : {kind}}} : () -> {kind}
      %1 = "relax.constant"() {{value = dense<{splat}> : {kind}}} : () -> {kind}
      return %0, %1 : {kind}, {kind}
    }}""")


def test_constants_of_truth_values_and_four_bits() -> None:
    text = """
    func.func @main() -> (tensor<2x2xi1>, tensor<3xi4>, tensor<3xui4>, tensor<i1>, tensor<2xi1>) {
      %0 = "relax.constant"() {value = dense<[[true, false], [false, true]]> : tensor<2x2xi1>} : () -> tensor<2x2xi1>
      %1 = "relax.constant"() {value = dense<[-8, 7, -1]> : tensor<3xi4>} : () -> tensor<3xi4>
      %2 = "relax.constant"() {value = dense<[0, 15, 9]> : tensor<3xui4>} : () -> tensor<3xui4>
      %3 = "relax.constant"() {value = dense<true> : tensor<i1>} : () -> tensor<i1>
      %4 = arith.constant dense<[true, false]> : tensor<2xi1>
      return %0, %1, %2, %3, %4 : tensor<2x2xi1>, tensor<3xi4>, tensor<3xui4>, tensor<i1>, tensor<2xi1>
    }"""
    compare(text)


def test_constants_on_a_device_lose_their_encoding() -> None:
    kind = 'tensor<2xbf16, {vdevice = "cpu:0"}>'
    text = f"""module attributes {{relax.vdevices = ["cpu:0"]}} {{
    func.func @main() -> {kind} {{
      %0 = "relax.constant"() {{value = dense<[1.5, 2.0]> : {kind}}} : () -> {kind}
      return %0 : {kind}
    }}}}"""
    compare(text)
    assert "vdevice =" not in str(lowered(text))


@pytest.mark.parametrize("dtype", ["i64", "i32", "f32", "bf16", "ui8"])
def test_arange(dtype: str) -> None:
    def case(result: str, start: str, end: str, step: str) -> Case:
        return Case("arange", [], f"{result}:{dtype}", f"start = [{start}], end = [{end}], step = [{step}]")

    check(
        SYMBOLS,
        case("5", "0", "5", "1"), case("3", "1", "6", "2"), case("3", "5", "0", "-2"), case("0", "3", "3", "1"),
        case("n", "0", '"n"', "1"), case("n - m", '"m"', '"n"', "1"), case("(n + 1) // 2", "0", '"n"', "2"),
        case("n", '"n"', "0", "-1"), case("(m * n + m - 1) // m", "0", '"n * m"', '"m"'),
        n=7, m=3,
    )  # fmt: skip


def test_shape_value() -> None:
    cases = [Case("shape_value", [], f":{d}", f"value = [{v}]") for d in ("i64", "i32", "f32") for v in ('"n * 2 + m"', "7")]
    check(SYMBOLS, *cases, n=5, m=3)


@pytest.mark.parametrize("dtype", ["f32", "bf16", "i1", "i8"])
def test_triangles(dtype: str) -> None:
    names = ["tril", "triu"]
    check(
        *(Case(name, [f"2, 4, 5:{dtype}"], f"2, 4, 5:{dtype}", f"k = {k} : i64") for name in names for k in (-2, 0, 1, 9)),
        *(Case(name, [f"n, n:{dtype}"], f"n, n:{dtype}") for name in names),
        n=4,
    )


def test_symbols_without_a_definition_are_refused() -> None:
    text = module_of([Case("full", [], "n:f32", "value = 1.0 : f64")])
    message = re.escape("'relax.full' op expected a dimension that arguments or relax.match_cast define, got 'n'")
    with pytest.raises(RelaxError, match=message):
        lowered(text)


def test_a_splat_is_a_number_where_it_is_read() -> None:
    text = """
    func.func @main(%x: tensor<4x5xf32>) -> tensor<4x5xf32> {
      %c = "relax.full"() {value = 2.5 : f64} : () -> tensor<4x5xf32>
      %0 = "relax.multiply"(%x, %c) : (tensor<4x5xf32>, tensor<4x5xf32>) -> tensor<4x5xf32>
      return %0 : tensor<4x5xf32>
    }"""
    compare(text, np.ones((4, 5), np.float32))
    assert "ins(%arg0 : tensor<4x5xf32>) outs" in str(lowered(text))

"""Dense tensor data to NumPy and back, for every dtype and way of printing."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from relaxir.dialect.bindings import ir
from relaxir.dialect.context import new_context
from relaxir.dialect.dtypes import numpy_dtype
from relaxir.dialect.elements import from_numpy, to_numpy
from relaxir.dialect.errors import RelaxError
from relaxir.dialect.reference.interpreter import evaluate
from relaxir.dialect.struct_info import tensor_type
from support.float_checks import FLOATS, INTEGERS, floats, integers

CONTEXT = new_context()
DTYPES = [*FLOATS, *INTEGERS, "i1"]


@pytest.fixture(autouse=True)
def context() -> Iterator[None]:
    with CONTEXT, ir.Location.unknown():
        yield


def values(dtype: str, shape: tuple[int, ...], seed: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    if dtype == "i1":
        return np.asarray(rng.random(shape) < 0.5)
    return (floats if dtype in FLOATS else integers)(rng, shape, dtype)


def type_of(dtype: str, shape: tuple[int, ...]) -> ir.RankedTensorType:
    return tensor_type(shape, ir.Type.parse(dtype))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(), (1,), (3,), (2, 3), (0,), (2, 0), (11, 13)])
def test_arrays_survive(shape: tuple[int, ...], dtype: str) -> None:
    """The last shape is above a hundred elements, which MLIR prints in hexadecimal."""
    x = values(dtype, shape, 1)
    attribute = from_numpy(x, type_of(dtype, shape))
    back = to_numpy(attribute)
    assert back.dtype == x.dtype
    assert back.shape == x.shape
    assert back.flags.c_contiguous
    assert back.flags.writeable
    assert back.tobytes() == x.tobytes() or np.array_equal(np.isnan(x.astype(np.float32)), np.isnan(back.astype(np.float32)))
    again = to_numpy(ir.Attribute.parse(str(attribute)))
    np.testing.assert_array_equal(again.astype(np.float64), back.astype(np.float64))


@pytest.mark.parametrize("dtype", DTYPES)
def test_splats(dtype: str) -> None:
    x = np.ones((2, 3), np.float32).astype(numpy_dtype(dtype))
    attribute = from_numpy(x, type_of(dtype, (2, 3)))
    assert attribute.is_splat
    np.testing.assert_array_equal(to_numpy(attribute).astype(np.float32), x.astype(np.float32))


@settings(max_examples=60)
@given(st.binary(min_size=2, max_size=300), st.sampled_from(["bf16", "f16", "f8E4M3FN", "f8E5M2"]))
def test_every_bit_pattern_survives_but_for_nan(data: bytes, dtype: str) -> None:
    with CONTEXT:
        width = numpy_dtype(dtype).itemsize
        x = np.frombuffer(data[: len(data) // width * width], numpy_dtype(dtype))
        back = to_numpy(ir.Attribute.parse(str(from_numpy(x, type_of(dtype, x.shape)))))
        nan = np.isnan(x.astype(np.float32))
        np.testing.assert_array_equal(np.isnan(back.astype(np.float32)), nan)
        assert back[~nan].tobytes() == x[~nan].tobytes()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("dense<[[1.5, -2.0], [0.0, 4.0]]> : tensor<2x2xbf16>", [[1.5, -2], [0, 4]]),
        ("dense<[0x7F80, 0xFF80]> : tensor<2xbf16>", [np.inf, -np.inf]),
        ("dense<[-8, 7]> : tensor<2xi4>", [-8, 7]),
        ("dense<15> : tensor<ui4>", 15),
        ("dense<[true, false]> : tensor<2xi1>", [True, False]),
        ('dense<"0x0102"> : tensor<2xui8>', [1, 2]),
        ('dense<1.0> : tensor<2xf32, {vdevice = "cpu:0"}>', [1, 1]),
        ("dense<[0.1, 3.3895314e38]> : tensor<2xbf16>", [0.10009765625, 3.3895313892515355e38]),
    ],
)
def test_text(text: str, expected: object) -> None:
    got = to_numpy(ir.Attribute.parse(text))
    np.testing.assert_allclose(got.astype(np.float64), expected, rtol=1e-3)


@pytest.mark.parametrize("dtype", ["f32", "f64", "bf16", "f8E4M3FN", "i8", "i64"])
def test_resources(dtype: str) -> None:
    x = values(dtype, (5, 3), 2)
    data = x.view(np.uint16) if dtype == "bf16" else x.view(np.uint8) if dtype.startswith("f8") else x
    resource = ir.DenseResourceElementsAttr.get_from_buffer(data, f"weight.{dtype}", type_of(dtype, (5, 3)))
    back = to_numpy(resource)
    assert back.dtype == x.dtype
    assert back.tobytes() == x.tobytes()


def test_resources_of_parsed_text() -> None:
    module = ir.Module.parse("""
      module attributes {relax.a = dense_resource<one> : tensor<2xi32>, relax.b = dense_resource<bits> : tensor<10xi1>} {}
      {-# dialect_resources: { builtin: { one: "0x0400000001000000FEFFFFFF", bits: "0x010000000503" } } #-}
    """)
    assert to_numpy(module.operation.attributes["relax.a"]).tolist() == [1, -2]
    assert to_numpy(module.operation.attributes["relax.b"]).tolist() == [bool(0b1100000101 >> i & 1) for i in range(10)]


def test_what_is_refused() -> None:
    with pytest.raises(RelaxError, match="expected dense elements, got 3 : i64"):
        to_numpy(ir.Attribute.parse("3 : i64"))
    with pytest.raises(RelaxError, match="expected an element type such as 'f32', got f80"):
        to_numpy(ir.Attribute.parse("dense<1.0> : tensor<2xf80>"))
    with pytest.raises(RelaxError, match="expected the data of dense_resource<gone> : tensor<2xf32> in the module, got none"):
        to_numpy(ir.Attribute.parse("dense_resource<gone> : tensor<2xf32>"))
    module = ir.Module.parse("""
      module attributes {relax.a = dense_resource<short> : tensor<3xi32>} {}
      {-# dialect_resources: { builtin: { short: "0x0400000001000000" } } #-}
    """)
    with pytest.raises(RelaxError, match="expected 12 bytes of tensor data, got 4"):
        to_numpy(module.operation.attributes["relax.a"])


@pytest.mark.parametrize(("shape", "dtype"), [((3,), "f32"), ((2, 1), "f32"), ((2,), "f64"), ((2,), "bf16")])
def test_arrays_that_do_not_fit(shape: tuple[int, ...], dtype: str) -> None:
    with pytest.raises(RelaxError, match=r"expected an array for tensor<2xf32>, got \w+ \["):
        from_numpy(np.zeros(shape, numpy_dtype(dtype)), type_of("f32", (2,)))


def test_resources_are_constants() -> None:
    module = ir.Module.parse("""
      func.func @f() -> tensor<2xi32> {
        %0 = "relax.constant"() {value = dense_resource<pair> : tensor<2xi32>} : () -> tensor<2xi32>
        return %0 : tensor<2xi32>
      }
      {-# dialect_resources: { builtin: { pair: "0x0400000001000000FEFFFFFF" } } #-}
    """)
    assert evaluate(module, "f", [])[0].tolist() == [1, -2]

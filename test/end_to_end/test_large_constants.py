"""Constants of every dtype and size are what they say, whichever way code has them: as numbers, as bytes, or filled."""

from __future__ import annotations

import math

import numpy as np
import pytest

import relaxir as rx
from relaxir.dialect.dtypes import numpy_dtype

_DTYPES = ("f32", "f64", "f16", "bf16", "f8E4M3FN", "i1", "i4", "i8", "ui8", "i16", "i32", "i64", "ui64")


def _numbers(dtype: str, shape: tuple[int, ...]) -> np.ndarray:
    """Whole numbers, which all have, and of floats what is none."""
    found = np.random.default_rng(len(shape)).integers(
        -7 if dtype[0] in "fbi" and dtype != "i1" else 0, 2 if dtype == "i1" else 8, shape
    )
    array = found.astype(numpy_dtype(dtype))
    if dtype in ("f32", "f64", "f16", "bf16") and array.size > 4:
        array.reshape(-1)[:4] = [np.inf, -np.inf, np.nan, -0.0]
    return array


@pytest.mark.parametrize("dtype", _DTYPES)
def test_constants_of_all_sizes(dtype: str) -> None:
    builder, expected = rx.Builder(), dict[str, np.ndarray]()
    for shape in ((), (1,), (256,), (257,), (3, 7, 41), (4000,), (0, 5)):
        for kind in ("own", "splat"):
            name = f"f{len(expected)}"
            array = _numbers(dtype, shape)
            array = array if kind == "own" else np.full(shape, array.reshape(-1)[-1] if array.size else 0, array.dtype)
            expected[name] = array
            with builder.function(name):
                constant = builder.constant(array)
                index = builder.input("i", (2,), "i64")
                flat = builder.reshape(constant, (math.prod(shape),))
                builder.output(constant, builder.take(flat, index, axis=0) if array.size else constant)
    module = builder.build()
    executable = rx.compile(module)
    for name, array in expected.items():
        places = np.array([0, -1])
        whole, taken = executable(places, entry=name)
        assert whole.tobytes() == array.tobytes(), (name, array.shape)
        if array.size:
            assert taken.tobytes() == array.reshape(-1)[places].tobytes()


def test_more_of_one_number_than_memory_has() -> None:
    text = """
      func.func @main() -> tensor<100000000000000xf32> {
        %0 = arith.constant dense<1.0> : tensor<100000000000000xf32>
        return %0 : tensor<100000000000000xf32>
      }"""
    with pytest.raises(rx.RelaxError, match="memory"):
        rx.compile(rx.Module.parse(text))()

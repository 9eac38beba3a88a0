"""Every op on an emulated GPU, through the artifact's own host code and PTX, against its reference semantics.

A finding of the emulator (an access outside, a race, a read of what nobody wrote) fails the call that makes it. All cases run
in f32, of other types and targets every second to fourth, each another one: code generation differs, not the path.
"""

from __future__ import annotations

import numpy as np
import pytest
from end_to_end.test_ops import FLOAT, INTEGER, Case, check, module_of

import relaxir as rx
from relaxir.dialect.dtypes import dtype_name, numpy_dtype
from relaxir.dialect.relax import Relax
from support.emulated_cuda import agrees

#: Dynamic sizes: one, below and above a warp, and beyond a block together with the other dimensions.
ROWS = [1, 3, 33]

#: Ops that floats of 8 bits are kept for: products, casts, and the largest of what has no infinity.
OF_8_BITS = ("matmul", "packed_matmul", "packed_conv2d", "astype", "quantize", "dequantize", "max_pool2d")


def cases_of(dtype: str) -> list[Case]:
    if dtype.startswith("i"):
        return INTEGER
    return [c for c in FLOAT if dtype == "f32" or c.op not in ("quantize", "dequantize")]


def run(target: str, cases: list[Case], dtype: str, rows: list[int], n: int | None = None) -> None:
    module = module_of(cases, dtype, n)
    check(module, cases, dtype, rows, rx.compile(module, target, device="emulated"))


def test_all_ops() -> None:
    run("cuda:sm_80", FLOAT, "f32", ROWS)
    ops = {cls.OPERATION_NAME for cls in Relax.operations}
    assert {f"relax.{c.op}" for c in FLOAT} <= ops


@pytest.mark.parametrize(("dtype", "first", "step"), [("bf16", 0, 2), ("f16", 1, 3), ("f64", 2, 3)])
def test_other_floats(dtype: str, first: int, step: int) -> None:
    run("cuda:sm_80", cases_of(dtype)[first::step], dtype, [17])


@pytest.mark.parametrize(("target", "dtype", "first"), [("sm_89+f8", "f8E4M3FN", 0), ("sm_90a+f8", "f8E5M2", 3)])
def test_floats_of_8_bits(target: str, dtype: str, first: int) -> None:
    cases = [c for number, c in enumerate(FLOAT) if c.op in OF_8_BITS or number % 6 == first]
    run(f"cuda:{target}", cases, dtype, [17])


@pytest.mark.parametrize("dtype", ["i8", "i32", "i64"])
def test_integer_ops(dtype: str) -> None:
    run("cuda:sm_80", cases_of(dtype), dtype, [3, 17])


@pytest.mark.parametrize(("dtype", "first"), [("f32", 3), ("bf16", 1), ("f16", 0), ("i32", 2)])
def test_hopper(dtype: str, first: int) -> None:
    run("cuda:sm_90a", cases_of(dtype)[first::4], dtype, [3])


def test_static_sizes() -> None:
    fixed = ("strided_slice", "reshape", "full", "arange", "shape_value")
    cases = [c for c in FLOAT if c.kind not in ("square", "dims") and c.op not in fixed]
    run("cuda:sm_80", cases[::3], "f32", [33], 33)
    run("cuda:sm_80", cases[1::3], "f32", [1], 1)


@pytest.mark.parametrize("op", ["left_shift", "right_shift"])
@pytest.mark.parametrize("dtype", ["i64", "ui64"])
def test_shifts_by_amounts_of_more_than_32_bits(op: str, dtype: str) -> None:
    """LLVM left the condition away that the amount is less than 64, and shifted by its lower half."""
    b = rx.Builder()
    with b.function("main"):
        b.output(getattr(b, op)(b.input("x", (6,), dtype), b.input("y", (6,), dtype)))
    amounts = np.array([1, 63, 64, 2**32 + 1, 2**59 + 1, 2**62 + 33], numpy_dtype(dtype))
    agrees(b.build(), np.full(6, np.iinfo(amounts.dtype).max), amounts)


def test_concatenations_that_begin_equally() -> None:
    """CSE makes the beginnings one, from which the second one was continued as a copy of what nobody had written."""
    b = rx.Builder()
    with b.function("main"):
        x, y, z = (b.input(name, (4, 3)) for name in "xyz")
        first = b.add(x, y)
        b.output(b.concat([x, y], axis=1), b.concat([x, z], axis=1), b.concat([first, y, z], axis=0),
                 b.concat([first, y, b.multiply(y, z)], axis=0), b.concat([first, x, z], axis=0))  # fmt: skip
    x = np.arange(12, dtype=np.float32).reshape(4, 3)
    agrees(b.build(), x, x + 20, x + 40)


def test_rows_whose_numbers_in_between_are_narrow() -> None:
    """Such a buffer is not there in the end, nor are its views: those of 16-bit floats are views of views."""
    b = rx.Builder()
    with b.function("main"):
        x, other = b.input("x", ("n", 32), "bf16"), b.input("other", ("n", 1), "bf16")
        y = b.relu(x)
        b.output(b.add(y, b.sum(y, axis=[-1], keepdims=True)), other)
    agrees(b.build(), *(np.ones((5, n), numpy_dtype("bf16")) for n in (32, 1)))


def test_threads_without_a_piece_of_a_tile_read_nothing_outside() -> None:
    """Of 16 filters there are fewer pieces than threads, and the image is the last of memory."""
    rng, b = np.random.default_rng(0), rx.Builder()
    with b.function("main"):
        x, w = b.input("x", (2, 12, 14, 1), "bf16"), b.weight("w", (16, 1, 5, 5), "bf16")
        b.output(b.conv2d(x, w, padding=[2] * 4, data_layout="NHWC", kernel_layout="OIHW"))
    module, target = b.build(), "cuda:sm_80"
    x, w = (rng.integers(-4, 4, shape).astype(numpy_dtype("bf16")) for shape in ((2, 12, 14, 1), (16, 1, 5, 5)))
    executable = rx.compile(module, target, device="emulated")
    executable.bind(executable.prepare({"w": w}))
    (want,) = rx.evaluate(module, "main", x, weights={"w": w})
    np.testing.assert_array_equal(np.asarray(executable(x)), np.asarray(want))


@pytest.mark.parametrize("target", ["cuda:sm_80", "cuda:sm_90a"])
def test_ops_that_passes_make(target: str) -> None:
    """Those that the sweep leaves out, as passes for CPUs make them: a module for another target may come with any."""
    b, rng = rx.Builder(), np.random.default_rng(0)
    given = {
        "x": rng.standard_normal((3, 5)).astype(np.float32), "codes": rng.integers(0, 256, (7, 9)).astype(np.uint8),
        "table": rng.standard_normal(256).astype(np.float32),
        "nibbles": rng.integers(0, 16, (5, 18)).astype(numpy_dtype("ui4")),
        "low": rng.integers(0, 1 << 32, (2, 5, 3), np.uint32), "high": rng.integers(0, 1 << 32, (2, 3, 3), np.uint32),
        "image": rng.integers(0, 256, (2, 7, 6, 4), np.uint8), "zero": np.array(200, np.uint8),
        "filters": rng.integers(-128, 128, (3, 2, 4, 16)).astype(np.int8),
    }  # fmt: skip
    with b.function("main"):
        v = {name: b.input(name, array.shape, dtype_name(array.dtype)) for name, array in given.items()}
        words = b.pack_nibbles(v["nibbles"], axis=1, dtype="ui32")
        attrs = {"strides": [2, 1], "padding": [1, 0, 2, 1], "data_layout": "NHWC"}
        packed = b.pack_weight(b.reshape(v["filters"], (24, 16)), layout="tile 8, rows 4")
        b.output(
            b.bitcast(v["x"], dtype="i32"),
            b.look_up(v["codes"], v["table"]),
            words,
            b.unpack_nibbles(words, axis=1, dtype="ui4", size=18),
            b.unpack_planes(v["low"], v["high"], layout="tile 3, rows 8, u2x16", size=40),
            b.quantized_conv2d(v["image"], v["filters"], v["zero"], **attrs, kernel_layout="HWIO"),
            b.packed_quantized_conv2d(
                v["image"], packed, v["zero"], layout="tile 8, rows 4", channels=16, kernel_size=[3, 2], strides=[2, 1],
                padding=[1, 0, 2, 1],
            ),
        )  # fmt: skip
    agrees(b.build(), *given.values(), target=target)

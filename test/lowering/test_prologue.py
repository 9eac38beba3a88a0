"""What widens a weight moves into the contractions that read it: results agree, and no wide weight is in memory."""

from __future__ import annotations

import re

import numpy as np
import pytest

import relaxir as rx
from relaxir.dialect.bindings import ir, passmanager
from relaxir.dialect.dtypes import numpy_dtype
from relaxir.dialect.symbolic import evaluate
from relaxir.lowering.fusion.outline_kernels import outline_kernels
from relaxir.lowering.linalg.to_linalg import relax_to_linalg
from support.stages import arena_size, lowered

#: Compiles weights as they are: what would be lifted stays.
AS_IS = "relax-canonicalize"
RANGES = {"i8": (-128, 128), "ui8": (0, 256), "i4": (-8, 8), "ui4": (0, 16)}


def tensor(shape: tuple[int | str, ...], dtype: str) -> str:
    symbols = [d for d in shape if isinstance(d, str)]
    encoding = f", {{sym = {list(map(str, symbols))}}}".replace("'", '"') if symbols else ""
    return f"tensor<{''.join(f'{d}x' if isinstance(d, int) else '?x' for d in shape)}{dtype}{encoding}>"


def product(m: int | str, k: int, n: int, weights: list[str], wide: str, body: str, dtype: str = "f32") -> str:
    """``packed_matmul(x, %w)`` of weights %w0, %w1...; ``body`` makes %w."""
    taken = "".join(f', %w{i}: {w} {{relax.name = "w{i}"}}' for i, w in enumerate(weights))
    x, y = tensor((m, k), dtype), tensor((m, n), dtype)
    tile = wide.split("x")[2]
    return f"""
func.func @main(%x: {x} {{relax.name = "x"}}{taken}) -> {y} attributes {{relax.num_input = 1 : i64}} {{
  {body}
  %y = "relax.packed_matmul"(%x, %w) {{layout = "tile {tile}", n = {n} : i64}} : ({x}, {wide}) -> {y}
  return %y : {y}
}}"""


def quantized(
    m: int | str, k: int, n: int, dtype: str, scale: tuple[int, ...], zero: tuple[int, ...], axis: int = -1, to: str = "f32"
) -> tuple[str, dict[str, np.ndarray]]:  # fmt: skip
    shape = (-(-n // 32), k, 32)
    weights = [tensor(shape, dtype), tensor(scale, to), tensor(zero, dtype)]
    wide = tensor(shape, to)
    body = f'%w = "relax.dequantize"(%w0, %w1, %w2) {{axis = {axis} : i64}} : ({", ".join(weights)}) -> {wide}'
    rng = np.random.default_rng(1)
    low, high = RANGES[dtype]
    arrays = {
        "w0": rng.integers(low, high, shape).astype(numpy_dtype(dtype)),
        "w1": rng.uniform(0.1, 1, scale).astype(numpy_dtype(to)),
        "w2": rng.integers(low, high, zero).astype(numpy_dtype(dtype)),
    }
    return product(m, k, n, weights, wide, body, to), arrays


def cast(m: int | str, k: int, n: int, dtype: str, to: str = "f32", tile: int = 32) -> tuple[str, dict[str, np.ndarray]]:
    shape = (-(-n // tile), k, tile)
    wide = tensor(shape, to)
    body = f'%w = "relax.astype"(%w0) {{dtype = {to}}} : ({tensor(shape, dtype)}) -> {wide}'
    array = np.random.default_rng(1).normal(size=shape).astype(np.float32) * 4
    return product(m, k, n, [tensor(shape, dtype)], wide, body, to), {"w0": array.astype(numpy_dtype(dtype))}


def outlined(text: str) -> str:
    module = rx.Module.parse(text).ir
    with module.context, ir.Location.unknown():
        relax_to_linalg(module.operation, tile=32)
        outline_kernels(module.operation)
        passmanager.PassManager.parse("builtin.module(canonicalize)").run(module.operation)
        assert module.operation.verify()
        return str(module)


def arena_bytes(text: str) -> int:
    """Scratch memory of @main for one row."""
    size = arena_size(lowered(rx.Module.parse(text), passes="symbol-dce", upto="relax-share-copies"))
    return size if isinstance(size, int) else evaluate(size, {"n": 1})


def check(text: str, weights: dict[str, np.ndarray], rows: list[int], rtol: float = 2e-6) -> None:
    module = rx.Module.parse(text)
    executable = rx.compile(module, pipeline=AS_IS)
    executable.bind(weights)
    (k,) = {w.shape[1] for name, w in weights.items() if name == "w0"}
    dtype = numpy_dtype(re.findall(r"\(%x: tensor<\S*x(\w+)", text)[0])
    for m in rows:
        x = np.random.default_rng(m).normal(size=(m, k)).astype(dtype)
        (want,) = rx.evaluate(module, "main", x, weights=weights)
        got = np.asarray(executable(x)).astype(np.float64)
        np.testing.assert_allclose(got, want.astype(np.float64), rtol=0, atol=rtol * np.abs(want.astype(np.float64)).max())


@pytest.mark.parametrize("dtype", ["bf16", "f16", "i8", "f8E4M3FN"])
@pytest.mark.parametrize(("k", "n"), [(37, 33), (64, 96), (5, 1)])
def test_casts(dtype: str, k: int, n: int) -> None:
    text, weights = cast("n", k, n, dtype)
    check(text, weights, [1, 2, 7, 8, 33])


def test_cast_to_another_narrow_float() -> None:
    text, weights = cast("n", 40, 70, "f8E5M2", "bf16")
    check(text, weights, [1, 9], rtol=8e-3)


@pytest.mark.parametrize("dtype", RANGES)
@pytest.mark.parametrize("scale", [(), (4, 1, 32), (4, 3, 32), (64,)])
@pytest.mark.parametrize("zero", [(), (4, 3, 32)])
def test_dequantization(dtype: str, scale: tuple[int, ...], zero: tuple[int, ...]) -> None:
    k, axis = (64, 1) if scale == (64,) else (96, -1)
    zero = (4, 2, 32) if scale == (64,) and zero else zero
    text, weights = quantized("n", k, 101, dtype, scale, zero, axis)
    check(text, weights, [1, 2, 7, 8, 33], rtol=4e-6)


@pytest.mark.parametrize(("to", "rtol"), [("f16", 1e-3), ("bf16", 8e-3)])
@pytest.mark.parametrize("dtype", ["i8", "i4"])
def test_dequantization_to_narrow_floats(dtype: str, to: str, rtol: float) -> None:
    """The weight is rounded to them before it is multiplied."""
    text, weights = quantized("n", 96, 70, dtype, (3, 3, 32), (), to=to)
    check(text, weights, [1, 9], rtol=rtol)


@pytest.mark.parametrize("m", [1, 2, 7, 8, 33])
def test_static_rows(m: int) -> None:
    text, weights = quantized(m, 96, 70, "i4", (3, 3, 32), (3, 3, 32))
    check(text, weights, [m], rtol=4e-6)


@pytest.mark.parametrize(
    "make", [lambda: cast("n", 512, 512, "bf16"), lambda: quantized("n", 512, 512, "i8", (16, 16, 32), ())]
)
def test_no_wide_weight_is_in_memory(make) -> None:
    text, _ = make()
    assert arena_bytes(text) < 64 * 1024
    assert "tensor<16x512x32xf32>" not in outlined(text)


def test_equal_layers_share_a_kernel() -> None:
    text, _ = cast("n", 64, 64, "bf16")
    again = """%v = "relax.astype"(%w0) {dtype = f32} : (tensor<2x64x32xbf16>) -> tensor<2x64x32xf32>
  %h = "relax.packed_matmul"(%x, %v) {layout = "tile 32", n = 64 : i64} : (X, tensor<2x64x32xf32>) -> X
  %y = "relax.packed_matmul"(%h, %w)""".replace("X", tensor(("n", 64), "f32"))
    after = outlined(text.replace('%y = "relax.packed_matmul"(%x, %w)', again))
    assert len(re.findall(r"func.func private @\w+", after)) == 1
    assert len(re.findall(r"call @\w+", after)) == 2


def test_a_cast_that_two_products_read_moves_into_both() -> None:
    text, _ = cast("n", 64, 64, "bf16")
    x = tensor(("n", 64), "f32")
    attributes = '{layout = "tile 32", n = 64 : i64}'
    two = f'%h = "relax.packed_matmul"(%x, %w) {attributes} : ({x}, tensor<2x64x32xf32>) -> {x}\n  %y = '
    after = outlined(text.replace("%y = ", two).replace('%y = "relax.packed_matmul"(%x', '%y = "relax.packed_matmul"(%h'))
    assert "tensor<2x64x32xf32>" not in after


def test_run_time_values_stay() -> None:
    """A kernel reads an activation once for every panel of columns."""
    text, _ = cast("n", 64, 64, "bf16")
    text = text.replace("relax.num_input = 1", "relax.num_input = 2")
    assert "tensor<2x64x32xf32>" in outlined(text)


def test_the_epilogue_moves_in_too() -> None:
    text, weights = cast("n", 64, 70, "bf16")
    y = tensor(("n", 70), "f32")
    text = text.replace("return %y", f'%r = "relax.relu"(%y) : ({y}) -> {y}\n  return %r')
    assert len(re.findall(r"call @\w+", outlined(text))) == 1
    check(text, weights, [3])


def convolution(groups: int, kernel: int, outputs: int, inputs: int, image: int) -> tuple[str, dict[str, np.ndarray]]:
    """A convolution with int8 filters, a scale per filter."""
    shape = (outputs, inputs // groups, kernel, kernel)
    q, w, x = tensor(shape, "i8"), tensor(shape, "f32"), tensor((2, inputs, image, image), "f32")
    y = tensor((2, outputs, image + 1 - kernel, image + 1 - kernel), "f32")
    s = tensor((outputs,), "f32")
    text = f"""
func.func @main(%x: {x} {{relax.name = "x"}}, %q: {q} {{relax.name = "q"}}, %s: {s} {{relax.name = "s"}}) -> {y}
    attributes {{relax.num_input = 1 : i64}} {{
  %z = "relax.full"() {{value = 5 : i64}} : () -> tensor<i8>
  %w = "relax.dequantize"(%q, %s, %z) {{axis = 0 : i64}} : ({q}, {s}, tensor<i8>) -> {w}
  %y = "relax.conv2d"(%x, %w) {{groups = {groups} : i64}} : ({x}, {w}) -> {y}
  return %y : {y}
}}"""
    rng = np.random.default_rng(2)
    return text, {
        "q": rng.integers(-128, 128, shape).astype(np.int8),
        "s": rng.uniform(0.1, 1, outputs).astype(np.float32),
    }


@pytest.mark.parametrize(("groups", "kernel"), [(1, 3), (1, 1), (2, 3), (2, 2)])
def test_filters_of_convolutions(groups: int, kernel: int) -> None:
    text, weights = convolution(groups, kernel, 20, 8, 9)
    module = rx.Module.parse(text)
    executable = rx.compile(module, pipeline=AS_IS)
    executable.bind(weights)
    x = np.random.default_rng(3).normal(size=(2, 8, 9, 9)).astype(np.float32)
    (want,) = rx.evaluate(module, "main", x, weights=weights)
    np.testing.assert_allclose(executable(x), want, rtol=0, atol=2e-6 * np.abs(want).max())


def test_no_wide_filters_are_in_memory() -> None:
    text, _ = convolution(1, 3, 256, 64, 4)
    assert arena_bytes(text) < 200 * 1024  # the filters in f32 have 576 KiB


def test_a_weight_on_the_left() -> None:
    text = """
func.func @main(%x: tensor<40x?xf32, {sym = ["n"]}> {relax.name = "x"}, %w: tensor<2x300x20xf16> {relax.name = "w"})
    -> tensor<600x?xf32, {sym = ["n"]}> attributes {relax.num_input = 1 : i64} {
  %0 = "relax.astype"(%w) {dtype = f32} : (tensor<2x300x20xf16>) -> tensor<2x300x20xf32>
  %1 = "relax.reshape"(%0) : (tensor<2x300x20xf32>) -> tensor<300x40xf32>
  %2 = "relax.concat"(%1, %1) : (tensor<300x40xf32>, tensor<300x40xf32>) -> tensor<600x40xf32>
  %y = "relax.matmul"(%2, %x) : (tensor<600x40xf32>, tensor<40x?xf32, {sym = ["n"]}>) -> tensor<600x?xf32, {sym = ["n"]}>
  return %y : tensor<600x?xf32, {sym = ["n"]}>
}"""
    module = rx.Module.parse(text)
    weights = {"w": np.random.default_rng(4).normal(size=(2, 300, 20)).astype(np.float16)}
    executable = rx.compile(module, pipeline="relax-sink-growth")
    executable.bind(weights)
    for n in (1, 31, 40):
        x = np.random.default_rng(n).normal(size=(40, n)).astype(np.float32)
        (want,) = rx.evaluate(module, "main", x, weights=weights)
        np.testing.assert_allclose(executable(x), want, rtol=0, atol=2e-6 * np.abs(want).max())
    assert arena_bytes(str(module.run("relax-sink-growth"))) < 60 * 1024  # the weight in f32 has 94 KiB


def test_matrices_of_a_batch_are_read_as_they_are() -> None:
    """They are packed at run time, which the product takes in with what widens them."""
    text = """
func.func @main(%x: tensor<6x?x64xf32, {sym = ["n"]}> {relax.name = "x"}, %q: tensor<6x64x96xi8> {relax.name = "q"},
    %s: tensor<6x2x96xf32> {relax.name = "s"}) -> tensor<6x?x96xf32, {sym = ["n"]}> attributes {relax.num_input = 1 : i64} {
  %z = "relax.full"() {value = 3 : i64} : () -> tensor<i8>
  %w = "relax.dequantize"(%q, %s, %z) : (tensor<6x64x96xi8>, tensor<6x2x96xf32>, tensor<i8>) -> tensor<6x64x96xf32>
  %y = "relax.matmul"(%x, %w) : (tensor<6x?x64xf32, {sym = ["n"]}>, tensor<6x64x96xf32>) -> tensor<6x?x96xf32, {sym = ["n"]}>
  return %y : tensor<6x?x96xf32, {sym = ["n"]}>
}"""
    module = rx.Module.parse(text)
    rng = np.random.default_rng(4)
    weights = {
        "q": rng.integers(-128, 128, (6, 64, 96)).astype(np.int8),
        "s": rng.uniform(0.1, 1, (6, 2, 96)).astype(np.float32),
    }
    executable = rx.compile(module, pipeline=AS_IS)
    executable.bind(weights)
    for n in (1, 7, 33):
        x = np.random.default_rng(n).normal(size=(6, n, 64)).astype(np.float32)
        (want,) = rx.evaluate(module, "main", x, weights=weights)
        np.testing.assert_allclose(executable(x), want, rtol=0, atol=4e-6 * np.abs(want).max())
    assert arena_bytes(text) < 16 * 1024  # the weight in f32 has 144 KiB


def test_a_tiled_weight_and_equal_numbers_keep_the_length_of_the_sum() -> None:
    """Read at ``d mod 4``, and not at all, neither would say how many products are added."""
    text = """
func.func @main(%w: tensor<15x4xf32> {relax.name = "w"}) -> tensor<45x32xf32> attributes {relax.num_input = 0 : i64} {
  %0 = "relax.tile"(%w) {repeats = array<i64: 3, 2>} : (tensor<15x4xf32>) -> tensor<45x8xf32>
  %1 = "relax.full"() {value = 3 : i64} : () -> tensor<8x32xf32>
  %2 = "relax.matmul"(%0, %1) : (tensor<45x8xf32>, tensor<8x32xf32>) -> tensor<45x32xf32>
  return %2 : tensor<45x32xf32>
}"""
    w = np.arange(60, dtype=np.float32).reshape(15, 4)
    executable = rx.compile(rx.Module.parse(text))
    executable.bind(executable.prepare({"w": w}))
    np.testing.assert_array_equal(executable(), np.tile(w, (3, 2)) @ np.full((8, 32), 3, np.float32))


def test_equal_filters_keep_the_length_of_their_sums() -> None:
    shape = 'tensor<1x1x2x?xf32, {sym = ["n"]}>'
    text = f"""
func.func @main(%x: {shape} {{relax.name = "x"}}) -> {shape} attributes {{relax.num_input = 1 : i64}} {{
  %0 = "relax.constant"() {{value = dense<-3.0> : tensor<1x1x1x3xf32>}} : () -> tensor<1x1x1x3xf32>
  %1 = "relax.conv2d"(%x, %0) {{padding = array<i64: 0, 1, 1, 1>, strides = array<i64: 2, 1>}}
    : ({shape}, tensor<1x1x1x3xf32>) -> {shape}
  return %1 : {shape}
}}"""
    x = np.arange(14, dtype=np.float32).reshape(1, 1, 2, 7)
    padded = np.pad(x, ((0, 0), (0, 0), (0, 1), (1, 1)))
    want = -3 * sum(padded[:, :, ::2, i : i + 7] for i in range(3))
    np.testing.assert_array_equal(rx.compile(rx.Module.parse(text))(x), want)


def test_a_broadcast_moves_into_the_addition_that_reads_it() -> None:
    x, y = tensor((256, 64), "f32"), tensor((256, 96), "f32")
    text = f"""
func.func @main(%x: {x} {{relax.name = "x"}}, %w: tensor<6x64x16xf32> {{relax.name = "w"}}, %b: tensor<96xf32> {{relax.name = "b"}})
    -> {y} attributes {{relax.num_input = 1 : i64}} {{
  %0 = "relax.broadcast_to"(%b) : (tensor<96xf32>) -> {y}
  %1 = "relax.packed_matmul"(%x, %w) {{layout = "tile 16", n = 96 : i64}} : ({x}, tensor<6x64x16xf32>) -> {y}
  %2 = "relax.add"(%1, %0) : ({y}, {y}) -> {y}
  return %2 : {y}
}}"""  # noqa: E501
    assert arena_bytes(text) == 0

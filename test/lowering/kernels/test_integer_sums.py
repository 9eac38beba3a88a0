"""Products of integers with scales: results on every target by emulation, and what the loop over k consists of."""

from __future__ import annotations

import re

import numpy as np
import pytest

import relaxir as rx
from relaxir.compiler import default_pipeline
from relaxir.dialect.dtypes import numpy_dtype
from relaxir.lowering.cpu.codegen import assembly
from relaxir.lowering.target import TARGETS, Target
from support.emulation import compile_for, generated
from support.integer_products import CASES, INTEGER_PIPELINE, RANGES, Case, module_of
from support.products_of_parts import ProductOfParts

#: Targets go through them: each instruction meets all of them, as several targets have it.
PARTS = 3


@pytest.mark.parametrize("name", TARGETS)
def test_results_are_the_reference_semantics(name: str) -> None:
    cases = CASES[list(TARGETS).index(name) % PARTS :: PARTS]
    module, weights = module_of(cases)
    integer = module.with_weight_layouts(Target.parse(f"cpu:{name}").weight_layouts).run(
        INTEGER_PIPELINE.replace("relax-lift-transform-params,", "")
    )
    assert str(integer).count("relax.quantized_matmul") == len(cases)
    executable = compile_for(module, name, INTEGER_PIPELINE)
    executable.bind(executable.prepare({k: v for held in weights.values() for k, v in held.items()}))
    rng = np.random.default_rng(1)
    for (entry, held), case in zip(weights.items(), cases, strict=True):
        for rows in (1, 2, 7, 8, 13) if isinstance(case.m, str) else (case.m,):
            x = rng.standard_normal((rows, case.k)).astype(numpy_dtype(case.activations))
            (want,) = rx.evaluate(integer, entry, x, weights=held)
            (exact,) = rx.evaluate(module, entry, x, weights=held)
            got, largest = executable(x, entry=entry), np.abs(exact).max()
            assert np.abs(got - want).max() <= (1e-6 if case.activations == "f32" else 1e-2) * largest, (case, rows)
            assert np.abs(got - exact).max() <= 2e-2 * largest + 1e-6, (case, rows)


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("name", TARGETS)
def test_products_of_parts_are_added(name: str, seed: int) -> None:
    target, seed = Target.parse(f"cpu:{name}"), 5 * list(TARGETS).index(name) + seed
    layouts = target.weight_layouts
    case = ProductOfParts.of(seed, layouts.int8_rows)
    module = case.module(layouts.columns, layouts.int8_rows)
    executable = compile_for(module, name)
    for rows in (0, 1, 9, 40) if isinstance(case.rows, str) else (case.rows,):
        arguments = case.arrays(layouts.columns, layouts.int8_rows, rows, seed)
        (want,) = rx.evaluate(module, "main", *arguments)
        got, largest = executable(*arguments).astype(np.float64), np.abs(want.astype(np.float64)).max(initial=0)
        assert got.shape == want.shape
        # Sums of groups and parts are added in other order; bf16 rounds once.
        bound = (4e-6 if case.out_dtype == "f32" else 2.0**-8) * largest
        assert np.abs(got - want.astype(np.float64)).max(initial=0) <= bound, (case, rows)


@pytest.mark.parametrize("dtype", ["i8", "ui4"])
@pytest.mark.parametrize("groups", [1, 2, 4])
def test_rows_that_come_with_scales_of_their_groups(groups: int, dtype: str) -> None:
    """Rows of integers whose groups have scales, four of the weight's groups, two or one to each; nothing is rounded."""
    b, rng, m = rx.Builder(), np.random.default_rng(0), 7
    with b.function("main"):
        x, s = b.input("x", ("m", 128), "i8"), b.input("s", ("m", groups), "f32")
        q, w = b.weight("q", (40, 128), dtype), b.weight("w", (40, 4), "f32")
        rows = b.dequantize(x, s, b.full((), 0, "i8"))
        b.output(b.matmul(rows, b.permute_dims(b.dequantize(q, w, b.full((), 3, dtype)), axes=[1, 0])))
    module = b.build()
    default = module.with_weight_layouts(Target.parse("cpu:znver4").weight_layouts).run(default_pipeline())
    assert str(default).count("relax.quantized_matmul") == 1
    held = {"q": rng.integers(*RANGES[dtype], (40, 128)).astype(numpy_dtype(dtype)), "w": rng.random((40, 4), np.float32)}
    given = rng.integers(-127, 128, (m, 128)).astype(np.int8), rng.random((m, groups), np.float32)
    executable = compile_for(module, "znver4")
    executable.bind(executable.prepare(held))
    (want,) = rx.evaluate(module, "main", *given, weights=held)
    np.testing.assert_allclose(executable(*given), want, rtol=0, atol=1e-6 * np.abs(want).max())


@pytest.mark.parametrize("made", ["relax.astype", "relax.add"])
def test_integers_that_are_computed_from_weights(made: str) -> None:
    """Instructions read integers from memory, whatever the weight is in there."""
    stored, kind = ("i4", "tensor<1x16x32x4xi4>") if made == "relax.astype" else ("ui8", "tensor<1x16x32x4xui8>")
    operands, types = ("%w", kind) if made == "relax.astype" else ("%w, %w", f"{kind}, {kind}")
    attributes = " {dtype = ui8}" if made == "relax.astype" else ""
    module = rx.Module.parse(f"""
func.func @main(%x: tensor<4x64xi8>, %a: tensor<4x1xf32>, %b: tensor<4x1xi32>, %s: tensor<1x1x32xf32>,
                %w: {kind} {{relax.name = "w"}}) -> tensor<4x32xf32> attributes {{relax.num_input = 4 : i64}} {{
  %z = "relax.constant"() {{value = dense<5> : tensor<i32>}} : () -> tensor<i32>
  %q = "{made}"({operands}){attributes} : ({types}) -> tensor<1x16x32x4xui8>
  %r = "relax.quantized_matmul"(%x, %a, %b, %q, %s, %z) {{layout = "tile 32, rows 4", n = 32 : i64}}
    : (tensor<4x64xi8>, tensor<4x1xf32>,
    tensor<4x1xi32>, tensor<1x16x32x4xui8>, tensor<1x1x32xf32>, tensor<i32>) -> tensor<4x32xf32>
  return %r : tensor<4x32xf32>
}}""")
    executable = compile_for(module, "znver4", INTEGER_PIPELINE.replace("relax-lift-transform-params,", ""))
    rng = np.random.default_rng(0)
    x, ones = rng.integers(-127, 128, (4, 64)).astype(np.int8), np.ones((4, 1), np.float32)
    arguments = [x, ones, x.sum(-1, dtype=np.int32, keepdims=True), rng.random((1, 1, 32), np.float32)]
    weights = {"w": rng.integers(0, 8, (1, 16, 32, 4)).astype(numpy_dtype(stored))}
    executable.bind(executable.prepare(weights))
    (want,) = rx.evaluate(module, "main", *arguments, weights=weights)
    np.testing.assert_allclose(executable(*arguments), want, rtol=0, atol=1e-6 * np.abs(want).max())


@pytest.mark.parametrize("rows", [2, 4])
def test_one_column_of_one_step(rows: int) -> None:
    module = rx.Module.parse(f"""
func.func @main(%x: tensor<3x{rows}xi8>, %a: tensor<3x1xf32>, %b: tensor<3x1xi32>, %w: tensor<1x1x8x{rows}xui8>,
                %s: tensor<1x1x8xf32>) -> tensor<3x1xf32> {{
  %z = "relax.constant"() {{value = dense<0> : tensor<i32>}} : () -> tensor<i32>
  %r = "relax.quantized_matmul"(%x, %a, %b, %w, %s, %z) {{layout = "tile 8, rows {rows}", n = 1 : i64}} : (tensor<3x{rows}xi8>,
    tensor<3x1xf32>, tensor<3x1xi32>, tensor<1x1x8x{rows}xui8>, tensor<1x1x8xf32>, tensor<i32>) -> tensor<3x1xf32>
  return %r : tensor<3x1xf32>
}}""")
    x = np.arange(-4, 3 * rows - 4, dtype=np.int8).reshape(3, rows)
    ones, weight = np.ones((3, 1), np.float32), np.arange(200, 200 + 8 * rows, dtype=np.uint8).reshape(1, 1, 8, rows)
    arguments = [x, ones, x.sum(-1, dtype=np.int32, keepdims=True), weight, np.ones((1, 1, 8), np.float32)]
    (want,) = rx.evaluate(module, "main", *arguments)
    np.testing.assert_array_equal(rx.compile(module, cache=False)(*arguments), want)


@pytest.mark.parametrize(("name", "dot"), [("znver4", "vpdpbusd"), ("neoverse-n1", "sdot"), ("x86-64-v3", "vpmaddwd")])
@pytest.mark.parametrize("dtype", ["i8", "i4"])
def test_a_tile_is_products_of_bytes(name: str, dot: str, dtype: str) -> None:
    target = Target.parse(f"cpu:{name}")
    module, _ = module_of([Case(dtype, 8, target.matmul_tile[1], 256, 32 if dtype == "i4" else 0)])
    text = assembly(generated(module, name, INTEGER_PIPELINE), target)
    assert len(re.findall(rf"\t{dot}\s", text)) >= 8


def test_a_scale_that_is_one_number() -> None:
    """It has no input that a kernel could know it by."""
    builder, rng = rx.Builder(), np.random.default_rng(0)
    with builder.function("main"):
        x, q = builder.input("x", ("m", 32)), builder.weight("q", (40, 32), "i8")
        wide = builder.dequantize(q, builder.full((), 0.5, "f32"), builder.full((), 3, "i8"))
        builder.output(builder.matmul(x, builder.permute_dims(wide, axes=[1, 0])))
    module, weights = builder.build(), {"q": rng.integers(-128, 128, (40, 32)).astype(np.int8)}
    executable = rx.compile(module, pipeline=INTEGER_PIPELINE, cache=False)
    executable.bind(executable.prepare(weights))
    x = rng.standard_normal((5, 32), np.float32)
    integer = module.run(INTEGER_PIPELINE.replace("relax-lift-transform-params,", ""))
    assert "relax.quantized_matmul" in str(integer)
    (want,) = rx.evaluate(integer, "main", x, weights=weights)
    np.testing.assert_allclose(executable(x), want, rtol=0, atol=1e-6 * np.abs(want).max())

"""Quantized models: lifting leaves what makes a weight bigger to inference, and inference does it in the kernels."""

from __future__ import annotations

import re

import numpy as np
import pytest

import relaxir as rx
from relaxir.compiler import default_pipeline
from relaxir.dialect.dtypes import numpy_dtype

#: As compile() does it by default, but small weights count too.
STRICT = default_pipeline().replace(
    "relax-lift-transform-params", "relax-lift-transform-params{max-growth=1.9 growth-slack=0 max-total-growth=0}"
)
NOT_LIFTED = STRICT.replace(re.findall(r"relax-lift[^}]*},", STRICT)[0], "")


def model(rows: str, hidden: int, symbol: str = "") -> str:
    """Embedding in bf16, tied to the output; a layer of int8 per channel, one of int4 in groups of 32 that are spelled out.

    The second layer has zero points; the layers' weights are ``[out, in]`` as PyTorch's and ``[in, out]``.
    """
    n = "?" if symbol else rows
    sym = f', {{sym = ["{symbol}"]}}' if symbol else ""
    groups = hidden // 32
    return f"""
func.func @main(%ids: tensor<{n}xi64{sym}> {{relax.name = "ids"}}, %e: tensor<50x64xbf16> {{relax.name = "embed"}},
    %q: tensor<{hidden}x64xi8> {{relax.name = "up"}}, %s: tensor<{hidden}xf32> {{relax.name = "up.scale"}},
    %g: tensor<{hidden}x64xi4> {{relax.name = "down"}}, %gs: tensor<{groups}x1x64xf32> {{relax.name = "down.scale"}},
    %gz: tensor<{groups}x1x64xi4> {{relax.name = "down.zero"}}) -> tensor<{n}x50xf32{sym}> attributes {{relax.num_input = 1 : i64}} {{
  %0 = "relax.astype"(%e) {{dtype = f32}} : (tensor<50x64xbf16>) -> tensor<50x64xf32>
  %1 = "relax.take"(%0, %ids) : (tensor<50x64xf32>, tensor<{n}xi64{sym}>) -> tensor<{n}x64xf32{sym}>
  %z = "relax.full"() {{value = 3 : i64}} : () -> tensor<i8>
  %2 = "relax.dequantize"(%q, %s, %z) {{axis = 0 : i64}} : (tensor<{hidden}x64xi8>, tensor<{hidden}xf32>, tensor<i8>) -> tensor<{hidden}x64xf32>
  %3 = "relax.permute_dims"(%2) : (tensor<{hidden}x64xf32>) -> tensor<64x{hidden}xf32>
  %4 = "relax.matmul"(%1, %3) : (tensor<{n}x64xf32{sym}>, tensor<64x{hidden}xf32>) -> tensor<{n}x{hidden}xf32{sym}>
  %5 = "relax.silu"(%4) : (tensor<{n}x{hidden}xf32{sym}>) -> tensor<{n}x{hidden}xf32{sym}>
  %6 = "relax.reshape"(%g) : (tensor<{hidden}x64xi4>) -> tensor<{groups}x32x64xi4>
  %7 = "relax.astype"(%6) {{dtype = f32}} : (tensor<{groups}x32x64xi4>) -> tensor<{groups}x32x64xf32>
  %8 = "relax.astype"(%gz) {{dtype = f32}} : (tensor<{groups}x1x64xi4>) -> tensor<{groups}x1x64xf32>
  %9 = "relax.subtract"(%7, %8) : (tensor<{groups}x32x64xf32>, tensor<{groups}x1x64xf32>) -> tensor<{groups}x32x64xf32>
  %10 = "relax.multiply"(%9, %gs) : (tensor<{groups}x32x64xf32>, tensor<{groups}x1x64xf32>) -> tensor<{groups}x32x64xf32>
  %11 = "relax.reshape"(%10) : (tensor<{groups}x32x64xf32>) -> tensor<{hidden}x64xf32>
  %12 = "relax.matmul"(%5, %11) : (tensor<{n}x{hidden}xf32{sym}>, tensor<{hidden}x64xf32>) -> tensor<{n}x64xf32{sym}>
  %13 = "relax.permute_dims"(%0) : (tensor<50x64xf32>) -> tensor<64x50xf32>
  %14 = "relax.matmul"(%12, %13) : (tensor<{n}x64xf32{sym}>, tensor<64x50xf32>) -> tensor<{n}x50xf32{sym}>
  return %14 : tensor<{n}x50xf32{sym}>
}}"""  # noqa: E501


def weights(hidden: int) -> dict[str, np.ndarray]:
    rng, groups = np.random.default_rng(1), hidden // 32
    return {
        "embed": rng.normal(size=(50, 64)).astype(numpy_dtype("bf16")),
        "up": rng.integers(-128, 128, (hidden, 64)).astype(np.int8),
        "up.scale": rng.uniform(0.001, 0.01, hidden).astype(np.float32),
        "down": rng.integers(-8, 8, (hidden, 64)).astype(numpy_dtype("i4")),
        "down.scale": rng.uniform(0.01, 0.1, (groups, 1, 64)).astype(np.float32),
        "down.zero": rng.integers(-8, 8, (groups, 1, 64)).astype(numpy_dtype("i4")),
    }


@pytest.mark.parametrize("pipeline", [None, STRICT, NOT_LIFTED], ids=["default", "strict", "not lifted"])
@pytest.mark.parametrize("rows", [None, 1, 7])
def test_results_are_the_reference_semantics(pipeline: str | None, rows: int | None) -> None:
    module = rx.Module.parse(model(str(rows), 96, "" if rows else "n"))
    executable = rx.compile(module, pipeline=pipeline)
    raw = weights(96)
    executable.bind(executable.prepare(raw))
    for n in [rows] if rows else [1, 2, 7, 8, 33]:
        ids = np.random.default_rng(n).integers(0, 50, n)
        (want,) = rx.evaluate(module, "main", ids, weights=raw)
        np.testing.assert_allclose(executable(ids), want, rtol=0, atol=1e-5 * np.abs(want).max())


def test_prepared_weights_stay_narrow() -> None:
    module = rx.Module.parse(model("", 96, "n"))
    lifted = module.run(STRICT)
    (taken,) = re.findall(r"func.func @main\((.*)\) ->", str(lifted))
    wide = [shape for shape, name in re.findall(r'tensor<(\S*)xf32> \{relax.name = "([^"]*)"', taken) if "scale" not in name]
    assert wide == []
    executable = rx.compile(module, pipeline=STRICT)
    raw = weights(96)
    prepared = executable.prepare(raw)
    padding = 1.4
    # The embedding is there twice: as rows to look up, and packed as the output projection.
    assert sum(a.nbytes for a in prepared.values()) < padding * sum(a.nbytes for a in [*raw.values(), raw["embed"]])


def test_layers_keep_their_packed_form_in_inference() -> None:
    lifted = str(rx.Module.parse(model("", 96, "n")).run(STRICT))
    main = lifted[lifted.index("func.func @main(") :]
    assert main.count('"relax.dequantize"') == 2
    assert main.count('"relax.packed_matmul"') == 3
    assert '"relax.permute_dims"' not in main
    assert "tensor<50x64xf32>" not in main


def test_a_loop_reads_narrow_weights() -> None:
    """A product and a look-up in each iteration: nothing grows before the loop, nor is packed in it."""
    text = """
func.func @main(%x: tensor<8x64xf32> {relax.name = "x"}, %ids: tensor<8xi64> {relax.name = "ids"},
    %e: tensor<100x64xf16> {relax.name = "e"}, %q: tensor<64x64xi8> {relax.name = "q"}, %s: tensor<64xf32> {relax.name = "s"})
    -> tensor<8x64xf32> attributes {relax.num_input = 2 : i64} {
  %z = "relax.full"() {value = 1 : i64} : () -> tensor<i8>
  %w = "relax.dequantize"(%q, %s, %z) : (tensor<64x64xi8>, tensor<64xf32>, tensor<i8>) -> tensor<64x64xf32>
  %t = "relax.astype"(%e) {dtype = f32} : (tensor<100x64xf16>) -> tensor<100x64xf32>
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c3 = arith.constant 3 : index
  %r = scf.for %i = %c0 to %c3 step %c1 iter_args(%a = %x) -> (tensor<8x64xf32>) {
    %0 = "relax.matmul"(%a, %w) : (tensor<8x64xf32>, tensor<64x64xf32>) -> tensor<8x64xf32>
    %1 = "relax.take"(%t, %ids) : (tensor<100x64xf32>, tensor<8xi64>) -> tensor<8x64xf32>
    %2 = "relax.add"(%0, %1) : (tensor<8x64xf32>, tensor<8x64xf32>) -> tensor<8x64xf32>
    scf.yield %2 : tensor<8x64xf32>
  }
  return %r : tensor<8x64xf32>
}"""
    module = rx.Module.parse(text)
    lifted = str(module.run(STRICT))
    main = lifted[lifted.index("func.func @main(") :]
    assert '"relax.pack_weight"' not in main
    assert "tensor<100x64xf32>" not in main
    rng = np.random.default_rng(1)
    raw = {
        "e": rng.normal(size=(100, 64)).astype(np.float16),
        "q": rng.integers(-128, 128, (64, 64)).astype(np.int8),
        "s": rng.uniform(0.001, 0.002, 64).astype(np.float32),
    }
    x, ids = rng.normal(size=(8, 64)).astype(np.float32), rng.integers(0, 100, 8)
    executable = rx.compile(module, pipeline=STRICT)
    executable.bind(executable.prepare(raw))
    (want,) = rx.evaluate(module, "main", x, ids, weights=raw)
    np.testing.assert_allclose(executable(x, ids), want, rtol=0, atol=1e-5 * np.abs(want).max())

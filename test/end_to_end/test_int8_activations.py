"""``compile(activations="int8")``: what is quantized, how exact it is, and what the report says."""

from __future__ import annotations

import numpy as np
import pytest

import relaxir as rx
from relaxir.dialect.dtypes import numpy_dtype
from relaxir.dialect.reports.activations import KeptProduct, QuantizedActivations, QuantizedProduct

RANGES = {"i4": (-8, 8), "i8": (-128, 128)}


def block(dtype: str, group: int) -> tuple[rx.Module, dict[str, np.ndarray]]:
    """Three projections of the same rows, one of their sum's activation, and one with a weight of floats."""
    builder, rng, weights = rx.Builder(), np.random.default_rng(0), dict[str, np.ndarray]()

    def product(x, name: str, n: int, k: int):
        parameters = (n, k // group if group else 1)
        weights[f"{name}.q"] = rng.integers(*RANGES[dtype], (n, k)).astype(numpy_dtype(dtype))
        weights[f"{name}.s"] = rng.random(parameters, np.float32) / k
        q, s = builder.weight(f"{name}.q", (n, k), dtype), builder.weight(f"{name}.s", parameters, "f32")
        wide = builder.dequantize(q, s, builder.full((), 0, dtype))
        return builder.matmul(x, builder.permute_dims(wide, axes=[1, 0]))

    with builder.function("main"):
        x = builder.input("x", (2, "m", 64))
        q, k, v = (product(x, name, n, 64) for name, n in (("q", 96), ("k", 96), ("v", 96)))
        h = product(builder.add(builder.multiply(q, builder.silu(k)), v), "o", 70, 96)
        weights["w"] = rng.standard_normal((70, 40)).astype(np.float32)
        builder.output(builder.matmul(h, builder.weight("w", (70, 40), "f32")))
    return builder.build(), weights


@pytest.mark.parametrize(("dtype", "group"), [("i8", 0), ("i4", 32)])
def test_products_are_of_integers_and_near_those_of_floats(dtype: str, group: int) -> None:
    module, weights = block(dtype, group)
    executable = rx.compile(module, activations="int8")
    executable.bind(executable.prepare(weights))
    for m in (1, 3, 9):
        x = np.random.default_rng(m).standard_normal((2, m, 64)).astype(np.float32)
        (want,) = rx.evaluate(module, "main", x, weights=weights)
        assert np.abs(executable(x) - want).max() <= 0.03 * np.abs(want).max()
    (section,) = [s for s in executable.report.sections if isinstance(s, QuantizedActivations)]
    assert section.integer == tuple(
        QuantizedProduct((f"{name}.q", f"{name}.s"), 8 if dtype == "i8" else 4, group or k)
        for name, k in (("q", 64), ("k", 64), ("v", 64), ("o", 96))
    )
    assert not section.kept
    assert section.summary() == ["@main: 4 products of int8 activations"]
    assert section.lines()[0] == f"@main: 'q.q+q.s' {section.integer[0].bits} bits, groups of {section.integer[0].group}"


def test_rows_are_quantized_once_for_products_that_share_them() -> None:
    module, _ = block("i4", 32)
    text = rx.compile(module, activations="int8").module_text
    assert text is not None
    assert text.count("relax.quantized_matmul") == 4
    assert text.count('"relax.quantize"') == 2


def test_weights_that_compiling_makes_narrow() -> None:
    builder, rng = rx.Builder(), np.random.default_rng(0)
    with builder.function("main"):
        builder.output(builder.matmul(builder.input("x", ("m", 64)), builder.weight("w", (64, 96), "f32")))
    module, weight = builder.build(), rng.standard_normal((64, 96)).astype(np.float32)
    x = rng.standard_normal((5, 64)).astype(np.float32)
    for weights, tolerance in (("int8", 0.03), ("int4", 0.2)):
        executable = rx.compile(module, weights=weights, activations="int8")
        assert executable.module_text is not None
        assert "relax.quantized_matmul" in executable.module_text
        executable.bind(executable.prepare({"w": weight}))
        assert np.abs(executable(x) - x @ weight).max() <= tolerance * np.abs(x @ weight).max()


def test_results_do_not_depend_on_threads() -> None:
    module, weights = block("i4", 32)
    executable = rx.compile(module, activations="int8")
    executable.bind(executable.prepare(weights))
    x, results = np.random.default_rng(0).standard_normal((2, 40, 64)).astype(np.float32), list[np.ndarray]()
    for threads in (1, 2):
        executable.threads = threads
        results.append(executable(x))
    np.testing.assert_array_equal(*results)


def test_rows_of_zeros() -> None:
    module, weights = block("i8", 0)
    executable = rx.compile(module, activations="int8")
    executable.bind(executable.prepare(weights))
    assert not np.any(executable(np.zeros((2, 2, 64), np.float32)))


def test_what_stays_is_reported_with_the_reason() -> None:
    builder = rx.Builder()
    with builder.function("main"):
        x, q = builder.input("x", (3, 12)), builder.weight("q", (12, 8), "i4")
        wide = builder.dequantize(q, builder.weight("s", (1, 8), "f32"), builder.full((), 0, "i4"))
        builder.output(builder.matmul(x, wide))
    report = rx.compile(builder.build(), activations="int8").report
    (section,) = [s for s in report.sections if isinstance(s, QuantizedActivations)]
    assert section.kept == (KeptProduct(("q", "s"), "its groups of 12 rows are no whole words of 8 integers"),)
    assert section.summary() == ["@main: 0 products of int8 activations; 1 of float ones"]
    assert section.lines() == [f"@main: 'q+s' has float activations: {section.kept[0].reason}"]
    again = QuantizedActivations("main", (QuantizedProduct(("w",), 8, 64),), ())
    assert section.following(again).integer == again.integer


def test_options_that_are_refused() -> None:
    module, _ = block("i8", 0)
    with pytest.raises(rx.RelaxError, match="expected activations as int8 or None, got 'int4'"):
        rx.compile(module, activations="int4")
    with pytest.raises(rx.RelaxError, match="expected activations or a pipeline, which may have relax-quantize-activations"):
        rx.compile(module, pipeline="canonicalize", activations="int8")

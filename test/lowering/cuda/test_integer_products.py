"""Products of quantized weights and quantized activations: integers on tensor cores, scales at their end, as on a CPU."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

import relaxir as rx
from support.emulated_cuda import plans
from support.products_of_parts import ProductOfParts

AMPERE, HOPPER = "cuda:sm_80", "cuda:sm_90a"


def module(rows: int | str, steps: int, columns: int, dtype: str, groups: int = 1) -> rx.Module:
    """A product with integers that have scales and zero points, and a bias behind it."""
    b = rx.Builder()
    with b.function("main"):
        x, q = b.input("x", (rows, steps), dtype), b.weight("q", (steps, columns), "i8")
        scale, zero = b.weight("scale", (groups, columns), "f32"), b.weight("zero", (groups, columns), "i8")
        bias = b.weight("bias", (columns,), "f32")
        b.output(b.add(b.matmul(b.astype(x, "f32"), b.dequantize(q, scale, zero)), bias))
    return b.build()


def weights(steps: int, columns: int, groups: int = 1) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(0)
    q, zero = (rng.integers(-128, 128, shape).astype(np.int8) for shape in ((steps, columns), (groups, columns)))
    scale, bias = rng.random((groups, columns), np.float32) + 0.5, rng.standard_normal(columns, np.float32)
    return {"q": q, "scale": scale, "zero": zero, "bias": bias}


@pytest.mark.parametrize(
    ("rows", "steps", "columns", "dtype", "target", "plan"),
    [
        ("n", 96, 40, "f32", AMPERE, "tile="),
        (70, 144, 72, "bf16", HOPPER, "warpgroups="),
        (1, 256, 37, "f32", HOPPER, "tile=16x"),
        (3, 100, 24, "bf16", AMPERE, "tile=16x"),
    ],
)
def test_integers_are_multiplied_as_they_are(
    rows: int | str, steps: int, columns: int, dtype: str, target: str, plan: str
) -> None:
    """The same as on a CPU, where sums are exact as well: what is rounded is a scale, a product, and the bias that is added."""
    kind = ml_dtypes.bfloat16 if dtype == "bf16" else np.float32
    x = np.random.default_rng(1).standard_normal((rows if isinstance(rows, int) else 19, steps)).astype(kind)
    given, results = weights(steps, columns), list[np.ndarray]()
    for where, device in ((target, "emulated"), ("cpu", "cpu")):
        executable = rx.compile(module(rows, steps, columns, dtype), where, activations="int8", device=device)
        executable.bind(executable.prepare(given))
        results.append(np.asarray(executable(x)))
        if device == "emulated":
            assert any(p.startswith(plan) and " by=s8 " in p for p in plans(executable)), plans(executable)
    np.testing.assert_allclose(results[0], results[1], rtol=4 * 2.0**-24, atol=4 * 2.0**-24 * np.abs(results[1]).max())


@pytest.mark.parametrize("seed", range(100, 106))
def test_products_of_parts_are_added(seed: int) -> None:
    """No pass makes these for a GPU, but a module may have them."""
    case = ProductOfParts.of(seed)
    module, arguments = case.module(32, 4), case.arrays(32, 4, 5 if isinstance(case.rows, str) else case.rows, seed)
    (want,) = rx.evaluate(module, "main", *arguments)
    got = rx.compile(module, (AMPERE, HOPPER)[seed % 2], device="emulated")(*arguments)
    bound = (4e-6 if case.out_dtype == "f32" else 2.0**-8) * np.abs(want.astype(np.float64)).max(initial=0)
    assert np.abs(np.asarray(got).astype(np.float64) - want.astype(np.float64)).max(initial=0) <= bound, case


def test_weights_in_groups_are_multiplied_as_floats() -> None:
    report = rx.compile(module(8, 128, 24, "f32", groups=4), AMPERE, activations="int8").report
    assert "groups of its rows have scales of their own, which kernels of the target multiply as floats" in str(report)

"""Products of up to four rows, whose matrix is read as a stream, on the emulator: numbers, plans, planted bugs."""

from __future__ import annotations

from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

import relaxir as rx
from relaxir.dialect.errors import RelaxError
from relaxir.lowering.cuda.cuda_target import ARCHITECTURES
from relaxir.lowering.cuda.emulator import Finding
from relaxir.lowering.cuda.kernels.matvec.plan import plan_matvec
from relaxir.lowering.cuda.kernels.matvec.shape import MatvecShape
from support.emulated_cuda import kernels, plans, random
from support.launches import Launched
from support.product_functions import ProductFunction

AMPERE, HOPPER = "cuda:sm_80", "cuda:sm_90a"
KINDS = {"bf16": ml_dtypes.bfloat16, "f16": np.float16, "f32": np.float32}


def launched(product: ProductFunction, target: str = AMPERE) -> Launched:
    found = Launched(product.text(), target)
    assert str(found.plan).startswith("columns="), found.plan
    return found


def check(product: ProductFunction, target: str = AMPERE, kernel: Launched | None = None) -> Launched:
    """Sums are off by the rounding of k additions, each by at most half a unit of what the magnitudes come to."""
    p, rng = product, np.random.default_rng(0)
    batch = (p.batch,) if p.batch else ()
    a, b = ((rng.standard_normal((*batch, n, p.k)) + 1).astype(KINDS[p.element]) for n in (p.m, p.n))
    kernel = kernel or launched(product, target)
    result = kernel([a, b], (*batch, p.m, p.n), np.float32)
    wide, other = a.astype(np.float64), np.swapaxes(b.astype(np.float64), -1, -2)
    assert (abs(result - wide @ other) <= p.k * 2.0**-24 * (abs(wide) @ abs(other))).all()
    return kernel


@pytest.mark.parametrize(
    ("product", "target"),
    [
        (ProductFunction(1, 35, 1000), HOPPER),
        (ProductFunction(4, 16, 520, "f16"), AMPERE),
        (ProductFunction(3, 9, 264, "f32"), AMPERE),
        (ProductFunction(2, 6, 99), AMPERE),
        (ProductFunction(2, 18, 256, batch=3), AMPERE),
        (ProductFunction(2, 37, 128, dynamic_columns=True), AMPERE),
    ],
    ids=["cut-off", "f16", "f32", "odd", "batch", "columns-of-run-time"],
)
def test_sums(product: ProductFunction, target: str) -> None:
    check(product, target)


@pytest.mark.parametrize(
    "plan",
    ["columns=8 warps=1x1 steps=8 loads=1", "columns=1 warps=3x5 steps=4 loads=3", "columns=2 warps=1x8 steps=2 loads=1"],
)
def test_plans(plan: str) -> None:
    assert str(check(ProductFunction(2, 21, 1352, plan=plan)).plan) == plan


def test_sums_go_on_from_what_is_there() -> None:
    kernel = launched(ProductFunction(1, 5, 64, filled=False))
    a, b, start = (np.ones(shape, np.float32) for shape in ((1, 64), (5, 64), (1, 5)))
    inputs = [x.astype(ml_dtypes.bfloat16) for x in (a, b)]
    assert (kernel(inputs, (1, 5), np.float32, start) == 65).all()


@pytest.mark.parametrize(
    ("weights", "group", "rows", "steps", "dtype", "target"),
    [
        ("int4", 32, 1, 1088, "bf16", HOPPER),
        ("int4", 0, 3, 96, "f32", AMPERE),
        ("int8", 0, 2, 520, "bf16", AMPERE),
        ("int8", 64, 4, 192, "f16", AMPERE),
        ("int8", 0, 1, 99, "bf16", AMPERE),  # no whole words: numbers are converted one by one
    ],
)
def test_small_integers(weights: str, group: int, rows: int, steps: int, dtype: str, target: str) -> None:
    """As the sums that integers and scales stand for, to f32's rounding; scales, and groups, round once more each."""
    kind, rng, columns = KINDS[dtype], np.random.default_rng(1), 37

    def module(count: int) -> rx.Module:
        b = rx.Builder()
        with b.function("main"):
            x, w = b.input("x", (count, steps), dtype), b.weight("w", (columns, steps), dtype)
            b.output(b.matmul(x, b.permute_dims(w, axes=[1, 0]), out_dtype="f32"))
        return b.build().run(f"relax-quantize-weights{{bits={weights[3:]} group={group}}}")

    w, x = rng.standard_normal((columns, steps)).astype(kind), (rng.standard_normal((rows, steps)) + 1).astype(kind)
    executable = rx.compile(module(rows), target, device="emulated")
    executable.bind(executable.prepare({"w": w}))
    assert any(p.startswith("columns=") for p in plans(executable)), plans(executable)
    (stands_for,) = rx.evaluate(module(steps), "main", np.eye(steps).astype(kind), weights={"w": w})
    wide, other = x.astype(np.float64), stands_for.astype(np.float64)
    bound = (steps + steps // (group or steps) + 2) * 2.0**-24 * (abs(wide) @ abs(other))
    assert (abs(np.asarray(executable(x)) - wide @ other) <= bound).all()


def test_weights_lie_along_k_however_the_module_has_them() -> None:
    """One that is there as ``[k, n]`` is packed when weights are prepared, one that is transposed stays as it is."""
    for shape, axes, packed in (((512, 40), None, "pack_weight"), ((40, 512), [1, 0], "reshape")):
        b = rx.Builder()
        with b.function("main"):
            x, w = b.input("x", (1, 512), "bf16"), b.weight("w", shape, "bf16")
            b.output(b.matmul(x, w if axes is None else b.permute_dims(w, axes=axes)))
        executable = rx.compile(b.build(), AMPERE, device="emulated")
        weight, x = random(shape, "bf16"), random((1, 512), "bf16", 1)
        executable.bind(executable.prepare({"w": weight}))
        wide = weight.astype(np.float64)
        want = x.astype(np.float64) @ (wide if axes is None else wide.T)
        # Half a unit of bf16's eighth bit, and the rounding of 512 additions.
        assert (abs(np.asarray(executable(x)).astype(np.float64) - want) <= 2.0**-8 * abs(want) + 1e-2).all()
        assert plans(executable)[0].startswith("columns=")
        assert packed in str(executable.report)


@pytest.mark.parametrize(
    ("plan", "message"),
    [
        ("columns=4 warps=2x2 steps=8", "expected a plan with loads, got 'columns=4 warps=2x2 steps=8'"),
        ("columns=4 warps=2 steps=8 loads=1", "expected warps along columns and k, such as warps=2x2, got 'warps=2'"),
        ("columns=4 warps=8x8 steps=8 loads=1", "expected at most 32 warps, got 64"),
        ("columns=16 warps=1x1 steps=8 loads=1", "expected at most 8 columns of a warp, got 16"),
        ("columns=4 warps=1x1 steps=16 loads=1", "expected steps to divide 8, got 16"),
    ],
)
def test_a_plan_that_does_not_fit(plan: str, message: str) -> None:
    with pytest.raises(RelaxError, match=message):
        Launched(ProductFunction(1, 72, 512, plan=plan).text(), AMPERE)


def test_a_plan_of_tiles_is_followed() -> None:
    plan = "tile=16x16x64 warps=1x1x4 stages=8 by=bf16 copies=16:16 raster=8 store=8"
    assert str(Launched(ProductFunction(1, 72, 512, plan=plan).text(), AMPERE).plan) == plan


def test_how_products_are_shared() -> None:
    def plan(columns: int, depth: int, steps: int = 8) -> str:
        return str(plan_matvec(MatvecShape(1, columns, depth, 1, steps, 1, 16, None), ARCHITECTURES["sm_90a"]))

    assert plan(11008, 4096) == "columns=4 warps=4x1 steps=8 loads=2"
    assert plan(4096, 4096) == "columns=4 warps=1x4 steps=8 loads=2"
    assert plan(512, 4096) == "columns=2 warps=1x8 steps=8 loads=2"
    assert plan(64, 64) == "columns=1 warps=4x1 steps=8 loads=1"


@pytest.mark.parametrize(
    ("pattern", "replacement"),
    [("bar.sync \t0;", ""), (", 16, 31, -1;", ", 8, 31, -1;")],
    ids=["no-barrier", "threads-that-are-not-summed"],
)
def test_a_planted_bug_is_found(pattern: str, replacement: str) -> None:
    product = ProductFunction(1, 20, 512, plan="columns=2 warps=1x4 steps=8 loads=1")
    kernel = launched(product)
    assert pattern in kernel.ptx
    kernel.ptx = kernel.ptx.replace(pattern, replacement)
    with pytest.raises((Finding, AssertionError)):
        check(product, kernel=kernel)


def test_machine_code(tmp_path: Path) -> None:
    b = rx.Builder()
    with b.function("main"):
        x, w = b.input("x", (1, 1024), "bf16"), b.weight("w", (256, 1024), "bf16")
        b.output(b.matmul(x, b.permute_dims(w, axes=[1, 0])))
    (kernel,) = (k for k in kernels(b.build(), tmp_path).values() if k.has("SHFL.BFLY"))
    kernel.check(has=["LDG.E.128"], has_not=["HMMA", "I2F"])

"""Products on tensor cores, on the emulator: numbers as NumPy's at ragged sizes, by plans of every kind, and no finding."""

from __future__ import annotations

from dataclasses import replace

import ml_dtypes
import numpy as np
import pytest

import relaxir as rx
from relaxir.dialect.errors import RelaxError
from relaxir.lowering.cuda.cuda_target import ARCHITECTURES
from relaxir.lowering.cuda.kernels.products.make_plan import plan_product, plan_warpgroups
from relaxir.lowering.cuda.kernels.products.shape import FactorShape, ProductShape
from support.emulated_cuda import agrees, plans, random
from support.launches import Launched
from support.product_functions import ProductFunction

KINDS = {"bf16": ml_dtypes.bfloat16, "f16": np.float16, "f32": np.float32, "i8": np.int8}
AMPERE, HOPPER = "cuda:sm_80", "cuda:sm_90a"


def factor(shape: tuple[int, ...], element: str, seed: int) -> np.ndarray:
    """Numbers of very different sizes, with an offset: what is read from a wrong place shows."""
    rng = np.random.default_rng(seed)
    if element == "i8":
        return rng.integers(-128, 128, shape).astype(np.int8)
    return ((rng.standard_normal(shape) + 3) * rng.choice([0.25, 1, 64], shape)).astype(KINDS[element])


def run(
    product: ProductFunction, target: str, others: tuple[np.ndarray, ...] = ()
) -> tuple[np.ndarray, np.ndarray, np.ndarray, Launched]:
    """What the kernel gives, the exact sums, those of the products' magnitudes, and the kernel."""
    p = product
    batch = (p.batch,) if p.batch else ()
    a, b = factor((*batch, p.m, p.k), p.element, 1), factor((*batch, p.k, p.n), p.element, 2)
    left = a if p.left_along_k else np.swapaxes(a, -1, -2)
    right = np.swapaxes(b, -1, -2) if p.right_along_k else b
    launched = Launched(p.text(), target)
    kind = {"": np.float32 if p.sums == "f32" else np.int32, "bf16": ml_dtypes.bfloat16}[p.result]
    result = launched([left, right, *others], (*batch, p.m, p.n), kind)
    wide = np.int64 if p.element == "i8" else np.float64
    return result, a.astype(wide) @ b.astype(wide), abs(a.astype(wide)) @ abs(b.astype(wide)), launched


def check(product: ProductFunction, target: str) -> Launched:
    """Sums of f32 are off by the rounding of k additions, each by at most half a unit of what the magnitudes come to."""
    result, exact, most, launched = run(product, target)
    if product.element == "i8":
        assert np.array_equal(result, exact)
        return launched
    # tf32 keeps 10 bits of fraction of each factor, others are exact; the emulator cuts off what is behind.
    rounding = 2.0**-9 if product.element == "f32" else 0.0
    assert (abs(result - exact) <= (rounding + product.k * 2.0**-24) * most).all()
    return launched


@pytest.mark.parametrize("right_along_k", [True, False])
@pytest.mark.parametrize(
    "sizes",
    [(1, 8, 8), (17, 40, 24), (70, 72, 200), (33, 35, 37), (130, 16, 2), (5, 264, 328)],
    ids=lambda s: "x".join(map(str, s)),
)
def test_any_sizes(sizes: tuple[int, int, int], right_along_k: bool) -> None:
    check(ProductFunction(*sizes, right_along_k=right_along_k), AMPERE)


@pytest.mark.parametrize("element", ["f16", "i8", "f32"])
@pytest.mark.parametrize("right_along_k", [True, False])
def test_other_elements(element: str, right_along_k: bool) -> None:
    target = "cuda:sm_86+tf32" if element == "f32" else "cuda:sm_86"
    product = ProductFunction(50, 48, 80, element, right_along_k=right_along_k)
    assert f" by={ {'i8': 's8', 'f32': 'tf32'}.get(element, element) } " in str(check(product, target).plan)


@pytest.mark.parametrize("target", [AMPERE, HOPPER])
@pytest.mark.parametrize("right_along_k", [True, False])
@pytest.mark.parametrize("sizes", [(50, 48, 80), (7, 35, 37), (130, 70, 16)], ids=lambda s: "x".join(map(str, s)))
def test_f32_is_not_rounded_without_leave(sizes: tuple[int, int, int], right_along_k: bool, target: str) -> None:
    result, exact, most, launched = run(ProductFunction(*sizes, "f32", right_along_k=right_along_k), target)
    assert " by=fma " in str(launched.plan)
    assert (abs(result - exact) <= sizes[2] * 2.0**-24 * most).all()


@pytest.mark.parametrize(
    "product",
    [
        ProductFunction(50, 48, 80, batch=3),
        ProductFunction(50, 48, 80, batch=2, left_along_k=False, right_along_k=False),
        ProductFunction(50, 48, 80, dynamic=True),
        ProductFunction(64, 48, 80, left_along_k=False),
        ProductFunction(34, 48, 83, left_along_k=False, right_along_k=False),
    ],
    ids=["batch", "batch-turned", "dynamic", "left-turned", "left-turned-narrow"],
)
def test_factors_in_any_order(product: ProductFunction) -> None:
    check(product, AMPERE)


@pytest.mark.parametrize(
    "plan",
    [
        "tile=128x128x32 warps=2x2 stages=4 by=bf16 copies=16:16 raster=8 store=8",
        "tile=128x256x32 warps=2x4 stages=3 by=bf16 copies=16:16 raster=2 store=8",
        "tile=64x64x64 warps=2x2 stages=2 by=bf16 copies=8:4 raster=1 store=2",
        "tile=64x32x64 warps=2x2x2 stages=3 by=bf16 copies=4:0 raster=1 store=1",
        "tile=64x64x16 warps=2x2 stages=3 by=bf16 copies=0:16 raster=3 store=4",
        "tile=16x32x64 warps=1x1x4 stages=8 by=bf16 copies=16:16 raster=1 store=8",
        "tile=32x16x16 warps=1x1 stages=5 by=bf16 copies=16:0 raster=8 store=8",
    ],
)
@pytest.mark.parametrize("k", [16, 200], ids=["fewer-stages-than-places", "places-reused"])
def test_plans(plan: str, k: int) -> None:
    for right_along_k in (True, False):
        product = ProductFunction(136, 152, k, right_along_k=right_along_k, plan=plan)
        assert str(check(product, AMPERE).plan) == plan


BODY = """%h = arith.extf %g1 : bf16 to f32
            %b0 = arith.addf %p, %g0 : f32
            %q0 = arith.maximumf %b0, %zero : f32
            %s = arith.addf %q0, %h : f32
            %r = arith.truncf %s : f32 to bf16"""


@pytest.mark.parametrize("n", [72, 35])
@pytest.mark.parametrize("target", [AMPERE, HOPPER])
def test_bias_activation_and_residual_are_computed_with_the_product(n: int, target: str) -> None:
    others = ((f"memref<{n}xf32>", "d1"), (f"memref<70x{n}xbf16>", "d0, d1"))
    product = ProductFunction(70, n, 64, body=BODY, result="bf16", others=others)
    bias, residual = factor((n,), "f32", 3), factor((70, n), "bf16", 4)
    result, sums, most, launched = run(product, target, (bias, residual))
    want = np.maximum(sums + bias, 0) + residual.astype(np.float64)
    # Half a unit of bf16, and the rounding of 66 additions before it.
    rounding = 2.0**-8 * abs(want) + 66 * 2.0**-24 * (most + abs(bias) + abs(residual.astype(np.float64)))
    assert (abs(result.astype(np.float64) - want) <= 1.01 * rounding).all()
    assert launched.ptx.count(".entry") == 1


@pytest.mark.parametrize("target", [AMPERE, HOPPER])
def test_a_gate_is_computed_with_the_second_product(target: str) -> None:
    """``silu(x @ gate) * (x @ up)`` is two kernels: the second one reads what the first one made."""
    b = rx.Builder()
    with b.function("main"):
        x = b.input("x", ("n", 64), "bf16")
        gate, up = (b.matmul(x, b.input(name, (64, 40), "bf16")) for name in ("gate", "up"))
        b.output(b.multiply(b.silu(gate), up))
    inputs = [random(shape, "bf16", i) for i, shape in enumerate([(70, 64), (64, 40), (64, 40)])]
    found = plans(agrees(b.build(), *inputs, target=target))
    assert len(found) == 2
    assert all("by=bf16" in plan for plan in found)


def test_sums_go_on_from_what_is_there() -> None:
    product = ProductFunction(20, 24, 32, filled=False)
    a, b, start = factor((20, 32), "bf16", 1), factor((24, 32), "bf16", 2), factor((20, 24), "f32", 3)
    result = Launched(product.text(), AMPERE)([a, b], (20, 24), np.float32, start)
    want = a.astype(np.float64) @ b.astype(np.float64).T + start
    most = abs(a.astype(np.float64)) @ abs(b.astype(np.float64)).T + abs(start)
    assert (abs(result - want) <= 33 * 2.0**-24 * most).all()


@pytest.mark.parametrize(
    "product",
    [
        ProductFunction(200, 264, 200),
        ProductFunction(200, 264, 200, right_along_k=False),
        ProductFunction(70, 72, 48, "f16", batch=2),
        ProductFunction(70, 72, 136, "f32"),
        ProductFunction(70, 72, 272, "i8"),
        ProductFunction(70, 72, 136, dynamic=True),
    ],
    ids=["bf16", "bf16-turned", "f16-batch", "tf32", "s8", "dynamic"],
)
def test_warpgroups(product: ProductFunction) -> None:
    launched = check(product, HOPPER + ("+tf32" if product.element == "f32" else ""))
    assert str(launched.plan).startswith("warpgroups=")
    assert "wgmma.mma_async" in launched.ptx
    assert "cp.async.bulk.tensor.3d" in launched.ptx if product.batch else "cp.async.bulk.tensor.2d" in launched.ptx


@pytest.mark.parametrize(
    "plan",
    [
        "warpgroups=2 tile=128x256x64 stages=4 by=bf16 raster=8 store=8 blocks=1",
        "warpgroups=2 tile=128x64x64 stages=2 by=bf16 raster=1 store=4 blocks=3",
        "warpgroups=1 tile=64x128x64 stages=3 by=bf16 raster=2 store=1 blocks=2",
    ],
)
def test_plans_of_warpgroups(plan: str) -> None:
    for k in (64, 328):  # one stage; more than there are places
        for right_along_k in (True, False):
            product = ProductFunction(200, 136, k, right_along_k=right_along_k, plan=plan)
            assert str(check(product, HOPPER).plan) == plan


def test_what_tiles_cannot_be_of_is_computed_by_warps() -> None:
    launched = check(ProductFunction(70, 72, 100), HOPPER)
    assert str(launched.plan).startswith("tile=")


@pytest.mark.parametrize(
    ("plan", "message"),
    [
        ("tile=128x128x32", "expected a plan with warps, got 'tile=128x128x32'"),
        ("tile=96x64x32 warps=2x2 stages=4 by=bf16 copies=16:16 raster=8 store=8", "whose rows are a power of two, got 96"),
        (
            "tile=64x16x32 warps=2x2 stages=4 by=bf16 copies=16:16 raster=8 store=8",
            "16 rows and columns for each warp, got 32 and 8",
        ),
        ("tile=64x64x128 warps=2x2 stages=4 by=bf16 copies=16:16 raster=8 store=8", "stages of 32 to 128 bytes of k, got 256"),
        ("tile=64x64x32 warps=2x2 stages=1 by=bf16 copies=16:16 raster=8 store=8", "expected 2 stages or more, got 1"),
        ("tile=64x64x32 warps=2x2 stages=4 by=f16 copies=16:16 raster=8 store=8", "expected by=bf16, got by=f16"),
        ("tile=64x64x32 warps=2x2 stages=4 by=bf16 copies=16:16 raster=8 store=16", "expected store to divide 8, got 16"),
        (
            "tile=256x256x64 warps=2x4 stages=8 by=bf16 copies=16:16 raster=8 store=8",
            "166912 bytes of shared memory, got 524288",
        ),
        ("tile=64x64x32 warps=2 stages=4 by=bf16 copies=16:16 raster=8 store=8", "expected warps along rows, columns"),
        ("tile=64x64x32 warps=2x2 stages=4 by=bf16 copies=16:2 raster=8 store=8", "expected bytes of the left and the right"),
        ("warpgroups=1 tile=64x64x64 stages=4 by=bf16 raster=8 store=8 blocks=1", "expected a plan of warps for this product"),
        (
            "tile=64x64x32 warps=2x2 stages=4 by=bf16 copies=16:16 raster=8 store=8 split=3",
            "expected split to cut 64 steps of k into at most 16 parts, got 3",
        ),
    ],
)
def test_a_plan_that_does_not_fit(plan: str, message: str) -> None:
    with pytest.raises(RelaxError, match=message):
        Launched(ProductFunction(70, 72, 64, plan=plan).text(), AMPERE)


def test_copies_wider_than_rows_allow() -> None:
    plan = "tile=64x64x32 warps=2x2 stages=4 by=bf16 copies=16:16 raster=8 store=8"
    with pytest.raises(RelaxError, match="copies of at most 8 bytes of the left factor, got 16"):
        Launched(ProductFunction(70, 72, 68, plan=plan).text(), AMPERE)


@pytest.mark.parametrize(
    ("plan", "message"),
    [
        ("warpgroups=3 tile=192x64x64 stages=4 by=bf16 raster=8 store=8 blocks=1", "expected 1 or 2 warpgroups, got 3"),
        (
            "warpgroups=1 tile=128x64x64 stages=4 by=bf16 raster=8 store=8 blocks=1",
            "64 rows and 64, 128 or 256 columns, got 128 and 64",
        ),
        ("warpgroups=1 tile=64x64x32 stages=4 by=bf16 raster=8 store=8 blocks=1", "stages of 128 bytes of k, got 64"),
        ("warpgroups=2 tile=128x256x64 stages=5 by=bf16 raster=8 store=8 blocks=1", "232448 bytes of shared memory, got"),
        ("warpgroups=2 tile=128x256x64 stages=1 by=bf16 raster=8 store=8 blocks=1", "expected 2 stages or more, got 1"),
        ("warpgroups=2 tile=128x256x64 stages=4 by=f16 raster=8 store=8 blocks=1", "expected by=bf16, got by=f16"),
        ("warpgroups=2 tile=128x256x64 stages=4 by=bf16 raster=8 store=3 blocks=1", "expected store to divide 8, got 3"),
    ],
)
def test_a_plan_of_warpgroups_that_does_not_fit(plan: str, message: str) -> None:
    with pytest.raises(RelaxError, match=message):
        Launched(ProductFunction(70, 72, 64, plan=plan).text(), HOPPER)


@pytest.mark.parametrize(
    ("product", "plan", "target"),
    [
        (
            ProductFunction(20, 24, 512, dynamic=True),
            "tile=32x32x32 warps=1x2 stages=3 by=bf16 copies=16:16 raster=8 store=8 split=4",
            AMPERE,
        ),
        (
            ProductFunction(17, 35, 192, "i8", right_along_k=False),
            "tile=32x32x32 warps=1x2 stages=2 by=s8 copies=16:0 raster=8 store=1 split=3",
            AMPERE,
        ),
        (
            ProductFunction(70, 72, 256, batch=2, right_along_k=False),
            "warpgroups=1 tile=64x64x64 stages=2 by=bf16 raster=8 store=8 blocks=2 split=2",
            HOPPER,
        ),
    ],
    ids=["rows-of-run-time", "integers", "warpgroups"],
)
def test_parts_of_k(product: ProductFunction, plan: str, target: str) -> None:
    launched = check(replace(product, plan=plan), target)
    assert str(launched.plan) == plan
    assert launched.ptx.count(".entry") == 2


def test_parts_of_k_are_added_up_with_what_follows() -> None:
    others = ((f"memref<{24}xf32>", "d1"), (f"memref<20x{24}xbf16>", "d0, d1"))
    plan = "tile=32x32x32 warps=1x2 stages=3 by=bf16 copies=16:16 raster=8 store=8 split=4"
    product = ProductFunction(20, 24, 256, body=BODY, result="bf16", others=others, plan=plan)
    bias, residual = factor((24,), "f32", 3), factor((20, 24), "bf16", 4)
    result, sums, most, launched = run(product, AMPERE, (bias, residual))
    want = np.maximum(sums + bias, 0) + residual.astype(np.float64)
    # Half a unit of bf16, and the rounding of 258 additions before it.
    rounding = 2.0**-8 * abs(want) + 258 * 2.0**-24 * (most + abs(bias) + abs(residual.astype(np.float64)))
    assert (abs(result.astype(np.float64) - want) <= 1.01 * rounding).all()
    assert launched.ptx.count(".entry") == 2


def test_parts_of_k_in_a_module() -> None:
    b = rx.Builder()
    with b.function("main"):
        x, w = b.input("x", (20, 8192), "bf16"), b.weight("w", (24, 8192), "bf16")
        b.output(b.relu(b.matmul(x, b.permute_dims(w, axes=[1, 0]), out_dtype="f32")))
    executable = rx.compile(b.build(), AMPERE, device="emulated")
    given, weight = factor((20, 8192), "bf16", 1), factor((24, 8192), "bf16", 2)
    executable.bind(executable.prepare({"w": weight}))
    assert " split=16" in plans(executable)[0]
    exact, most = (f(given.astype(np.float64)) @ f(weight.astype(np.float64)).T for f in (np.asarray, np.abs))
    assert (abs(np.asarray(executable(given)) - np.maximum(exact, 0)) <= 8192 * 2.0**-24 * most).all()


def test_a_part_that_is_not_added_is_found() -> None:
    plan = "tile=32x32x32 warps=1x2 stages=3 by=bf16 copies=16:16 raster=8 store=8 split=4"
    product = ProductFunction(20, 24, 512, plan=plan)
    launched = Launched(product.text(), AMPERE)
    at = launched.ptx.rindex("add.rn.f32")
    end = launched.ptx.index(";", at)
    target, first, _ = launched.ptx[at + len("add.rn.f32") : end].split(",")
    launched.ptx = f"{launched.ptx[:at]}mov.b32 {target.strip()}, {first.strip()}{launched.ptx[end:]}"
    a, b = factor((20, 512), "bf16", 1), factor((24, 512), "bf16", 2)
    result = launched([a, b], (20, 24), np.float32)
    exact, most = (f(a.astype(np.float64)) @ f(b.astype(np.float64)).T for f in (np.asarray, np.abs))
    assert (abs(result - exact) > 512 * 2.0**-24 * most).any()


def test_k_is_cut_where_tiles_are_few() -> None:
    def parts(rows: int | None, columns: int, depth: int, architecture: str) -> int:
        shape = ProductShape(rows, columns, depth, 1, "bf16", *[FactorShape(True, 16)] * 2, 8, is_mapped=True, splits=True)
        chosen = ARCHITECTURES[architecture]
        return (plan_warpgroups(shape, chosen) or plan_product(shape, chosen)).split

    for name in ("sm_80", "sm_90a"):
        assert parts(64, 128, 65536, name) == 16
        assert parts(4096, 4096, 4096, name) == 1
        assert parts(64, 128, 256, name) == 1
        assert parts(None, 128, 65536, name) == 1

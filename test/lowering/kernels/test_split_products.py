"""Products of f32 as products of bf16 by tile registers (Intel AMX): results on any machine, by emulation, in small blocks."""

from __future__ import annotations

import re
from collections.abc import Generator
from dataclasses import replace

import ml_dtypes
import numpy as np
import pytest

import relaxir as rx
from relaxir.dialect.errors import RelaxError
from relaxir.lowering.cpu.codegen import assembly
from relaxir.lowering.cpu.kernels.contraction.check_plan import check_plan
from relaxir.lowering.cpu.kernels.contraction.contraction_plan import parse_plan
from relaxir.lowering.cpu.kernels.contraction.plan import plan_contraction
from relaxir.lowering.cpu.kernels.contraction.shape import BufferShape, ContractionShape, GroupShape
from relaxir.lowering.target import Target
from support.emulation import compile_for, generated
from support.integer_products import Case, module_of
from support.narrow_products import WEIGHTS, Weight, build, check
from support.small_parts import small_splits
from support.stages import lowered

NAME = "sapphirerapids"
TARGET = Target.parse(f"cpu:{NAME}")
#: Rows, steps of k and columns: around those of registers, blocks and panels.
SIZES = [
    (8, 16, 32),
    (15, 31, 33),
    (16, 32, 64),
    (17, 33, 70),
    (33, 64, 96),
    (48, 65, 97),
    (64, 96, 130),
    (65, 128, 192),
    (100, 129, 65),
    (129, 200, 127),
]


@pytest.fixture
def small() -> Generator[None]:
    with small_splits():
        yield


def product(rows: int | str, depth: int, columns: int) -> rx.Module:
    builder = rx.Builder()
    with builder.function("main"):
        x, w = builder.input("x", (rows, depth), "f32"), builder.weight("w", (depth, columns), "f32")
        builder.output(builder.relu(builder.add(builder.matmul(x, w), builder.weight("b", (columns,), "f32"))))
    return builder.build()


def plans(module: rx.Module) -> list[str]:
    text = str(lowered(module, TARGET, None, upto="relax-plan-loops"))
    return re.findall(r'relax\.plan = "([^"]*)"', text)


def weights_of(depth: int, columns: int) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(depth)
    return {name: rng.standard_normal(shape).astype(np.float32) for name, shape in (("w", (depth, columns)), ("b", columns))}


def same(executable: rx.Executable, x: np.ndarray, weights: dict[str, np.ndarray]) -> None:
    """What f64 says: sums of one f32 after the other would be this near, too."""
    wide = {name: array.astype(np.float64) for name, array in weights.items()}
    want = np.maximum(x.astype(np.float64) @ wide["w"] + wide["b"], 0)
    np.testing.assert_allclose(executable(x), want, rtol=0, atol=1e-6 * np.abs(want).max(initial=0))


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("checked", [False, True])
@pytest.mark.parametrize("sizes", SIZES)
def test_sizes(sizes: tuple[int, int, int], checked: bool) -> None:
    rows, depth, columns = sizes
    module, weights = product(*sizes), weights_of(depth, columns)
    assert any("split=3x3" in plan for plan in plans(module))
    executable = compile_for(module, NAME, checked=checked)
    executable.bind(executable.prepare(weights))
    same(executable, np.random.default_rng(rows).standard_normal((rows, depth)).astype(np.float32), weights)


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize(("depth", "columns"), [(96, 70), (64, 200), (130, 64)])
def test_any_number_of_rows(depth: int, columns: int) -> None:
    executable, weights = compile_for(product("m", depth, columns), NAME), weights_of(depth, columns)
    executable.bind(executable.prepare(weights))
    for rows in (0, 1, 7, 8, 16, 31, 33, 48, 49, 63, 64, 65, 113, 128, 200):
        same(executable, np.random.default_rng(rows).standard_normal((rows, depth)).astype(np.float32), weights)


#: Rows, steps of k and columns of kernels that become one, around blocks, and whole registers of k.
ALIKE = {
    "small": [(64, 96, 128), (65, 320, 96), (113, 64, 224), (129, 160, 64), (200, 128, 320)],
    "large": [(64, 192, 96), (129, 544, 576), (1025, 512, 128), (197, 768, 192)],
}


@pytest.mark.parametrize(("name", "threads"), [("small", 1), ("small", 2), ("large", 2)])
def test_kernels_of_any_size(name: str, threads: int, request: pytest.FixtureRequest) -> None:
    """One code for products that differ in sizes."""
    if name == "small":
        request.getfixturevalue("small")
    builder, rng, sizes = rx.Builder(), np.random.default_rng(9), ALIKE[name]
    weights = {f"w{i}": rng.standard_normal((k, n)).astype(np.float32) for i, (_, k, n) in enumerate(sizes)}
    with builder.function("main"):
        xs = [builder.input(f"x{i}", (m, k), "f32") for i, (m, k, _) in enumerate(sizes)]
        ws = [builder.weight(name, w.shape, "f32") for name, w in weights.items()]
        builder.output(*(builder.relu(builder.matmul(x, w)) for x, w in zip(xs, ws, strict=True)))
    module = builder.build()
    text = str(lowered(module, TARGET, None))
    assert len(re.findall(r"llvm.func [^\n]*@[\w.]+\([^{]*\{(?:(?!llvm.func).)*tdpbf16ps", text, re.S)) == 1
    executable, inputs = compile_for(module, NAME), [rng.standard_normal((m, k)).astype(np.float32) for m, k, _ in sizes]
    executable.bind(executable.prepare(weights))
    executable.threads = threads
    for x, w, y in zip(inputs, weights.values(), executable(*inputs), strict=True):
        want = np.maximum(x.astype(np.float64) @ w, 0)
        np.testing.assert_allclose(y, want, rtol=0, atol=1e-6 * want.max())


@pytest.mark.parametrize(
    ("weight", "parts"),
    [
        (Weight("i4", 300, 512, 32), "3x1"),
        (Weight("ui4", 272, 512, 64, zeros=True), "3x1"),
        (Weight("i4", 256, 512), "3x1"),
        (Weight("ui6", 256, 512, 32), "3x3"),
        (Weight("i4", 256, 480, 48), "3x3"),
        (Weight("ui4", 256, 512, 32, low=True), "3x3"),
        (Weight("ui4", 256, 512, 32, codes=True), "3x3"),
        (Weight("f8E4M3FN", 256, 512, 32), "3x3"),
    ],
)
def test_integers_are_one_part_where_their_sums_are_scaled(weight: Weight, parts: str) -> None:
    assert [plan for plan in plans(build(96, [weight])[0]) if f"split={parts}:" in plan]


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("first", range(3))
def test_weights_that_are_computed(first: int) -> None:
    check(40, WEIGHTS[first::3], [40], NAME)
    check("n", WEIGHTS[first::6], [3, 64, 70], NAME)


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("rows", [40, "m"])
def test_weights_that_were_rounded_to_bf16_are_one_part(rows: int | str) -> None:
    module, weights = module_of([Case("i4", rows, 70, 128, 32, activations="bf16")])
    assert [plan for plan in plans(module) if "split=3x1:" in plan]
    executable, rng = compile_for(module, NAME), np.random.default_rng(6)
    executable.bind(executable.prepare(weights["f0"]))
    for count in (3, 8, 65) if rows == "m" else (40,):
        x = rng.standard_normal((count, 128)).astype(ml_dtypes.bfloat16)
        (want,) = rx.evaluate(module, "f0", x, weights=weights["f0"])
        np.testing.assert_allclose(executable(x), want, rtol=2**-7, atol=2**-7)  # the product is rounded to bf16


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("rows", [8, 17, 33, 70, "m"])
def test_sums_of_groups_are_scaled(rows: int | str) -> None:
    """Groups of a register, of several, of all steps, and of more than a block; columns behind the last whole panel."""
    weights = [
        Weight("i4", 70, 192, 32),
        Weight("ui4", 100, 128, 64, zeros=True),
        Weight("i4", 65, 160),
        Weight("ui6", 96, 96, 32),
        Weight("ui4", 33, 256, 128, zeros=True),
        Weight("ui8", 64, 96, 96),
    ]
    check(rows, weights, [3, 8, 31, 64, 97] if rows == "m" else [int(rows)], NAME)


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("rows", [40, "m"])
def test_numbers_without_parts(rows: int | str) -> None:
    """Infinity, and what is none, are where they are without parts; sums of others keep their bits' worth."""
    executable, weights = compile_for(product(rows, 70, 64), NAME), weights_of(70, 64)
    weights["w"][3, 5], weights["w"][69, 6] = np.inf, np.nan
    executable.bind(executable.prepare(weights))
    x = np.random.default_rng(2).standard_normal((40, 70)).astype(np.float32)
    x[2, 0], x[17, 69], x[33, 4], x[39, 3], x[8, 1] = np.inf, -np.inf, np.nan, 0, 3e38
    with np.errstate(all="ignore"):
        want = np.maximum(x @ weights["w"] + weights["b"], 0)
    np.testing.assert_allclose(executable(x), want, rtol=1e-5, atol=1e-5)


@pytest.mark.usefixtures("small")
def test_products_of_two_inputs() -> None:
    """A right factor that lies as it is, in a batch, and is cut off behind the last whole panel."""
    builder = rx.Builder()
    with builder.function("main"):
        x, y = builder.input("x", (2, "m", 70), "f32"), builder.input("y", (2, 70, 101), "f32")
        builder.output(builder.matmul(x, y))
    executable, rng = compile_for(builder.build(), NAME), np.random.default_rng(4)
    y = rng.standard_normal((2, 70, 101)).astype(np.float32)
    for rows in (3, 40, 65):
        x = rng.standard_normal((2, rows, 70)).astype(np.float32)
        want = x.astype(np.float64) @ y
        np.testing.assert_allclose(executable(x, y), want, rtol=0, atol=1e-6 * np.abs(want).max())


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("rows", ["m", 65])
def test_any_number_of_columns(rows: int | str) -> None:
    builder = rx.Builder()
    with builder.function("main"):
        x, y = builder.input("x", (rows, 64), "f32"), builder.input("y", (64, "n"), "f32")
        builder.output(builder.matmul(x, y))
    module = builder.build()
    assert any("split=3x3" in plan for plan in plans(module))
    executable, rng = compile_for(module, NAME), np.random.default_rng(4)
    for number, columns in [(65, 0), (65, 1), (65, 31), (65, 32), (65, 97), (65, 200), (0, 40), (0, 0), (200, 700)]:
        if rows in ("m", number):
            x, y = (rng.standard_normal(shape).astype(np.float32) for shape in ((number, 64), (64, columns)))
            want = x.astype(np.float64) @ y
            np.testing.assert_allclose(executable(x, y), want, rtol=0, atol=1e-6 * np.abs(want).max(initial=0))


def test_sums_are_as_near_as_those_of_multiply_adds() -> None:
    module, weights = product(96, 2048, 256), weights_of(2048, 256)
    x = np.random.default_rng(5).standard_normal((96, 2048)).astype(np.float32)
    want = np.maximum(x.astype(np.float64) @ weights["w"] + weights["b"], 0)
    errors = []
    for name in (NAME, "x86-64-v4"):
        executable = compile_for(module, name)
        executable.bind(executable.prepare(weights))
        errors.append(np.linalg.norm(executable(x) - want))
    assert errors[0] < errors[1]


def test_a_step_has_six_products_of_each_register() -> None:
    """Two registers of sums, and five in all; a part stays in its register for the next product where it can."""
    text = assembly(generated(product(96, 384, 192), NAME), TARGET)
    kinds = re.findall(r"^\t(tileloadd|tdpbf16ps|tilestored)", text, re.M)
    assert kinds.count("tdpbf16ps") % 12 == 0
    loops = kinds.count("tdpbf16ps") // 12
    assert kinds.count("tileloadd") == loops * (10 + 2)
    assert kinds.count("tilestored") == loops * 2
    assert len(set(re.findall(r"%tmm\d", text))) == 5


PANEL = BufferShape(32, 32, panels=(32,))
SHAPE = ContractionShape(64, 256, 512, buffers=(PANEL,))


@pytest.mark.parametrize(
    ("rows", "columns", "depth", "split"),
    [
        (63, 256, 512, None),
        (64, 256, 512, "3x3:128x512x512:63:8:always"),
        (197, 768, 768, "3x3:128x512x512:63:8:always"),
        (128, 768, 3072, "3x3:128x512x512:63:8:always"),
        (None, 768, 768, "3x3:128x512x512:63:8"),
        (3000, 4096, 1030, "3x3:128x512x512:63:8:always"),
        (64, 64, 512, None),
        (64, 256, 191, None),
    ],
)
def test_blocks(rows: int | None, columns: int, depth: int, split: str | None) -> None:
    found = plan_contraction(replace(SHAPE, rows=rows, columns=columns, depth=depth), TARGET).split
    assert str(found) == str(split)


@pytest.mark.parametrize(("size", "depth"), [(32, 512), (48, 480), (128, 512), (1024, 512), (768, 384), (1000, None)])
def test_blocks_keep_groups(size: int, depth: int | None) -> None:
    shape = replace(SHAPE, rows=128, depth=6 * size * 64, group=GroupShape(size, 3))
    found = plan_contraction(shape, TARGET)
    check_plan(found, shape, TARGET)
    assert (
        ((found.split and found.split.blocks.depth % size == 0) or size % found.split.blocks.depth == 0)
        if depth
        else not found.split
    )


@pytest.mark.parametrize(
    ("shape", "split", "message"),
    [
        (SHAPE, "3x2:64x256x512:63", "a split in 3x3 parts"),
        (replace(SHAPE, group=GroupShape(32, 3, is_short=True)), "3x3:128x512x512:63:8:always", "a split in 3x1 parts"),
        (replace(SHAPE, is_bf16=True), "3x3:128x512x512:63:8:always", "a split in 3x1 parts"),
        (SHAPE, "3x3:40x256x512:63", "blocks of whole registers and groups"),
        (SHAPE, "3x3:64x256x500:63", "blocks of whole registers and groups"),
        (SHAPE, "3x3:64x250x512:63", "blocks of whole registers and groups"),
        (replace(SHAPE, group=GroupShape(96, 3)), "3x3:128x512x512:63:8:always", "blocks of whole registers and groups"),
        (SHAPE, "3x3:512x512x512:63", "blocks of at most 1572864 bytes"),
        (replace(SHAPE, rows=63), "3x3:128x512x512:63:8:always", "a split for more rows than these"),
        (replace(SHAPE, depth=None), "3x3:128x512x512:63:8:always", "no split, as tile registers multiply no such factors"),
        (replace(SHAPE, outer=(3,)), "3x3:128x512x512:63:8:always", "no split, as tile registers multiply no such factors"),
        (replace(SHAPE, element="f64"), "3x3:128x512x512:63:8:always", "no split, as tile registers multiply no such factors"),
    ],
)
def test_plans_that_do_not_fit(shape: ContractionShape, split: str, message: str) -> None:
    good = plan_contraction(shape, TARGET)
    check_plan(good, shape, TARGET)
    plan = replace(good, split=parse_plan(f"tile=8x2x16 sums=fma accumulators=8 unroll=4 split={split}").split)
    with pytest.raises(RelaxError, match=message):
        check_plan(plan, shape, TARGET)

"""Kernels of Winograd's filtering: plans and edited ones, marks that do not fit, and loops that mean the same."""

from __future__ import annotations

import functools
import random as chance
import re
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

import relaxir as rx
from relaxir.dialect.bindings import ir
from relaxir.dialect.context import new_context
from relaxir.dialect.errors import RelaxError
from relaxir.lowering.cpu.kernels.contraction.shape import BufferShape, ContractionShape
from relaxir.lowering.cpu.kernels.contraction.tuning import tuning_of
from relaxir.lowering.cpu.kernels.winograd.plan import WinogradPlan, _make, _parsed
from relaxir.lowering.lower import lower
from relaxir.runtime.executable import Executable
from support.stages import elements, executable_of, lowered, target_named

ZEN4 = replace(target_named("cpu:znver4"), openmp=True)


def planned(images: int | None, tiles: tuple[int | None, int | None], channels: int, filters: int) -> WinogradPlan:
    down, across = tiles
    panels = BufferShape(32, 32, panels=(32,))
    shape = ContractionShape(across, filters, channels, batch=(4, 4), shared=(images, down), buffers=(panels,))
    return _make(shape, ZEN4, tuning_of(ZEN4))


@pytest.mark.parametrize(
    ("shape", "expected"),
    [
        ((1, (28, 28), 64, 64), "winograd=40x1 tile=8x2x16"),  # so many are in the cache
        ((1, (14, 14), 128, 128), "winograd=28x1 tile=7x2x16"),  # register tiles of seven are all whole
        ((1, (4, 4), 512, 512), "winograd=16x4 tile=8x2x16"),  # one part by four ranges: filters are read once
        ((3, (4, 4), 512, 512), "winograd=32x2 tile=8x2x16"),  # more than the cache has, as filters are read for each
        ((8, (4, 4), 1024, 1024), "winograd=16x1 tile=8x2x16"),  # no more than the stack may have
        ((1, (1, 1), 512, 512), "winograd=8x4 tile=8x2x16"),
        ((1, (4, 8), 16, 32), "winograd=8x1 tile=8x2x16"),  # four parts, as there is one panel
        ((None, (28, 28), 64, 64), "winograd=40x1 tile=8x2x16"),
        ((None, (None, None), 64, 64), "winograd=40x2 tile=8x2x16"),
    ],
)
def test_plans(shape: tuple[int | None, tuple[int | None, int | None], int, int], expected: str) -> None:
    plan = planned(*shape)
    assert str(plan).startswith(f"{expected} sums=fma")
    assert _parsed(str(plan)) == plan


def module_text(sizes: tuple[int, int, int] = (2, 9, 12), channels: int = 20, filters: int = 40) -> str:
    n, h, w = sizes
    x, y = f"tensor<{n}x{h}x{w}x{channels}xf32>", f"tensor<{n}x{h}x{w}x{filters}xf32>"
    packed = f"tensor<{-(-filters // 32)}x{16 * channels}x32xf32>"
    return f"""
func.func @main(%x: {x}, %w: {packed} {{relax.name = "w"}}) -> {y} attributes {{relax.num_input = 1 : i64}} {{
  %0 = "relax.winograd_conv2d"(%x, %w) {{channels = {filters} : i64, layout = "tile 32",
      padding = array<i64: 1, 1, 1, 1>}} : ({x}, {packed}) -> {y}
  %1 = "relax.relu"(%0) : ({y}) -> {y}
  return %1 : {y}
}}"""


@functools.cache
def kernels() -> str:
    """What kernels are made of, as text, with plans."""
    return str(lowered(rx.Module.parse(module_text()), ZEN4, "", upto="relax-plan-loops"))


def built(text: str) -> ir.Operation:
    """The rest of a compilation."""
    with new_context() as context:
        operation = ir.Operation.parse(text, context=context).operation
    names = [e.partition("{")[0] for e in elements()]
    lower(operation, ",".join(elements()[names.index("relax-plan-contractions") :]))
    return operation


def test_the_kernel_has_no_memory_of_its_own() -> None:
    """Neither for sums nor for a frame around the image."""
    module = rx.Module.parse(module_text())
    entry, *others = str(lowered(module, ZEN4, "", upto="relax-lend-memory")).split("func.func @main(")[1].split("func.func")
    assert entry.count("call @kernel") == 1
    assert not any("memref.alloc(" in part for part in [entry, *others])


def given() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    x = rng.standard_normal((2, 9, 12, 20)).astype(np.float32)
    w = rng.standard_normal((2, 320, 32)).astype(np.float32)
    (want,) = rx.evaluate(rx.Module.parse(module_text()), "main", x, weights={"w": w})
    return x, w, want


def called(executable: Executable, x: np.ndarray, w: np.ndarray) -> np.ndarray:
    executable.bind({"w": w})
    return np.asarray(executable(x))


def replan(text: str, plan: str) -> str:
    edited, count = re.subn(r'relax.plan = "winograd=[^"]*"', f'relax.plan = "{plan}"', text)
    assert count == 1
    return edited


def test_edited_plans_that_fit_are_right() -> None:
    rng, (x, w, want) = chance.Random(3), given()
    for _ in range(10):
        rows = rng.choice((1, 2, 5, 8))
        tiles, ranges = rows * rng.choice((1, 2, 7)), rng.choice((1, 2, 3))
        plan = f"winograd={tiles}x{ranges} tile={rows}x2x16 sums=fma accumulators={rng.choice((1, 8))}"
        plan += f" unroll={rng.choice((1, 4))}" + rng.choice(("", " threads=parts"))
        got = called(executable_of(built(replan(kernels(), plan))), x, w)
        np.testing.assert_allclose(got, want, rtol=0, atol=2e-6 * np.abs(want).max(), err_msg=plan)


BASE = "tile=8x2x16 sums=fma accumulators=8 unroll=4"


@pytest.mark.parametrize(
    ("plan", "expected"),
    [
        (BASE, "expected tiles and ranges first, such as winograd=64x1"),
        (f"winograd=64 {BASE}", "expected tiles and ranges first, such as winograd=64x1"),
        (f"winograd=0x1 {BASE}", "expected tiles and ranges first, such as winograd=64x1"),
        (f"winograd=9x1 {BASE}", "expected tiles that are a multiple of 8, up to 56, got 9"),
        (f"winograd=64x1 {BASE}", "expected tiles that are a multiple of 8, up to 56, got 64"),
        (f"winograd=8x1 {BASE} parts=64:1:1", "expected products by tiles of fma alone"),
        (f"winograd=8x1 {BASE} threads=columns", "expected threads that share parts or nothing"),
        ("winograd=8x1 tile=8x1x16 sums=fma accumulators=8 unroll=4", "expected register tiles of 32 columns, got '8x1x16'"),
        ("winograd=8x1 tile=8x2x16 sums=mul accumulators=8 unroll=4", "expected fma, words"),
    ],
)
def test_plans_that_do_not_fit_are_errors_at_the_operation(plan: str, expected: str) -> None:
    with pytest.raises(RelaxError, match=re.escape(expected)) as caught:
        built(replan(kernels(), plan))
    assert caught.value.args[0].startswith("'linalg.generic' op ")
    assert caught.value.location is not None


def _without(mark: str) -> Callable[[str], str]:
    return lambda text: text.replace(f', relax.winograd = "{mark}"', "")


def _swapped(text: str) -> str:
    """Results read lines where columns are."""
    found = re.search(r"\(d4, d5, d0, d1 floordiv 2, d2 floordiv 2, d3\)", text)
    assert found is not None
    return text.replace(found[0], "(d5, d4, d0, d1 floordiv 2, d2 floordiv 2, d3)")


@pytest.mark.parametrize(
    ("edit", "expected"),
    [
        (_without("results"), "expected products and results, as it is marked"),
        (_without("products"), "expected products and results, as it is marked"),
        (_swapped, "expected results of products, as it is marked"),
        (lambda text: text.replace("d4 * 2 + 3, d6)", "d4 * 2 + 2, d6)"), "expected products of tiles and filters"),
        (lambda text: text.replace('relax.layout = "tile 32"', 'relax.layout = "tile 16"'), "expected products of tiles"),
    ],
)
def test_marks_that_do_not_fit_are_errors_at_the_operation(edit: Callable[[str], str], expected: str) -> None:
    text = edit(kernels())
    assert text != kernels()
    with pytest.raises(RelaxError, match=f"'linalg.generic' op {expected}"):
        built(text)


def test_loops_mean_the_same() -> None:
    """Without the marks, the operations are loops over what they say."""
    x, w, want = given()
    text = re.sub(r', relax.winograd = "\w+"|relax.contraction, relax.plan = "winograd=[^"]*"', "", kernels())
    assert "winograd =" not in text
    got = called(executable_of(built(text)), x, w)
    np.testing.assert_allclose(got, want, rtol=0, atol=2e-6 * np.abs(want).max())

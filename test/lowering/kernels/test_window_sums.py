"""Depthwise convolutions: of bytes exact sums on every target by emulation; of floats; layers as one kernel."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pytest

import relaxir as rx
from relaxir.dialect.bindings import func, ir
from relaxir.dialect.dtypes import numpy_dtype
from relaxir.dialect.errors import RelaxError
from relaxir.dialect.functions import functions
from relaxir.lowering.cpu.codegen import assembly
from relaxir.lowering.cpu.kernels.nest.plan_loops import plans_of_loops
from relaxir.lowering.kernels.structure.as_generic import as_generic
from relaxir.lowering.marks import PLAN
from relaxir.lowering.target import TARGETS, Target
from relaxir.runtime.executable import Executable
from support.emulation import compile_for, generated
from support.stages import lowered, target_named


@dataclass(frozen=True)
class Case:
    """An image ``[n, h, w, c]``, and a window of each channel."""

    image: tuple[int | str, int | str, int | str, int]
    kernel: tuple[int, int] = (3, 3)
    strides: tuple[int, int] = (1, 1)
    padding: tuple[int, int, int, int] = (1, 1, 1, 1)
    dilation: tuple[int, int] = (1, 1)
    each: int = 1

    @property
    def filters(self) -> tuple[int, ...]:
        return (*self.kernel, 1, self.each * self.image[3])

    def shape(self, sizes: Mapping[str, int]) -> list[int]:
        return [sizes[d] if isinstance(d, str) else d for d in self.image]

    def build(self, b: rx.Builder, name: str, dtype: str, weight: str) -> None:
        """Sums, and what a layer makes of them: scaled, shifted, cut off, quantized."""
        with b.function(name):
            x, w = b.input("x", self.image, dtype), b.weight(f"{name}.w", self.filters, weight)
            zero = b.constant(np.array(_zero(dtype), numpy_dtype(dtype)))
            attributes = {"strides": self.strides, "padding": self.padding, "dilation": self.dilation}
            layouts = {"data_layout": "NHWC", "kernel_layout": "HWIO"}
            sums = b.quantized_conv2d(x, w, zero, **attributes, **layouts, groups=self.image[3])
            real = b.multiply(b.astype(sums, dtype="f32"), b.weight(f"{name}.s", (self.filters[3],), "f32"))
            b.output(b.quantize(real, b.constant(np.float32(0.5)), zero, dtype=dtype))

    def build_sums(self, b: rx.Builder, name: str, dtype: str, weight: str) -> None:
        """Sums alone."""
        with b.function(name):
            x, w = b.input("x", self.image, dtype), b.weight(f"{name}.w", self.filters, weight)
            zero = b.constant(np.array(_zero(dtype), numpy_dtype(dtype)))
            attributes = {"strides": self.strides, "padding": self.padding, "dilation": self.dilation}
            layouts = {"data_layout": "NHWC", "kernel_layout": "HWIO"}
            b.output(b.quantized_conv2d(x, w, zero, **attributes, **layouts, groups=self.image[3]))

    def build_floats(self, b: rx.Builder, name: str) -> None:
        """Sums of f32, and what a layer makes of them: a bias, a residual where it fits, cut off."""
        with b.function(name):
            x, w = b.input("x", self.image, "f32"), b.weight(f"{name}.w", self.filters, "f32")
            attributes = {"strides": self.strides, "padding": self.padding, "dilation": self.dilation}
            layouts = {"data_layout": "NHWC", "kernel_layout": "HWIO"}
            y = b.conv2d(x, w, **attributes, **layouts, groups=self.image[3])
            y = b.add(y, b.weight(f"{name}.s", (self.filters[3],), "f32"))
            b.output(b.relu(b.add(y, x) if y.shape == x.shape else y))


CASES = [
    Case((1, 7, 9, 64)),
    Case((2, 9, 8, 96), strides=(2, 2)),
    Case((1, "h", "w", 80)),
    Case(("n", 6, 5, 144), padding=(0, 2, 1, 0)),
    Case((1, 9, 10, 33), strides=(1, 2)),
    Case((1, 9, 10, 24), strides=(2, 1), dilation=(2, 1)),
    Case((1, 11, 9, 16), dilation=(2, 2), padding=(2, 2, 2, 2)),
    Case((1, "h", 9, 32), (5, 5), padding=(2, 2, 2, 2)),
    Case((1, 9, 8, 17), (7, 7), (2, 2), (3, 3, 3, 3)),
    Case((2, 3, 3, 48), padding=(0, 0, 0, 0)),
    Case((1, 3, "w", 20), (4, 2), padding=(1, 0, 0, 0)),
    Case((1, 9, 3, 32), (3, 3), (1, 1), (0, 0, 0, 0)),
    Case((1, 10, 11, 32), (3, 2), (3, 3)),
    Case((1, 12, 7, 64), (4, 3), (1, 3), dilation=(1, 2)),
    Case((1, 8, 7, 32), (1, 3)),
    Case((1, 8, 7, 32), (3, 1)),
    Case((1, 8, 7, 16), each=2),
    Case((1, 6, 7, 8)),
    Case((1, 7, 14, 32), (5, 5), (2, 2), (2, 2, 2, 2)),
    Case((2, 6, 5, 48), (7, 7), padding=(3, 3, 3, 3)),
    Case((1, 8, 9, 32), (3, 3), (1, 1), (4, 5, 4, 4)),
    Case((1, 1, 1, 16), (3, 3)),
    Case((1, 9, 7, 32), (3, 3), (3, 3), dilation=(1, 2), padding=(2, 3, 2, 3)),
]
SIZES = {"n": 3, "h": 8, "w": 11}
TYPES = [("ui8", "i8"), ("i8", "i8"), ("i8", "ui8"), ("ui8", "ui8")]


def _zero(dtype: str) -> int:
    return -5 if dtype == "i8" else 131


def _integers(rng: np.random.Generator, dtype: str, shape: tuple[int, ...] | list[int]) -> np.ndarray:
    """Random bytes, many of them the least and the largest."""
    least, most = (-128, 127) if dtype == "i8" else (0, 255)
    some = rng.integers(least, most + 1, shape)
    return np.where(rng.random(shape) < 0.3, rng.choice([least, most], shape), some).astype(numpy_dtype(dtype))


@pytest.mark.parametrize("name", TARGETS)
@pytest.mark.parametrize("other", [False, True])
def test_sums_are_exact(name: str, other: bool) -> None:
    number = list(TARGETS).index(name)
    dtype, weight = kind = TYPES[(number + 2 * other) % len(TYPES)]
    cases, builder = CASES[(number // 2 + other) % 5 :: 5], rx.Builder()
    for i, case in enumerate(cases):
        case.build_sums(builder, f"f{i}", dtype, weight)
    module = builder.build()
    _compare(compile_for(module, name), module, cases, kind)


@pytest.mark.parametrize(("kind", "checked"), [(0, False), (1, False), (2, False), (3, False), (0, True), (1, True)])
def test_layers(kind: int, checked: bool) -> None:
    cases, builder = CASES[kind :: 8 if checked else 2], rx.Builder()
    for i, case in enumerate(cases):
        case.build(builder, f"f{i}", *TYPES[kind])
    module = builder.build()
    _compare(rx.compile(module, checked=checked), module, cases, TYPES[kind])


def _compare(executable: Executable, module: rx.Module, cases: list[Case], types: tuple[str, str]) -> None:
    rng, raw = np.random.default_rng(0), dict[str, np.ndarray]()
    for i, case in enumerate(cases):
        raw[f"f{i}.w"] = _integers(rng, types[1], case.filters)
        raw[f"f{i}.s"] = rng.uniform(0.0001, 0.002, case.filters[3]).astype(np.float32)
    raw = {name: array for name, array in raw.items() if name in executable.manifest.raw_weights}
    executable.bind(executable.prepare(raw))
    for i, case in enumerate(cases):
        x = _integers(rng, types[0], case.shape(SIZES))
        own = {name: a for name, a in raw.items() if name.startswith(f"f{i}.")}
        (want,) = rx.evaluate(module, f"f{i}", x, weights=own)
        np.testing.assert_array_equal(executable(x, entry=f"f{i}"), want, err_msg=str(case))


@pytest.mark.parametrize("name", TARGETS)
def test_sums_of_floats(name: str) -> None:
    number = list(TARGETS).index(name)
    cases, builder = CASES[number % 3 :: 3], rx.Builder()
    for i, case in enumerate(cases):
        case.build_floats(builder, f"f{i}")
    module = builder.build()
    _compare_floats(compile_for(module, name), module, cases)


@pytest.mark.parametrize("checked", [False, True])
def test_layers_of_floats(checked: bool) -> None:
    cases, builder = CASES[:: 3 if checked else 1], rx.Builder()
    for i, case in enumerate(cases):
        case.build_floats(builder, f"f{i}")
    module = builder.build()
    _compare_floats(rx.compile(module, checked=checked), module, cases)


def _compare_floats(executable: Executable, module: rx.Module, cases: list[Case]) -> None:
    rng = np.random.default_rng(0)
    shapes = {f"f{i}.{n}": s for i, c in enumerate(cases) for n, s in (("w", c.filters), ("s", c.filters[3:]))}
    raw = {name: rng.standard_normal(shape).astype(np.float32) for name, shape in shapes.items()}
    executable.bind(executable.prepare(raw))
    for i, case in enumerate(cases):
        x = rng.standard_normal(case.shape(SIZES)).astype(np.float32)
        (want,) = rx.evaluate(module, f"f{i}", x, weights={n: a for n, a in raw.items() if n.startswith(f"f{i}.")})
        # Up to 49 products, added in another order.
        tolerance = 2e-6 * np.abs(want).max(initial=1)
        np.testing.assert_allclose(executable(x, entry=f"f{i}"), want, rtol=0, atol=tolerance, err_msg=str(case))


def test_numbers_that_are_not_finite_stay_in_windows() -> None:
    """What is read in the place of rows outside of the image is no part of a sum."""
    case, builder = Case((1, 7, 6, 32)), rx.Builder()
    case.build_floats(builder, "f")
    module = builder.build()
    executable, rng = rx.compile(module), np.random.default_rng(0)
    raw = {"f.w": rng.standard_normal(case.filters).astype(np.float32), "f.s": np.zeros(32, np.float32)}
    executable.bind(executable.prepare(raw))
    x = rng.standard_normal((1, 7, 6, 32)).astype(np.float32)
    x[0, 0, 0, 3], x[0, 6, 5, 4], x[0, 3, 2, 5] = np.inf, np.nan, -np.inf
    (want,) = rx.evaluate(module, "f", x, weights=raw)
    got = np.asarray(executable(x))
    np.testing.assert_array_equal(np.isnan(got), np.isnan(want))
    np.testing.assert_array_equal(np.isinf(got), np.isinf(want))


def test_least_sizes_of_floats() -> None:
    case, builder = Case(("n", "h", "w", 32), padding=(0, 0, 0, 0)), rx.Builder()
    case.build_floats(builder, "f")
    executable = rx.compile(builder.build(), checked=True)
    executable.bind(executable.prepare({"f.w": np.ones(case.filters, np.float32), "f.s": np.zeros(32, np.float32)}))
    for shape in ((0, 5, 5, 32), (2, 3, 5, 32), (2, 5, 3, 32), (1, 4, 4, 32)):
        n, h, w, c = shape
        np.testing.assert_array_equal(executable(np.ones(shape, np.float32)), np.full((n, h - 2, w - 2, c), 9, np.float32))


def test_a_layer_of_floats_is_one_kernel_without_memory_for_sums_and_frame() -> None:
    builder = rx.Builder()
    CASES[0].build_floats(builder, "f")
    text = str(lowered(builder.build(), target_named("cpu:znver4"), upto="relax-lend-memory"))
    entry, *kernels = text.split("func.func @f(")[1].split("func.func")
    assert entry.count("call @kernel") == 1
    assert not any("memref.alloc" in part for part in [entry, *kernels])


def test_least_sizes() -> None:
    case, builder = Case(("n", "h", "w", 32), padding=(0, 0, 0, 0)), rx.Builder()
    case.build_sums(builder, "f0", "ui8", "i8")
    module = builder.build()
    executable = rx.compile(module, checked=True)
    executable.bind(executable.prepare({"f0.w": np.ones(case.filters, np.int8)}))
    for shape in ((0, 5, 5, 32), (2, 3, 5, 32), (2, 5, 3, 32), (1, 4, 4, 32)):
        n, h, w, c = shape
        assert executable(np.ones(shape, np.uint8)).shape == (n, h - 2, w - 2, c)


@pytest.mark.parametrize(("name", "instruction"), [("znver4", "vpdpbusd"), ("apple-m1", "sdot")])
def test_four_rows_are_multiplied_by_one_instruction(name: str, instruction: str) -> None:
    builder = rx.Builder()
    CASES[0].build(builder, "f", "ui8", "i8")
    assert instruction in assembly(generated(builder.build(), name), Target.parse(f"cpu:{name}"))


def test_a_layer_is_one_kernel_without_memory_for_sums_and_frame() -> None:
    builder = rx.Builder()
    CASES[0].build(builder, "f", "ui8", "i8")
    text = str(lowered(builder.build(), target_named("cpu:znver4"), upto="relax-lend-memory"))
    entry, *_ = text.split("func.func @f(")[1].split("func.func")
    (kernel,) = (part for part in text.split("func.func") if "vpdpbusd" in part)
    assert entry.count("call @kernel") == 1
    assert "memref.alloc" not in kernel


@pytest.mark.parametrize(
    ("plan", "message"),
    [
        ("channels=64 rows=2 pixels=3", "expected a plan with share, got 'channels=64 rows=2 pixels=3'"),
        ("channels=8 rows=1 pixels=1 share=1", "expected vectors of 64, 32, 16 channels, got"),
        ("channels=64 rows=3 pixels=1 share=3", "expected at most 2 rows, and a multiple of them that share, got"),
        ("channels=64 rows=2 pixels=1 share=3", "expected at most 2 rows, and a multiple of them that share, got"),
        ("channels=64 rows=two pixels=1 share=3", "expected a positive number, got 'rows=two'"),
    ],
)
def test_plans_that_do_not_fit(plan: str, message: str) -> None:
    with pytest.raises(RelaxError, match=message):
        _planned(CASES[0], plan)


def test_pixels_without_common_columns() -> None:
    with pytest.raises(RelaxError, match="expected one pixel, as windows have no column in common, got"):
        _planned(CASES[12], "channels=16 rows=1 pixels=2 share=1")


@pytest.mark.parametrize(
    ("plan", "expected"),
    [
        ("channels=32 rows=1 pixels=2 share=4", ["channels=32 rows=1 pixels=2 share=4"]),
        ("", ["channels=64 rows=2 pixels=3 share=8"]),
    ],
)
def test_plans(plan: str, expected: list[str]) -> None:
    assert _planned(CASES[0], plan) == expected


@pytest.mark.parametrize(
    ("name", "case", "expected"),
    [
        ("znver4", Case((1, 28, 28, 96)), ["channels=16 rows=2 pixels=3 share=4"]),
        ("znver4", Case((1, 28, 28, 24), strides=(2, 2)), ["channels=16 rows=2 pixels=3 share=14"]),
        ("znver4", Case((1, 7, 7, 96)), ["channels=16 rows=2 pixels=3 share=8"]),  # threads share channels
        ("znver4", Case((1, 28, 28, 12)), ["channels=8 rows=2 pixels=3 share=4"]),
        ("znver4", Case((1, 28, 28, 96), (5, 5), padding=(2, 2, 2, 2)), ["channels=16 rows=1 pixels=5 share=2"]),
        ("x86-64-v3", Case((1, 28, 28, 96)), ["channels=8 rows=1 pixels=3 share=2"]),
        ("znver4", Case((1, 28, 28, 96), (7, 7), padding=(3, 3, 3, 3)), None),  # no registers hold its columns
        ("x86-64-v3", Case((1, 28, 28, 96), (5, 5), padding=(2, 2, 2, 2)), None),
        ("znver4", Case((1, 28, 28, 96), (1, 3), padding=(0, 1, 0, 1)), None),
        ("znver4", Case((1, 28, 28, 7)), None),
    ],
)
def test_plans_of_floats(name: str, case: Case, expected: list[str] | None) -> None:
    """Loops over taps have plans of their own."""
    plans = _planned(case, "", name, floats=True)
    assert plans == expected if expected is not None else all("order=" in plan for plan in plans)


def test_plans_of_floats_that_do_not_fit() -> None:
    with pytest.raises(RelaxError, match="expected vectors of 16, 8, 4 channels, got"):
        _planned(CASES[0], "channels=32 rows=1 pixels=1 share=1", floats=True)
    with pytest.raises(RelaxError, match="expected at most 2 rows, and a multiple of them that share, got"):
        _planned(CASES[0], "channels=16 rows=3 pixels=1 share=3", floats=True)


def _planned(case: Case, plan: str, name: str = "znver4", floats: bool = False) -> list[str]:
    """The plans of a case's kernel of sums, with a plan written on it, if any, in advance."""
    builder, target = rx.Builder(), target_named(f"cpu:{name}")
    if floats:
        case.build_floats(builder, "f")
    else:
        case.build(builder, "f", "ui8", "i8")
    module = lowered(builder.build(), target, upto="relax-plan-loops")
    kernel = next(f for f in functions(module) if _sums(f))
    with module.context:
        as_generic(module, [kernel])
        (operation,) = _sums(kernel)
        if plan:
            operation.attributes[PLAN] = ir.StringAttr.get(plan)
        return [str(p) for p in plans_of_loops(kernel, target)]


def _sums(function: func.FuncOp) -> list[ir.Operation]:
    found = [op.operation for block in function.operation.regions[0].blocks for op in block.operations]
    return [op for op in found if op.name == "linalg.generic" and str(op.attributes["iterator_types"]).count("reduction") == 2]

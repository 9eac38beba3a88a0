"""Convolutions by Winograd's filtering, compiled, against direct ones in f64: sizes known or open, epilogues, targets."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pytest

import relaxir as rx
from relaxir.compiler import default_pipeline
from relaxir.dialect.reference.registry import reference_of
from relaxir.runtime.executable import Executable
from support.emulation import compile_for

#: Small images, too.
ALL = default_pipeline().replace("relax-winograd-convolutions{gainful=true}", "relax-winograd-convolutions")
#: Of the largest result: sums in f32 of up to 2,048 products.
TOLERANCE = 4e-6
#: Of 18,441.
OF_DIRECT = 1e-5


@dataclass(frozen=True)
class Filtering:
    """Sizes of the image are symbols where ``open`` has their letter. A residual is added where the result fits."""

    image: tuple[int, int, int, int]
    outputs: int
    padding: tuple[int, int, int, int] = (1, 1, 1, 1)
    open: str = ""
    layout: str = "HWIO"
    alone: bool = False

    @property
    def filters(self) -> tuple[int, ...]:
        inputs = self.image[3]
        return (3, 3, inputs, self.outputs) if self.layout == "HWIO" else (self.outputs, inputs, 3, 3)

    def build(self, builder: rx.Builder, name: str) -> None:
        with builder.function(name):
            sizes = tuple(letter if letter in self.open else d for letter, d in zip("nhwc", self.image, strict=True))
            x = builder.input("x", sizes, "f32")
            w, b = builder.weight(f"{name}.w", self.filters, "f32"), builder.weight(f"{name}.b", (self.outputs,), "f32")
            y = builder.conv2d(x, w, padding=self.padding, data_layout="NHWC", kernel_layout=self.layout)
            if not self.alone:
                y = builder.add(y, b)
                if y.shape == x.shape:
                    y = builder.add(y, x)
                y = builder.relu(y)
            builder.output(y)

    def expected(self, x: np.ndarray, w: np.ndarray, b: np.ndarray) -> np.ndarray:
        """In f64."""
        x, w, b = (a.astype(np.float64) for a in (x, w, b))
        attributes = {"strides": [1, 1], "dilation": [1, 1], "groups": 1, "data_layout": "NHWC", "kernel_layout": self.layout}
        y = reference_of("conv2d").function(x, w, padding=list(self.padding), **attributes)
        if self.alone:
            return y
        y = y + b
        return np.maximum(y + x if y.shape == x.shape else y, 0)


CASES = {
    "even": Filtering((1, 8, 8, 16), 32),
    "odd": Filtering((1, 7, 9, 16), 16),
    "odd_images": Filtering((3, 7, 7, 32), 48),
    "one_result": Filtering((1, 3, 3, 16), 16, (0, 0, 0, 0)),
    "one_row": Filtering((2, 3, 30, 24), 40, (0, 1, 0, 1)),
    "no_padding": Filtering((2, 10, 12, 16), 16, (0, 0, 0, 0), alone=True),
    "uneven_padding": Filtering((2, 9, 6, 20), 17, (2, 0, 1, 3)),
    "wide_padding": Filtering((1, 4, 4, 16), 16, (5, 4, 6, 7)),
    "more_columns": Filtering((1, 6, 6, 33), 100),
    "cut_columns": Filtering((2, 6, 6, 18), 33, alone=True),
    "several_parts": Filtering((2, 33, 35, 64), 64),
    "parts_of_columns": Filtering((1, 6, 6, 300), 96),
    "turned": Filtering((1, 9, 8, 16), 24, layout="OIHW"),
    "any_images": Filtering((3, 8, 7, 16), 32, open="n"),
    "any_height": Filtering((2, 11, 8, 16), 16, open="h"),
    "any_width": Filtering((2, 8, 11, 24), 16, open="w"),
    "any_size": Filtering((2, 9, 11, 16), 16, open="nhw"),
    "any_large": Filtering((1, 41, 70, 64), 48, open="nhw"),
    "few_channels": Filtering((1, 8, 8, 15), 32),
    "few_filters": Filtering((1, 8, 8, 32), 15),
    "many_channels": Filtering((1, 4, 4, 2049), 16),
    "most_channels": Filtering((1, 4, 4, 2048), 16),
}
#: They stay as they are.
DIRECT = {"few_channels", "few_filters", "many_channels"}


def _module(cases: dict[str, Filtering]) -> rx.Module:
    builder = rx.Builder()
    for name, case in cases.items():
        case.build(builder, name)
    return builder.build()


def _agrees(executable: Executable, cases: dict[str, Filtering], seed: int) -> None:
    rng = np.random.default_rng(seed)
    weights: dict[str, np.ndarray] = {}
    for name, case in cases.items():
        weights[f"{name}.w"] = rng.standard_normal(case.filters).astype(np.float32)
        weights[f"{name}.b"] = rng.standard_normal(case.outputs).astype(np.float32)
    executable.bind(executable.prepare(weights))
    for name, case in cases.items():
        x = rng.standard_normal(case.image).astype(np.float32)
        want = case.expected(x, weights[f"{name}.w"], weights[f"{name}.b"])
        got = np.asarray(executable(x, entry=name))
        assert got.shape == want.shape, name
        tolerance = OF_DIRECT if name in DIRECT else TOLERANCE
        assert np.abs(got - want).max(initial=0) <= tolerance * np.abs(want).max(initial=0), name


@pytest.fixture(scope="module")
def compiled() -> Executable:
    return rx.compile(_module(CASES), pipeline=ALL)


def test_results_are_those_of_direct_convolutions(compiled: Executable) -> None:
    for seed in range(3):
        _agrees(compiled, CASES, seed)


def test_what_would_take_longer_stays(compiled: Executable) -> None:
    for name in CASES:
        own = compiled.module_text.partition(f"func.func @{name}(")[2].partition("func.func")[0]
        found = [op for op in ("relax.packed_conv2d", "relax.winograd_conv2d") if op in own]
        assert found == ["relax.packed_conv2d" if name in DIRECT else "relax.winograd_conv2d"], name


@pytest.mark.parametrize("target", ["x86-64-v2", "x86-64-v3", "neoverse-v1", "apple-m1", "znver4"])
def test_targets(target: str) -> None:
    cases = {name: CASES[name] for name in ("odd_images", "uneven_padding", "more_columns", "several_parts", "any_large")}
    _agrees(compile_for(_module(cases), target, ALL), cases, 4)


def test_checked_code_stays_inside_of_buffers() -> None:
    names = ("odd", "cut_columns", "uneven_padding", "any_size", "one_result")
    cases = {name: CASES[name] for name in names}
    _agrees(rx.compile(_module(cases), pipeline=ALL, checked=True), cases, 5)


def test_sizes_are_any_at_run_time() -> None:
    cases = {name: CASES[name] for name in ("any_size", "any_large")}
    executable, rng = rx.compile(_module(cases), pipeline=ALL), np.random.default_rng(6)
    for shape in ((0, 5, 5), (1, 1, 1), (1, 2, 3), (5, 3, 2), (1, 64, 3), (2, 33, 47), (1, 130, 129)):
        changed = {name: replace(case, image=(*shape, case.image[3])) for name, case in cases.items()}
        _agrees(executable, changed, int(rng.integers(1000)))


@pytest.mark.parametrize(
    ("case", "places"),
    [
        (Filtering((1, 9, 10, 16), 16, alone=True), [(4, 5)]),
        (Filtering((1, 9, 10, 16), 40, alone=True), [(0, 0), (8, 9)]),
        (Filtering((1, 4, 4, 16), 16, (5, 4, 6, 7), alone=True), [(0, 0), (0, 3), (3, 0), (3, 3)]),
        (Filtering((1, 2, 9, 16), 16, alone=True), [(1, 8)]),
        (Filtering((1, 9, 10, 37), 50, alone=True), [(2, 1), (2, 2), (7, 9)]),
        (Filtering((1, 9, 10, 21), 33, open="hw"), [(0, 9), (5, 5)]),
        (Filtering((1, 9, 10, 300), 20), [(0, 9), (5, 5)]),
    ],
)
@pytest.mark.parametrize("value", [np.inf, -np.inf, np.nan, 3e38])
@pytest.mark.parametrize("target", [None, "x86-64-v3", "neoverse-v1"])
def test_numbers_that_are_not_finite_stay_in_their_windows(
    case: Filtering, places: list[tuple[int, int]], value: float, target: str | None
) -> None:
    """Also at edges, where the nearest element is read in the place of what is around the image; and in all channels."""
    module, rng = _module({"f": case}), np.random.default_rng(7)
    executable = rx.compile(module, pipeline=ALL) if target is None else compile_for(module, target, ALL)
    x, w = (rng.standard_normal(s).astype(np.float32) for s in (case.image, case.filters))
    w *= 2**-12  # a product with 3e38, and sums of sixteen, are numbers
    bias = rng.standard_normal(case.outputs).astype(np.float32)
    executable.bind(executable.prepare({"f.w": w, "f.b": bias}))
    for channel, (y, column) in enumerate(places):
        x[0, y, column, -1 - 5 * channel] = value
    got, want = np.asarray(executable(x)), case.expected(x, w, bias)
    is_finite = np.isfinite(want)
    assert is_finite.any()
    np.testing.assert_array_equal(got[~is_finite], want[~is_finite])
    moderate = is_finite & (np.abs(want) < 1e30)
    assert moderate.any()
    np.testing.assert_allclose(got[moderate], want[moderate], rtol=0, atol=TOLERANCE * np.abs(want[moderate]).max())
    np.testing.assert_allclose(got[is_finite], want[is_finite], rtol=0, atol=TOLERANCE * np.abs(want[is_finite]).max())


def test_filters_are_transformed_once() -> None:
    builder = rx.Builder()
    with builder.function("f"):
        x, w = builder.input("x", (1, 8, 8, 16), "f32"), builder.weight("w", (3, 3, 16, 16), "f32")
        attributes = {"padding": [1, 1, 1, 1], "data_layout": "NHWC", "kernel_layout": "HWIO"}
        builder.output(builder.conv2d(builder.conv2d(x, w, **attributes), w, **attributes))
    executable = rx.compile(builder.build())
    assert executable.module_text.count("relax.winograd_conv2d") == 2
    assert executable.module_text.count("relax.pack_weight") == 1
    rng = np.random.default_rng(8)
    x, w = (rng.standard_normal(s).astype(np.float32) for s in ((1, 8, 8, 16), (3, 3, 16, 16)))
    prepared = executable.prepare({"w": w})
    executable.bind(prepared)
    once = Filtering((1, 8, 8, 16), 16, alone=True)
    want = once.expected(once.expected(x, w, np.zeros(16)), w, np.zeros(16))
    assert np.abs(np.asarray(executable(x)) - want).max() <= 2 * TOLERANCE * np.abs(want).max()


def test_narrow_floats_stay() -> None:
    builder = rx.Builder()
    with builder.function("f"):
        x, w = builder.input("x", (1, 8, 8, 16), "bf16"), builder.weight("w", (3, 3, 16, 16), "bf16")
        builder.output(builder.conv2d(x, w, data_layout="NHWC", kernel_layout="HWIO"))
    assert "winograd" not in rx.compile(builder.build()).module_text


@pytest.mark.parametrize(
    ("image", "open_", "expected"),
    [
        ((1, 14, 14), "", True),
        ((1, 5, 5), "", True),  # 9 tiles
        ((1, 4, 4), "", False),  # 4
        ((4, 4, 4), "", True),
        ((64, 1, 1), "", False),  # a result in each
        ((1, 1, 200), "", False),  # two
        ((1, 1, 200), "w", False),
        ((1, 3, 200), "w", True),
        ((1, 4, 4), "n", True),
        ((16, 1, 1), "n", False),
        ((1, 4, 4), "hw", True),
    ],
)
def test_small_images_stay(image: tuple[int, int, int], open_: str, expected: bool) -> None:
    module = _module({"f": Filtering((*image, 32), 32, open=open_)})
    assert ("relax.winograd_conv2d" in rx.compile(module).module_text) == expected


def test_all_can_be_direct() -> None:
    module = _module({"f": CASES["several_parts"]})
    executable = rx.compile(module, convolutions="direct")
    assert "winograd" not in executable.module_text
    _agrees(executable, {"f": CASES["several_parts"]}, 9)


@pytest.mark.parametrize("given", ["fft", 2, ["direct"]])
def test_others_are_refused(given: object) -> None:
    with pytest.raises(rx.RelaxError, match="expected convolutions as direct or None, got"):
        rx.compile(_module({"f": CASES["even"]}), convolutions=given)  # type: ignore[arg-type]


def test_pipelines_say_themselves() -> None:
    with pytest.raises(rx.RelaxError, match="expected convolutions or a pipeline"):
        rx.compile(_module({"f": CASES["even"]}), pipeline="cse", convolutions="direct")

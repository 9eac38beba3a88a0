"""Convolutions in NHWC, filters packed when weights are prepared, against the reference; depthwise ones with what follows."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest

import relaxir as rx
from relaxir.dialect.dtypes import numpy_dtype
from support.emulation import compile_for
from support.small_parts import small_parts

TOLERANCE = {"f64": 1e-13, "f32": 1e-5, "bf16": 2e-2, "f16": 2e-3}


@dataclass(frozen=True)
class Convolution:
    """Sizes of the image are symbols where ``open`` has their letter. A residual is added where the result fits."""

    image: tuple[int, int, int, int]
    outputs: int
    kernel: tuple[int, int] = (3, 3)
    strides: tuple[int, int] = (1, 1)
    padding: tuple[int, int, int, int] = (0, 0, 0, 0)
    dilation: tuple[int, int] = (1, 1)
    groups: int = 1
    open: str = ""
    layout: str = "HWIO"

    @property
    def filters(self) -> tuple[int, ...]:
        inputs = self.image[3] // self.groups
        return (*self.kernel, inputs, self.outputs) if self.layout == "HWIO" else (self.outputs, inputs, *self.kernel)

    def build(self, builder: rx.Builder, name: str, dtype: str) -> None:
        with builder.function(name):
            sizes = tuple(letter if letter in self.open else d for letter, d in zip("nhwc", self.image, strict=True))
            x = builder.input("x", sizes, dtype)
            w, b = builder.weight(f"{name}.w", self.filters, dtype), builder.weight(f"{name}.b", (self.outputs,), dtype)
            attributes = {"strides": self.strides, "padding": self.padding, "dilation": self.dilation, "groups": self.groups}
            y = builder.conv2d(x, w, **attributes, data_layout="NHWC", kernel_layout=self.layout)
            y = builder.add(y, b)
            if y.shape == x.shape:
                y = builder.add(y, x)
            builder.output(builder.relu(y))


PADDED, ASYMMETRIC = (1, 1, 1, 1), (0, 2, 1, 0)
CONVOLUTIONS = [
    Convolution((3, 5, 7, 20), 12, (1, 1), open="n"),
    Convolution((3, 5, 7, 20), 12, (1, 1), layout="OIHW"),
    Convolution((1, 9, 11, 7), 7, padding=PADDED),
    Convolution((2, 9, 11, 16), 33, padding=ASYMMETRIC, strides=(2, 1), open="nh"),
    Convolution((2, 9, 11, 16), 16, padding=PADDED, open="nhw"),
    Convolution((1, 15, 16, 3), 24, (7, 7), (2, 2), (3, 3, 3, 3)),
    Convolution((2, 8, 12, 3), 17, (4, 4), (4, 4)),
    Convolution((1, 9, 9, 5), 16, (2, 5), dilation=(3, 2), padding=ASYMMETRIC),
    Convolution((2, 1, 30, 8), 16, (1, 3), (1, 2), (0, 1, 0, 1)),
    Convolution((2, 6, 5, 8), 16, (1, 1), (2, 2)),
    Convolution((2, 4, 6, 2), 5, (3, 5), (3, 3), layout="OIHW"),
    Convolution((1, 7, 7, 1), 1, (3, 3)),
    Convolution((1, 6, 7, 8), 64, padding=PADDED, groups=2),
    Convolution((2, 6, 7, 6), 9, padding=PADDED, groups=3),
    Convolution((2, 9, 11, 20), 20, padding=PADDED, groups=20, open="n"),
    Convolution((1, 9, 11, 20), 40, (5, 3), (2, 1), ASYMMETRIC, groups=20),
    Convolution((2, 6, 13, 33), 33, padding=PADDED, groups=33, open="nhw"),
]


#: Groups of as many filters as narrow panels have columns, or several times that; of any number of channels.
GROUPED = [
    Convolution((2, 9, 11, 24), 24, padding=PADDED, groups=3),
    Convolution((1, 9, 11, 15), 20, padding=PADDED, groups=5, open="n"),
    Convolution((1, 9, 11, 32), 32, strides=(2, 2), padding=PADDED, groups=2, open="nhw"),
    Convolution((2, 9, 11, 6), 36, (1, 1), groups=3),
    Convolution((1, 9, 11, 48), 48, dilation=(2, 1), padding=ASYMMETRIC, groups=2, layout="OIHW"),
    Convolution((1, 9, 11, 3), 12, padding=PADDED, groups=3),
    Convolution((1, 9, 11, 14), 14, padding=PADDED, groups=7),
]


def check(convolutions: list[Convolution], dtype: str, target: str | None = None) -> None:
    builder = rx.Builder()
    for i, convolution in enumerate(convolutions):
        convolution.build(builder, f"f{i}", dtype)
    module, rng = builder.build(), np.random.default_rng(0)
    executable = rx.compile(module) if target is None else compile_for(module, target)
    shapes = {f"f{i}.{name}": s for i, c in enumerate(convolutions) for name, s in (("w", c.filters), ("b", (c.outputs,)))}
    raw = {name: rng.standard_normal(shape).astype(numpy_dtype(dtype)) for name, shape in shapes.items()}
    executable.bind(executable.prepare(raw))
    for i, convolution in enumerate(convolutions):
        image = rng.standard_normal(convolution.image).astype(numpy_dtype(dtype))
        given = {name: raw[name] for name in (f"f{i}.w", f"f{i}.b")}
        (want,) = rx.evaluate(module, f"f{i}", image, weights=given)
        got = executable(image, entry=f"f{i}")
        assert (got.shape, got.dtype) == (want.shape, want.dtype), convolution
        scale, numbers = np.abs(want.astype(np.float64)).max(initial=1), [v.astype(np.float64) for v in (got, want)]
        np.testing.assert_allclose(*numbers, rtol=0, atol=TOLERANCE[dtype] * scale, err_msg=str(convolution))


def test_packed_and_depthwise_convolutions() -> None:
    check(CONVOLUTIONS, "f32")


@pytest.mark.parametrize("rows", [1, 5])
def test_parts_of_few_rows(rows: int) -> None:
    with small_parts(rows):
        check(CONVOLUTIONS, "f32")


@pytest.mark.parametrize("dtype", ["f64", "bf16", "f16"])
def test_dtypes(dtype: str) -> None:
    check(CONVOLUTIONS[:5] + CONVOLUTIONS[-3:-1], dtype)


@pytest.mark.parametrize("target", [None, "znver4", "sapphirerapids", "x86-64-v3", "neoverse-v1"])
def test_pairs_of_channels(target: str | None) -> None:
    """Instructions multiply pairs of bf16 where channels are even; where they are not, filters stay as they are."""
    check(CONVOLUTIONS + GROUPED, "bf16", target)


@pytest.mark.parametrize(
    ("dtype", "target"),
    [("f32", None), ("f32", "x86-64-v2"), ("f32", "x86-64-v3"), ("f32", "neoverse-v1"), ("f64", None), ("bf16", None)],
)
def test_groups_of_few_filters(dtype: str, target: str | None) -> None:
    check(GROUPED, dtype, target)


def test_filters_that_are_no_weights() -> None:
    """They are packed in each call."""
    b, rng = rx.Builder(), np.random.default_rng(0)
    with b.function("main"):
        x, w = b.input("x", (1, "h", 11, 24), "f32"), b.input("w", (3, 3, 8, 24), "f32")
        b.output(b.conv2d(x, w, padding=PADDED, groups=3, data_layout="NHWC", kernel_layout="HWIO"))
    module, given = b.build(), [rng.standard_normal(s).astype(np.float32) for s in ((1, 9, 11, 24), (3, 3, 8, 24))]
    (want,) = rx.evaluate(module, "main", *given)
    np.testing.assert_allclose(rx.compile(module)(*given), want, rtol=0, atol=TOLERANCE["f32"] * np.abs(want).max())


def test_filters_are_packed_in_advance() -> None:
    builder = rx.Builder()
    for i, convolution in enumerate((CONVOLUTIONS[0], CONVOLUTIONS[3])):
        convolution.build(builder, f"f{i}", "f32")
    text = rx.compile(builder.build()).module_text
    assert text.count('"relax.packed_conv2d"') == 2

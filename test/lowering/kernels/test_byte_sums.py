"""Convolutions of bytes: exact sums on every target by emulation, the instruction in the loop, layers as one kernel."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import pytest

import relaxir as rx
from relaxir.dialect.dtypes import numpy_dtype
from relaxir.lowering.cpu.codegen import assembly
from relaxir.lowering.target import TARGETS, Target
from support.emulation import compile_for, generated
from support.stages import lowered


@dataclass(frozen=True)
class Case:
    """An image ``[n, h, w, c]`` and filters; both are dequantized where they are read."""

    image: tuple[int | str, int | str, int, int]
    outputs: int
    kernel: tuple[int, int] = (3, 3)
    strides: tuple[int, int] = (1, 1)
    padding: tuple[int, int, int, int] = (0, 0, 0, 0)
    dilation: tuple[int, int] = (1, 1)
    groups: int = 1
    layout: str = "NHWC"

    @property
    def filters(self) -> tuple[int, ...]:
        inputs = self.image[3] // self.groups
        return (*self.kernel, inputs, self.outputs) if self.layout == "NHWC" else (self.outputs, inputs, *self.kernel)

    @property
    def attributes(self) -> dict[str, object]:
        layouts = {"data_layout": self.layout, "kernel_layout": "HWIO" if self.layout == "NHWC" else "OIHW"}
        own = {"strides": self.strides, "padding": self.padding, "dilation": self.dilation, "groups": self.groups}
        return {**own, **layouts}

    def shape(self, sizes: Mapping[str, int] | None = None) -> list[int | str]:
        n, h, w, c = (d if sizes is None else sizes.get(d, d) for d in self.image)  # type: ignore[arg-type]
        return [n, h, w, c] if self.layout == "NHWC" else [n, c, h, w]

    def sums(self, b: rx.Builder, name: str, dtype: str) -> None:
        """Sums of bytes."""
        with b.function(name):
            x, w = b.input("x", self.shape(), dtype), b.weight(f"{name}.w", self.filters, "i8")
            b.output(b.quantized_conv2d(x, w, b.constant(np.array(_zero(dtype), numpy_dtype(dtype))), **self.attributes))

    def layer(self, b: rx.Builder, name: str, dtype: str) -> None:
        """A convolution of dequantized bytes with a bias and a residual, quantized."""
        with b.function(name):
            x, w = b.input("x", self.shape(), dtype), b.weight(f"{name}.w", self.filters, "i8")
            zero, step = b.constant(np.array(_zero(dtype), numpy_dtype(dtype))), b.constant(np.float32(0.1))
            scale = b.weight(f"{name}.scale", (self.outputs,), "f32")
            axis = self.attributes["kernel_layout"].index("O")
            wide, real = b.dequantize(x, step, zero), b.dequantize(w, scale, b.constant(np.int8(0)), axis=axis)
            y = b.conv2d(wide, real, **self.attributes)
            bias = b.weight(f"{name}.bias", (self.outputs,), "f32")
            y = b.add(y, bias if self.layout == "NHWC" else b.reshape(bias, shape=(self.outputs, 1, 1)))
            y = b.relu(b.add(y, wide) if y.shape == wide.shape else y)
            b.output(b.quantize(y, b.constant(np.float32(0.7)), zero, dtype=dtype))


SAME = (1, 1, 1, 1)
CASES = [
    Case(("n", 5, 6, 8), 32, (1, 1)),
    Case((1, 9, 11, 12), 12, padding=SAME, layout="NCHW"),
    Case((1, 15, 16, 3), 24, (7, 7), (2, 2), (3, 3, 3, 3)),
    Case((2, 6, 7, 20), 40, (3, 3), (2, 2), SAME, groups=20),
    Case((2, "h", 11, 16), 33, strides=(2, 1), padding=(0, 2, 1, 0), dilation=(1, 2)),
    Case((1, 6, 7, 16), 128, padding=SAME, groups=2),
    Case((2, 6, 5, 6), 6, padding=SAME, groups=3, layout="NCHW"),
    Case(("n", 6, 5, 24), 24, padding=SAME, groups=3),
    Case((1, 6, 7, 16), 48, padding=SAME, groups=4),
    Case((1, "h", 7, 12), 12, strides=(2, 2), padding=SAME, groups=3),
    Case((1, 7, 7, 1), 1),
    Case((1, 2, 2, 4), 65, (1, 1)),
]
SIZES = {"n": 3, "h": 9}


def _zero(dtype: str) -> int:
    return -5 if dtype == "i8" else 131


@pytest.mark.parametrize("name", TARGETS)
def test_sums_are_exact(name: str) -> None:
    number = list(TARGETS).index(name)
    cases, dtype = CASES[number % 3 :: 3], "i8" if number % 2 else "ui8"
    builder = rx.Builder()
    for i, case in enumerate(cases):
        case.sums(builder, f"f{i}", dtype)
    for case, got, want in results(builder.build(), cases, dtype, name):
        np.testing.assert_array_equal(got, want, err_msg=str(case))


@pytest.mark.parametrize("dtype", ["ui8", "i8"])
def test_layers(dtype: str) -> None:
    cases, builder = CASES[dtype == "i8" :: 2], rx.Builder()
    for i, case in enumerate(cases):
        case.layer(builder, f"f{i}", dtype)
    for case, got, want in results(builder.build(), cases, dtype, None):
        apart = got.astype(int) - want.astype(int)
        assert np.abs(apart).max() <= 1, case  # where a sum of floats is at the edge between two
        assert (apart != 0).mean() < 0.01, case


def results(
    module: rx.Module, cases: list[Case], dtype: str, target: str | None
) -> Iterator[tuple[Case, np.ndarray, np.ndarray]]:
    """What code gives for each case, and what it should."""
    rng, raw = np.random.default_rng(0), dict[str, np.ndarray]()
    executable = rx.compile(module) if target is None else compile_for(module, target)
    for i, case in enumerate(cases):
        raw[f"f{i}.w"] = rng.integers(-128, 128, case.filters).astype(np.int8)
        raw[f"f{i}.scale"] = rng.uniform(0.001, 0.002, case.outputs).astype(np.float32)
        raw[f"f{i}.bias"] = rng.standard_normal(case.outputs).astype(np.float32)
    executable.bind(executable.prepare({name: raw[name] for name in executable.manifest.raw_weights}))
    for i, case in enumerate(cases):
        x = rng.integers(-128, 128, case.shape(SIZES)).astype(numpy_dtype(dtype))
        weights = {name: a for name, a in raw.items() if name.startswith(f"f{i}.") and name in executable.manifest.raw_weights}
        (want,) = rx.evaluate(module, f"f{i}", x, weights=weights)
        yield case, executable(x, entry=f"f{i}"), want


@pytest.mark.parametrize(("name", "instruction"), [("znver4", "vpdpbusd"), ("x86-64-v3", "vpmaddwd"), ("apple-m1", "sdot")])
def test_the_loop_multiplies_neighbours_by_one_instruction(name: str, instruction: str) -> None:
    builder = rx.Builder()
    CASES[0].sums(builder, "f", "ui8" if instruction != "sdot" else "i8")
    target = Target.parse(f"cpu:{name}")
    assert instruction in assembly(generated(builder.build(), name), target)


def test_a_layer_is_one_kernel() -> None:
    builder = rx.Builder()
    CASES[0].layer(builder, "f", "ui8")
    sections = {section.kind: section for section in rx.compile(builder.build()).report.sections}
    assert sections["quantize-convolutions"].integer == (("f.w", "f.scale"),)
    assert [kernel.kind for kernel in sections["kernels"].kernels] == ["contraction"]


def test_images_of_one_shape_take_turns_in_one_frame() -> None:
    """What is around them is written once, where the number is known."""
    builder = rx.Builder()
    with builder.function("main"):
        y = builder.input("x", (1, 8, 8, 32), "ui8")
        zero = builder.constant(np.uint8(7))
        for i in range(2):
            w = builder.weight(f"w{i}", (3, 3, 32, 32), "i8")
            sums = builder.quantized_conv2d(y, w, zero, padding=SAME, data_layout="NHWC", kernel_layout="HWIO")
            y = builder.quantize(builder.astype(sums, dtype="f32"), builder.constant(np.float32(99)), zero, dtype="ui8")
        builder.output(y)
    text = str(lowered(builder.build(), upto="relax-plan-contractions"))
    assert len(re.findall(r"linalg\.fill ins\(%c7_i8", text)) == 1
    assert not re.search(r"memref\.copy [^\n]* : memref<1x10x10x32xi8", text)

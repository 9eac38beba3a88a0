"""Contractions with several reductions against NumPy: convolutions of a padded image, packed filters, rows with floordivs."""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np
import pytest

from relaxir.lowering.cpu.codegen import assembly
from relaxir.lowering.llvm_text import llvm_ir
from relaxir.lowering.target import Target
from support.contractions import MARK, MULTIPLY_ADD, SCALED_MULTIPLY_ADD, contraction, packed, with_epilogue
from support.kernel_harness import NUMPY, Compiled, function, generic, memref, narrower, random


@dataclass(frozen=True)
class Convolution:
    """``out[p, o] += image[n, h * s + kh, w * s + kw, c] * filters[kh, kw, c, o]``; ``p`` is n, h and w in one."""

    n: int
    h: int
    w: int
    c: int
    o: int
    kernel: int = 3
    stride: int = 1
    tile: int = 16
    element: str = "f32"

    @property
    def rows(self):
        return self.n * self.h * self.w

    def arrays(self):
        sides = [(size - 1) * self.stride + self.kernel for size in (self.h, self.w)]
        image = random((self.n, *sides, self.c), self.element)
        return image, random((self.kernel, self.kernel, self.c, self.o), self.element, seed=1)

    def pack(self, filters):
        """[o / tile, kh, kw, c, tile]."""
        flat = packed(filters.reshape(-1, self.o), self.tile)
        return flat.reshape(-1, self.kernel, self.kernel, self.c, self.tile)

    def expected(self, image, filters):
        wide = np.int32 if self.element == "i8" else np.float64
        total = np.zeros((self.n, self.h, self.w, self.o), wide)
        for kh in range(self.kernel):
            for kw in range(self.kernel):
                rows = slice(kh, kh + (self.h - 1) * self.stride + 1, self.stride)
                columns = slice(kw, kw + (self.w - 1) * self.stride + 1, self.stride)
                total += image[:, rows, columns].astype(wide) @ filters[kh, kw].astype(wide)
        return total.reshape(self.rows, self.o)

    def maps(self):
        """A flat row: image, filters and result."""
        loops, s, one = "(p, o, kh, kw, c)", self.stride, self.h * self.w
        where = f"(p mod {one}) floordiv {self.w} * {s} + kh, (p mod {self.w}) * {s} + kw, c"
        return [
            f"{loops} -> (p floordiv {one}, {where})",
            f"{loops} -> (o floordiv {self.tile}, kh, kw, c, o mod {self.tile})",
            f"{loops} -> (p, o)",
        ]

    def body(self):
        if self.element == "f32":
            return MULTIPLY_ADD
        if self.element == "f64":
            return MULTIPLY_ADD.replace("f32", "f64")
        widen, wide = ("extsi", "i32") if self.element == "i8" else ("extf", "f32")
        kind = wide[0]
        return (
            f"  %u = arith.{widen} %x0 : {self.element} to {wide}\n  %v = arith.{widen} %x1 : {self.element} to {wide}\n"
            f"  %p = arith.mul{kind} %u, %v : {wide}\n  %q = arith.add{kind} %x2, %p : {wide}\n  linalg.yield %q : {wide}"
        )

    @property
    def result(self):
        return {"i8": "i32", "f64": "f64"}.get(self.element, "f32")

    def check(self, compiled):
        image, filters = self.arrays()
        out = np.full((self.rows, self.o), 9, NUMPY[self.result])
        compiled(image, self.pack(filters), out)
        want = self.expected(image, filters)
        np.testing.assert_allclose(out, want, rtol=1e-5, atol=1e-5 * np.abs(want).max(initial=0))

    def types(self, image="", result=""):
        arrays = self.arrays()
        first = image or memref(arrays[0].shape, self.element)
        return [
            first,
            memref(self.pack(arrays[1]).shape, self.element),
            result or memref((self.rows, self.o), self.result),
        ]


@pytest.mark.parametrize("bits", [128, 256, None])
@pytest.mark.parametrize(
    "case",
    [
        Convolution(1, 5, 7, 16, 32),
        Convolution(2, 5, 7, 3, 33),
        Convolution(1, 4, 4, 1, 16),
        Convolution(2, 6, 3, 5, 7, kernel=5, stride=2),
        Convolution(1, 1, 1, 8, 40),
        Convolution(3, 2, 9, 9, 17, kernel=1, stride=2),
    ],
    ids=str,
)
def test_a_flat_row(case, bits):
    target = narrower(bits) if bits else None
    case.check(contraction(case.maps(), "pprrr", case.types(), case.body(), target))


@pytest.mark.parametrize("element", ["f64", "bf16", "f16", "i8"])
def test_element_types(element):
    case = Convolution(2, 5, 7, 6, 35, element=element)
    case.check(contraction(case.maps(), "pprrr", case.types(), case.body()))


def test_dynamic_batches_and_outputs():
    first = Convolution(1, 5, 7, 6, 35)
    types = ["memref<?x7x9x6xf32>", "memref<?x3x3x6x16xf32>", "memref<?x?xf32>"]
    compiled = contraction(first.maps(), "pprrr", types)
    for n in (0, 1, 2, 3):
        for o in (1, 15, 16, 35):
            Convolution(n, 5, 7, 6, o).check(compiled)


@pytest.mark.parametrize("dynamic", [False, True])
def test_rows_of_several_loops(dynamic):
    """Rows are a loop for each of batch, height and width, of sizes known at run time."""
    loops = "(n, h, w, o, kh, kw, c)"
    maps = [
        f"{loops} -> (n, h * 2 + kh, w * 2 + kw, c)",
        f"{loops} -> (o floordiv 16, kh, kw, c, o mod 16)",
        f"{loops} -> (n, h, w, o)",
    ]
    for n, h, w, c, o in [(2, 3, 8, 4, 20), (1, 5, 13, 1, 16), (3, 1, 6, 7, 1)]:
        case = Convolution(n, h, w, c, o, stride=2)
        image, filters = case.arrays()
        out = np.full((n, h, w, o), 9, np.float32)
        arrays = image, case.pack(filters), out
        contraction(maps, "pppprrr", [memref(x.shape, dynamic=dynamic and x is not arrays[1]) for x in arrays])(*arrays)
        np.testing.assert_allclose(out.reshape(-1, o), case.expected(image, filters), atol=1e-4)


def test_an_epilogue():
    case = Convolution(2, 5, 7, 6, 35)
    image, filters = case.arrays()
    bias, out = random((35,), seed=2), np.zeros((case.rows, 35), np.float32)
    body = "  %s = arith.addf %x0, %x1 : f32\n  linalg.yield %s : f32"
    maps = ["(p, o) -> (p, o)", "(p, o) -> (o)", "(p, o) -> (p, o)"]
    types = [*case.types()[:2], memref(bias.shape), memref(out.shape)]
    compiled = with_epilogue(case.maps(), types, body, maps, kinds="pprrr")
    compiled(image, case.pack(filters), bias, out)
    np.testing.assert_allclose(out, case.expected(image, filters) + bias, atol=1e-4)
    assert "malloc" not in compiled.text


@pytest.mark.parametrize("width", [3, 16])
def test_loops_that_are_contiguous_are_one(width):
    """The last two reductions of an image are neighbours in memory: three loops over 3 * c, not nine over c."""
    case = Convolution(1, 6, width, 4, 16)
    text = contraction(case.maps(), "pprrr", case.types()).text
    assert "mlir.constant(12 : index)" in text


def test_images_in_rows_of_channels():
    """NCHW: pixels are the vector, and are read unpacked."""
    n, c, o, h, w = 2, 5, 7, 4, 19
    image, filters = random((n, c, h + 2, w + 2)), random((o, c, 3, 3), seed=1)
    loops = "(n, h, o, w, c, kh, kw)"
    maps = [f"{loops} -> (o, c, kh, kw)", f"{loops} -> (n, c, h + kh, w + kw)", f"{loops} -> (n, o, h, w)"]
    out = np.ones((n, o, h, w), np.float32)
    contraction(maps, "pppprrr", [memref(x.shape) for x in (filters, image, out)])(filters, image, out)
    case = Convolution(n, h, w, c, o)
    want = case.expected(image.transpose(0, 2, 3, 1), filters.transpose(2, 3, 1, 0)).reshape(n, h, w, o)
    np.testing.assert_allclose(out, want.transpose(0, 3, 1, 2), atol=1e-4)


def test_quantized_filters():
    case = Convolution(2, 5, 7, 6, 35)
    image, _ = case.arrays()
    filters, scale = random((3, 3, 6, 35), "i8", seed=1), random((35,), seed=2)
    maps = [*case.maps()[:2], "(p, o, kh, kw, c) -> (o)", case.maps()[2]]
    types = [case.types()[0], memref((3, 3, 3, 6, 16), "i8"), memref((35,)), case.types()[2]]
    out = np.zeros((case.rows, 35), np.float32)
    Compiled(function(types, generic(maps, "pprrr", types, SCALED_MULTIPLY_ADD, MARK)))(image, case.pack(filters), scale, out)
    want = case.expected(image, filters * scale)
    np.testing.assert_allclose(out, want, atol=1e-5 * np.abs(want).max(initial=0))


def test_the_loops_over_reductions_hold_no_division():
    """Rows are found once per tile: what divides a row number is outside of what sums.

    By a constant that is a multiplication by a large one; those by strides, which are small, may be there.
    """
    case, target = Convolution(2, 5, 7, 6, 32), Target.parse("cpu:x86-64-v3")
    compiled = contraction(case.maps(), "pprrr", case.types(), target=target)
    text = assembly(llvm_ir(compiled.module.operation), target)
    sums = [block for block in re.split(r"^\.L\w+:|^\tj\w+", text, flags=re.MULTILINE) if "vfmadd" in block]
    assert sums
    lines = [re.sub(r"imulq\t\$\d{1,5},", "strides", line) for block in sums for line in block.splitlines()]
    assert not [line for line in lines if re.search(r"div|i?mul[lq]|mulx", line)]

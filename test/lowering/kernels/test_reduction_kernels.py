"""Reduction kernels against NumPy: every subset of dimensions, every combiner, static and dynamic."""

import itertools

import numpy as np
import pytest

from support.kernel_harness import Compiled, function, generic, memref, narrower, random

COMBINERS = {
    "addf": (np.add.reduce, "f32"),
    "mulf": (np.multiply.reduce, "f32"),
    "maximumf": (np.maximum.reduce, "f32"),
    "minimumf": (np.minimum.reduce, "f32"),
    "addi": (np.add.reduce, "i32"),
    "maxsi": (np.maximum.reduce, "i64"),
    "minsi": (np.minimum.reduce, "i8"),
    "ori": (np.bitwise_or.reduce, "i32"),
    "andi": (np.bitwise_and.reduce, "i32"),
    "xori": (np.bitwise_xor.reduce, "i32"),
}


def check(shape, axes, combiner="addf", dynamic=False, order=None, target=None):
    """Reduces an array stored in another order of dimensions into an output that holds something already."""
    reduce, element = COMBINERS[combiner]
    names = [f"d{i}" for i in range(len(shape))]
    order = order or list(range(len(shape)))
    kept = [i for i in range(len(shape)) if i not in axes]
    dims = ", ".join(names)
    maps = [f"({dims}) -> ({', '.join(names[i] for i in which)})" for which in (order, kept)]
    x, out = random(tuple(shape[i] for i in order), element), random(tuple(shape[i] for i in kept), element, 1)
    types = [memref(x.shape, element, dynamic), memref(out.shape, element, dynamic)]
    body = f"  %y = arith.{combiner} %x1, %x0 : {element}\n  linalg.yield %y : {element}"
    kinds = "".join("r" if i in axes else "p" for i in range(len(shape)))
    expected = np.asarray(x.transpose(np.argsort(order)))
    for axis in sorted(axes, reverse=True):
        expected = reduce(expected, axis=axis, dtype=expected.dtype)
    expected = reduce(np.stack([expected, out]), axis=0, dtype=out.dtype)
    Compiled(function(types, generic(maps, kinds, types, body)), target)(x, out)
    if element == "f32":
        np.testing.assert_allclose(out, expected, rtol=1e-4, atol=1e-4)
    else:
        np.testing.assert_array_equal(out, expected)


@pytest.mark.parametrize("dynamic", [False, True])
@pytest.mark.parametrize("combiner", COMBINERS)
def test_combiners(combiner, dynamic):
    check((5, 77), (1,), combiner, dynamic)
    check((77, 5), (0,), combiner, dynamic)


@pytest.mark.parametrize("rank", [1, 2, 3, 4])
def test_subsets_of_dimensions_in_any_order(rank):
    rng = np.random.default_rng(rank)
    for count in range(1, rank + 1):
        for axes in itertools.combinations(range(rank), count):
            shape = tuple(int(n) for n in rng.choice([1, 2, 3, 7, 16, 33], rank))
            check(shape, axes, dynamic=bool(rng.integers(2)), order=[int(i) for i in rng.permutation(rank)])


@pytest.mark.parametrize("size", [1, 15, 16, 17, 63, 64, 65, 80, 127, 1000])
def test_row_lengths(size):
    check((3, size), (1,), "addf")
    check((3, size), (1,), "maximumf", dynamic=True)
    check((size, 3), (0,), "addf", dynamic=True)


@pytest.mark.parametrize("bits", [128, 256])
def test_narrower_vectors(bits):
    for axes in ((0,), (1,), (0, 1)):
        check((19, 37), axes, dynamic=True, target=narrower(bits))


def test_maximum_keeps_nan_and_masked_lanes_do_not_count():
    types = [memref((2, 20)), memref((2,))]
    body = "  %y = arith.maximumf %x1, %x0 : f32\n  linalg.yield %y : f32"
    x, out = np.full((2, 20), -5, np.float32), np.full(2, -np.inf, np.float32)
    x[1, 17] = np.nan
    Compiled(function(types, generic(["(i, j) -> (i, j)", "(i, j) -> (i)"], "pr", types, body)))(x, out)
    np.testing.assert_array_equal(out, [-5, np.nan])


def test_empty_reduction_keeps_the_initial_value():
    types = [memref((0, 0), dynamic=True), memref((0,), dynamic=True)]
    body = "  %y = arith.addf %x1, %x0 : f32\n  linalg.yield %y : f32"
    compiled = Compiled(function(types, generic(["(i, j) -> (i, j)", "(i, j) -> (i)"], "pr", types, body)))
    out = np.array([1, 2, 3], np.float32)
    compiled(np.zeros((3, 0), np.float32), out)
    np.testing.assert_array_equal(out, [1, 2, 3])
    compiled(np.zeros((0, 3), np.float32), out[:0])


@pytest.mark.parametrize("rows", [1, 5, 40])
@pytest.mark.parametrize("dynamic", [False, True])
def test_two_results_that_depend_on_each_other(rows, dynamic):
    types = [memref((rows, 50), dynamic=dynamic), memref((rows,), dynamic=dynamic), memref((rows,), "i64", dynamic)]
    body = """
      %i = linalg.index 1 : index
      %k = arith.index_cast %i : index to i64
      %c = arith.cmpf ogt, %x0, %x1 : f32
      %v = arith.select %c, %x0, %x1 : f32
      %w = arith.select %c, %k, %x2 : i64
      linalg.yield %v, %w : f32, i64"""
    maps = ["(i, j) -> (i, j)", "(i, j) -> (i)", "(i, j) -> (i)"]
    x, best, place = random((rows, 50)), np.full(rows, -np.inf, np.float32), np.zeros(rows, np.int64)
    Compiled(function(types, generic(maps, "pr", types, body, outputs=2)))(x, best, place)
    np.testing.assert_array_equal(best, x.max(1))
    np.testing.assert_array_equal(place, x.argmax(1))


def test_windows_along_two_dimensions():
    maps = [
        "(c, y, x, u, v) -> (c, y * 2 + u, x * 2 + v)",
        "(c, y, x, u, v) -> (u, v)",
        "(c, y, x, u, v) -> (c, y, x)",
    ]
    types = [memref((3, 9, 41)), memref((3, 3)), memref((3, 4, 20))]
    body = "  %y = arith.maximumf %x2, %x0 : f32\n  linalg.yield %y : f32"
    x, window, out = random((3, 9, 41)), np.zeros((3, 3), np.float32), np.full((3, 4, 20), -np.inf, np.float32)
    Compiled(function(types, generic(maps, "ppprr", types, body)))(x, window, out)
    views = np.lib.stride_tricks.sliding_window_view(x, (3, 3), (1, 2))[:, ::2, ::2]
    np.testing.assert_array_equal(out, views.max((-1, -2)))


@pytest.mark.parametrize("dynamic", [False, True])
@pytest.mark.parametrize("channels", [1, 7, 24])
@pytest.mark.parametrize("width", [1, 4, 7])
def test_taps_that_neighbours_share(width, channels, dynamic):
    maps = ["(h, w, c, y, x) -> (h + y, w * 2 + x, c)", "(h, w, c, y, x) -> (y, x, c)", "(h, w, c, y, x) -> (h, w, c)"]
    x, taps = random((4, 2 * width + 1, channels), "f32"), random((3, 3, channels), "f32", 1)
    out = random((2, width, channels), "f32", 2)
    types = [memref(a.shape, "f32", dynamic) for a in (x, taps, out)]
    body = "  %y = math.fma %x0, %x1, %x2 : f32\n  linalg.yield %y : f32"
    windows = np.lib.stride_tricks.sliding_window_view(x, (3, 3), axis=(0, 1))[:, ::2]
    expected = out + np.einsum("hwcyx,yxc->hwc", windows, taps)
    Compiled(function(types, generic(maps, "ppprr", types, body)))(x, taps, out)
    np.testing.assert_allclose(out, expected, rtol=1e-4, atol=1e-4)

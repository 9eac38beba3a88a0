"""Sizes inside of a function that its inputs make impossible: refused by evaluate and before compiled code runs."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import relaxir as rx
from support.guard_pages import guarded_copy, in_child


def built(shapes: list[tuple[Any, ...]], make: Callable[..., Any]) -> rx.Module:
    b = rx.Builder()
    with b.function("main"):
        b.output(y=make(b, *[b.input(f"x{i}", s, "f32") for i, s in enumerate(shapes)]))
    return b.build()


def outcomes(*functions: Callable[[], Any]) -> list[Any]:
    """The sum and shape of each result, or the message; in a process of its own, with inputs against a guard page."""

    def run(function: Callable[[], Any]) -> Any:
        try:
            (result,) = function()
        except rx.RelaxError as error:
            return str(error)
        return result.shape, float(result.sum())

    return in_child(lambda: [run(function) for function in functions])


@functools.lru_cache(maxsize=1)
def compiled(module: rx.Module) -> rx.Executable:
    """Once, for all calls of a test."""
    return rx.compile(module)


def both(module: rx.Module, sizes: list[tuple[int, ...]]) -> tuple[Any, Any]:
    """What evaluate gives, and compiled code."""
    inputs = [np.ones(s, np.float32) for s in sizes]
    executable = compiled(module)
    expected, got = outcomes(lambda: rx.evaluate(module, "main", *inputs), lambda: [executable(*map(guarded_copy, inputs))])
    return expected, got


def full(size: str) -> Callable[..., Any]:
    """Something whose size shows inside only."""
    return lambda b, x, *_: b.add(b.sum(x), b.sum(b.cumsum(b.full((size,), 1.0, "f32"), axis=0)))


@pytest.mark.parametrize(
    ("size", "fine", "bad", "message"),
    [
        ("n - 5", [(5, 1), (9, 1)], [(2, 1), (4, 3)], "expected a size of 0 or more for 'n - 5', got -"),
        ("n - m", [(5, 5), (9, 1)], [(2, 4)], "expected a size of 0 or more for '-m + n', got -2 (m = 4"),
        ("n // (m - 3)", [(6, 5), (6, 4)], [(6, 2)], "expected a size of 0 or more for 'n // (m - 3)', got -6"),
        ("n // (m - 3)", [(6, 9)], [(6, 3)], "expected no division by zero in 'n // (m - 3)', got m = 3, n = 6"),
        ("n % (m - 3)", [(6, 5), (6, 2)], [(6, 3)], "expected no division by zero in 'n % (m - 3)', got m = 3"),
        (
            "(n - 5) // 2 + 2",
            [(1, 1), (2, 1), (8, 1)],
            [(0, 1)],
            "expected a size of 0 or more for '((n - 5) // 2) + 2', got -1 (n = 0",
        ),
        ("n * n - 4 * n", [(4, 1), (7, 1)], [(3, 1)], "expected a size of 0 or more for 'n * n - n * 4', got -3"),
    ],
)
def test_inner_sizes(size: str, fine: list[tuple[int, int]], bad: list[tuple[int, int]], message: str) -> None:
    module = built([("n",), ("m",)], full(size))
    for n, m in fine:
        expected, got = both(module, [(n,), (m,)])
        assert got == expected
        assert expected[0] == ()
    for n, m in bad:
        expected, got = both(module, [(n,), (m,)])
        assert message in got
        assert re.sub(r" \(. = .$", "", message) in expected
        assert re.match(r".*test_extreme_sizes.py:\d+:\d+: 'relax.full' op expected", expected)


@pytest.mark.parametrize(("n", "size"), [(1, 1), (2, 1), (3, 2), (5, 3)])
def test_sizes_of_results_round_down(n: int, size: int) -> None:
    """Compiled code that rounds towards 0 would write one element too many."""
    module = built([("n",)], lambda b, x: b.full(("(n - 5) // 2 + 3",), 1.0, "f32"))
    assert both(module, [(n,)]) == (((size,), size), ((size,), size))


def test_remainders_of_negative_numbers_are_floored() -> None:
    module = built([("n",)], lambda b, x: b.full(("(n - 5) % 3",), 1.0, "f32"))
    for n in range(1, 8):
        assert both(module, [(n,)]) == (((((n - 5) % 3),), (n - 5) % 3),) * 2


def test_a_size_in_a_branch_that_is_not_taken() -> None:
    """Buffers in it have places among others: a negative one would move those."""
    module = rx.Module.parse("""
        func.func @main(%x: tensor<?xf32, {sym = ["n"]}>, %c: tensor<i1>) -> tensor<f32> {
          %i = tensor.extract %c[] : tensor<i1>
          %r = scf.if %i -> tensor<f32> {
            %a = "relax.full"() {value = 1.0 : f64} : () -> tensor<?xf32, {sym = ["n - 5"]}>
            %s = "relax.sum"(%a) : (tensor<?xf32, {sym = ["n - 5"]}>) -> tensor<f32>
            scf.yield %s : tensor<f32>
          } else {
            %s = "relax.sum"(%x) : (tensor<?xf32, {sym = ["n"]}>) -> tensor<f32>
            scf.yield %s : tensor<f32>
          }
          return %r : tensor<f32>
        }""")
    executable = rx.compile(module)
    for taken in (True, False):
        x, c = np.ones(2, np.float32), np.array(taken)
        for run in (lambda: rx.evaluate(module, "main", x, c), lambda: executable(x, c)):  # noqa: B023
            with pytest.raises(rx.RelaxError, match="expected a size of 0 or more for 'n - 5', got -3"):
                run()


@pytest.mark.parametrize(
    ("shape", "n", "total"),
    [
        (("n", "n", "n"), 1 << 21, "'n * n * n * 4' = 36893488147419103232"),
        (("n", 1 << 40), 1 << 21, "'n * 4398046511104' = "),
    ],
)
def test_memory_beyond_64_bits(shape: tuple[Any, ...], n: int, total: str) -> None:
    """An arena that such sizes overflow would be small, and what is written to it would not."""
    module = built([("n",)], lambda b, x: b.sum(b.cumsum(b.full(shape, 1.0, "f32"), axis=1)))
    expected, got = both(module, [(n,)])
    assert "'relax.full' op expected" in expected
    assert f"'relax.full' op expected less than 2**63 bytes, got {total}" in got
    assert f"(n = {n} from input 'x0')" in got


def test_values_of_symbols_beyond_64_bits() -> None:
    module = built([("n - 2305843009213693951",)], lambda b, x: b.full(("n - 2305843009213693950",), 1, "i8"))
    assert both(module, [(3,)]) == (((4,), 4), ((4,), 4))
    module = built([("n - 9223372036854775807",)], lambda b, x: b.relu(x))
    with pytest.raises(rx.RelaxError, match=r"expected numbers of at most 2\*\*63 - 1 in a dimension, got 'n \* 4 - "):
        rx.compile(module)
    with pytest.raises(rx.RelaxError, match="expected a size of the form 'n - 9223372036854775807', got 3"):
        rx.evaluate(module, "main", np.ones(3, np.float32))


def test_static_scratch_memory_beyond_64_bits() -> None:
    def make(b: rx.Builder, x: Any) -> Any:
        large = [b.cumsum(b.full((1 << 60,), float(i), "f32"), axis=0) for i in range(3)]
        return b.add(b.sum(x), b.sum(b.concat(large, axis=0)))

    with pytest.raises(rx.RelaxError, match=r"expected a tensor of less than 2\*\*63 bytes"):
        built([(3,)], make)


def test_buffers_of_sizes_that_data_decides() -> None:
    """What a branch returns has any size, so that buffers of that size are allocated when it is known."""
    module = rx.Module.parse("""
        func.func @main(%x: tensor<?xf32>, %c: tensor<i1>) -> tensor<f32> {
          %i = tensor.extract %c[] : tensor<i1>
          %r = scf.if %i -> tensor<?xf32> {
            %d = "relax.concat"(%x, %x) {axis = 0 : i64} : (tensor<?xf32>, tensor<?xf32>) -> tensor<?xf32>
            scf.yield %d : tensor<?xf32>
          } else {
            scf.yield %x : tensor<?xf32>
          }
          %a = "relax.reshape"(%r) : (tensor<?xf32>) -> tensor<?x1x1xf32>
          %b = "relax.reshape"(%r) : (tensor<?xf32>) -> tensor<1x?x1xf32>
          %d = "relax.reshape"(%r) : (tensor<?xf32>) -> tensor<1x1x?xf32>
          %p = "relax.multiply"(%a, %b) : (tensor<?x1x1xf32>, tensor<1x?x1xf32>) -> tensor<?x?x1xf32>
          %q = "relax.multiply"(%p, %d) : (tensor<?x?x1xf32>, tensor<1x1x?xf32>) -> tensor<?x?x?xf32>
          %e = "relax.cumsum"(%q) {axis = 1 : i64} : (tensor<?x?x?xf32>) -> tensor<?x?x?xf32>
          %s = "relax.sum"(%e) : (tensor<?x?x?xf32>) -> tensor<f32>
          return %s : tensor<f32>
        }""")
    executable = rx.compile(module)
    assert executable(np.ones(3, np.float32), np.array(True)) == 6 * 6 * 21
    # The product of 2**17 numbers takes 2**53 bytes, which nobody has; of 2**22 it takes 2**68, which are 0 in 64 bits.
    for n in (1 << 16, 1 << 21):
        x = np.ones(n, np.float32)
        message = "expected memory for a buffer of a size that depends on data, got none"
        assert message in outcomes(lambda x=x: [executable(x, np.array(True))])[0]


def test_reports_count_beyond_64_bits() -> None:
    """Three weights of 2**62 bytes: each is one that 64 bits hold, and what is said of all together is right."""
    size = 1 << 30
    b = rx.Builder()
    with b.function("main"):
        x, weights = b.input("x", ("n", size), "f32"), [b.weight(name, (size, size), "f32") for name in ("u", "v", "w")]
        b.output(y=b.matmul(x, b.permute_dims(b.add(b.add(*weights[:2]), weights[2]), axes=[1, 0])))
    module = b.build()
    executable = rx.compile(module)
    assert executable.manifest.peak_bytes >= 4 << 62
    assert f"raw weights: 3, {3 << 62} bytes" in str(executable.report)
    with pytest.raises(rx.RelaxError, match=r"expected a peak of less than 2\*\*63 bytes, got "):
        module.run("relax-lift-transform-params,relax-lazy-transform-params,relax-schedule-lazy-io")


#: The largest steps of windows, of an image of known and of unknown size: at most one window fits.
FAR = 2**31 - 1
WINDOWS: dict[str, Callable[..., Any]] = {
    "strides": lambda b, x, w: b.conv2d(x, w, strides=(FAR, FAR)),
    "strides and padding": lambda b, x, w: b.conv2d(x, w, strides=(FAR, FAR), padding=(1, 1, 1, 1)),
    "dilation": lambda b, x, w: b.conv2d(x, b.strided_slice(w, axes=[2, 3], begin=[0, 0], end=[1, 1]), dilation=(FAR, FAR)),
    "pooling": lambda b, x, w: b.max_pool2d(x, pool_size=(2, 3), strides=(FAR, FAR)),
}


@pytest.mark.parametrize("target", ["cpu", "cuda:sm_80"])
@pytest.mark.parametrize("size", [(1, 4, 6, 7), (1, 4, "h", "w")], ids=["known", "unknown"])
@pytest.mark.parametrize("window", list(WINDOWS))
def test_windows_of_the_largest_steps(window: str, size: tuple[Any, ...], target: str) -> None:
    b = rx.Builder()
    with b.function("main"):
        b.output(y=WINDOWS[window](b, b.input("x", size, "f32"), b.input("w", (8, 4, 2, 3), "f32")))
    rng = np.random.default_rng(0)
    arrays = [rng.random((1, 4, 6, 7), np.float32), rng.random((8, 4, 2, 3), np.float32)]
    module = b.build()
    (expected,) = rx.evaluate(module, "main", *arrays)
    made = rx.compile(module) if target == "cpu" else rx.compile(module, target, device="emulated")
    np.testing.assert_allclose(made(*arrays), expected, rtol=1e-5)  # sums of 24 products, in another order

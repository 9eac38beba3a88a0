"""``relaxir.Builder``: shapes, operators, functions and calls; every mistake is a RelaxError at the caller's line."""

from __future__ import annotations

import inspect
import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import relaxir as rx
from relaxir.building.value import Value
from relaxir.dialect import ops  # noqa: F401  fills the dialect
from relaxir.dialect.relax import Relax

THIS = __file__


class GiveUp(Exception):  # noqa: N818
    """Ends a function that a test does not finish."""


@contextmanager
def building(**inputs: tuple[tuple[Any, ...], str]) -> Iterator[tuple[Any, ...]]:
    """An open function ``f`` with inputs, given up at the end."""
    b = rx.Builder()
    with suppress(GiveUp), b.function("f"):
        yield b, *(b.input(name, shape, dtype) for name, (shape, dtype) in inputs.items())
        raise GiveUp


def check_text(build: Callable[[Any, Value], Value], expected: str) -> None:
    """Builds ``f(x: f32[n, 4])`` and compares the readable lines of its body, the return left out."""
    b = rx.Builder()
    with b.function("f"):
        b.output(build(b, b.input("x", ("n", 4))))
    from relaxir.script import script

    assert "\n".join(line.strip() for line in script(b.build().ir).splitlines()[1:-2]) == expected


def test_example_of_the_module_docstring():
    b = rx.Builder()
    with b.function("main"):
        x = b.input("x", ("n", 64))
        w = b.weight("fc.weight", (64, 64))
        b.output(b.relu(b.matmul(x, b.permute_dims(w, axes=[1, 0]))))
    module = b.build()
    assert str(module.functions["main"]) == "@main(%x: f32[n, 64], *, %fc.weight: f32[64, 64]) -> (f32[n, 64])"
    data = np.random.default_rng(0).standard_normal((3, 64), np.float32)
    weight = np.random.default_rng(1).standard_normal((64, 64), np.float32)
    (y,) = rx.evaluate(module, "main", data, weights={"fc.weight": weight})
    np.testing.assert_allclose(y, np.maximum(data @ weight.T, 0), atol=1e-4)


def test_every_op_is_a_method():
    # IO and keep are what passes make, and prim_value is for control flow.
    without = {"bind_argument", "get_param", "keep", "prim_value", "set_output"}
    names = {cls.OPERATION_NAME.removeprefix("relax.") for cls in Relax.operations}
    assert {n for n in names if not hasattr(rx.Builder, n)} == without


def test_methods_have_signature_and_text():
    signature = inspect.signature(rx.Builder.attention)
    assert list(signature.parameters) == ["self", "query", "key", "value", "mask", "scale", "causal"]
    assert signature.parameters["causal"].default is False
    assert "arXiv:1706.03762" in rx.Builder.attention.__doc__
    assert rx.Builder.attention.__name__ == "attention"


@pytest.mark.parametrize(
    ("build", "expected"),
    [
        (lambda b, x: x + 1, "%0: f32[] = full(value=1.0)\n%1: f32[n, 4] = add(%x, %0)"),
        (lambda b, x: 1 - x, "%0: f32[] = full(value=1.0)\n%1: f32[n, 4] = subtract(%0, %x)"),
        (lambda b, x: x - x, "%0: f32[n, 4] = subtract(%x, %x)"),
        (lambda b, x: x * 2.5, "%0: f32[] = full(value=2.5)\n%1: f32[n, 4] = multiply(%x, %0)"),
        (lambda b, x: np.float32(2.5) * x, "%0: f32[] = full(value=2.5)\n%1: f32[n, 4] = multiply(%0, %x)"),
        (lambda b, x: x / 2, "%0: f32[] = full(value=2.0)\n%1: f32[n, 4] = divide(%x, %0)"),
        (lambda b, x: 2 / x, "%0: f32[] = full(value=2.0)\n%1: f32[n, 4] = divide(%0, %x)"),
        (lambda b, x: x // 2, "%0: f32[] = full(value=2.0)\n%1: f32[n, 4] = floor_divide(%x, %0)"),
        (lambda b, x: 2 // x, "%0: f32[] = full(value=2.0)\n%1: f32[n, 4] = floor_divide(%0, %x)"),
        (lambda b, x: x % 2, "%0: f32[] = full(value=2.0)\n%1: f32[n, 4] = mod(%x, %0)"),
        (lambda b, x: 2 % x, "%0: f32[] = full(value=2.0)\n%1: f32[n, 4] = mod(%0, %x)"),
        (lambda b, x: x**2, "%0: f32[] = full(value=2.0)\n%1: f32[n, 4] = power(%x, %0)"),
        (lambda b, x: 2**x, "%0: f32[] = full(value=2.0)\n%1: f32[n, 4] = power(%0, %x)"),
        (lambda b, x: -x, "%0: f32[n, 4] = negative(%x)"),
        (lambda b, x: abs(x), "%0: f32[n, 4] = abs(%x)"),
        (lambda b, x: x > 0, "%0: f32[] = full(value=0.0)\n%1: i1[n, 4] = greater(%x, %0)"),
        (lambda b, x: x >= x, "%0: i1[n, 4] = greater_equal(%x, %x)"),
        (lambda b, x: 0 > x,  # noqa: SIM300
          "%0: f32[] = full(value=0.0)\n%1: i1[n, 4] = less(%x, %0)"),
        (lambda b, x: x <= x, "%0: i1[n, 4] = less_equal(%x, %x)"),
        (lambda b, x: x == x, "%0: i1[n, 4] = equal(%x, %x)"),
        (lambda b, x: x != x, "%0: i1[n, 4] = not_equal(%x, %x)"),
        (lambda b, x: b.where(x == x, x, 0.0),
         "%0: i1[n, 4] = equal(%x, %x)\n%1: f32[] = full(value=0.0)\n%2: f32[n, 4] = where(%0, %x, %1)"),
        (lambda b, x: b.where(x == x, 0, x),
         "%0: i1[n, 4] = equal(%x, %x)\n%1: f32[] = full(value=0.0)\n%2: f32[n, 4] = where(%0, %1, %x)"),
        (lambda b, x: b.mean(x, -1, keepdims=True), "%0: f32[n, 1] = mean(%x, axis=[-1], keepdims=true)"),
        (lambda b, x: b.astype(x, "bf16"), "%0: bf16[n, 4] = astype(%x, dtype=bf16)"),
        (lambda b, x: b.astype(x, dtype=np.int8), "%0: i8[n, 4] = astype(%x, dtype=i8)"),
        (lambda b, x: b.permute_dims(x), "%0: f32[4, n] = permute_dims(%x)"),
        (lambda b, x: x @ b.permute_dims(x, [1, 0]),
         "%0: f32[4, n] = permute_dims(%x, axes=[1, 0])\n%1: f32[n, n] = matmul(%x, %0)"),
        (lambda b, x: b.reshape(x, ("n", 2, -1)), "%0: f32[n, 2, 2] = reshape(%x)"),
        (lambda b, x: b.reshape(x, [-1]), "%0: f32[n * 4] = reshape(%x)"),
        (lambda b, x: b.reshape(x, (x.shape[0] * 2, 2)), "%0: f32[n * 2, 2] = reshape(%x)"),
        (lambda b, x: b.broadcast_to(x, (3, "n", 4)), "%0: f32[3, n, 4] = broadcast_to(%x)"),
        (lambda b, x: b.match_cast(x, (8, 4)), "%0: f32[8, 4] = match_cast(%x)"),
        (lambda b, x: b.full(("n", 2), -1, "i8"), "%0: i8[n, 2] = full(value=-1)"),
        (lambda b, x: b.full((), True, "i1"), "%0: i1[] = full(value=true)"),
        (lambda b, x: b.arange(5), "%0: i64[5] = arange(end=[5], start=[0], step=[1])"),
        (lambda b, x: b.arange(1, "n * 2", 2, dtype="f32"), "%0: f32[n] = arange(end=[n * 2], start=[1], step=[2])"),
        (lambda b, x: b.arange(5, 0, -2), "%0: i64[3] = arange(end=[0], start=[5], step=[-2])"),
        (lambda b, x: b.arange(5, 0), "%0: i64[0] = arange(end=[0], start=[5], step=[1])"),
        (lambda b, x: b.shape_value("n + 1", "i32"), "%0: i32[] = shape_value(value=[n + 1])"),
        (lambda b, x: b.concat([x, x, x], axis=1),
         "%0: f32[n, 8] = concat(%x, %x, axis=1)\n%1: f32[n, 12] = concat(%0, %x, axis=1)"),
        (lambda b, x: b.split(x, 2, axis=-1)[1], "%0: f32[n, 2], %1: f32[n, 2] = split(%x, axis=-1, sections=2)"),
        (lambda b, x: b.split(x, 1)[0], "%0: f32[n, 4] = split(%x, axis=0, sections=1)"),
        (lambda b, x: b.clip(x, max=1), "%0: f32[n, 4] = clip(%x, max=1)"),
        (lambda b, x: b.constant([1, 2]), "%0: i64[2] = constant(value=[1, 2])"),
        (lambda b, x: b.constant(0.5), "%0: f32[] = constant(value=0.5)"),
        (lambda b, x: b.constant([True]), "%0: i1[1] = constant(value=true)"),
        (lambda b, x: b.constant([1, 2], "bf16"), "%0: bf16[2] = constant(value=[1.0, 2.0])"),
    ],
)  # fmt: skip
def test_built_ops(build: Callable[[Any, Value], Value], expected: str):
    check_text(build, expected)


def test_operators_on_integers_and_truth_values():
    with building(i=((3,), "i32"), c=((3,), "i1")) as (_, i, c):
        for value, dtype in [
            (i & 3, "i32"),
            (i | i, "i32"),
            (i ^ 1, "i32"),
            (~i, "i32"),
            (i + True, "i32"),
            (c & c, "i1"),
            (~c, "i1"),
        ]:
            assert (value.shape, value.dtype) == ((3,), dtype)


def test_attention_with_and_without_mask():
    with building(q=((9, "n", 64), "f32"), k=((3, "n", 64), "f32"), m=(("n", "n"), "i1")) as (b, q, k, m):
        assert b.attention(q, k, k, causal=True).shape == q.shape
        assert b.attention(q, k, k, m).shape == q.shape
        assert b.attention(q, k, k, mask=m, scale=0.5).shape == q.shape


@pytest.mark.parametrize(
    ("name", "dtype"),
    [("float32", "f32"), ("bfloat16", "bf16"), ("bool", "i1"), ("int8", "i8"), ("uint8", "ui8"), ("int4", "i4"), ("i8", "i8")],
)
def test_long_names_of_dtypes(name: str, dtype: str) -> None:
    b = rx.Builder()
    with b.function("main"):
        x = b.input("x", (2,), name)
        assert (x.dtype, b.full((1,), 1, name).dtype) == (dtype, dtype)
        b.output(y=x)


def test_unsigned_numbers_that_no_i64_holds() -> None:
    b = rx.Builder()
    with b.function("main"):
        x = b.input("x", (2,), "ui64")
        b.output(b.full((1,), 2**64 - 1, "ui64"), b.clip(x, max=2**63), b.pad(x, [1], [0], 2**64 - 1), x + 2**63)
    module = b.build()
    x = np.array([1, 2**64 - 1], np.uint64)
    wanted = [[2**64 - 1], [1, 2**63], [2**64 - 1, 1, 2**64 - 1], [2**63 + 1, 2**63 - 1]]
    for found in (rx.compile(module)(x), rx.evaluate(rx.Module.parse(str(module)), "main", x)):
        assert [f.tolist() for f in found] == wanted


def test_shape_and_dtype_of_a_value():
    with building(x=(("n", "?", 4), "bf16")) as (_, x):
        assert [str(d) for d in x.shape] == ["n", "None", "4"]
        assert str(x.shape[0] * 2 + 1) == "n * 2 + 1"
        assert repr(x) == "<relaxir.Value: bf16[n, ?, 4]>"
        assert len({x, x}) == 1


@pytest.mark.parametrize(
    "dtype", ["f64", "f32", "f16", "bf16", "f8E4M3FN", "f8E5M2", "i1", "i4", "i8", "i16", "i32", "i64", "ui4", "ui8", "ui64"]
)
def test_constants_of_every_dtype_keep_their_bits(dtype: str):
    from relaxir.dialect.dtypes import numpy_dtype

    array = np.array([[0, 1], [1, 0]]).astype(numpy_dtype(dtype))
    b = rx.Builder()
    with b.function("f"):
        b.output(b.constant(array), b.constant(array.T), b.constant(array[:0]))
    results = rx.evaluate(b.build(), "f")
    for got, want in zip(results, (array, array.T, array[:0]), strict=True):
        assert got.dtype == want.dtype
        np.testing.assert_array_equal(got.astype(np.float64), want.astype(np.float64))


def test_arithmetic_is_that_of_numpy():
    b = rx.Builder()
    with b.function("f"):
        x = b.input("x", (4,))
        b.output((2 * x + 1) / 4 - x**2, low=b.where(x > 0, x, 0.0))
    x = np.array([-1, 0, 0.5, 3], np.float32)
    y, low = rx.evaluate(b.build(), "f", x)
    np.testing.assert_allclose(y, (2 * x + 1) / 4 - x**2, rtol=1e-6)
    np.testing.assert_array_equal(low, np.maximum(x, 0))


def test_private_functions_and_calls():
    b = rx.Builder()
    with b.function("main"):
        x = b.input("x", ("n", 4))
        w = b.weight("w", (4, 4))
        with b.function("block", private=True) as block:
            y = b.input("y", ("n", 4))
            b.output(b.matmul(y, b.input("m", (4, 4))), b.exp(y))
        product, exp = b.call(block, x, w)
        b.output(b.call(block, product, w)[0] + exp)
    module = b.build()
    assert module.functions["block"].private
    assert str(module).count("call @block") == 2
    data = np.ones((2, 4), np.float32)
    (y,) = rx.evaluate(module, "main", data, weights={"w": np.eye(4, dtype=np.float32)})
    np.testing.assert_allclose(y, data + np.exp(data), rtol=1e-6)


def test_call_with_one_result_and_a_number():
    b = rx.Builder()
    with b.function("twice", private=True) as twice:
        b.output(b.input("x", ()) * b.input("k", ()))
    with b.function("main"):
        result = b.call(twice, b.input("x", ()), 2)
        assert isinstance(result, Value)
        b.output(result)
    assert rx.evaluate(b.build(), "main", np.float32(3)) == (6,)


def test_tied_weights_are_one_argument():
    b = rx.Builder()
    with b.function("f"):
        first = b.weight("w", (4, 4), "bf16")
        assert b.weight("w", (4, 4), "bf16") is first
        b.output(first)
    assert len(b.build().functions["f"].weights) == 1


def test_names_of_results():
    b = rx.Builder()
    with b.function("f"):
        x = b.input("x", (2,))
        b.output(x, logits=x)
    assert [o.name for o in b.build().functions["f"].outputs] == ["output0", "logits"]


def test_symbols_of_match_cast_are_known_after_it():
    b = rx.Builder()
    with b.function("f"):
        y = b.match_cast(b.input("x", ("?",)), ("m",))
        b.output(y, b.full(("m", 2), 0.0))
    assert str(b.build().functions["f"].outputs[1]) == "f32[m, 2]"


def test_locations_are_the_lines_of_this_file():
    b = rx.Builder()
    with b.function("f"):
        x = b.input("x", (2,))
        line = inspect.currentframe().f_lineno + 1
        b.output(b.exp(x))
    text = b.build().ir.operation.get_asm(enable_debug_info=True)
    assert f'"{THIS}":{line}:18' in text
    assert f'loc("{THIS}":{line - 2}:13)' in text
    assert 'loc("x"(#loc' in text


def test_an_error_gives_the_function_up_but_not_the_builder():
    b = rx.Builder()
    kept: list[Value] = []

    def build_wrong() -> None:
        with b.function("f"):
            kept.append(b.input("x", (2,)))
            b.matmul(kept[0], kept[0] + "text")

    with pytest.raises(rx.RelaxError):
        build_wrong()
    with pytest.raises(rx.RelaxError, match=r"one of @f, which an error ended$"):
        _ = kept[0].ir
    with b.function("f"):
        x = b.input("x", (2,))
        with pytest.raises(rx.RelaxError, match=r"expected values of @f, got one of @f"):
            b.exp(kept[0])
        b.output(x)
    assert list(b.build().functions) == ["f"]


def test_a_refused_op_leaves_nothing_behind():
    b = rx.Builder()
    with b.function("f"):
        x = b.input("x", ("n", 4))
        with pytest.raises(rx.RelaxError):
            b.reshape(x, ("n", 5))
        b.output(x)
    assert "reshape" not in str(b.build())


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda b, x, i: b.matmul(x, x), "'relax.matmul' op expected equal inner dimensions, got [n, 4] and [n, 4]"),
        (lambda b, x, i: x @ x, "'relax.matmul' op expected equal inner dimensions, got [n, 4] and [n, 4]"),
        (lambda b, x, i: b.matmul(x), "'relax.matmul' op missing a required argument: 'rhs'"),
        (lambda b, x, i: b.matmul(x, x, axs=1), "'relax.matmul' op got an unexpected keyword argument 'axs'"),
        (lambda b, x, i: b.exp(x, x), "'relax.exp' op too many positional arguments"),
        (lambda b, x, i: b.add(None, x), "'relax.add' op expected a value for 'lhs', got None"),
        (lambda b, x, i: b.add(x, i), "'relax.add' op expected operands of one dtype, got f32 and i64"),
        (lambda b, x, i: b.add(x, "a"), "expected a value of the builder or a number, got 'a' (relax.add)"),
        (lambda b, x, i: b.add(x, [1.0]), "expected a value of the builder or a number, got [1.0] (relax.add)"),
        (lambda b, x, i: b.add(1, 2), "expected a value of the builder, got 1 (relax.add)"),
        (lambda b, x, i: i * 2.5, "expected a number of type i64, got 2.5"),
        (lambda b, x, i: i * 2**63, "expected a number of type i64, got 9223372036854775808"),
        (lambda b, x, i: b.full((2,), 300, "i8"), "expected a number of type i8, got 300"),
        (lambda b, x, i: b.full((2,), 2**64, "ui64"), "expected a number of type ui64, got 18446744073709551616"),
        (lambda b, x, i: b.full((2,), 2**63, "i64"), "expected a number of type i64, got 9223372036854775808"),
        (lambda b, x, i: b.full((2,), -1, "ui8"), "expected a number of type ui8, got -1"),
        (lambda b, x, i: b.full((2,), "a"), "expected a number of type f32, got 'a'"),
        (lambda b, x, i: b.full(("k",), 1.0), "expected symbols of @f (n), got k"),
        (lambda b, x, i: b.shape_value("k"), "expected symbols of @f (n), got k"),
        (lambda b, x, i: b.arange("k"), "expected symbols of @f (n), got k"),
        (lambda b, x, i: b.arange(0, 4, 0), "expected known bounds and a step other than 0, got 0, 4 and 0"),
        (lambda b, x, i: b.arange("?"), "expected known bounds and a step other than 0, got 0, None and 1"),
        (lambda b, x, i: b.reshape(x, ("n", 5)), "'relax.reshape' op expected as many elements as [n, 4], got [n, 5]"),
        (lambda b, x, i: b.reshape(x, (-1, -1)), "expected at most one dimension of -1, got 2"),
        (lambda b, x, i: b.reshape(x, (3, -1)), "expected dimensions that divide n * 4 elements, got 3"),
        (lambda b, x, i: b.reshape(x, (0, -1)), "expected known, non-zero dimensions beside -1"),
        (lambda b, x, i: b.reshape(x, 4), "expected a shape such as ('n', 64), got 4"),
        (lambda b, x, i: b.reshape(3, (3,)), "expected a value of the builder, got 3 (relax.reshape)"),
        (lambda b, x, i: b.permute_dims(x, [0, 1.5]),
         "'relax.permute_dims' op expected an i64 array for attribute 'axes', got [0, 1.5]"),
        (lambda b, x, i: b.astype(x, "complex64"), "expected an element type such as 'f32', got complex64"),
        (lambda b, x, i: b.astype(x, "f4"), "expected an element type such as 'f32', got f4"),
        (lambda b, x, i: b.astype(x, 3), "expected a dtype such as 'f32', got 3"),
        (lambda b, x, i: b.astype(x, object), "expected a numeric dtype, got object"),
        (lambda b, x, i: b.concat([x]), "expected two or more tensors to concat, got 1"),
        (lambda b, x, i: b.concat([x, i]), "'relax.concat' op expected operands of one dtype, got f32 and i64"),
        (lambda b, x, i: b.split(x, 3, 1), "'relax.split' op expected a dimension that divides into 3 equal parts, got [n, 4]"),
        (lambda b, x, i: b.split(x, "a"), "'relax.split' op expected an integer for attribute 'sections', got 'a'"),
        (lambda b, x, i: b.constant([[1], [2, 3]]), "expected a rectangular array of numbers"),
        (lambda b, x, i: b.constant(["a"]), "expected a numeric dtype, got <U1"),
        (lambda b, x, i: b.constant(object()), "expected a numeric dtype, got object"),
        (lambda b, x, i: b.constant([1j]), "expected a numeric dtype, got complex128"),
        (lambda b, x, i: b.constant(["a"], "f32"), "expected a numeric dtype, got <U1"),
        (lambda b, x, i: b.match_cast(x, (3, 5)),
         "'relax.match_cast' op expected a type that tensor<nx4xf32> can have, got tensor<3x5xf32>"),
        (lambda b, x, i: b.input("x", (3,)), "expected distinct argument names, got 'x' twice"),
        (lambda b, x, i: b.input("", (3,)), "expected a name for the argument, got ''"),
        (lambda b, x, i: b.input("y", (-3,)), "expected a dimension of 0 or more, got -3"),
        (lambda b, x, i: b.input("y", (2**63,)), "expected a dimension of 0 or more, got 9223372036854775808"),
        (lambda b, x, i: b.input("y", (1.5,)), "expected a dimension such as 64 or 'n * 2', got 1.5"),
        (lambda b, x, i: b.input("y", "n"), "expected a shape such as ('n', 64), got 'n'"),
        (lambda b, x, i: b.input("y", ("n n",)), "expected a symbolic dimension such as 'n * 2 + 1', got 'n n'"),
        (lambda b, x, i: b.weight("x", (3,)), "expected 'x' as before, tensor<nx4xf32>, got tensor<3xf32>"),
        (lambda b, x, i: (b.weight("w", (3,)), b.weight("w", (4,))),
         "expected 'w' as before, tensor<3xf32>, got tensor<4xf32>"),
        (lambda b, x, i: (b.weight("w", (3,)), b.input("y", (4,))),
         "expected every input before the first weight, got input 'y' after 'w'"),
        (lambda b, x, i: b.output(), "expected at least one value to return from @f"),
        (lambda b, x, i: b.output(3), "expected a value of the builder, got 3 (output)"),
        (lambda b, x, i: (b.output(x), b.exp(x)), "expected nothing after output(...) of @f"),
        (lambda b, x, i: b.call("f"), "expected a function of this builder, got 'f'"),
        (lambda b, x, i: b.call(b._open[0], x), "expected a finished function, @f is still being built"),
        (lambda b, x, i: b.build(), "expected finished functions, got @f open"),
        (lambda b, x, i: bool(x > 0),
         "expected a number where Python wants a truth value, got a tensor that is not computed yet"),
    ],
)  # fmt: skip
def test_mistakes(build: Callable[[Any, Value, Value], object], message: str):
    with building(x=(("n", 4), "f32"), i=((3,), "i64")) as (b, x, i):
        with pytest.raises(rx.RelaxError) as error:
            build(b, x, i)
        location, _, text = str(error.value).partition(": ")
        assert text == message
        assert location.startswith(f"{THIS}:{build.__code__.co_firstlineno}:")


def test_function_mistakes():
    b = rx.Builder()
    with pytest.raises(rx.RelaxError, match=r"expected an open function, use 'with b\.function\(\.\.\.\)'$"):
        b.input("x", (3,))
    with pytest.raises(rx.RelaxError, match=r"expected finished functions, got none$"):
        b.build()
    with pytest.raises(rx.RelaxError, match=r"expected a name for the function, got ''$"), b.function(""):
        pass
    with pytest.raises(rx.RelaxError, match=r"expected output\(\.\.\.\) before the end of @f$") as error, b.function("f"):
        b.input("x", (3,))
    assert error.value.location.startswith(THIS)
    with b.function("f"):
        b.output(b.input("x", (3,)))
    with pytest.raises(rx.RelaxError, match=r"expected distinct function names, got @f twice$"), b.function("f"):
        pass
    b.build()
    with pytest.raises(rx.RelaxError, match=r"expected a builder before build\(\), make a new one$"), b.function("g"):
        pass
    with pytest.raises(rx.RelaxError, match=r"expected a builder before build\(\), make a new one$"):
        b.build()


def test_private_function_mistakes():
    b = rx.Builder()
    with b.function("main"):
        x = b.input("x", ("n", 4))
        with (
            pytest.raises(rx.RelaxError, match=r"expected values of @g, got one of @main \(relax\.exp\)$"),
            b.function("g", private=True),
        ):
            b.exp(x)
        with pytest.raises(rx.RelaxError, match="expected weight 'w' in a public function"), b.function("g", private=True):
            b.weight("w", (3,))
        with b.function("g", private=True) as g:
            b.output(b.input("y", ("m", 4)))
        with pytest.raises(rx.RelaxError, match=r"expected 1 arguments for @g, got 0$"):
            b.call(g)
        wrong = r"expected tensor<mx4xf32> for argument 'y' of @g, got tensor<nx4xf32>$"
        with pytest.raises(rx.RelaxError, match=wrong):
            b.call(g, x)
        b.output(x)
    other = rx.Builder()
    with other.function("main"):
        y = other.input("y", ("m", 4))
        with pytest.raises(rx.RelaxError, match=r"expected a function of this builder, got <relaxir\.Function: @g>$"):
            other.call(g, y)
        other.output(y)


def test_bfloat16_scalars_are_numbers():
    with building(x=((2,), "bf16")) as (_, x):
        assert (x * ml_dtypes.bfloat16(0.5)).dtype == "bf16"


def test_nothing_but_relax_errors_comes_out_and_what_is_built_verifies():
    """Every method on random tensors and on values that are none; what is accepted must make a valid module."""
    wrong = [
        "a", 1.5, -1, 2**70, float("nan"), float("inf"), [1, "a"], {}, object(), (), [[1]], b"x", np.array([1.5]), True, "n",
        ["n", "?"], [None], -(2**63) - 1, np.int64(3), complex(1, 2), None, range(3), "f32", np.float32,
    ]  # fmt: skip
    choose = random.Random(0)
    b = rx.Builder()
    built = 0
    with b.function("f"):
        shapes = [(("n", 4), "f32"), ((3,), "i64"), ((2, 3, 4), "i1"), ((1, 2, "?", 4), "bf16"), ((), "f32"), ((0, 4), "f16")]
        tensors = [b.input(f"x{i}", shape, dtype) for i, (shape, dtype) in enumerate(shapes)]
        for cls in Relax.operations * 8:
            method = getattr(b, cls.OPERATION_NAME.removeprefix("relax."), None)
            parameters = [] if method is None else inspect.signature(method).parameters.values()
            given = {p.name: choose.choice(tensors if choose.random() < 0.7 else wrong) for p in parameters}
            try:
                built += method is not None and method(**given) is not None
            except rx.RelaxError:
                continue
        b.output(tensors[0])
    b.build()
    assert built > 50

"""Values of the builder as people type them: subscripts, arrays beside operators, dtypes of torch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import relaxir as rx

X = np.arange(20, dtype=np.float32).reshape(5, 4)
ROW = np.array([1.0, 2.0, 3.0, 4.5])
SOME = np.array([2, 0, -1])
MASK = np.array([True, False, True, True])


def built(build: Callable[[Any], Any], rows: int | str = "n") -> rx.Module:
    b = rx.Builder()
    with b.function("main"):
        b.output(y=build(b.input("x", (rows, 4))))
    return b.build()


@pytest.mark.parametrize("rows", ["n", 5])
@pytest.mark.parametrize(
    "part",
    [
        lambda x: x[0], lambda x: x[-1], lambda x: x[:, 1], lambda x: x[..., -1], lambda x: x[0, 1], lambda x: x[:],
        lambda x: x[None, 1:3, None, ::2], lambda x: x[::-1, 1:], lambda x: x[: x.shape[0] - 1], lambda x: x[np.int64(2), -3:],
        lambda x: x[SOME], lambda x: x[:, [1, 2]], lambda x: x[1:, None, [[1, 2], [0, 3]], None],
        lambda x: x[:, [True, False, True, True]], lambda x: x[None, 1:, np.array([False, True, False, False])],
        lambda x: x[..., np.zeros(4, np.bool_)],
        lambda x: x.T, lambda x: x.reshape(-1, 2), lambda x: x.reshape((-1, 2)).T[1], lambda x: x.astype(np.float64),
    ],
)  # fmt: skip
def test_parts_are_those_of_numpy(part: Callable[[Any], Any], rows: int | str) -> None:
    (got,) = rx.evaluate(built(part, rows), "main", X)
    want = part(X)
    assert got.dtype == want.dtype
    np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize(
    "combine",
    [
        lambda x: ROW * x, lambda x: x * ROW - np.float32(1), lambda x: ROW / (x + 1), lambda x: np.arange(4) - x,
        lambda x: x @ np.eye(4) + ROW, lambda x: np.ones((2, 4)) @ x.T, lambda x: (x > ROW) & MASK, lambda x: MASK ^ (x > ROW),
    ],
)  # fmt: skip
def test_arrays_beside_operators_take_the_dtype_of_the_tensor(combine: Callable[[Any], Any]) -> None:
    (got,) = rx.evaluate(built(combine), "main", X)
    want = combine(X)
    assert got.dtype == (np.float32 if want.dtype.kind == "f" else bool)
    np.testing.assert_allclose(got, want, rtol=1e-6)


def test_what_is_typed_compiles() -> None:
    module = built(lambda x: (x[::2, None, SOME] * ROW[:3])[-1].T)
    want = (X[::2, None, SOME] * ROW[:3])[-1].T
    np.testing.assert_allclose(rx.compile(module)(X), want, rtol=1e-6)


def test_dtypes_of_torch_are_dtypes() -> None:
    torch = pytest.importorskip("torch")
    names = {
        torch.float32: "f32", torch.float64: "f64", torch.float16: "f16", torch.bfloat16: "bf16", torch.int8: "i8",
        torch.int64: "i64", torch.uint8: "ui8", torch.bool: "i1", torch.float8_e4m3fn: "f8E4M3FN", torch.float8_e5m2: "f8E5M2",
    }  # fmt: skip
    b = rx.Builder()
    with b.function("main"):
        inputs = [b.input(f"x{i}", (2,), dtype) for i, dtype in enumerate(names)]
        assert [x.dtype for x in inputs] == list(names.values())
        with pytest.raises(
            rx.RelaxError, match=r"expected a dtype such as 'f32', got 'complex64'|expected a numeric dtype, got"
        ):
            b.input("c", (2,), torch.complex64)
        with pytest.raises(rx.RelaxError, match="expected a dtype such as 'f32', got 'qint8'"):
            b.input("q", (2,), torch.qint8)
        b.output(inputs[0])


@pytest.mark.parametrize(
    ("part", "message"),
    [
        (lambda x: x[0, 9], "expected an index from -4 to 3 in dimension 1, got 9"),
        (lambda x: x[True], "expected integers, slices, None, '...' or a tensor of integers as subscripts, got True"),
        (lambda x: x["n"], "expected integers, slices, None, '...' or a tensor of integers as subscripts, got 'n'"),
        (lambda x: x[[]], "expected integers, slices, None, '...' or a tensor of integers as subscripts, got []"),
        (lambda x: x[0, 0, 0], "expected subscripts for 2 dimensions and at most one '...', got 3"),
        (lambda x: x[..., ...], "expected subscripts for 2 dimensions and at most one '...', got 2"),
        (lambda x: x[[1], [2]], "expected at most one tensor of indices, beside slices, as a subscript"),
        (lambda x: x[:, [True, False]], "expected as many truth values as the dimension has elements, 4, got 2"),
        (lambda x: x[np.ones((3, 4), np.bool_)], "expected truth values for one dimension as a subscript, got 2"),
        (
            lambda x: x[x > 0],
            "expected a tensor of integers as a subscript, got truth values, which say how many only when it runs",
        ),
        (lambda x: x.astype("i32") / 2, "expected floats for /, got i32: // rounds down, divide towards 0"),
        (lambda x: 2 / x.astype("i32"), "expected floats for /, got i32: // rounds down, divide towards 0"),
        (lambda x: x[::-2], "expected a positive step, or [::-1], got a step of -2 in dimension 0"),
        (lambda x: x + np.array(["a"]), "expected a numeric dtype, got <U1"),
        (lambda x: x.astype("i8") + np.array([300]), "expected an array of type i8, got one of i64"),
        (lambda x: x.astype("i8") + np.array([0.5]), "expected an array of type i8, got one of f64"),
    ],
)
def test_mistakes_have_the_line(part: Callable[[Any], Any], message: str) -> None:
    with pytest.raises(rx.RelaxError) as caught:
        built(part)
    assert caught.value.args[0] == message
    assert "test_values.py" in str(caught.value.location)


def test_counting_from_the_end_of_an_unknown_size_is_refused() -> None:
    b = rx.Builder()
    with b.function("main"):
        x = b.input("x", ("?", 4))
        assert x[2].shape == (4,)
        with pytest.raises(rx.RelaxError, match="expected a size for dimension 0, which is unknown, to count -1 from its end"):
            x[-1]
        b.output(x)


def test_a_tensor_is_not_iterated_over() -> None:
    for loop in (lambda x: [*x], lambda x: 1 in x):
        with pytest.raises(rx.RelaxError, match="expected subscripts or split, got a loop over a tensor"):
            built(loop)


HIDDEN = np.ma.array(ROW, mask=[True, False, False, False])


@pytest.mark.parametrize(
    "part",
    [
        lambda x: x + HIDDEN, lambda x: HIDDEN * x, lambda x: x[:, np.ma.array([0, 1], mask=[True, False])],
        lambda x: x[:, np.ma.array(MASK, mask=MASK)],
    ],
)  # fmt: skip
def test_hidden_elements_are_no_numbers(part: Callable[[Any], Any]) -> None:
    with pytest.raises(rx.RelaxError, match="expected an array without mask, got a MaskedArray"):
        built(part)


def test_arrays_with_hidden_elements_are_refused_wherever_they_come_in() -> None:
    module = built(lambda x: x + 1)
    b = rx.Builder()
    with b.function("main"):
        b.output(b.input("x", (3, 4)) @ b.weight("w", (4, 2), "f32"))
    product, weights = b.build(), {"w": np.ones((4, 2), np.float32)}
    for call in (
        lambda: rx.evaluate(module, "main", np.ma.array(X, mask=X > 3)),
        lambda: rx.compile(module)(np.ma.array(X, mask=X > 3)),
        lambda: rx.Builder().constant(HIDDEN),
        lambda: rx.calibrate(product, [{"x": np.ma.array(X, mask=X > 3)}], weights=weights),
    ):
        with pytest.raises(rx.RelaxError, match="expected an array without mask, got a MaskedArray"):
            call()


def test_constants_of_other_libraries_and_byte_orders() -> None:
    torch = pytest.importorskip("torch")
    b = rx.Builder()
    with b.function("main"):
        given = (torch.ones(2, requires_grad=True), torch.ones(2, dtype=torch.bfloat16), np.ones(2, ">f4"))
        assert [b.constant(value).dtype for value in given] == ["f32", "bf16", "f32"]
        with pytest.raises(rx.RelaxError, match="constant: expected a tensor"):
            b.constant(torch.ones(2, device="meta"))
        b.output(b.constant(np.arange(3, dtype=">i4")))
    assert rx.evaluate(b.build(), "main")[0].tolist() == [0, 1, 2]

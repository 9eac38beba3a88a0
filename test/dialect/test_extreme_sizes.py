"""Sizes that 64 bits do not hold, and expressions made to be hard to read: refused with a message, and soon."""

from __future__ import annotations

import re

import pytest

import relaxir as rx
from relaxir.dialect.symbolic import Expr, dim_text, parse


def parsed(type_: str) -> None:
    """A function that does something with a tensor of this type."""
    rx.Module.parse(f"""
        func.func @main(%x: {type_} {{relax.name = "x"}}) -> {type_} attributes {{relax.num_input = 1 : i64}} {{
          %0 = "relax.exp"(%x) : ({type_}) -> {type_}
          return %0 : {type_}
        }}""")


@pytest.mark.parametrize(
    "shape", ["9223372036854775807x", "4611686018427387904x4x4x", "2305843009213693952x", "0x4294967296x4294967296x"]
)
def test_tensors_of_too_many_bytes(shape: str) -> None:
    type_ = f"tensor<{shape}f32>"
    with pytest.raises(
        rx.RelaxError, match=rf"-:3:\d+: 'relax.exp' op expected a tensor of less than 2\*\*63 bytes, got {type_}"
    ):
        parsed(type_)


def test_tensors_of_too_many_bytes_that_no_op_reads() -> None:
    type_ = "tensor<2305843009213693952xf32>"
    text = f"func.func @f(%x: {type_}) -> {type_} {{ return %x : {type_} }}"
    with pytest.raises(rx.RelaxError, match=r"'func.func' op expected a tensor of less than 2\*\*63 bytes"):
        rx.Module.parse(text)


def test_the_largest_tensors() -> None:
    parsed("tensor<2305843009213693951xf32>")
    parsed('tensor<2305843009213693951x?xf32, {sym = ["n"]}>')
    parsed("tensor<0x2305843009213693951xf32>")


@pytest.mark.parametrize(
    "text",
    [
        "999999999999999999999999 * n",
        "n + 9223372036854775808",
        "n - 9223372036854775808",
        "n // 99999999999999999999",
        "4294967296 * 4294967296 * n",
        "n % 9223372036854775808",
    ],
)
def test_numbers_of_more_than_64_bits(text: str) -> None:
    canonical = "[^']*"
    with pytest.raises(rx.RelaxError, match=rf"expected numbers of at most 2\*\*63 - 1 in a dimension, got '{canonical}'"):
        parse(text)
    with pytest.raises(rx.RelaxError, match=r"'relax.exp' op expected numbers of at most 2\*\*63 - 1 in a dimension"):
        parsed(f'tensor<?xf32, {{sym = ["{text}"]}}>')


def test_a_constant_of_more_than_64_bits() -> None:
    with pytest.raises(rx.RelaxError, match=r"expected a dimension of at most 2\*\*63 - 1, got '9223372036854775808'"):
        parse("9223372036854775808")
    assert parse("n * 9223372036854775807 - 9223372036854775807") is not None


HARD = {
    "many digits": "9" * 10**6,
    "a long number": "9" * 4000 + "*n",
    "parentheses": "(" * 10**5 + "n" + ")" * 10**5,
    "minuses": "-" * 10**6 + "n",
    "a sum": "+".join(["n"] * 10**5),
    "a sum of symbols": "+".join(f"s{i}" for i in range(900)),
    "a product of symbols": "*".join(f"s{i}" for i in range(3000)),
    "divisions": "n" + "//2" * 3000,
    "remainders": "n" + "%3" * 900,
    "a product of sums": "*".join(["(a+b+c+d+e+f+g+h)"] * 30),
    "a square": f"({'+'.join(f's{i}' for i in range(300))})*({'+'.join(f't{i}' for i in range(300))})",
    "a power": "n ** n",
    "a tower": "9 ** 9 ** 9 ** 9",
    "a shift": "1 << 99999999999",
    "zero": "n % 0",
    "a hidden zero": "n // (n - n)",
    "a lambda": "(lambda: n)()",
    "a NUL": "n\0",
}


@pytest.mark.parametrize("name", HARD)
def test_expressions_that_are_hard_to_read(name: str) -> None:
    with pytest.raises(rx.RelaxError, match=r"^expected ") as caught:
        parse(HARD[name])
    assert len(str(caught.value)) < 300


def test_products_of_many_terms() -> None:
    long = parse("+".join(f"s{i}" for i in range(150)))
    assert isinstance(long, Expr)
    with pytest.raises(rx.RelaxError, match="expected a product of at most 10000 terms, got 22500"):
        long * long


def test_expressions_as_long_as_there_may_be() -> None:
    for text in ("+".join(f"s{i}" for i in range(150)), "n" + "%3" * 60, "*".join(["(a+b+c+d)"] * 6)):
        assert parse(dim_text(parse(text))) == parse(text)


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda b, x: b.repeat(b.full((2**60,), 1, "i8"), repeats=16, axis=0), "expected dimensions from 0 to 2**63 - 1, got"),
        (lambda b, x: b.full((2**40, 2**40), 1, "i8"), "'relax.full' op expected a tensor of less than 2**63 bytes"),
        (lambda b, x: b.arange(2**63 - 1, -(2**63), -1, dtype="i64"), "expected dimensions from 0 to 2**63 - 1, got"),
        (
            lambda b, x: b.repeat(b.repeat(x, repeats=2**62, axis=0), repeats=4, axis=0),
            "expected numbers of at most 2**63 - 1 in a dimension",
        ),
        (lambda b, x: b.reshape(x, (2**62, -1)), "expected dimensions that divide n * 4 elements, got 4611686018427387904"),
    ],
)
def test_results_that_are_too_large(build, message: str) -> None:
    b = rx.Builder()
    with pytest.raises(rx.RelaxError, match=re.escape(message)), b.function("main"):
        b.output(build(b, b.input("x", ("n", 4), "i8")))

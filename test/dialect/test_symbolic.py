"""Symbolic dimensions: canonical forms, evaluation against Python, solving, and what does not parse."""

from __future__ import annotations

import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from relaxir.dialect import symbolic
from relaxir.dialect.errors import RelaxError
from relaxir.dialect.symbolic import Expr, dim_text, evaluate, fits, magnitude, parse, same, solve, substitute, symbol

EXPRESSIONS = st.recursive(
    st.sampled_from(["n", "m", "k"]) | st.integers(0, 40).map(str),
    lambda inner: (
        st.tuples(inner, st.sampled_from(["+", "-", "*", "//", "%"]), inner).map(lambda t: f"({t[0]} {t[1]} {t[2]})")
        | inner.map(lambda e: f"-({e})")
    ),
    max_leaves=8,
)
SIZES = st.fixed_dictionaries({name: st.integers(1, 30) for name in "nmk"})


@given(EXPRESSIONS, SIZES)
def test_evaluation_is_pythons(text: str, sizes: dict[str, int]) -> None:
    try:
        expected = eval(text, {}, dict(sizes))
    except ZeroDivisionError:
        return
    try:
        dim = parse(text)
    except RelaxError:  # a division by a constant 0 in a branch that Python multiplies away
        assert "// 0" in text.replace("(0)", "0") or "%" in text or "//" in text
        return
    assert evaluate(dim, sizes) == expected


@given(EXPRESSIONS)
def test_the_printed_form_is_canonical(text: str) -> None:
    try:
        dim = parse(text)
    except RelaxError:
        return
    again = parse(dim_text(dim))
    assert again == dim
    assert dim_text(again) == dim_text(dim)
    assert hash(again) == hash(dim)


@given(EXPRESSIONS, SIZES, SIZES)
def test_substitution_in_steps(text: str, first: dict[str, int], second: dict[str, int]) -> None:
    try:
        dim = parse(text)
        whole = evaluate(dim, {"n": first["n"], "m": second["m"], "k": second["k"]})
    except RelaxError:
        return
    step = substitute(dim, {"n": first["n"]})
    assert evaluate(step, second) == whole


@pytest.mark.parametrize(
    ("text", "canonical"),
    [
        ("n", "n"),
        (" n ", "n"),
        ("n + n", "n * 2"),
        ("2 * n", "n * 2"),
        ("m + n", "m + n"),
        ("n + m", "m + n"),
        ("n * m", "m * n"),
        ("(n + 1) * 2", "n * 2 + 2"),
        ("(4 * n) // 2", "n * 2"),
        ("(4 * n + 2) // 2", "n * 2 + 1"),
        ("(n * m) // n", "m"),
        ("(n + 1) // 2", "(n + 1) // 2"),
        ("n // 2 + 1", "(n // 2) + 1"),
        ("n // 2 * 2", "(n // 2) * 2"),
        ("n % 4", "n % 4"),
        ("(4 * n) % 2", "0"),
        ("(n - n % 4) // 4", "n // 4"),
        ("(n - n % 4) % 4", "0"),
        ("(n + -n % 4) // 4", "-((-n) // 4)"),
        ("(n - n % m) // m", "n // m"),
        ("(n - n % 8 + 8) // (n // 8 + 1)", "8"),
        ("(6 * n + 4 * m) // (3 * n + 2 * m)", "2"),
        ("(3 * n + m) // (n + m)", "(m + n * 3) // (m + n)"),
        ("n % 4 // 2", "(n % 4) // 2"),
        ("n - n", "0"),
        ("n // n", "1"),
        ("n - 1", "n - 1"),
        ("1 - n", "-n + 1"),
        ("-n", "-n"),
        ("-(n // 2)", "-(n // 2)"),
        ("7", "7"),
        ("7 // 2", "3"),
        ("-7 // 2", "-4"),
        ("-7 % 4", "1"),
        ("10 // n", "10 // n"),
        ("10 % n", "10 % n"),
        ("n * n", "n * n"),
        ("(n + m) * (n - m)", "-m * m + n * n"),
        ("?", "?"),
    ],
)
def test_canonical_forms(text: str, canonical: str) -> None:
    assert dim_text(parse(text)) == canonical


@pytest.mark.parametrize(
    "text",
    ["", "n +", "n ** 2", "n / 2", "f(n)", "n.m", "1.5", "True", "None", "'n'", "n < m", "n if m else 1", "lambda", "[n]",
     "n // 0", "n % 0", "1 // 0", "n + ?", "{n}", "n; m", "n\nm", "ñ", "\0", "(" * 300 + "n" + ")" * 300],
)  # fmt: skip
def test_what_does_not_parse(text: str) -> None:
    with pytest.raises(RelaxError, match="expected a symbolic dimension such as"):
        parse(text)


def test_very_long_sums_are_an_error_and_no_crash() -> None:
    with pytest.raises(RelaxError, match="expected a symbolic dimension such as"):
        parse(" + ".join(["n"] * 100_000))


@pytest.mark.parametrize("name", ["", "1n", "n m", "class", "ñ", "n-1"])
def test_what_is_no_symbol(name: str) -> None:
    with pytest.raises(RelaxError, match="expected a symbol name, got "):
        symbol(name)


def test_arithmetic_on_expressions() -> None:
    n, m = symbol("n"), symbol("m")
    assert dim_text(n + 1) == dim_text(1 + n) == "n + 1"
    assert dim_text(1 - n) == "-n + 1"
    assert dim_text(n * m * 2) == "m * n * 2"
    assert n - n == 0
    assert dim_text(7 // n) == "7 // n"
    assert dim_text(7 % n) == "7 % n"
    assert (n + m).names == {"n", "m"}
    assert parse("(n + k) // m").names == {"n", "m", "k"}
    assert repr(n) == "Expr('n')"
    assert n != "n"


def test_same() -> None:
    n = symbol("n")
    assert same(None, 4)
    assert same(n, None)
    assert same(n + n, n * 2)
    assert not same(n, 4)
    assert not same(n, symbol("m"))
    assert not same(3, 4)


def test_values_for_every_symbol() -> None:
    with pytest.raises(RelaxError, match=r"expected a value for every symbol of 'm \+ n', got none for m"):
        evaluate(parse("n + m"), {"n": 1})
    with pytest.raises(RelaxError, match=r"expected a value for every symbol of '\?', got none for \?"):
        evaluate(None, {})
    assert evaluate(5, {}) == 5


def test_division_by_zero_of_values() -> None:
    with pytest.raises(RelaxError, match=r"expected no division by zero in 'm // n', got m = 4, n = 0"):
        evaluate(parse("m // n"), {"n": 0, "m": 4})
    with pytest.raises(RelaxError, match=r"expected no division by zero in 'm % n', got n = 0"):
        substitute(parse("m % n"), {"n": 0})


@given(st.integers(1, 9), st.integers(-9, 9), st.integers(0, 50))
def test_solve_inverts_linear_expressions(factor: int, constant: int, value: int) -> None:
    dim = parse(f"n * {factor} + {constant} * m")
    assert isinstance(dim, Expr)
    assert solve(dim, value * factor + constant * 3, {"m": 3}) == ("n", value)


def test_solve_gives_up_or_refuses() -> None:
    assert solve(parse("n * m"), 6, {}) is None
    assert solve(parse("n * m"), 6, {"m": 2}) == ("n", 3)
    assert solve(parse("n // 2"), 3, {}) is None
    assert solve(parse("n * n"), 4, {}) is None
    assert solve(parse("n"), 4, {"n": 4}) is None
    with pytest.raises(RelaxError, match=r"expected a size of the form 'n \* 2', got 5"):
        solve(parse("n * 2"), 5, {})
    with pytest.raises(RelaxError, match=r"expected a size of the form 'n \+ 4', got 3"):
        solve(parse("n + 4"), 3, {})


def test_no_mlir_is_imported() -> None:
    """Running an artifact evaluates symbolic shapes."""
    modules = "relaxir.dialect.symbolic, relaxir.dialect.dtypes, relaxir.dialect.errors, relaxir.dialect.reference.nn"
    code = f"import sys, {modules}; print('torch_mlir' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


def test_parsing_is_memoized() -> None:
    assert parse("n * 17 + 3") is symbolic.parse("n * 17 + 3")


def test_what_64_bits_hold() -> None:
    n, huge = parse("n * 4"), parse("n * n - n * n // 2")
    assert fits(n, {"n": 2**61 - 1})
    assert not fits(n, {"n": 2**61})
    assert fits(parse("n * 4 - 9223372036854775804"), {"n": 2**61 + 5})
    assert not fits(parse("n * 4 // 8"), {"n": 2**61})
    assert fits(huge, {"n": 2**31})
    assert magnitude(parse("n * 4 - m // 8"), {"n": 5, "m": 100}) == 120

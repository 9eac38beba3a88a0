"""Scalar ops around control flow: arith, index and tensor ops on single numbers, against exact arithmetic."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from relaxir.dialect import context
from relaxir.dialect.bindings import ir
from relaxir.dialect.errors import RelaxError
from relaxir.dialect.reference.interpreter import evaluate
from relaxir.dialect.reference.scalars import SCALAR_OPS

CONTEXT = context.new_context()


def run(op: str, inputs: list[tuple[str, Any]], result: str, text: str | None = None) -> Any:
    """One op on scalar arguments; its result as a Python number."""
    arguments = ", ".join(f"%a{i}: {t}" for i, (t, _) in enumerate(inputs))
    operands = ", ".join(f"%a{i}" for i in range(len(inputs)))
    types = ", ".join(t for t, _ in inputs)
    line = text or f'"{op}"({operands}) : ({types}) -> {result}'
    cast = "%s = arith.index_cast %r : index to i64\n %t = tensor.from_elements %s : tensor<1xi64>"
    wrap = cast if result == "index" else f"%t = tensor.from_elements %r : tensor<1x{result}>"
    type_ = "i64" if result == "index" else result
    with CONTEXT:
        module = ir.Module.parse(f"""func.func @f({arguments}) -> tensor<1x{type_}> {{
          %r = {line}
          {wrap}
          return %t : tensor<1x{type_}>
        }}""")
    return evaluate(module, "f", [v for _, v in inputs])[0][0].item()


def wrap(value: int, bits: int) -> int:
    return (value + (1 << (bits - 1))) % (1 << bits) - (1 << (bits - 1))


def unsigned(value: int, bits: int) -> int:
    return value % (1 << bits)


def truncated(a: int, b: int) -> int:
    return int(Fraction(a, b))


VALUES = [(7, 2), (-7, 2), (7, -2), (-7, -2), (-128, -1), (127, 1), (100, 100), (0, 5), (-1, 3)]
SIGNED: dict[str, Callable[[int, int], int]] = {
    "addi": operator.add,
    "subi": operator.sub,
    "muli": operator.mul,
    "divsi": truncated,
    "remsi": lambda a, b: a - b * truncated(a, b),
    "floordivsi": operator.floordiv,
    "ceildivsi": lambda a, b: -(-a // b),
    "andi": operator.and_,
    "ori": operator.or_,
    "xori": operator.xor,
    "maxsi": max,
    "minsi": min,
}
UNSIGNED: dict[str, Callable[[int, int], int]] = {"divui": operator.floordiv, "remui": operator.mod, "maxui": max, "minui": min}


@pytest.mark.parametrize("bits", [8, 32, 64])
@pytest.mark.parametrize("name", SIGNED)
def test_signed_arithmetic(name: str, bits: int) -> None:
    for a, b in VALUES:
        if (a, b, bits) == (-128, -1, 8) and name in ("divsi", "remsi", "floordivsi", "ceildivsi"):
            continue  # refused: test_quotients_of_what_the_type_cannot_hold
        got = run(f"arith.{name}", [(f"i{bits}", a), (f"i{bits}", b)], f"i{bits}")
        assert got == wrap(SIGNED[name](a, b), bits)


@pytest.mark.parametrize("name", UNSIGNED)
def test_unsigned_arithmetic(name: str) -> None:
    for a, b in VALUES:
        got = run(f"arith.{name}", [("i8", a), ("i8", b)], "i8")
        assert got == wrap(UNSIGNED[name](unsigned(a, 8), unsigned(b, 8)), 8)


INDEX = {"add": "addi", "sub": "subi", "mul": "muli", "divs": "divsi", "rems": "remsi", "maxs": "maxsi", "mins": "minsi"}
UNSIGNED_INDEX = {"divu": "divui", "remu": "remui"}


@pytest.mark.parametrize("name", INDEX)
def test_index_arithmetic(name: str) -> None:
    for a, b in VALUES:
        assert run(f"index.{name}", [("index", a), ("index", b)], "index") == wrap(SIGNED[INDEX[name]](a, b), 64)


@pytest.mark.parametrize("name", UNSIGNED_INDEX)
def test_unsigned_index_arithmetic(name: str) -> None:
    for a, b in VALUES:
        expected = wrap(UNSIGNED[UNSIGNED_INDEX[name]](unsigned(a, 64), unsigned(b, 64)), 64)
        assert run(f"index.{name}", [("index", a), ("index", b)], "index") == expected


def test_truth_values_are_one_bit() -> None:
    for a in (False, True):
        for b in (False, True):
            operands = [("i1", a), ("i1", b)]
            assert run("arith.addi", operands, "i1") == a ^ b
            assert run("arith.andi", operands, "i1") == (a and b)
            assert run("arith.ori", operands, "i1") == (a or b)
            assert run("arith.xori", operands, "i1") == a ^ b
            assert run("arith.cmpi", operands, "i1", "arith.cmpi slt, %a0, %a1 : i1") == (a and not b)
            assert run("arith.cmpi", operands, "i1", "arith.cmpi ult, %a0, %a1 : i1") == (b and not a)


@pytest.mark.parametrize(("name", "function"), [("shli", operator.lshift), ("shrsi", operator.rshift)])
def test_shifts(name: str, function: Callable[[int, int], int]) -> None:
    for a in (1, -5, 100):
        for b in (0, 1, 3):
            assert run(f"arith.{name}", [("i8", a), ("i8", b)], "i8") == wrap(function(a, b), 8)
            assert run("arith.shrui", [("i8", a), ("i8", b)], "i8") == wrap(unsigned(a, 8) >> b, 8)


@pytest.mark.parametrize("name", ["divsi", "divui", "remsi", "remui", "floordivsi", "ceildivsi"])
def test_division_by_zero(name: str) -> None:
    with pytest.raises(RelaxError, match=f"'arith.{name}' op expected a divisor other than 0"):
        run(f"arith.{name}", [("i32", 1), ("i32", 0)], "i32")


def test_shift_beyond_the_width() -> None:
    for bits, amount in ((32, 32), (8, 8), (64, -1)):
        with pytest.raises(RelaxError, match=f"'arith.shrsi' op expected a shift below {bits}, got"):
            run("arith.shrsi", [(f"i{bits}", 1), (f"i{bits}", amount)], f"i{bits}")


def compare(predicate: str, a: Any, b: Any) -> bool:
    return bool(getattr(operator, predicate)(a, b))


@pytest.mark.parametrize("predicate", ["eq", "ne", *(s + p for s in "su" for p in ("lt", "le", "gt", "ge"))])
def test_comparisons_of_integers(predicate: str) -> None:
    for a, b in [*VALUES, (3, 3), (-3, -3)]:
        kind = predicate[-2:]
        pair = (a, b) if not predicate.startswith("u") else (unsigned(a, 8), unsigned(b, 8))
        assert run("arith.cmpi", [("i8", a), ("i8", b)], "i1", f"arith.cmpi {predicate}, %a0, %a1 : i8") == compare(kind, *pair)
        pair = (a, b) if not predicate.startswith("u") else (unsigned(a, 64), unsigned(b, 64))
        assert run("index.cmp", [("index", a), ("index", b)], "i1", f"index.cmp {predicate}(%a0, %a1)") == compare(kind, *pair)


@pytest.mark.parametrize("kind", ["eq", "gt", "ge", "lt", "le", "ne"])
def test_comparisons_of_floats(kind: str) -> None:
    for a, b in [(1.0, 2.0), (2.0, 1.0), (1.0, 1.0), (math.nan, 1.0), (1.0, math.nan), (math.inf, -math.inf)]:
        unordered = math.isnan(a) or math.isnan(b)
        for prefix in "ou":
            got = run("arith.cmpf", [("f32", a), ("f32", b)], "i1", f"arith.cmpf {prefix}{kind}, %a0, %a1 : f32")
            assert got == (prefix == "u" if unordered else compare(kind, a, b))


@pytest.mark.parametrize(
    ("predicate", "ordered", "unordered"),
    [("ord", True, False), ("uno", False, True), ("true", True, True), ("false", False, False)],
)
def test_orders_of_floats(predicate: str, ordered: bool, unordered: bool) -> None:
    line = f"arith.cmpf {predicate}, %a0, %a1 : f32"
    assert run("arith.cmpf", [("f32", 1.0), ("f32", 2.0)], "i1", line) == ordered
    assert run("arith.cmpf", [("f32", 1.0), ("f32", math.nan)], "i1", line) == unordered


FLOATS: dict[str, Callable[[float, float], float]] = {
    "addf": operator.add,
    "subf": operator.sub,
    "mulf": operator.mul,
    "divf": operator.truediv,
    "remf": math.fmod,
    "maximumf": max,
    "minimumf": min,
}


@pytest.mark.parametrize("type_", ["f64", "f32", "f16", "bf16"])
@pytest.mark.parametrize("name", FLOATS)
def test_float_arithmetic(name: str, type_: str) -> None:
    dtype = {"f64": np.float64, "f32": np.float32, "f16": np.float16, "bf16": ml_dtypes.bfloat16}[type_]
    for a, b in [(1.5, 2.25), (-7.0, 2.0), (100.0, 3.0)]:
        got = run(f"arith.{name}", [(type_, a), (type_, b)], type_)
        assert got == float(np.float64(FLOATS[name](a, b)).astype(dtype))


def test_float_arithmetic_of_special_values() -> None:
    assert run("arith.divf", [("f32", 1.0), ("f32", 0.0)], "f32") == math.inf
    assert math.isnan(run("arith.maximumf", [("f32", math.nan), ("f32", 0.0)], "f32"))
    assert run("arith.negf", [("f32", 1.5)], "f32") == -1.5


CASTS = [
    ("arith.extsi", "i8", -3, "i32", -3),
    ("arith.extsi", "i1", True, "i32", -1),
    ("arith.extui", "i8", -3, "i32", 253),
    ("arith.extui", "i1", True, "i32", 1),
    ("arith.trunci", "i32", 300, "i8", 44),
    ("arith.trunci", "i32", 3, "i1", True),
    ("arith.index_cast", "i32", -3, "index", -3),
    ("arith.index_cast", "index", 2**40 + 5, "i32", 5),
    ("arith.index_castui", "i8", -1, "index", 255),
    ("index.casts", "i32", -3, "index", -3),
    ("index.castu", "i32", -1, "index", 2**32 - 1),
    ("arith.sitofp", "i8", -3, "f32", -3.0),
    ("arith.uitofp", "i8", -3, "f32", 253.0),
    ("arith.uitofp", "i1", True, "f32", 1.0),
    ("arith.fptosi", "f32", -3.7, "i32", -3),
    ("arith.fptoui", "f32", 3.7, "i32", 3),
    ("arith.extf", "f16", 1.5, "f32", 1.5),
    ("arith.truncf", "f64", 1 + 2.0**-30, "f32", 1.0),
]


@pytest.mark.parametrize(("name", "source", "value", "target", "expected"), CASTS)
def test_casts(name: str, source: str, value: Any, target: str, expected: Any) -> None:
    assert run(name, [(source, value)], target) == expected


@pytest.mark.parametrize("value", [math.nan, math.inf])
def test_integers_of_no_number(value: float) -> None:
    with pytest.raises(RelaxError, match=r"'arith.fptosi' op expected a number within i32, got (nan|inf)"):
        run("arith.fptosi", [("f32", value)], "i32")


@pytest.mark.parametrize(
    ("name", "value"), [("fptosi", 2.0**31), ("fptosi", -(2.0**31) - 256), ("fptoui", -1.0), ("fptoui", 2.0**32)]
)
def test_integers_of_what_the_type_cannot_hold(name: str, value: float) -> None:
    with pytest.raises(RelaxError, match=f"'arith.{name}' op expected a number within i32, got "):
        run(f"arith.{name}", [("f32", value)], "i32")


@pytest.mark.parametrize("name", ["divsi", "remsi", "floordivsi", "ceildivsi"])
def test_quotients_of_what_the_type_cannot_hold(name: str) -> None:
    with pytest.raises(RelaxError, match=f"'arith.{name}' op expected a quotient within i8, got -128 / -1"):
        run(f"arith.{name}", [("i8", -128), ("i8", -1)], "i8")


@pytest.mark.parametrize(
    ("text", "type_", "expected"),
    [
        ("arith.constant -3 : i32", "i32", -3),
        ("arith.constant true", "i1", True),
        ("arith.constant 1.5 : f16", "f16", 1.5),
        ("arith.constant 7 : index", "index", 7),
        ("index.constant -2", "index", -2),
    ],
)
def test_constants(text: str, type_: str, expected: Any) -> None:
    assert run(text.split()[0], [], type_, text) == expected


def test_tensor_constants() -> None:
    with CONTEXT:
        module = ir.Module.parse("""func.func @f() -> (tensor<2xbf16>, tensor<3xi1>) {
          %0 = arith.constant dense<[1.5, -2.0]> : tensor<2xbf16>
          %1 = arith.constant dense<true> : tensor<3xi1>
          return %0, %1 : tensor<2xbf16>, tensor<3xi1>
        }""")
    values, truths = evaluate(module, "f", [])
    assert values.dtype == ml_dtypes.bfloat16
    assert values.tolist() == [1.5, -2]
    assert truths.tolist() == [True] * 3


def test_select() -> None:
    for condition in (True, False):
        got = run("arith.select", [("i1", condition), ("f32", 1.0), ("f32", 2.0)], "f32")
        assert got == (1 if condition else 2)


def tensors(body: str, *inputs: Any) -> Any:
    with CONTEXT:
        return evaluate(ir.Module.parse(body), "f", list(inputs))


def test_scalars_of_tensors() -> None:
    body = """func.func @f(%x: tensor<?x3xf32>, %i: index, %j: index) -> (tensor<1xf32>, tensor<2x1xi64>) {
      %v = tensor.extract %x[%i, %j] : tensor<?x3xf32>
      %t = tensor.from_elements %v : tensor<1xf32>
      %d = tensor.dim %x, %i : tensor<?x3xf32>
      %e = arith.index_cast %d : index to i64
      %f = arith.index_cast %j : index to i64
      %s = tensor.from_elements %e, %f : tensor<2x1xi64>
      return %t, %s : tensor<1xf32>, tensor<2x1xi64>
    }"""
    x = np.arange(12, dtype=np.float32).reshape(4, 3)
    value, sizes = tensors(body, x, 1, 2)
    assert value.tolist() == [5]
    assert sizes.tolist() == [[3], [2]]
    with pytest.raises(RelaxError, match=r"'tensor.extract' op expected an index in \[0, 3\), got 3"):
        tensors(body, x, 1, 3)
    with pytest.raises(RelaxError, match=r"'tensor.dim' op expected an index in \[0, 2\), got 2"):
        tensors(body, x, 2, 2)


def test_tensor_cast_checks_sizes() -> None:
    body = """func.func @f(%x: tensor<?xf32>) -> tensor<4xf32> {
      %0 = tensor.cast %x : tensor<?xf32> to tensor<4xf32>
      return %0 : tensor<4xf32>
    }"""
    assert tensors(body, np.ones(4, np.float32))[0].shape == (4,)
    with pytest.raises(RelaxError, match=r"'tensor.cast' op expected an operand with size 4 at dimension 0, got 3"):
        tensors(body, np.ones(3, np.float32))


def test_vectors_of_scalars_are_not_supported() -> None:
    body = """func.func @f(%x: tensor<4xf32>) -> tensor<4xf32> {
      %0 = arith.addf %x, %x : tensor<4xf32>
      return %0 : tensor<4xf32>
    }"""
    with pytest.raises(RelaxError, match=r"'arith.addf' op expected scalars, got tensor<4xf32>"):
        tensors(body, np.ones(4, np.float32))


def test_select_picks_whole_tensors() -> None:
    def body(condition: str) -> str:
        return f"""func.func @f(%c: i1, %m: tensor<2xi1>, %x: tensor<2xf32>, %y: tensor<2xf32>) -> tensor<2xf32> {{
          %0 = arith.select {condition}tensor<2xf32>
          return %0 : tensor<2xf32>
        }}"""

    inputs = (True, np.array([True, False]), np.ones(2, np.float32), np.zeros(2, np.float32))
    assert tensors(body("%c, %x, %y : "), *inputs)[0].tolist() == [1, 1]
    with pytest.raises(RelaxError, match=r"'arith.select' op expected a scalar condition, got tensor<2xi1>"):
        tensors(body("%m, %x, %y : tensor<2xi1>, "), *inputs)


def test_integers_without_numpy_type() -> None:
    with pytest.raises(RelaxError, match="expected an element type such as 'f32', got i24"):
        run("arith.addi", [("i24", 1), ("i24", 2)], "i24")


def test_every_op_of_the_table_is_tested() -> None:
    tables = {f"arith.{n}" for n in (*SIGNED, *UNSIGNED, *FLOATS)} | {f"index.{n}" for n in (*INDEX, *UNSIGNED_INDEX)}
    single = {
        "arith.cmpi", "arith.cmpf", "arith.constant", "arith.negf", "arith.select", "arith.shli", "arith.shrsi", "arith.shrui",
        "index.cmp", "index.constant", "tensor.dim", "tensor.extract", "tensor.from_elements",
    }  # fmt: skip
    assert set(SCALAR_OPS) == tables | single | {c[0] for c in CASTS}

"""Scalar operations of other dialects on what they are not defined for: compiled code and evaluation refuse the same calls."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import relaxir as rx
from support.guard_pages import guarded_copy, in_child

LEAST = -(2**31)

ELEMENT = """
func.func @main(%x: tensor<3x4xf32>, %n: tensor<i64>) -> tensor<f32> attributes {relax.num_input = 2 : i64} {
  %a = tensor.extract %n[] : tensor<i64>
  %i = arith.index_cast %a : i64 to index
  %e = tensor.extract %x[%i, %i] : tensor<3x4xf32>
  %r = tensor.from_elements %e : tensor<f32>
  return %r : tensor<f32>
}
"""
CONDITION = """
func.func @main(%x: tensor<3x4xf32>, %n: tensor<i64>) -> tensor<3x4xf32> attributes {relax.num_input = 2 : i64} {
  %a = tensor.extract %n[] : tensor<i64>
  %i = arith.index_cast %a : i64 to index
  %zero = arith.constant 0.0 : f32
  %r = scf.while (%c = %x) : (tensor<3x4xf32>) -> tensor<3x4xf32> {
    %e = tensor.extract %c[%i, %i] : tensor<3x4xf32>
    %go = arith.cmpf ogt, %e, %zero : f32
    scf.condition(%go) %c : tensor<3x4xf32>
  } do {
  ^bb0(%c: tensor<3x4xf32>):
    %m = "relax.negative"(%c) : (tensor<3x4xf32>) -> tensor<3x4xf32>
    scf.yield %m : tensor<3x4xf32>
  }
  return %r : tensor<3x4xf32>
}
"""
DIMENSION = """
func.func @main(%x: tensor<?x4xf32, {sym = ["n"]}>, %n: tensor<i64>) -> tensor<i64> attributes {relax.num_input = 2 : i64} {
  %a = tensor.extract %n[] : tensor<i64>
  %i = arith.index_cast %a : i64 to index
  %d = tensor.dim %x, %i : tensor<?x4xf32, {sym = ["n"]}>
  %s = arith.index_cast %d : index to i64
  %r = tensor.from_elements %s : tensor<i64>
  return %r : tensor<i64>
}
"""
STEPS = """
func.func @main(%x: tensor<3x4xf32>, %n: tensor<i64>) -> tensor<3x4xf32> attributes {relax.num_input = 2 : i64} {
  %a = tensor.extract %n[] : tensor<i64>
  %step = arith.index_cast %a : i64 to index
  %low = arith.constant 0 : index
  %high = arith.constant 3 : index
  %r = scf.for %i = %low to %high step %step iter_args(%c = %x) -> (tensor<3x4xf32>) {
    %d = "relax.add"(%c, %x) : (tensor<3x4xf32>, tensor<3x4xf32>) -> tensor<3x4xf32>
    scf.yield %d : tensor<3x4xf32>
  }
  return %r : tensor<3x4xf32>
}
"""
BINARY = """
func.func @main(%x: tensor<i32>, %y: tensor<i32>) -> tensor<i32> attributes {{relax.num_input = 2 : i64}} {{
  %a = tensor.extract %x[] : tensor<i32>
  %b = tensor.extract %y[] : tensor<i32>
  %c = {op} %a, %b : i32
  %r = tensor.from_elements %c : tensor<i32>
  return %r : tensor<i32>
}}
"""
TO_INTEGER = """
func.func @main(%x: tensor<{source}>) -> tensor<{target}> attributes {{relax.num_input = 1 : i64}} {{
  %a = tensor.extract %x[] : tensor<{source}>
  %c = {op} %a : {source} to {target}
  %r = tensor.from_elements %c : tensor<{target}>
  return %r : tensor<{target}>
}}
"""
SLICE = """
func.func @main(%x: tensor<16xf32>, %n: tensor<3xi64>) -> tensor<4xf32> attributes {relax.num_input = 2 : i64} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %a = tensor.extract %n[%c0] : tensor<3xi64>
  %b = tensor.extract %n[%c1] : tensor<3xi64>
  %at = arith.index_cast %a : i64 to index
  %step = arith.index_cast %b : i64 to index
  %c = tensor.extract_slice %x[%at] [4] [%step] : tensor<16xf32> to tensor<4xf32>
  return %c : tensor<4xf32>
}
"""


def outcome(text: str, *inputs: Any) -> tuple[Any, Any]:
    """What evaluation and compiled code make of inputs: results, or the messages less places and what was got."""
    module = rx.Module.parse(text)
    found = list[Any]()
    for run in (lambda: rx.evaluate(module, "main", *inputs)[0], lambda: called(module, inputs)):
        try:
            found.append(np.asarray(run()).tolist())
        except rx.RelaxError as error:
            found.append(error.args[0].rpartition("' op ")[2].partition(", got")[0].partition(" (n =")[0])
    return found[0], found[1]


def called(module: rx.Module, inputs: tuple[Any, ...]) -> Any:
    """By a process that may die; the arrays are flush against inaccessible pages."""
    executable = rx.compile(module)
    return in_child(lambda: executable(*(guarded_copy(np.asarray(x)) for x in inputs)))


@pytest.mark.parametrize("text", [ELEMENT, CONDITION])
@pytest.mark.parametrize("index", [0, 2, 3, -1, 10**9, 2**62, -(2**62)])
def test_indices(text: str, index: int) -> None:
    values = -np.arange(12, dtype="f4").reshape(3, 4)
    refused = "expected an index in [0, 3)"
    expected = refused if index not in range(3) else float(values[index, index]) if text == ELEMENT else values.tolist()
    assert outcome(text, values, np.int64(index)) == (expected, expected)


@pytest.mark.parametrize(("index", "expected"), [(0, 3), (1, 4), *((i, "expected an index in [0, 2)") for i in (2, -1, 10**9))])
def test_dimensions(index: int, expected: Any) -> None:
    assert outcome(DIMENSION, np.ones((3, 4), "f4"), np.int64(index)) == (expected, expected)


@pytest.mark.parametrize("step", [2, 0, -1])
def test_steps_of_loops(step: int) -> None:
    expected = np.full((3, 4), 3.0).tolist() if step > 0 else "expected a positive step"
    assert outcome(STEPS, np.ones((3, 4), "f4"), np.int64(step)) == (expected, expected)


DIVISIONS = ("divsi", "floordivsi", "ceildivsi", "remsi", "divui", "remui")


@pytest.mark.parametrize("name", DIVISIONS)
def test_divisions(name: str) -> None:
    text = BINARY.format(op=f"arith.{name}")
    zero, over = "expected a divisor other than 0", "expected a quotient within i32"
    assert outcome(text, np.int32(7), np.int32(0)) == (zero, zero)
    evaluated, compiled = outcome(text, np.int32(LEAST), np.int32(-1))
    assert evaluated == compiled
    assert (compiled == over) == name.endswith("si")
    evaluated, compiled = outcome(text, np.int32(-7), np.int32(2))
    assert evaluated == compiled
    assert isinstance(compiled, int)


@pytest.mark.parametrize("name", ["shli", "shrsi", "shrui"])
@pytest.mark.parametrize("by", [31, 32, -1])
def test_shifts(name: str, by: int) -> None:
    evaluated, compiled = outcome(BINARY.format(op=f"arith.{name}"), np.int32(-7), np.int32(by))
    assert evaluated == compiled
    assert (compiled == "expected a shift below 32") == (by != 31)


@pytest.mark.parametrize(
    ("name", "source", "target", "inside", "outside"),
    [
        ("fptosi", "f32", "i32", [-5.5, -0.5, -(2.0**31), 2.0**31 - 128], [np.nan, np.inf, 2.0**31, -(2.0**31) - 256]),
        ("fptosi", "f64", "i32", [-(2.0**31) - 0.5, 2.0**31 - 0.5], [-(2.0**31) - 1, 2.0**31]),
        ("fptosi", "f64", "i64", [-(2.0**63), 2.0**63 - 1024], [2.0**63, -(2.0**63) - 2048]),
        ("fptosi", "f16", "i32", [65504.0, -65504.0], [np.inf, -np.inf]),
        ("fptosi", "f32", "i8", [-128.5, 127.5], [128.0, -129.0]),
        ("fptoui", "f32", "i32", [-0.5, 2.0**31 - 128], [-1.0, 2.0**32, np.nan]),
    ],
)
def test_conversions(name: str, source: str, target: str, inside: list[float], outside: list[float]) -> None:
    text = TO_INTEGER.format(op=f"arith.{name}", source=source, target=target)
    dtype, refused = {"f16": "f2", "f32": "f4", "f64": "f8"}[source], f"expected a number within {target}"
    for value in inside:
        assert outcome(text, np.array(value, dtype)) == (int(value), int(value))
    for value in outside:
        assert outcome(text, np.array(value, dtype)) == (refused, refused)


@pytest.mark.parametrize(
    ("at", "step"), [(0, 1), (12, 1), (3, 4), (0, 5), (15, 1), (13, 1), (-1, 1), (0, 6), (4, 0), (15, -1), (2**62, 1)]
)
def test_parts(at: int, step: int) -> None:
    """Evaluation knows no such op; of compiled code they are inside, or refused."""
    values = np.arange(16, dtype="f4")
    part = values[at : at + 3 * step + 1 : step].tolist() if at >= 0 and step > 0 else []
    _, compiled = outcome(SLICE, values, np.array([at, step, 0]))
    assert compiled == (part if len(part) == 4 else "expected a part inside of dimension 0")

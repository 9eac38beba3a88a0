"""evaluate(): loops and branches."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from relaxir.dialect import context
from relaxir.dialect.bindings import ir
from relaxir.dialect.errors import RelaxError
from relaxir.dialect.reference.interpreter import evaluate

Array = np.ndarray[Any, Any]


CONTEXT = context.new_context()


def parse(text: str) -> ir.Module:
    with CONTEXT:
        return ir.Module.parse(text)


def f32(*values: float) -> Array:
    return np.array(values, np.float32)


def zeros(*shape: int) -> Array:
    return np.zeros(shape, np.float32)


LOOPS = parse("""
  func.func @power(%x: tensor<2xf32>, %n: index) -> tensor<2xf32> {
    %zero = arith.constant 0 : index
    %one = arith.constant 1 : index
    %start = "relax.full"() {value = 1 : i64} : () -> tensor<2xf32>
    %r = scf.for %i = %zero to %n step %one iter_args(%a = %start) -> (tensor<2xf32>) {
      %b = "relax.multiply"(%a, %x) : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
      scf.yield %b : tensor<2xf32>
    }
    return %r : tensor<2xf32>
  }
  func.func @indices(%low: i32, %high: i32, %step: i32) -> tensor<1xi32> {
    %zero = arith.constant 0 : i32
    %ten = arith.constant 10 : i32
    %r = scf.for %i = %low to %high step %step iter_args(%a = %zero) -> (i32) : i32 {
      %m = arith.muli %a, %ten : i32
      %b = arith.addi %m, %i : i32
      scf.yield %b : i32
    }
    %t = tensor.from_elements %r : tensor<1xi32>
    return %t : tensor<1xi32>
  }
  func.func @halve_until_below(%x: tensor<f32>, %limit: f32) -> (tensor<f32>, tensor<1xi64>) {
    %zero = arith.constant 0 : i64
    %one = arith.constant 1 : i64
    %half = "relax.full"() {value = 0.5 : f64} : () -> tensor<f32>
    %r:2 = scf.while (%a = %x, %n = %zero) : (tensor<f32>, i64) -> (tensor<f32>, i64) {
      %v = tensor.extract %a[] : tensor<f32>
      %go = arith.cmpf oge, %v, %limit : f32
      scf.condition(%go) %a, %n : tensor<f32>, i64
    } do {
    ^bb0(%a: tensor<f32>, %n: i64):
      %b = "relax.multiply"(%a, %half) : (tensor<f32>, tensor<f32>) -> tensor<f32>
      %m = arith.addi %n, %one : i64
      scf.yield %b, %m : tensor<f32>, i64
    }
    %t = tensor.from_elements %r#1 : tensor<1xi64>
    return %r#0, %t : tensor<f32>, tensor<1xi64>
  }
  func.func @choose(%c: i1, %x: tensor<2xf32>, %y: tensor<2xf32>) -> tensor<2xf32> {
    %r = scf.if %c -> (tensor<2xf32>) {
      scf.yield %x : tensor<2xf32>
    } else {
      %n = "relax.negative"(%y) : (tensor<2xf32>) -> tensor<2xf32>
      scf.yield %n : tensor<2xf32>
    }
    return %r : tensor<2xf32>
  }
  func.func @sometimes(%c: i1, %sink: !relax.output_sink, %x: tensor<2xf32>) {
    scf.if %c {
      "relax.set_output"(%sink, %x) {index = 0 : i64} : (!relax.output_sink, tensor<2xf32>) -> ()
    }
    return
  }
  func.func @nested(%n: index) -> tensor<1xi64> {
    %zero = arith.constant 0 : index
    %one = arith.constant 1 : index
    %r = scf.for %i = %zero to %n step %one iter_args(%a = %zero) -> (index) {
      %s = scf.for %j = %zero to %i step %one iter_args(%b = %a) -> (index) {
        %p = arith.muli %i, %j : index
        %q = arith.addi %b, %p : index
        scf.yield %q : index
      }
      scf.yield %s : index
    }
    %k = arith.index_cast %r : index to i64
    %t = tensor.from_elements %k : tensor<1xi64>
    return %t : tensor<1xi64>
  }
""")


@pytest.mark.parametrize("n", [0, 1, 5])
def test_for(n: int) -> None:
    assert evaluate(LOOPS, "power", [f32(2, 3), n])[0].tolist() == [2**n, 3**n]


@pytest.mark.parametrize(("low", "high", "step", "expected"), [(1, 4, 1, 123), (1, 6, 2, 135), (4, 1, 1, 0), (-1, 2, 1, -99)])
def test_for_counts_in_its_type(low: int, high: int, step: int, expected: int) -> None:
    assert evaluate(LOOPS, "indices", [low, high, step])[0].tolist() == [expected]


@pytest.mark.parametrize("step", [0, -1])
def test_for_needs_a_positive_step(step: int) -> None:
    with pytest.raises(RelaxError, match=f"'scf.for' op expected a positive step, got {step}"):
        evaluate(LOOPS, "indices", [0, 4, step])


def test_while() -> None:
    x, rounds = evaluate(LOOPS, "halve_until_below", [np.float32(10), 2])
    assert float(x) == 1.25
    assert rounds.tolist() == [3]
    x, rounds = evaluate(LOOPS, "halve_until_below", [np.float32(1), 2])
    assert float(x) == 1
    assert rounds.tolist() == [0]


def test_if() -> None:
    assert evaluate(LOOPS, "choose", [True, f32(1, 2), f32(3, 4)])[0].tolist() == [1, 2]
    assert evaluate(LOOPS, "choose", [False, f32(1, 2), f32(3, 4)])[0].tolist() == [-3, -4]


def test_if_without_else() -> None:
    told: list[Any] = []
    for condition in (True, False):
        assert evaluate(LOOPS, "sometimes", [condition, f32(1, 2)], sink=lambda *a: told.append(a)) == ()
    assert len(told) == 1


def test_nested_loops() -> None:
    expected = sum(i * j for i in range(6) for j in range(i))
    assert evaluate(LOOPS, "nested", [6])[0].tolist() == [expected]


def test_symbols_of_a_region_end_with_it() -> None:
    """The first half of each round is bound to a symbol of another size every time."""
    module = parse("""func.func @f(%x: tensor<?xf32>) -> tensor<1xi64> {
      %zero = arith.constant 0 : index
      %one = arith.constant 1 : index
      %three = arith.constant 3 : index
      %start = "relax.full"() {value = 0 : i64} : () -> tensor<i64>
      %r:2 = scf.for %i = %zero to %three step %one iter_args(%a = %x, %t = %start) -> (tensor<?xf32>, tensor<i64>) {
        %m = "relax.match_cast"(%a) : (tensor<?xf32>) -> tensor<?xf32, {sym = ["k"]}>
        %v = "relax.shape_value"() {value = ["k"]} : () -> tensor<i64>
        %s = "relax.add"(%t, %v) : (tensor<i64>, tensor<i64>) -> tensor<i64>
        %d = "relax.concat"(%m, %m) {axis = 0 : i64}
          : (tensor<?xf32, {sym = ["k"]}>, tensor<?xf32, {sym = ["k"]}>) -> tensor<?xf32, {sym = ["k * 2"]}>
        %e = tensor.cast %d : tensor<?xf32, {sym = ["k * 2"]}> to tensor<?xf32>
        scf.yield %e, %s : tensor<?xf32>, tensor<i64>
      }
      %u = "relax.reshape"(%r#1) : (tensor<i64>) -> tensor<1xi64>
      return %u : tensor<1xi64>
    }""")
    assert evaluate(module, "f", [zeros(2)])[0].tolist() == [2 + 4 + 8]


def test_for_without_sign() -> None:
    """-2 as an unsigned byte is 254: the loop from 250 to it runs, one from -2 to 3 does not."""
    module = parse("""func.func @f(%low: i8, %high: i8) -> tensor<1xi8> {
      %zero = arith.constant 0 : i8
      %one = arith.constant 1 : i8
      %r = scf.for unsigned %i = %low to %high step %one iter_args(%a = %zero) -> (i8) : i8 {
        %b = arith.addi %a, %one : i8
        scf.yield %b : i8
      }
      %t = tensor.from_elements %r : tensor<1xi8>
      return %t : tensor<1xi8>
    }""")
    assert evaluate(module, "f", [-6, -2])[0].tolist() == [4]
    assert evaluate(module, "f", [-2, 3])[0].tolist() == [0]

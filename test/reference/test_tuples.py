"""Tuples in the reference semantics: packed, unpacked, taken from a caller and given back."""

from __future__ import annotations

import numpy as np
import pytest

import relaxir as rx

SWAP = """
func.func @main(%p: tuple<tensor<?xf32, {sym = ["n"]}>, tuple<f32, tensor<?xf32, {sym = ["n"]}>>> {relax.name = "p"},
                %e: tuple<>)
    -> (tuple<tensor<?xf32, {sym = ["n"]}>, tensor<?xf32, {sym = ["n"]}>>, f32) {
  %0:2 = builtin.unrealized_conversion_cast %p
      : tuple<tensor<?xf32, {sym = ["n"]}>, tuple<f32, tensor<?xf32, {sym = ["n"]}>>>
      to tensor<?xf32, {sym = ["n"]}>, tuple<f32, tensor<?xf32, {sym = ["n"]}>>
  %1:2 = builtin.unrealized_conversion_cast %0#1 : tuple<f32, tensor<?xf32, {sym = ["n"]}>> to f32, tensor<?xf32, {sym = ["n"]}>
  %2 = builtin.unrealized_conversion_cast %1#1, %0#0 : tensor<?xf32, {sym = ["n"]}>, tensor<?xf32, {sym = ["n"]}>
      to tuple<tensor<?xf32, {sym = ["n"]}>, tensor<?xf32, {sym = ["n"]}>>
  return %2, %1#0 : tuple<tensor<?xf32, {sym = ["n"]}>, tensor<?xf32, {sym = ["n"]}>>, f32
}"""

A, B = np.arange(3, dtype=np.float32), np.ones(3, np.float32)


def swapped(*inputs: object) -> tuple[object, ...]:
    return rx.evaluate(rx.Module.parse(SWAP), "main", *inputs)


def test_tuples_in_and_out():
    (first, second), number = swapped((A, [2.5, B]), ())
    np.testing.assert_array_equal(first, B)
    np.testing.assert_array_equal(second, A)
    assert number == 2.5
    assert not np.shares_memory(first, B)
    assert not np.shares_memory(second, A)


@pytest.mark.parametrize(
    ("inputs", "message"),
    [
        ((A, ()), "expected a tuple of 2 values for input 'p.0', got ndarray"),
        (((A, (1, B), A), ()), "expected a tuple of 2 values for input 'p.0', got 3"),
        (((A, (1,)), ()), "expected a tuple of 2 values for input 'p.1.0', got 1"),
        (((A, (1, B)), (1,)), "expected a tuple of 0 values for an empty tuple, got 1"),
        (((A, (1, B.astype(np.float64))), ()), "expected input 'p.1.1' of dtype f32, got f64"),
        (
            ((A, (1, B[:2])), ()),
            "size 3 ('n' from argument 'p' of @main at dimension 0), got 2",
        ),
        (((A, (1, B)),), "expected 2 inputs for @main, got 1"),
    ],
)
def test_inputs_that_do_not_fit(inputs: tuple[object, ...], message: str):
    with pytest.raises(rx.RelaxError) as error:
        swapped(*inputs)
    assert message in str(error.value)


def test_other_casts_have_no_meaning():
    text = """func.func @main(%x: tensor<4xf32>) -> tensor<2x2xf32> {
      %0 = builtin.unrealized_conversion_cast %x : tensor<4xf32> to tensor<2x2xf32>
      return %0 : tensor<2x2xf32>
    }"""
    with pytest.raises(rx.RelaxError, match=r"-:2:12: '.*' op expected to pack a tuple or to unpack one"):
        rx.evaluate(rx.Module.parse(text), "main", np.zeros(4, np.float32))


def test_weights_of_a_tuple_go_by_name():
    text = """func.func @main(%x: tensor<2xf32>, %p: tuple<tensor<2xf32>, tensor<2xf32>>
        {relax.bundled = [{relax.name = "w"}, {}]}) -> tensor<2xf32> attributes {relax.num_input = 1 : i64} {
      %0:2 = builtin.unrealized_conversion_cast %p : tuple<tensor<2xf32>, tensor<2xf32>> to tensor<2xf32>, tensor<2xf32>
      %1 = "relax.subtract"(%0#0, %0#1) : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
      return %1 : tensor<2xf32>
    }"""
    x = np.zeros(2, np.float32)
    for module, names in ((text, ("w", "weight2")), (text.replace('relax.bundled = [{relax.name = "w"}, {}]', ""), None)):
        names = names or ("weight1.0", "weight1.1")
        weights = dict(zip(names, (A[:2], B[:2]), strict=True))
        np.testing.assert_array_equal(rx.evaluate(rx.Module.parse(module), "main", x, weights=weights)[0], A[:2] - B[:2])
    with pytest.raises(rx.RelaxError, match="expected weights 'w', 'weight2' of @main, got none"):
        rx.evaluate(rx.Module.parse(text), "main", x)

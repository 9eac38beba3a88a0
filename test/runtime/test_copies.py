"""Copies of an executable, as of a model that has one: what one binds, updates or counts, the other does not see."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable

import numpy as np
import pytest

import relaxir as rx

# It counts products of what it is given.
TEXT = """
func.func @main(%x: tensor<2x4xf32> {relax.name = "x"}, %total: tensor<2x4xf32> {relax.name = "total"},
    %w: tensor<4x4xf32> {relax.name = "w"}) -> (tensor<2x4xf32> {relax.name = "y"}, tensor<2x4xf32> {relax.name = "total"})
    attributes {relax.num_input = 2 : i64, relax.state = {total = dense<0.0> : tensor<2x4xf32>}} {
  %t = "relax.permute_dims"(%w) {axes = array<i64: 1, 0>} : (tensor<4x4xf32>) -> tensor<4x4xf32>
  %p = "relax.matmul"(%x, %t) : (tensor<2x4xf32>, tensor<4x4xf32>) -> tensor<2x4xf32>
  %u = "relax.add"(%total, %p) : (tensor<2x4xf32>, tensor<2x4xf32>) -> tensor<2x4xf32>
  return %u, %u : tensor<2x4xf32>, tensor<2x4xf32>
}
"""


def compiled() -> rx.Executable:
    return rx.compile(rx.Module.parse(TEXT))


def prepared(executable: rx.Executable, factor: float) -> object:
    return executable.prepare({"w": factor * np.eye(4, dtype=np.float32)})


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, lambda e: copy.deepcopy({"model": [e]})["model"][0]])
def test_a_copy_goes_on_by_itself(copied) -> None:
    first, x = compiled(), np.ones((2, 4), np.float32)
    first.bind(prepared(first, 1))
    first(x)
    second = copied(first)
    second.bind(prepared(second, 10))
    for executable, expected in ((first, 2), (second, 11), (first, 3), (second, 21)):
        np.testing.assert_array_equal(executable(x), np.full((2, 4), expected))
    assert first.fingerprint == second.fingerprint


def test_weights_are_shared() -> None:
    first = compiled()
    first.bind(prepared(first, 1))
    weights = [next(iter(e.weights.values())) for e in (first, copy.deepcopy(first))]
    assert np.shares_memory(*map(np.asarray, weights))


def test_a_copy_of_what_has_no_weights() -> None:
    assert not copy.deepcopy(compiled()).is_bound


def test_code_is_not_pickled() -> None:
    with pytest.raises(rx.RelaxError, match=r"cannot pickle an executable: save it with save\(path\)"):
        pickle.dumps(compiled())


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, lambda m: pickle.loads(pickle.dumps(m))])
def test_a_copy_of_a_module_is_its_text_in_another_context(copied: Callable[[rx.Module], rx.Module]) -> None:
    module = rx.Module.parse(TEXT)
    found = copied(module)
    assert str(found) == str(module)
    assert found.context is not module.context

"""What mutants that loop nearly forever become, and that others are run."""

from __future__ import annotations

import pytest

from fuzzing.mutated_texts import check_seeded

#: Loops over a weight, which run when weights are prepared, and over an input, which run when it is called.
LOOP = """
func.func @main(%x: tensor<4xf32>, %w: tensor<4xf32> {{relax.name = "w"}}) -> tensor<4xf32>
    attributes {{relax.num_input = {inputs} : i64}} {{
  %low = arith.constant {low} : index
  %high = arith.constant 3 : index
  %step = arith.constant 1 : index
  %y = scf.for %i = %low to %high step %step iter_args(%c = %{value}) -> (tensor<4xf32>) {{
    %n = "relax.abs"(%c) : (tensor<4xf32>) -> tensor<4xf32>
    scf.yield %n : tensor<4xf32>
  }}
  return %y : tensor<4xf32>
}}
"""
WHILE = """
func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> attributes {relax.num_input = 1 : i64} {
  %true = arith.constant true
  %y = scf.while (%c = %x) : (tensor<4xf32>) -> tensor<4xf32> {
    scf.condition(%true) %c : tensor<4xf32>
  } do {
  ^bb0(%c: tensor<4xf32>):
    %n = "relax.abs"(%c) : (tensor<4xf32>) -> tensor<4xf32>
    scf.yield %n : tensor<4xf32>
  }
  return %y : tensor<4xf32>
}
"""


@pytest.mark.parametrize("value", ["x", "w"])
@pytest.mark.parametrize(("low", "outcome"), [(0, None), (-(2**63), "for loops of too many rounds")])
def test_loops_without_end_are_not_run(value: str, low: int, outcome: str | None) -> None:
    assert check_seeded(LOOP.format(inputs=1, low=low, value=value), 1, ()) == outcome


def test_whiles_without_end_are_not_run() -> None:
    assert check_seeded(WHILE, 1, ()) == "for loops of too many rounds"

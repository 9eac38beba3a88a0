"""Functions with lazy IO are evaluated with Python callbacks, and refused by the compiler."""

from __future__ import annotations

import numpy as np
import pytest

import relaxir as rx

MODULE = rx.Module.parse("""
func.func @main(%x: tensor<2x4xf32> {relax.name = "x"}, %a: tensor<3x4xf32> {relax.name = "a"},
    %b: tensor<3xf32> {relax.name = "b"}) -> tensor<2x3xf32> attributes {relax.num_input = 1 : i64} {
  %0 = "relax.permute_dims"(%a) : (tensor<3x4xf32>) -> tensor<4x3xf32>
  %1 = "relax.matmul"(%x, %0) : (tensor<2x4xf32>, tensor<4x3xf32>) -> tensor<2x3xf32>
  %2 = "relax.add"(%1, %b) : (tensor<2x3xf32>, tensor<3xf32>) -> tensor<2x3xf32>
  return %2 : tensor<2x3xf32>
}""")

PIPELINES = [
    ("relax-lazy-get-input", "relax.get_param"),
    ("relax-lazy-set-output", "relax.set_output"),
    ("relax-lazy-get-input{callback=functions}", "func.call"),
    ("relax-lazy-set-output{callback=functions}", "func.call"),
    ("relax-lift-transform-params,relax-lazy-transform-params", "relax.get_param"),
    ("relax-lift-transform-params,relax-lazy-transform-params{callback=functions}", "func.call"),
]


@pytest.mark.parametrize("callback", ["arguments", "functions"])
def test_weights_are_prepared_and_used_one_by_one(callback: str) -> None:
    rng = np.random.default_rng(0)
    x, a, b = (rng.standard_normal(s, np.float32) for s in ((2, 4), (3, 4), (3,)))
    options = f"callback={callback}"
    module = MODULE.run(f"relax-lift-transform-params,relax-lazy-transform-params{{{options}}}")
    prepared: dict[str, np.ndarray] = {}
    told = rx.evaluate(
        module, "main_transform_params", provider=lambda i, n: {"a": a, "b": b}[n], sink=lambda i, n, v: prepared.update({n: v})
    )
    assert told == ()
    assert sorted(prepared) == ["a.permute_dims", "b"]
    inference = module.run(f"relax-lazy-get-input{{functions=main {options}}}")
    (y,) = rx.evaluate(inference, "main", x, provider=lambda i, n: prepared[n])
    np.testing.assert_allclose(y, x @ a.T + b, rtol=1e-5)


@pytest.mark.parametrize(("pipeline", "op"), PIPELINES)
def test_lazy_io_is_not_compiled(pipeline: str, op: str) -> None:
    message = f"'{op}' op expected a module to compile without lazy IO, weights are streamed anyway"
    with pytest.raises(rx.RelaxError, match=message) as error:
        rx.compile(MODULE.run(pipeline))
    assert error.value.location
    with pytest.raises(rx.RelaxError, match=message):
        rx.compile(MODULE, pipeline=pipeline)

"""evaluate(): weights read and results written one by one, in bounded memory."""

from __future__ import annotations

import weakref
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


LAZY = parse("""
  func.func @transform(%provider: !relax.param_provider, %sink: !relax.output_sink) {
    %a = "relax.get_param"(%provider) {index = 0 : i64, name = "a"} : (!relax.param_provider) -> tensor<2x3xf32>
    %t = "relax.permute_dims"(%a) : (tensor<2x3xf32>) -> tensor<3x2xf32>
    "relax.set_output"(%sink, %t) {index = 0 : i64, name = "a.T"} : (!relax.output_sink, tensor<3x2xf32>) -> ()
    %b = "relax.get_param"(%provider) {index = 1 : i64} : (!relax.param_provider) -> tensor<2x3xf32>
    "relax.set_output"(%sink, %b) {index = 1 : i64} : (!relax.output_sink, tensor<2x3xf32>) -> ()
    return
  }
""")


def test_lazy_io() -> None:
    told: dict[Any, Array] = {}
    assert evaluate(LAZY, "transform", [], provider=lambda i, n: np.full((2, 3), i, np.float32),
                    sink=lambda i, n, v: told.update({(i, n): v})) == ()  # fmt: skip
    assert {k: v.shape for k, v in told.items()} == {(0, "a.T"): (3, 2), (1, None): (2, 3)}


def test_lazy_io_wants_callbacks() -> None:
    with pytest.raises(RelaxError, match="expected a provider for argument 'input0', got none"):
        evaluate(LAZY, "transform", [], sink=print)
    with pytest.raises(RelaxError, match="expected a sink for argument 'input1', got none"):
        evaluate(LAZY, "transform", [], provider=lambda i, n: zeros(2, 3))


def test_weights_of_a_provider_are_checked() -> None:
    def run(first: Any, second: Any) -> None:
        evaluate(LAZY, "transform", [], provider=lambda i, n: (first, second)[i], sink=lambda *a: None)

    with pytest.raises(RelaxError, match=r"'relax.get_param' op expected weight 'a' .index 0. of dtype f32, got f64") as error:
        run(np.zeros((2, 3)), zeros(2, 3))
    assert error.value.location is not None
    with pytest.raises(RelaxError, match=r"'relax.get_param' op expected weight 1 of shape \[2, 3\], got \[3, 2\]"):
        run(zeros(2, 3), zeros(3, 2))


def test_exceptions_of_callbacks_are_the_users() -> None:
    def provider(index: int, name: str | None) -> Array:
        raise ValueError("disk on fire")

    with pytest.raises(ValueError, match=r"^disk on fire") as error:
        evaluate(LAZY, "transform", [], provider=provider, sink=print)
    assert error.value.__notes__ == ["reading weight 'a' (index 0)"]


def test_weights_of_a_provider_bind_symbols() -> None:
    module = parse("""func.func @f(%p: !relax.param_provider) -> tensor<i64> {
      %a = "relax.get_param"(%p) {index = 0 : i64} : (!relax.param_provider) -> tensor<?xf32, {sym = ["n"]}>
      %b = "relax.get_param"(%p) {index = 1 : i64} : (!relax.param_provider) -> tensor<?xf32, {sym = ["n"]}>
      %n = "relax.shape_value"() {value = ["n"]} : () -> tensor<i64>
      return %n : tensor<i64>
    }""")
    assert evaluate(module, "f", [], provider=lambda i, n: zeros(4))[0] == 4
    with pytest.raises(RelaxError, match="expected weight 1 at dimension 0 with size 4"):
        evaluate(module, "f", [], provider=lambda i, n: zeros(4 + i))


def test_values_end_after_their_last_use() -> None:
    """Eight weights pass through a private function; never more than the one at hand is alive."""
    steps = "".join(
        f"""
        %w{i} = "relax.get_param"(%p) {{index = {i} : i64}} : (!relax.param_provider) -> tensor<4xf32>
        %c{i} = func.call @negate(%w{i}) : (tensor<4xf32>) -> tensor<4xf32>
        "relax.set_output"(%s, %c{i}) {{index = {i} : i64}} : (!relax.output_sink, tensor<4xf32>) -> ()"""
        for i in range(8)
    )
    module = parse(f"""
      func.func private @negate(%x: tensor<4xf32>) -> tensor<4xf32> {{
        %c = arith.constant true
        %a = "relax.negative"(%x) : (tensor<4xf32>) -> tensor<4xf32>
        %r = scf.if %c -> (tensor<4xf32>) {{
          %b = "relax.abs"(%a) : (tensor<4xf32>) -> tensor<4xf32>
          scf.yield %b : tensor<4xf32>
        }} else {{
          scf.yield %a : tensor<4xf32>
        }}
        return %r : tensor<4xf32>
      }}
      func.func @transform(%p: !relax.param_provider, %s: !relax.output_sink) {{ {steps}
        return
      }}""")
    alive: list[weakref.ref[Any]] = []
    most = []

    class Weight(np.ndarray):  # plain arrays take no weak references
        pass

    def provider(index: int, name: str | None) -> Array:
        most.append(sum(r() is not None for r in alive))
        weight = np.ones(4, np.float32).view(Weight)
        alive.append(weakref.ref(weight))
        return weight

    def sink(index: int, name: str | None, value: Array) -> None:
        most.append(sum(r() is not None for r in alive))

    evaluate(module, "transform", [], provider=provider, sink=sink)
    assert max(most) == 0


def test_values_captured_by_a_loop_live_as_long_as_it() -> None:
    module = parse("""func.func @f(%x: tensor<2xf32>, %n: index) -> tensor<2xf32> {
      %zero = arith.constant 0 : index
      %one = arith.constant 1 : index
      %y = "relax.abs"(%x) : (tensor<2xf32>) -> tensor<2xf32>
      %r = scf.for %i = %zero to %n step %one iter_args(%a = %x) -> (tensor<2xf32>) {
        %b = "relax.add"(%a, %y) : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
        scf.yield %b : tensor<2xf32>
      }
      return %r : tensor<2xf32>
    }""")
    assert evaluate(module, "f", [f32(1, -1), 3])[0].tolist() == [4, 2]

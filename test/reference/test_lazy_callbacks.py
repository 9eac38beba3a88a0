"""evaluate(): callbacks that are declared functions, values passed on to callbacks, and errors that name the weight."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from relaxir.dialect.bindings import ir
from relaxir.dialect.context import new_context
from relaxir.dialect.errors import RelaxError
from relaxir.dialect.parser import parse_module
from relaxir.dialect.passes import manager
from relaxir.dialect.reference.interpreter import evaluate

Array = np.ndarray[Any, Any]

CONTEXT = new_context()
TRANSFORM = """
func.func @main_transform_params(%a: tensor<?x2xf32, {sym = ["m"]}> {relax.name = "a"}, %b: tensor<?xf32, {sym = ["m"]}> {relax.name = "b"},
    %u: tensor<4xf32> {relax.name = "u"})
    -> (tensor<2x?xf32, {sym = ["m"]}> {relax.name = "a.t"}, tensor<?xf32, {sym = ["m"]}> {relax.name = "b"}, tensor<2x?xf32, {sym = ["m"]}> {relax.name = "again"})
    attributes {relax.num_input = 0 : i64, relax.transform_for = @main} {
  %0 = "relax.permute_dims"(%a) : (tensor<?x2xf32, {sym = ["m"]}>) -> tensor<2x?xf32, {sym = ["m"]}>
  return %0, %b, %0 : tensor<2x?xf32, {sym = ["m"]}>, tensor<?xf32, {sym = ["m"]}>, tensor<2x?xf32, {sym = ["m"]}>
}
func.func @main(%x: tensor<1xf32>, %a: tensor<2x?xf32, {sym = ["m"]}> {relax.name = "a.t"}, %b: tensor<?xf32, {sym = ["m"]}> {relax.name = "b"},
    %c: tensor<2x?xf32, {sym = ["m"]}> {relax.name = "again"}) attributes {relax.num_input = 1 : i64} {
  return
}
"""  # noqa: E501
WEIGHTS = {"a": np.arange(6, dtype=np.float32).reshape(3, 2), "b": np.ones(3, np.float32)}
ORDER = ["a", "b", "u"]
RESULTS = ["a.t", "b", "again"]


def lazy(options: str = "") -> ir.Operation:
    return manager.run(parse_module(TRANSFORM, "-", CONTEXT), f"relax-lazy-transform-params{{{options}}}")


def told_by(module: ir.Operation, inputs: list[Any] = [], weights: dict[str, Any] = WEIGHTS) -> list[tuple[Any, ...]]:  # noqa: B006
    """What the callbacks are called with, in order; reads return weights by name or index."""
    told: list[tuple[Any, ...]] = []

    def provider(index: int | None, name: str | None, **bound: Any) -> Any:
        told.append(("get", index, name, *bound.items()))
        return weights[name if name is not None else ORDER[index or 0]]

    def sink(index: int | None, name: str | None, value: Array, **bound: Any) -> None:
        told.append(("set", index, name, *bound.items()))
        wanted = {"b": WEIGHTS["b"]}.get(name or RESULTS[index or 0], WEIGHTS["a"].T)
        np.testing.assert_array_equal(value, wanted)

    assert evaluate(module, "main_transform_params", inputs, provider=provider, sink=sink) == ()
    return told


STEPS = [("get", 0, "a"), ("set", 0, "a.t"), ("set", 2, "again"), ("get", 1, "b"), ("set", 1, "b")]


@pytest.mark.parametrize("callback", ["arguments", "functions"])
@pytest.mark.parametrize("addressing", ["both", "index", "name"])
def test_each_weight_is_read_and_each_result_handed_over_once(callback: str, addressing: str) -> None:
    """At first use and at definition, the unused weight never; both styles make the same calls."""
    index, name = addressing != "name", addressing != "index"
    wanted = [(kind, i if index else None, n if name else None) for kind, i, n in STEPS]
    assert told_by(lazy(f"callback={callback} addressing={addressing}")) == wanted


@pytest.mark.parametrize("callback", ["arguments", "functions"])
def test_callbacks_get_what_is_passed_on(callback: str) -> None:
    module = lazy(f"callback={callback} extra-get=rank:i64,loader:!relax.object extra-set=rank")
    loader = object()
    told = told_by(module, [3, loader])
    assert told[0] == ("get", 0, "a", ("rank", 3), ("loader", loader))
    assert told[1] == ("set", 0, "a.t", ("rank", 3))


def test_callbacks_are_wanted() -> None:
    module = lazy("callback=functions")
    with pytest.raises(RelaxError, match=r"'func.call' op expected a provider for @get_param_Dx2xf32, got none") as error:
        evaluate(module, "main_transform_params", [], sink=print)
    assert error.value.location is not None
    with pytest.raises(RelaxError, match=r"'func.call' op expected a sink for @set_output_2xDxf32, got none"):
        evaluate(module, "main_transform_params", [], provider=lambda i, n: WEIGHTS[n or ""])


@pytest.mark.parametrize("callback", ["arguments", "functions"])
@pytest.mark.parametrize(
    ("weight", "message"),
    [
        (np.zeros((3, 2)), r"expected weight 'a' \(index 0\) of dtype f32, got f64"),
        (np.zeros((3, 4), np.float32), r"expected weight 'a' \(index 0\) of shape \[.*, 2\], got \[3, 4\]"),
        (np.zeros(3, np.float32), r"expected weight 'a' \(index 0\) of shape \[.*, 2\], got \[3\]"),
        (None, r"expected weight 'a' \(index 0\) of dtype f32, got object"),
        ([[1.0], [1.0, 2.0]], r"expected an array for weight 'a' \(index 0\), got list: .*inhomogeneous"),
    ],
)
def test_a_wrong_weight_is_named(callback: str, weight: Any, message: str) -> None:
    with pytest.raises(RelaxError, match=message) as error:
        told_by(lazy(f"callback={callback}"), weights={**WEIGHTS, "a": weight})
    assert error.value.location is not None


@pytest.mark.parametrize("callback", ["arguments", "functions"])
def test_a_weight_that_contradicts_another_is_named(callback: str) -> None:
    with pytest.raises(RelaxError, match=r"expected weight 'b'.* at dimension 0 with size 3 .*, got 5"):
        told_by(lazy(f"callback={callback}"), weights={**WEIGHTS, "b": np.ones(5, np.float32)})


@pytest.mark.parametrize("callback", ["arguments", "functions"])
def test_exceptions_of_callbacks_say_what_they_were_about(callback: str) -> None:
    def broken(*_: Any) -> Any:
        raise OSError("disk on fire")

    module = lazy(f"callback={callback}")
    with pytest.raises(OSError, match="disk on fire") as error:
        evaluate(module, "main_transform_params", [], provider=broken, sink=print)
    assert error.value.__notes__ == ["reading weight 'a' (index 0)"]
    with pytest.raises(OSError, match="disk on fire") as error:
        evaluate(module, "main_transform_params", [], provider=lambda i, n: WEIGHTS[n or ""], sink=broken)
    assert error.value.__notes__ == ["handing over result 'a.t' (index 0)"]


def test_errors_of_ours_in_callbacks_say_what_they_were_about() -> None:
    def provider(*_: Any) -> Any:
        raise RelaxError("expected a tensor named 'a' in x.safetensors, got none")

    with pytest.raises(
        RelaxError, match=r"expected no error reading weight 'a' \(index 0\), got: expected a tensor named 'a' in"
    ):
        evaluate(lazy(), "main_transform_params", [], provider=provider, sink=print)


TWICE = """
func.func @f(%s: !relax.output_sink, %n: index, %r: i64, %q: i64, %x: tensor<2xf32>) {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %a = "relax.bind_argument"(%s, %r) {name = "rank"} : (!relax.output_sink, i64) -> !relax.output_sink
  %b = "relax.bind_argument"(%s, %q) {name = "rank"} : (!relax.output_sink, i64) -> !relax.output_sink
  "relax.set_output"(%a, %x) {index = 1 : i64} : (!relax.output_sink, tensor<2xf32>) -> ()
  "relax.set_output"(%b, %x) {index = 1 : i64} : (!relax.output_sink, tensor<2xf32>) -> ()
  scf.for %i = %zero to %n step %one {
    "relax.set_output"(%s, %x) {index = 0 : i64, name = "y"} : (!relax.output_sink, tensor<2xf32>) -> ()
  }
  return
}
"""


def test_a_result_handed_over_twice_is_an_error() -> None:
    module = parse_module(TWICE, "-", CONTEXT)
    seen: list[Any] = []
    x = np.zeros(2, np.float32)
    for _ in range(2):  # each run begins anew
        evaluate(module, "f", [1, 0, 1, x], sink=lambda i, n, v, **bound: seen.append((i, bound)))
    assert seen == [(1, {"rank": 0}), (1, {"rank": 1}), (0, {})] * 2
    with pytest.raises(RelaxError, match=r"'relax.set_output' op expected result 'y' \(index 0\) once, got it twice"):
        evaluate(module, "f", [2, 0, 1, x], sink=lambda *_, **bound: None)
    with pytest.raises(RelaxError, match=r"'relax.set_output' op expected result 1 once, got it twice"):
        evaluate(module, "f", [1, 0, 0, x], sink=lambda *_, **bound: None)


BRANCHES = """
func.func @f(%c: i1, %n: index, %a: tensor<2xf32> {relax.name = "a"}, %b: tensor<2xf32> {relax.name = "b"},
    %l: tensor<2xf32> {relax.name = "l"})
    -> tensor<2xf32> attributes {relax.num_input = 2 : i64} {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %0 = scf.if %c -> tensor<2xf32> {
    scf.yield %a : tensor<2xf32>
  } else {
    scf.yield %b : tensor<2xf32>
  }
  %1 = scf.for %i = %zero to %n step %one iter_args(%k = %0) -> (tensor<2xf32>) {
    %2 = "relax.add"(%k, %l) : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
    scf.yield %2 : tensor<2xf32>
  }
  return %1 : tensor<2xf32>
}
"""


@pytest.mark.parametrize("callback", ["arguments", "functions"])
def test_a_branch_that_is_not_taken_reads_nothing_and_a_loop_reads_once(callback: str) -> None:
    module = manager.run(parse_module(BRANCHES, "-", CONTEXT), f"relax-lazy-get-input{{callback={callback}}}")
    read: list[str | None] = []

    def provider(index: int | None, name: str | None) -> Array:
        read.append(name)
        return np.full(2, len(read), np.float32)

    assert evaluate(module, "f", [True, 3], provider=provider)[0].tolist() == [7, 7]
    assert evaluate(module, "f", [False, 3], provider=provider)[0].tolist() == [15, 15]
    assert read == ["a", "l", "b", "l"]

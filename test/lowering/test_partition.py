"""Steps of a transform: connected by weights, complete, in order, and free of what they do not need."""

from __future__ import annotations

from relaxir.dialect.bindings import ir
from relaxir.dialect.functions import argument_names, body_of, find_function, name_of, result_names
from relaxir.dialect.relax import new_context
from relaxir.lowering.partition import partition_transform

TEXT = """
func.func @t(%a: tensor<4x8xf32> {relax.name = "a"}, %b: tensor<4x8xf32> {relax.name = "b"},
             %c: tensor<4x8xf32> {relax.name = "c"}, %unused: tensor<2xf32> {relax.name = "unused"})
    -> (tensor<8x4xf32> {relax.name = "a.t"}, tensor<8x8xf32> {relax.name = "b+c"}, tensor<4x8xf32> {relax.name = "a"},
        tensor<f32> {relax.name = "k"}, tensor<4x8xf32> {relax.name = "b.k"}) attributes {relax.num_input = 0 : i64} {
  %t = "relax.permute_dims"(%a) : (tensor<4x8xf32>) -> tensor<8x4xf32>
  %k = "relax.full"() {value = 1.0} : () -> tensor<f32>
  %k2 = "relax.negative"(%k) : (tensor<f32>) -> tensor<f32>
  %dead = "relax.negative"(%c) : (tensor<4x8xf32>) -> tensor<4x8xf32>
  %d = "relax.multiply"(%b, %k2) : (tensor<4x8xf32>, tensor<f32>) -> tensor<4x8xf32>
  %u = "relax.concat"(%d, %c) {axis = 0 : i64} : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<8x8xf32>
  return %t, %u, %a, %k, %d : tensor<8x4xf32>, tensor<8x8xf32>, tensor<4x8xf32>, tensor<f32>, tensor<4x8xf32>
}
"""


def steps() -> list[tuple[str, list[str | None], list[str | None], list[str]]]:
    """(name, arguments, results, ops) of each step."""
    with new_context(), ir.Location.unknown():
        module = ir.Module.parse(TEXT)
        made = partition_transform(find_function(module, "t"))
        assert module.operation.verify()
        found = []
        for function in made:
            block = body_of(function)
            assert block is not None
            ops = [o.operation.name.removeprefix("relax.") for o in block.operations]
            found.append((name_of(function), argument_names(function), result_names(function), ops))
        return found


def test_each_step_has_the_weights_its_results_need() -> None:
    assert [(s[1], s[2]) for s in steps()] == [(["a"], ["a.t"]), (["b", "c"], ["b+c", "b.k"]), ([], ["k"])]


def test_constants_are_repeated_where_needed_only() -> None:
    (_, _, _, first), (_, _, _, second), (_, _, _, third) = steps()
    assert first == ["permute_dims", "func.return"]
    assert second[:2] == ["full", "negative"]
    assert third == ["full", "func.return"]


def test_a_weight_returned_as_it_is_takes_no_step() -> None:
    assert all("a" not in s[2] for s in steps())


def test_steps_are_numbered() -> None:
    assert [s[0] for s in steps()] == ["t.step0", "t.step1", "t.step2"]

"""Steps of a transform: as small as sharing allows, complete, in order, and free of what they do not need."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from relaxir.dialect.bindings import ir
from relaxir.dialect.context import new_context
from relaxir.dialect.functions import argument_names, body_of, find_function, name_of, result_names
from relaxir.lowering.partition import CHEAP_OPS, partition_transform

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


@dataclass(frozen=True)
class Step:
    name: str
    arguments: list[str | None]
    results: list[str | None]
    ops: list[str]


def steps(text: str = TEXT) -> list[Step]:
    with new_context(), ir.Location.unknown():
        module = ir.Module.parse(text)
        made = partition_transform(find_function(module, "t"))
        assert module.operation.verify()
        found: list[Step] = []
        for function in made:
            block = body_of(function)
            assert block is not None
            ops = [o.operation.name.removeprefix("relax.") for o in block.operations]
            found.append(Step(name_of(function), argument_names(function), result_names(function), ops))
        return found


def test_each_step_has_the_weights_its_results_need() -> None:
    assert [(s.arguments, s.results) for s in steps()] == [(["a"], ["a.t"]), (["b", "c"], ["b+c", "b.k"]), ([], ["k"])]


def test_constants_are_repeated_where_needed_only() -> None:
    first, second, third = steps()
    assert first.ops == ["permute_dims", "func.return"]
    assert second.ops[:2] == ["full", "negative"]
    assert third.ops == ["full", "func.return"]


def test_what_no_result_needs_is_left_out() -> None:
    assert steps()[1].ops.count("negative") == 1


def test_a_weight_returned_as_it_is_takes_no_step() -> None:
    assert all("a" not in s.results for s in steps())


def test_steps_are_numbered() -> None:
    assert [s.name for s in steps()] == ["t.step0", "t.step1", "t.step2"]


def scaled(weights: int, side: int, scale: str, prelude: str, shared: str = "%s") -> str:
    """Weights ``side x side`` times something shared, each negated first and turned round after; breadth first."""
    one, kinds = f"tensor<{side}x{side}xf32>", range(weights)
    arguments = ", ".join(f'%w{i}: {one} {{relax.name = "w{i}"}}' for i in kinds)
    lines = [f'%n{i} = "relax.negative"(%w{i}) : ({one}) -> {one}' for i in kinds]
    lines += [f'%m{i} = "relax.multiply"(%n{i}, {shared}) : ({one}, {scale}) -> {one}' for i in kinds]
    lines += [f'%t{i} = "relax.permute_dims"(%m{i}) : ({one}) -> {one}' for i in kinds]
    results = ", ".join(f'{one} {{relax.name = "t{i}"}}' for i in kinds)
    returned = f"return {', '.join(f'%t{i}' for i in kinds)} : {', '.join([one] * weights)}"
    return (
        f'func.func @t({arguments}, %s: {scale} {{relax.name = "s"}}) -> ({results}) '
        "attributes {relax.num_input = 0 : i64} {\n" + "\n".join([prelude, *lines, returned]) + "\n}"
    )


@pytest.mark.parametrize("scale", ["tensor<f32>", "tensor<1024x1024xf32>"])
def test_a_raw_weight_that_all_share_joins_nothing(scale: str) -> None:
    found = steps(scaled(4, 1024, scale, ""))
    assert [(s.arguments, s.results) for s in found] == [([f"w{i}", "s"], [f"t{i}"]) for i in range(4)]
    assert all(s.ops == ["negative", "multiply", "permute_dims", "func.return"] for s in found)


def test_a_cheap_value_that_all_share_is_computed_in_each() -> None:
    prelude = '%e = "relax.exp"(%s) : (tensor<1024xf32>) -> tensor<1024xf32>'
    found = steps(scaled(4, 1024, "tensor<1024xf32>", prelude, "%e"))
    assert [s.arguments for s in found] == [[f"w{i}", "s"] for i in range(4)]
    assert all(sorted(s.ops) == ["exp", "func.return", "multiply", "negative", "permute_dims"] for s in found)


def test_a_value_that_is_not_cheap_joins_the_steps() -> None:
    large = "tensor<1024x1024xf32>"
    by_bytes = f'%e = "relax.exp"(%s) : ({large}) -> {large}'
    by_ops = "\n".join(
        f'%e{"" if i == CHEAP_OPS else i} = "relax.exp"({"%s" if i == 0 else f"%e{i - 1}"}) : (tensor<f32>) -> tensor<f32>'
        for i in range(CHEAP_OPS + 1)
    )
    for scale, prelude in ((large, by_bytes), ("tensor<f32>", by_ops)):
        (only,) = steps(scaled(4, 1024, scale, prelude, "%e"))
        assert only.arguments == ["w0", "w1", "w2", "w3", "s"]


def test_steps_that_are_small_share_what_is_cheap() -> None:
    prelude = '%e = "relax.exp"(%s) : (tensor<f32>) -> tensor<f32>'
    (only,) = steps(scaled(4, 8, "tensor<f32>", prelude, "%e"))
    assert only.results == ["t0", "t1", "t2", "t3"]
    assert only.ops.count("exp") == 1


def test_ops_of_a_step_hold_one_weight_at_a_time() -> None:
    """The transform has all that is shared, then all that is multiplied, then all that is turned round."""
    large = "tensor<1024x1024xf32>"
    (only,) = steps(scaled(3, 1024, large, f'%e = "relax.exp"(%s) : ({large}) -> {large}', "%e"))
    assert only.ops == ["exp", *["negative", "multiply", "permute_dims"] * 3, "func.return"]

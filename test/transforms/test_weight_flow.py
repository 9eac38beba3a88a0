"""The analysis that passes share: what comes from weights alone, what of that is known ahead, and which weights tell sizes."""

from __future__ import annotations

import pytest

from relaxir.dialect.analysis.weight_flow import FlowRules, Obstacle, WeightFlow
from relaxir.dialect.bindings import func, ir
from relaxir.dialect.context import new_context
from relaxir.dialect.errors import RelaxError
from relaxir.dialect.functions import find_function
from relaxir.dialect.parser import parse_module
from relaxir.dialect.passes.manager import run
from relaxir.dialect.traversal import nested_operations
from support.random_pipelines import PASSES

M, V, B = "tensor<8x8xf32>", "tensor<8xf32>", 'tensor<?x8xf32, {sym = ["n"]}>'


def module_of(body: str, more: str = "") -> ir.Module:
    """``@main`` of an input %x and weights %w and %v, with that body."""
    text = f"""
      {more}
      func.func @main(%x: {B} {{relax.name = "x"}}, %w: {M} {{relax.name = "w"}}, %v: {V} {{relax.name = "v"}})
          attributes {{relax.num_input = 1 : i64}} {{
        {body}
        return
      }}"""
    return parse_module(text, "-", new_context())


def flow_of(module: ir.Module) -> tuple[WeightFlow, func.FuncOp, ir.Module]:
    """The flow of ``@main``; the module, which has to outlive it, comes along."""
    with module.context, ir.Location.unknown():
        function = find_function(module, "main")
        return FlowRules.of(module.operation).flow(function), function, module


def printed(body: str, more: str = "") -> list[str]:
    """What the flow says of each op that has a result: its name, where it comes from, and whether it is known ahead."""
    module = module_of(body, more)
    flow, function, _module = flow_of(module)
    found: list[str] = []
    for op in nested_operations(function.operation):
        if not len(op.results):
            continue
        value = op.results[0]
        origin = "weights" if flow.comes_from_weights(value) else "constants" if flow.is_known(value) else "run time"
        found.append(f"{op.name.partition('.')[2]}: {origin}{', ahead' if flow.is_ahead(value) else ''}")
    return found


def test_what_reads_weights_and_constants_comes_from_weights() -> None:
    assert printed(f"""
        %one = "relax.full"() {{value = 1.0 : f64}} : () -> {V}
        %t = "relax.permute_dims"(%w) : ({M}) -> {M}
        %s = "relax.add"(%t, %one) : ({M}, {V}) -> {M}
        %y = "relax.matmul"(%x, %s) : ({B}, {M}) -> {B}
        %z = "relax.relu"(%y) : ({B}) -> {B}
    """) == [
        "full: constants, ahead", "permute_dims: weights, ahead", "add: weights, ahead", "matmul: run time", "relu: run time",
    ]  # fmt: skip


def test_never_keeps_a_value_in_inference_and_it_still_comes_from_weights() -> None:
    assert printed(f"""
        %a = "relax.relu"(%w) {{relax.lift = "never"}} : ({M}) -> {M}
        %b = "relax.abs"(%a) : ({M}) -> {M}
        %c = "relax.abs"(%w) {{relax.lift = "always"}} : ({M}) -> {M}
    """) == ["relu: weights", "abs: weights", "abs: weights, ahead"]


def test_stop_lift_params_gives_a_run_time_value() -> None:
    assert printed(f"""
        %a = "relax.stop_lift_params"(%w) : ({M}) -> {M}
        %b = "relax.abs"(%a) : ({M}) -> {M}
    """) == ["stop_lift_params: run time", "abs: run time"]


def test_symbols_of_inputs_are_known_at_run_time_alone() -> None:
    assert printed(f"""
        %a = "relax.broadcast_to"(%v) : ({V}) -> {B}
        %b = "relax.negative"(%a) : ({B}) -> {B}
        %c = "relax.match_cast"(%w) : ({M}) -> tensor<?x8xf32, {{sym = ["m"]}}>
        %d = "relax.abs"(%c) : (tensor<?x8xf32, {{sym = ["m"]}}>) -> tensor<?x8xf32, {{sym = ["m"]}}>
    """) == ["broadcast_to: weights", "negative: weights", "match_cast: weights, ahead", "abs: weights, ahead"]


def test_a_symbol_that_a_run_time_cast_defines_is_not_known_ahead() -> None:
    any_ = "tensor<?x8xf32>"
    assert printed(f"""
        %c = "relax.match_cast"(%x) : ({B}) -> tensor<?x8xf32, {{sym = ["m"]}}>
        %d = "relax.match_cast"(%w) : ({M}) -> tensor<?x8xf32, {{sym = ["m"]}}>
        %e = "relax.match_cast"(%w) : ({M}) -> {any_}
    """) == ["match_cast: run time", "match_cast: weights", "match_cast: weights, ahead"]


def test_pure_ops_of_other_dialects_and_calls_pass_weights_on() -> None:
    pure = f"func.func private @pure(%a: {M}) -> {M} {{ return %a : {M} }}"
    effect = f"func.func private @effect(%a: {M}) -> {M}"
    stops = f"""func.func private @stops(%a: {M}) -> {M} {{
        %b = "relax.stop_lift_params"(%a) : ({M}) -> {M}
        return %b : {M} }}"""
    assert printed(
        f"""
        %zero = arith.constant 0 : index
        %e = tensor.extract %v[%zero] : {V}
        %a = call @pure(%w) : ({M}) -> {M}
        %b = call @effect(%w) : ({M}) -> {M}
        %c = call @stops(%w) : ({M}) -> {M}
        """,
        f"{pure}\n{effect}\n{stops}",
    ) == [
        "constant: constants, ahead", "extract: weights, ahead", "call: weights, ahead", "call: run time", "call: run time",
    ]  # fmt: skip


def test_what_may_fail_in_a_branch_is_not_computed_ahead() -> None:
    assert printed(f"""
        %zero = arith.constant 0 : index
        %limit = arith.constant 0.0 : f32
        %first = tensor.extract %x[%zero, %zero] : {B}
        %c = arith.cmpf olt, %first, %limit : f32
        %r = scf.if %c -> {V} {{
          %i = "relax.full"() {{value = 9 : i64}} : () -> tensor<2xi64>
          %a = "relax.abs"(%v) : ({V}) -> {V}
          %t = "relax.take"(%a, %i) {{axis = 0 : i64}} : ({V}, tensor<2xi64>) -> tensor<2xf32>
          scf.yield %a : {V}
        }} else {{
          scf.yield %v : {V}
        }}
    """)[4:] == ["if: run time", "full: constants, ahead", "abs: weights, ahead", "take: weights"]


def test_a_loop_over_weights_comes_from_weights_with_all_that_is_inside() -> None:
    body = f"""
      %from = arith.constant 0 : index
      %to = arith.constant 3 : index
      %by = arith.constant 1 : index
      %r = scf.for %i = %from to %to step %by iter_args(%a = %w) -> ({M}) {{
        %b = "relax.matmul"(%a, %w) : ({M}, {M}) -> {M}
        scf.yield %b : {M}
      }}
    """
    assert printed(body)[3:] == ["for: weights, ahead", "matmul: weights, ahead"]
    flow, function, _module = flow_of(module_of(body))
    loop = next(op for op in nested_operations(function.operation) if op.name == "scf.for")
    assert flow.sources(loop.results[0]) == ("w",)
    assert flow.sources(loop.regions[0].blocks[0].arguments[1]) == ("w",)


def test_sources_are_the_weights_behind_a_value() -> None:
    flow, function, _module = flow_of(module_of(f'%s = "relax.add"(%w, %v) : ({M}, {V}) -> {M}'))
    add = next(nested_operations(function.operation))
    assert flow.sources(add.results[0]) == ("w", "v")


@pytest.mark.parametrize(
    ("line", "obstacle"),
    [
        (f'"relax.relu"(%x) : ({B}) -> {B}', Obstacle.RUN_TIME_VALUE),
        (f'"relax.relu"(%w) {{relax.lift = "never"}} : ({M}) -> {M}', Obstacle.OVERRIDE),
        (f'"relax.stop_lift_params"(%w) : ({M}) -> {M}', Obstacle.BARRIER),
        (f'func.call @effect(%w) : ({M}) -> {M}', Obstacle.NOT_PURE),
        (f'"relax.broadcast_to"(%v) : ({V}) -> {B}', Obstacle.RUN_TIME_SYMBOL),
        (f'"relax.relu"(%w) : ({M}) -> {M}', None),
    ],
)  # fmt: skip
def test_each_obstacle_is_named(line: str, obstacle: Obstacle | None) -> None:
    flow, function, _module = flow_of(module_of(f"%r = {line}", f"func.func private @effect(%a: {M}) -> {M}"))
    assert flow.obstacle(next(nested_operations(function.operation)), nested=False) == obstacle


def test_weights_that_tell_a_size_alone() -> None:
    text = """
      func.func @main(%x: tensor<?xf32, {sym = ["n"]}>, %w: tensor<?x?xf32, {sym = ["n", "m"]}>,
          %v: tensor<?xf32, {sym = ["m + k"]}>) attributes {relax.num_input = 1 : i64} { return }"""
    flow, _, _module = flow_of(parse_module(text, "-", new_context()))
    w, v = flow.weights
    assert flow.definers() == {"m": [w], "k": [w, v]}


def test_replaced_values_hand_on_what_they_are() -> None:
    flow, function, _module = flow_of(module_of(f'%a = "relax.relu"(%w) : ({M}) -> {M}\n%b = "relax.relu"(%x) : ({B}) -> {B}'))
    a, b = (op.results[0] for op in list(nested_operations(function.operation))[:2])
    flow.replace([a], [b])
    assert flow.is_ahead(b)
    assert not flow.is_known(a)


# Where rules of passes differed before there was one.


def test_a_weight_out_of_a_tuple_is_packed() -> None:
    text = f"""
      func.func @main(%x: {M}, %p: tuple<{M}, {V}> {{relax.name = "p"}}) -> {M} attributes {{relax.num_input = 1 : i64}} {{
        %w, %v = builtin.unrealized_conversion_cast %p : tuple<{M}, {V}> to {M}, {V}
        %y = "relax.matmul"(%x, %w) : ({M}, {M}) -> {M}
        return %y : {M}
      }}"""
    assert "relax.packed_matmul" in str(run(parse_module(text, "-", new_context()), "relax-pack-weights{tile=8}"))


def test_a_weight_that_is_computed_in_a_branch_is_not_packed_there() -> None:
    module = module_of(f"""
        %zero = arith.constant 0 : index
        %c = tensor.extract %x[%zero, %zero] : {B}
        %limit = arith.constant 0.0 : f32
        %b = arith.cmpf olt, %c, %limit : f32
        %r = scf.if %b -> {B} {{
          %i = "relax.full"() {{value = 1 : i64}} : () -> tensor<8xi64>
          %t = "relax.take"(%w, %i) {{axis = 0 : i64}} : ({M}, tensor<8xi64>) -> {M}
          %y = "relax.matmul"(%x, %t) : ({B}, {M}) -> {B}
          scf.yield %y : {B}
        }} else {{
          %y = "relax.matmul"(%x, %w) : ({B}, {M}) -> {B}
          scf.yield %y : {B}
        }}""")
    text = str(run(module, "relax-pack-weights{tile=8}"))
    assert text.count('"relax.packed_matmul"') == text.count('"relax.matmul"') == 1


def test_products_in_a_loop_over_weights_are_left_to_lifting() -> None:
    module = module_of(f"""
        %from = arith.constant 0 : index
        %to = arith.constant 3 : index
        %by = arith.constant 1 : index
        %r = scf.for %i = %from to %to step %by iter_args(%a = %w) -> ({M}) {{
          %b = "relax.matmul"(%a, %w) : ({M}, {M}) -> {M}
          scf.yield %b : {M}
        }}
        %y = "relax.matmul"(%x, %r) : ({B}, {M}) -> {B}""")
    text = str(run(module, "relax-pack-weights{tile=8}"))
    assert text.count("relax.packed_matmul") == 1
    assert text.count('"relax.matmul"') == 1


@pytest.mark.parametrize("name", sorted(PASSES))
def test_a_wrong_override_of_lifting_is_refused_at_the_op_or_not_looked_at(name: str) -> None:
    module = module_of(f"""
        %w1 = "relax.exp"(%w) {{relax.lift = 3 : i64}} : ({M}) -> {M}
        %y = "relax.matmul"(%x, %w1) : ({B}, {M}) -> {B}""")
    try:
        run(module, name)
    except RelaxError as error:
        wanted = '\'relax.exp\' op expected "always" or "never" for relax.lift, got 3 : i64'
        assert wanted in str(error) or "relax.lift" not in str(error)  # noqa: PT017  options of some passes are needed

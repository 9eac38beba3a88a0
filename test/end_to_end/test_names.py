"""What arguments and results without a name are called: the same everywhere, and unlike what others are named."""

from __future__ import annotations

import numpy as np
import pytest

import relaxir as rx
from relaxir.dialect.errors import RelaxError, RelaxWarning
from relaxir.dialect.lazy_calls import LazyCalls
from relaxir.dialect.traversal import nested_operations

T = "tensor<4xf32>"
X, W = np.array([1, 2, 3, 4], np.float32), np.array([0, 1, 0, 1], np.float32)


def module(given: str = "", result: str = "") -> rx.Module:
    """Two inputs, of which the first may have a name, and a weight; two results, of which the second may have one."""
    named = [f' {{relax.name = "{n}"}}' if n else "" for n in (given, result)]
    return rx.Module.parse(f"""
      func.func @main(%x: {T}{named[0]}, %y: {T}, %w: {T}) -> ({T}, {T}{named[1]}) attributes {{relax.num_input = 2 : i64}} {{
        %e = "relax.exp"(%w) : ({T}) -> {T}
        %0 = "relax.add"(%x, %e) : ({T}, {T}) -> {T}
        %1 = "relax.subtract"(%0, %y) : ({T}, {T}) -> {T}
        return %0, %1 : {T}, {T}
      }}""")


@pytest.mark.parametrize(
    ("given", "result", "inputs", "weight", "outputs"),
    [
        ("", "", ["input0", "input1"], "weight2", ["output0", "output1"]),
        ("x", "y", ["x", "input1"], "weight2", ["output0", "y"]),
        ("weight2", "output0", ["weight2", "input1"], "weight2_", ["output0_", "output0"]),
        ("input1", "output1", ["input1", "input1_"], "weight2", ["output0", "output1"]),
    ],
)
def test_one_name_everywhere(given, result, inputs, weight, outputs):
    built = module(given, result)
    main = built.functions["main"]
    assert [i.name for i in main.inputs] == inputs
    assert [w.name for w in main.weights] == [weight]
    assert [o.name for o in main.outputs] == outputs
    expected = rx.evaluate(built, "main", X, X, weights={weight: W})

    lifted = built.run("relax-lift-transform-params")
    assert [w.name for w in lifted.functions["main_transform_params"].weights] == [weight]
    assert f'relax.name = "{weight}"' in str(lifted)
    assert weight in str(lifted.report)
    bundled = built.run("relax-bundle-model-params")
    np.testing.assert_array_equal(rx.evaluate(bundled, "main", X, X, weights={weight: W}), expected)
    expanded = bundled.run("relax-expand-tuple-arguments{public=true}")
    assert [w.name for w in expanded.functions["main"].weights] == [weight]
    lazy = built.run("relax-lazy-get-input")
    calls = LazyCalls(lazy.ir.operation)
    assert [calls.describe(op).name for op in nested_operations(lazy.ir.operation) if calls.is_read(op)] == [weight]

    for pipeline in (None, "relax-canonicalize"):
        executable = rx.compile(built, pipeline=pipeline)
        manifest = executable.manifest
        assert list(manifest.raw_weights) == [weight]
        entry = manifest.entries["main"]
        assert ([i.name for i in entry.inputs], [o.name for o in entry.outputs]) == (inputs, outputs)
        executable.bind(executable.prepare({weight: W}))
        found = executable(**dict(zip(inputs, (X, X), strict=True)))
        for got, wanted in zip(found, expected, strict=True):
            np.testing.assert_allclose(got, wanted, rtol=1e-6)  # exp is within 4 ulp


def test_results_without_names_are_the_weights_by_position():
    built = rx.Module.parse(f"""
      func.func @prepare(%v: {T} {{relax.name = "v"}}) -> ({T}, {T}) attributes {{relax.num_input = 0 : i64, relax.transform_for = @main}} {{
        %0 = "relax.negative"(%v) : ({T}) -> {T}
        return %0, %v : {T}, {T}
      }}
      func.func @main(%x: {T}, %a: {T} {{relax.name = "a"}}, %b: {T} {{relax.name = "b"}}) -> {T} attributes {{relax.num_input = 1 : i64}} {{
        %0 = "relax.add"(%x, %a) : ({T}, {T}) -> {T}
        %1 = "relax.multiply"(%0, %b) : ({T}, {T}) -> {T}
        return %1 : {T}
      }}""")  # noqa: E501
    assert [o.name for o in built.functions["prepare"].outputs] == ["a", "b"]
    executable = rx.compile(built)
    executable.bind(executable.prepare({"v": W}))
    np.testing.assert_array_equal(executable(X), (X - W) * W)


def test_a_transform_function_by_name_alone_is_told():
    text = f'func.func @main_transform_params(%w: {T} {{relax.name = "w"}}) -> {T} attributes {{relax.num_input = 0 : i64}} {{'
    built = rx.Module.parse(f"{text}\n  return %w : {T}\n}}")
    with pytest.warns(RelaxWarning, match=r"op has no relax\.transform_for: @main_transform_params is compiled as an entry"):
        rx.compile(built)
    with pytest.raises(RelaxError, match=r"expected relax\.transform_for of the transform function @main_transform_params"):
        built.run("relax-lazy-transform-params")

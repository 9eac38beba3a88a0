"""Sizes that types leave open: what ops need of them is checked when compiled code is called, as ``evaluate`` checks it.

``RELAXIR_SIZES=<n>`` runs n variants of the generator; without it, two of seven op samples have one.
"""

from __future__ import annotations

import itertools
import os
import re

import numpy as np
import pytest

import relaxir as rx
from fuzzing import size_variants
from relaxir.dialect import ops  # noqa: F401  fills the dialect
from relaxir.dialect.relax import Relax
from support.guard_pages import guarded_copy
from support.op_samples import load, op_of

VARIANTS = int(os.environ.get("RELAXIR_SIZES", "0"))


def ones(*shape: int) -> np.ndarray:
    return np.ones(shape, np.float32)


def function(body: str, arguments: str, results: str, before: str = "") -> rx.Module:
    return rx.Module.parse(f"{before}func.func @main({arguments}) -> ({results}) {{\n{body}\n}}")


def refusals(module: rx.Module, *inputs: np.ndarray) -> tuple[str, str]:
    """What evaluate and compiled code say to a call, without places."""
    with pytest.raises(rx.RelaxError) as evaluated:
        rx.evaluate(module, "main", *inputs)
    with pytest.raises(rx.RelaxError) as called:
        rx.compile(module)(*inputs)
    compiled = re.sub(
        r"^entry 'main': run-time check failed: ([^ ]* (\(called at .*?\): )?)?| \([^()]*\)$", "", str(called.value)
    )
    return evaluated.value.args[0], compiled


def subtracted(x: str, y: str, result: str) -> rx.Module:
    body = f'%0 = "relax.subtract"(%x, %y) : ({x}, {y}) -> {result}\nreturn %0 : {result}'
    return function(body, f"%x: {x}, %y: {y}", result)


def test_every_op_with_any_sizes() -> None:
    seeds = range(VARIANTS) if VARIANTS else range(0, 2 * len(size_variants.sampled()), 7)
    finds = []
    for seed in seeds:
        try:
            size_variants.check(seed)
        except AssertionError as error:
            finds.append(f"seed {seed}: {error}")
    assert not finds, "\n".join(finds)


def test_every_op_is_among_the_variants() -> None:
    names = {cls.OPERATION_NAME.removeprefix("relax.") for cls in Relax.operations}
    found = set[str]()
    for family, group in itertools.groupby(size_variants.sampled(), lambda s: s.family):
        module = load(family)
        found.update(op_of(module, s.name).operation.name.removeprefix("relax.") for s in group)
    assert names - found == set(size_variants.ELSEWHERE)


@pytest.mark.parametrize(("shape", "size"), [((2,), 2), ((1,), 1), ((0,), 0), ((1001,), 1001)])
def test_an_unknown_size_beside_a_known_one(shape: tuple[int, ...], size: int) -> None:
    module = subtracted("tensor<?xf32>", "tensor<1000xf32>", "tensor<1000xf32>")
    wanted = (
        "'relax.subtract' op expected broadcastable shapes, got [?] and [1000]: "
        f"expected dimension 0 of lhs to be 1000, got {size}"
    )
    assert refusals(module, ones(*shape), ones(1000)) == (wanted, wanted)
    np.testing.assert_array_equal(rx.compile(module)(ones(1000), ones(1000)), np.zeros(1000))


def test_two_unknown_sizes() -> None:
    module = subtracted("tensor<?xf32>", "tensor<?xf32>", "tensor<?xf32>")
    wanted = "'relax.subtract' op expected broadcastable shapes, got [?] and [?]: expected dimension 0 of rhs to be 2, got 5000"
    assert refusals(module, ones(2), ones(5000)) == (wanted, wanted)
    assert rx.compile(module)(ones(0), ones(0)).shape == (0,)


def test_a_symbol_that_must_be_a_multiple() -> None:
    type_, part = 'tensor<?xf32, {sym = ["n"]}>', 'tensor<?xf32, {sym = ["n // 3"]}>'
    body = f'%0:3 = "relax.split"(%x) {{sections = 3 : i64}} : ({type_}) -> ({part}, {part}, {part})\nreturn %0#0 : {part}'
    module = function(body, f"%x: {type_}", part)
    wanted = (
        "'relax.split' op expected a dimension that divides into 3 equal parts, got [n]: "
        "expected 'n' to be a multiple of 3, got 4"
    )
    assert refusals(module, ones(4)) == (wanted, wanted)


def test_an_unknown_size_of_a_reshape_that_nothing_tells() -> None:
    """Beside a size of 0 it could be any."""
    type_, made = 'tensor<?x?x2x2xf32, {sym = ["?", "z"]}>', 'tensor<?x?x4xf32, {sym = ["?", "z"]}>'
    body = f'%0 = "relax.reshape"(%x) : ({type_}) -> {made}\nreturn %0 : {made}'
    module = function(body, f"%x: {type_}", made)
    wanted = (
        "'relax.reshape' op expected as many elements as [?, z, 2, 2], got [?, z, 4]: expected 'z * 4' to be at least 1, got 0"
    )
    assert refusals(module, ones(3, 0, 2, 2)) == (wanted, wanted)
    assert rx.compile(module)(ones(0, 3, 2, 2)).shape == (0, 3, 4)


def test_a_result_of_more_elements_than_inferred() -> None:
    body = '%0 = "relax.abs"(%x) : (tensor<?xf32>) -> tensor<4xf32>\nreturn %0 : tensor<4xf32>'
    module = function(body, "%x: tensor<?xf32>", "tensor<4xf32>")
    wanted = "'relax.abs' op expected result tensor<?xf32>, got tensor<4xf32>: expected dimension 0 of x to be 4, got 3"
    assert refusals(module, ones(3)) == (wanted, wanted)


def test_results_of_which_types_say_more_than_inference() -> None:
    sliced = '%0 = "relax.strided_slice"(%x) {axes = array<i64: 0>, begin = [1], end = [-1], strides = array<i64: 2>} : '
    body = (
        sliced
        + '(tensor<?xf32>) -> tensor<4xf32>\n%1 = "relax.sum"(%0) : (tensor<4xf32>) -> tensor<f32>\nreturn %1 : tensor<f32>'
    )
    module = function(body, "%x: tensor<?xf32>", "tensor<f32>")
    evaluated, compiled = refusals(module, guarded_copy(ones(300)))
    assert evaluated == "'relax.strided_slice' op expected result tensor<4xf32>, got f32 [149]"
    assert compiled == "'relax.strided_slice' op expected a result of size 4 at dimension 0"
    assert rx.compile(module)(guarded_copy(ones(9))) == 4


SUM = """
  %0 = "relax.add"(%x, %y) : (tensor<?xf32>, tensor<?xf32>) -> tensor<?xf32>
  %1 = "relax.sum"(%0) : (tensor<?xf32>) -> tensor<f32>
"""
WANTED = "'relax.add' op expected broadcastable shapes, got [?] and [?]: expected dimension 0 of rhs to be 2, got 3"


def test_sizes_in_a_private_function() -> None:
    private = f"func.func private @f(%x: tensor<?xf32>, %y: tensor<?xf32>) -> tensor<f32> {{{SUM} return %1 : tensor<f32>}}\n"
    call = "%0 = func.call @f(%x, %y) : (tensor<?xf32>, tensor<?xf32>) -> tensor<f32>\nreturn %0 : tensor<f32>"
    module = function(call, "%x: tensor<?xf32>, %y: tensor<?xf32>", "tensor<f32>", private)
    assert refusals(module, ones(2), ones(3)) == (WANTED, WANTED)


LOOP = f"""
  %low = arith.constant 0 : index
  %one = arith.constant 1 : index
  %count = "relax.prim_value"() {{value = ["n"]}} : () -> index
  %zero = "relax.full"() {{value = 0.0 : f64}} : () -> tensor<f32>
  %r = scf.for %i = %low to %count step %one iter_args(%a = %zero) -> (tensor<f32>) {{
    {SUM}
    %2 = "relax.add"(%a, %1) : (tensor<f32>, tensor<f32>) -> tensor<f32>
    scf.yield %2 : tensor<f32>
  }}
  return %r : tensor<f32>"""


def test_sizes_in_a_loop_are_those_of_iterations_that_run() -> None:
    arguments = '%x: tensor<?xf32>, %y: tensor<?xf32>, %n: tensor<?xf32, {sym = ["n"]}>'
    module = function(LOOP, arguments, "tensor<f32>")
    assert refusals(module, ones(2), ones(3), ones(1)) == (WANTED, WANTED)
    for sizes in ((2, 3, 0), (2, 2, 3)):
        inputs = [ones(size) for size in sizes]
        np.testing.assert_array_equal(rx.compile(module)(*inputs), rx.evaluate(module, "main", *inputs)[0])


def test_a_symbol_that_another_function_defines() -> None:
    named = 'tensor<?xf32, {sym = ["m"]}>'
    private = f"""func.func private @f(%x: tensor<?xf32>) -> {named} {{
      %0 = "relax.match_cast"(%x) : (tensor<?xf32>) -> {named}
      return %0 : {named}
    }}\n"""
    body = f"""%0 = func.call @f(%x) : (tensor<?xf32>) -> {named}
      %1 = "relax.add"(%0, %y) : ({named}, {named}) -> {named}
      return %1 : {named}"""
    module = function(body, f"%x: tensor<?xf32>, %y: {named}", named, private)
    evaluated, compiled = refusals(module, ones(4), ones(2))
    assert evaluated.startswith("expected result of 'func.call' op at dimension 0 with size 2 ('m' from argument 'input1'")
    assert "expected dimension 0 to be m" in compiled


def test_a_symbol_that_results_are_the_first_to_name() -> None:
    named = 'tensor<?xf32, {sym = ["m"]}>'
    body = f"""%0 = "relax.abs"(%x) : (tensor<?xf32>) -> {named}
      %1 = "relax.abs"(%y) : (tensor<?xf32>) -> {named}
      %2 = "relax.add"(%0, %1) : ({named}, {named}) -> {named}
      %3 = "relax.sum"(%2) : ({named}) -> tensor<f32>
      return %3 : tensor<f32>"""
    module = function(body, "%x: tensor<?xf32>, %y: tensor<?xf32>", "tensor<f32>")
    evaluated, compiled = refusals(module, ones(4), ones(2))
    assert evaluated.startswith("'relax.abs' op expected result tensor<?xf32>, got tensor<mxf32>: expected dimension 0 of x")
    assert compiled.startswith("'relax.abs' op expected result tensor<?xf32>, got tensor<mxf32>: expected dimension 0 of x")


@pytest.mark.parametrize("given", ["tensor<4x3xf32>", 'tensor<?x3xf32, {sym = ["n"]}>', "tensor<?x3xf32>"])
@pytest.mark.parametrize("named", ["k", "k * 2", "k + 1"])
def test_results_of_sizes_that_a_cast_names_again(given: str, named: str) -> None:
    """The inputs determine them, under another name."""
    cast, twice = (f'tensor<?x3xf32, {{sym = ["{d}"]}}>' for d in (named, f"({named}) * 2"))
    body = f"""
      %0 = "relax.match_cast"(%x) : ({given}) -> {cast}
      %1 = "relax.concat"(%0, %0) {{axis = 0 : i64}} : ({cast}, {cast}) -> {twice}
      %2 = "relax.relu"(%0) : ({cast}) -> {cast}
      return %2, %1 : {cast}, {twice}"""
    module = function(body, f"%x: {given}", f"{cast}, {twice}")
    found, want = rx.compile(module)(ones(4, 3)), rx.evaluate(module, "main", ones(4, 3))
    assert [x.shape for x in found] == [x.shape for x in want] == [(4, 3), (8, 3)]


def test_a_cast_of_types_is_checked() -> None:
    body = "%0 = tensor.cast %x : tensor<?xf32> to tensor<5xf32>\n"
    body += '%1 = "relax.abs"(%0) : (tensor<5xf32>) -> tensor<5xf32>\nreturn %1 : tensor<5xf32>'
    module = function(body, "%x: tensor<?xf32>", "tensor<5xf32>")
    evaluated, compiled = refusals(module, guarded_copy(ones(2)))
    assert evaluated == "'tensor.cast' op expected an operand with size 5 at dimension 0, got 2"
    assert compiled == "'tensor.cast' op expected dimension 0 to be 5"


STATE = """func.func @main(%x: tensor<?xf32> {relax.name = "x"}, %y: tensor<4xf32> {relax.name = "y"},
                     %s: tensor<4xf32> {relax.name = "s"})
    -> (tensor<4xf32> {relax.name = "r"}, tensor<4xf32> {relax.name = "s"})
    attributes {relax.num_input = 3 : i64, relax.state = {s = dense<0.0> : tensor<4xf32>}} {
  %0 = "relax.add"(%s, %y) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %1 = "relax.multiply"(%0, %x) : (tensor<4xf32>, tensor<?xf32>) -> tensor<4xf32>
  return %1, %0 : tensor<4xf32>, tensor<4xf32>
}"""


def test_a_refused_call_changes_nothing() -> None:
    executable = rx.compile(rx.Module.parse(STATE))
    out = np.full(4, 7, np.float32)
    for _ in range(2):
        with pytest.raises(rx.RelaxError, match=r"'relax.multiply' op expected broadcastable shapes, got \[4\] and \[\?\]"):
            executable(ones(3), ones(4), out=out)
    np.testing.assert_array_equal(out, np.full(4, 7))
    np.testing.assert_array_equal(executable.state["s"], np.zeros(4))
    np.testing.assert_array_equal(executable(2 * ones(4), ones(4)), 2 * ones(4))


@pytest.mark.parametrize("rows", [8, "n"])
def test_types_that_prove_everything_cost_no_check(rows: int | str) -> None:
    b = rx.Builder()
    with b.function("main"):
        x = b.input("x", (rows, 16))
        y = b.layer_norm(x, b.weight("g", (16,)), b.weight("b", (16,)))
        q = b.permute_dims(b.reshape(b.matmul(y, b.weight("w", (16, 16))), (rows, 2, 8)), axes=[1, 0, 2])
        z = b.reshape(b.permute_dims(b.attention(q, q, q), axes=[1, 0, 2]), (rows, 16))
        b.output(b.softmax(b.concat([x + z, b.strided_slice(z, axes=[1], begin=[4], end=[12])], axis=1)))
    assert rx.compile(b.build()).manifest.entries["main"].checks == ()


@pytest.mark.parametrize(("rows", "fits"), [(1, False), (2, False), (3, True), (5, True), (9, True), (10, False)])
def test_a_slice_that_is_empty_whatever_its_symbol(rows: int, fits: bool) -> None:
    """Its bounds are inside of the dimension all the same: ``m - 3`` of 1 would count from the end."""
    b = rx.Builder()
    with b.function("main"):
        x, _ = b.input("x", (8, 2), "f32"), b.input("y", ("m",), "f32")
        b.output(y=b.strided_slice(x, axes=[0], begin=["m - 1"], end=["m - 3"]))
    module = b.build()
    arrays = np.ones((8, 2), np.float32), np.ones(rows, np.float32)
    for run in (rx.compile(module), lambda *a: rx.evaluate(module, "main", *a)):
        if fits:
            assert np.asarray(run(*arrays)).reshape(-1, 2).shape == (0, 2)
            continue
        with pytest.raises(rx.RelaxError, match="expected a slice inside of dimension 0"):
            run(*arrays)


@pytest.mark.parametrize("size", [0, 1, 6])
@pytest.mark.parametrize(("begin", "end"), [(-(2**63), 4), (-(2**31), "n"), (-(2**63), 2**63 - 1), (2**31, 2**63 - 1)])
def test_constant_slice_bounds_that_no_size_reaches(begin: int, end: int | str, size: int) -> None:
    b = rx.Builder()
    with b.function("main"):
        b.output(y=b.strided_slice(b.input("x", ("n + 4",), "f32"), axes=[0], begin=[begin], end=[end]))
    x = np.arange(size + 4, dtype=np.float32)
    np.testing.assert_array_equal(rx.compile(b.build())(x), x[begin : size if end == "n" else end])

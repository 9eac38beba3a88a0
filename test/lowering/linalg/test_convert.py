"""The conversion around ops: signatures, control flow, calls, truth values of other dialects, symbols, checks and errors."""

from __future__ import annotations

import re

import numpy as np
import pytest

from relaxir.dialect.bindings import ir
from relaxir.dialect.context import new_context
from relaxir.dialect.errors import RelaxError
from relaxir.dialect.ops import __dict__ as every_op
from relaxir.dialect.passes.manager import run_in_place
from relaxir.lowering.linalg.registry import lowerings
from relaxir.lowering.linalg.to_linalg import relax_to_linalg
from relaxir.lowering.passes import register_passes
from support.naive import compare, lowered, run_linalg, tensor

N = tensor("n:f32")


def test_every_op_has_a_lowering() -> None:
    names = {op.OPERATION_NAME for op in every_op.values() if getattr(op, "OPERATION_NAME", "").startswith("relax.")}
    assert names == set(lowerings())


def test_signatures_lose_encodings_and_truth_values() -> None:
    module = lowered("""
    func.func private @f(tensor<?xi1, {sym = ["n"]}>, i1, index) -> tensor<4xui8>
    func.func @main(%x: tensor<?xi1, {sym = ["n"]}> {relax.name = "x"}) -> (tensor<?xi1, {sym = ["n"]}> {relax.name = "y"})
        attributes {relax.num_input = 1 : i64} {
      return %x : tensor<?xi1, {sym = ["n"]}>
    }""")
    printed = str(module)
    assert "func.func private @f(tensor<?xi8>, i1, index) -> tensor<4xi8>" in printed
    assert '@main(%arg0: tensor<?xi8> {relax.name = "x"}) -> (tensor<?xi8> {relax.name = "y"})' in printed
    assert "relax.num_input = 1" in printed


IF = f"""
func.func @main(%x: {N}, %c: tensor<i1>) -> {N} {{
  %b = tensor.extract %c[] : tensor<i1>
  %y = scf.if %b -> ({N}) {{
    %0 = "relax.exp"(%x) : ({N}) -> {N}
    scf.yield %0 : {N}
  }} else {{
    scf.yield %x : {N}
  }}
  return %y : {N}
}}"""


def test_branches() -> None:
    x = np.array([1, 2, 3], np.float32)
    for condition in (True, False):
        compare(IF, x, np.array(condition))


LOOP = f"""
func.func @main(%x: {N}, %m: tensor<?xi1, {{sym = ["n"]}}>) -> ({N}, tensor<?xi1, {{sym = ["n"]}}>) {{
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c3 = arith.constant 3 : index
  %y:2 = scf.for %i = %c0 to %c3 step %c1 iter_args(%a = %x, %k = %m) -> ({N}, tensor<?xi1, {{sym = ["n"]}}>) {{
    %0 = "relax.add"(%a, %x) : ({N}, {N}) -> {N}
    %1 = "relax.logical_not"(%k) : (tensor<?xi1, {{sym = ["n"]}}>) -> tensor<?xi1, {{sym = ["n"]}}>
    %2 = "relax.where"(%1, %0, %a) : (tensor<?xi1, {{sym = ["n"]}}>, {N}, {N}) -> {N}
    scf.yield %2, %1 : {N}, tensor<?xi1, {{sym = ["n"]}}>
  }}
  return %y#0, %y#1 : {N}, tensor<?xi1, {{sym = ["n"]}}>
}}"""


def test_loops_carry_tensors_and_truth_values() -> None:
    compare(LOOP, np.array([1, 2, 3], np.float32), np.array([True, False, True]))


WHILE = """
func.func @main(%x: tensor<f32>, %limit: tensor<f32>) -> tensor<f32> {
  %y = scf.while (%a = %x) : (tensor<f32>) -> tensor<f32> {
    %c = "relax.less"(%a, %limit) : (tensor<f32>, tensor<f32>) -> tensor<i1>
    %b = tensor.extract %c[] : tensor<i1>
    scf.condition(%b) %a : tensor<f32>
  } do {
  ^bb0(%a: tensor<f32>):
    %0 = "relax.add"(%a, %a) : (tensor<f32>, tensor<f32>) -> tensor<f32>
    scf.yield %0 : tensor<f32>
  }
  return %y : tensor<f32>
}"""


def test_while_loops() -> None:
    (result,) = compare(WHILE, np.array(1.5, np.float32), np.array(20, np.float32))
    assert result == 24


SWAP = f"""
func.func @main(%x: {N}, %y: {N}) -> ({N}, {N}, {N}) {{
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c3 = arith.constant 3 : index
  %r:2 = scf.for %i = %c0 to %c3 step %c1 iter_args(%a = %x, %b = %y) -> ({N}, {N}) {{
    %0 = "relax.add"(%a, %b) : ({N}, {N}) -> {N}
    %s = scf.for %j = %c0 to %i step %c1 iter_args(%k = %0) -> ({N}) {{
      %1 = "relax.multiply"(%k, %a) : ({N}, {N}) -> {N}
      scf.yield %1 : {N}
    }}
    scf.yield %b, %s : {N}, {N}
  }}
  %z = "relax.add"(%x, %y) : ({N}, {N}) -> {N}
  return %r#0, %r#1, %z : {N}, {N}, {N}
}}"""


def test_loops_may_swap_what_they_carry() -> None:
    """Writing what is carried in place must not destroy what is still read: here the other value, and the inputs."""
    compare(SWAP, np.array([1, 2, 3], np.float32), np.array([4, 5, 6], np.float32))


def test_while_loops_whose_condition_passes_on_another_value() -> None:
    text = WHILE.replace(
        "scf.condition(%b) %a", '%d = "relax.negative"(%a) : (tensor<f32>) -> tensor<f32>\n scf.condition(%b) %d'
    )
    (result,) = compare(text, np.array(1.5, np.float32), np.array(2, np.float32))
    assert result == -6


def test_calls() -> None:
    compare(
        f"""
    func.func @main(%x: {N}) -> (tensor<?xi1, {{sym = ["n"]}}>, {N}) {{
      %0:2 = call @f(%x) : ({N}) -> (tensor<?xi1, {{sym = ["n"]}}>, {N})
      return %0#0, %0#1 : tensor<?xi1, {{sym = ["n"]}}>, {N}
    }}
    func.func private @f(%y: {tensor("m:f32")}) -> (tensor<?xi1, {{sym = ["m"]}}>, {tensor("m:f32")}) {{
      %0 = "relax.isnan"(%y) : ({tensor("m:f32")}) -> tensor<?xi1, {{sym = ["m"]}}>
      %1 = "relax.negative"(%y) : ({tensor("m:f32")}) -> {tensor("m:f32")}
      return %0, %1 : tensor<?xi1, {{sym = ["m"]}}>, {tensor("m:f32")}
    }}""".replace('{sym = ["m"]}', '{sym = ["n"]}'),
        np.array([1, np.nan], np.float32),
    )


FOREIGN = """
#map = affine_map<(d0) -> (d0)>
module {
  func.func private @invert(%x: tensor<?xi1>) -> tensor<?xi1> {
    %c0 = arith.constant 0 : index
    %n = tensor.dim %x, %c0 : tensor<?xi1>
    %e = tensor.empty(%n) : tensor<?xi1>
    %0 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel"]}
        ins(%x : tensor<?xi1>) outs(%e : tensor<?xi1>) {
    ^bb0(%in: i1, %out: i1):
      %true = arith.constant true
      %v = arith.xori %in, %true : i1
      linalg.yield %v : i1
    } -> tensor<?xi1>
    %1 = linalg.generic {indexing_maps = [#map], iterator_types = ["parallel"]} outs(%0 : tensor<?xi1>) {
    ^bb0(%out: i1):
      %i = linalg.index 0 : index
      %b = tensor.extract %x[%i] : tensor<?xi1>
      %v = arith.andi %b, %out : i1
      %w = arith.ori %v, %out : i1
      linalg.yield %w : i1
    } -> tensor<?xi1>
    return %1 : tensor<?xi1>
  }
  func.func @main(%x: tensor<?xi1>) -> tensor<?xi1> {
    %0 = "relax.logical_not"(%x) : (tensor<?xi1>) -> tensor<?xi1>
    %1 = call @invert(%0) : (tensor<?xi1>) -> tensor<?xi1>
    %2 = "relax.logical_and"(%1, %x) : (tensor<?xi1>, tensor<?xi1>) -> tensor<?xi1>
    return %2 : tensor<?xi1>
  }
}"""


def test_linalg_from_elsewhere_keeps_computing_on_truth_values() -> None:
    x = np.array([True, False, True])
    outcome = run_linalg(lowered(FOREIGN), [x.view(np.int8)])
    np.testing.assert_array_equal(outcome.results[0], x)
    printed = str(lowered(FOREIGN))
    assert "@invert(%arg0: tensor<?xi8>) -> tensor<?xi8>" in printed
    assert "arith.xori %in, %true : i1" in printed


@pytest.mark.parametrize("text", [IF, LOOP, WHILE, FOREIGN])
def test_a_second_run_changes_nothing(text: str) -> None:
    register_passes()
    module = lowered(text)
    before = str(module)
    run_in_place(module, "relax-to-linalg")
    assert str(module) == before


def test_symbols_are_solved_for() -> None:
    shape = tensor("n * 2 + 1, n * m:f32")
    compare(
        f"""
    func.func @main(%x: {shape}) -> ({tensor("n:i64")}, {tensor("n * m:f32")}) {{
      %0 = "relax.arange"() {{start = [0], end = ["n"], step = [1]}} : () -> {tensor("n:i64")}
      %1 = "relax.full"() {{value = 1.0 : f64}} : () -> {tensor("n * m:f32")}
      return %0, %1 : {tensor("n:i64")}, {tensor("n * m:f32")}
    }}""",
        np.ones((7, 12), np.float32),
    )


MATCH = f"""
func.func @main(%x: tensor<?x?xf32>) -> ({N}, tensor<i64>) {{
  %0 = "relax.match_cast"(%x) : (tensor<?x?xf32>) -> {tensor("n, n * 2:f32")}
  %1 = "relax.sum"(%0) {{axis = array<i64: 1>}} : ({tensor("n, n * 2:f32")}) -> {N}
  %2 = "relax.shape_value"() {{value = ["n"]}} : () -> tensor<i64>
  return %1, %2 : {N}, tensor<i64>
}}"""


def test_match_cast_defines_symbols_and_checks_the_rest() -> None:
    compare(MATCH, np.ones((3, 6), np.float32))
    module = lowered(MATCH)
    (message,) = (ir.StringAttr(a).value for a in ir.ArrayAttr(module.operation.attributes["relax.checks"]))
    assert message.endswith("expected dimension 1 to be n * 2")
    assert run_linalg(module, [np.ones((3, 7), np.float32)]).failed == [0]


def test_match_cast_to_constants_and_known_symbols() -> None:
    text = f"""
    func.func @main(%x: {N}, %y: tensor<?x?xf32>) -> {tensor("n, 4:f32")} {{
      %0 = "relax.match_cast"(%y) : (tensor<?x?xf32>) -> {tensor("n, 4:f32")}
      return %0 : {tensor("n, 4:f32")}
    }}"""
    x = np.ones(3, np.float32)
    compare(text, x, np.ones((3, 4), np.float32))
    assert run_linalg(lowered(text), [x, np.ones((3, 5), np.float32)]).failed == [1]
    assert run_linalg(lowered(text), [x, np.ones((2, 4), np.float32)]).failed == [0]


def test_what_types_prove_is_not_checked() -> None:
    text = f"""
    func.func @main(%x: {tensor("n, 4:f32")}) -> {tensor("n, 4:f32")} {{
      %0 = "relax.match_cast"(%x) : ({tensor("n, 4:f32")}) -> {tensor("n, 4:f32")}
      return %0 : {tensor("n, 4:f32")}
    }}"""
    assert "relax_check" not in str(lowered(text))


def test_barriers_and_devices_are_nothing() -> None:
    text = """module attributes {relax.vdevices = ["cpu:0", "cpu:1"]} {
    func.func @main(%x: tensor<3xf32>) -> tensor<3xf32, {vdevice = "cpu:1"}> {
      %0 = "relax.stop_lift_params"(%x) : (tensor<3xf32>) -> tensor<3xf32>
      %1 = "relax.to_vdevice"(%0) {vdevice = "cpu:1"} : (tensor<3xf32>) -> tensor<3xf32, {vdevice = "cpu:1"}>
      return %1 : tensor<3xf32, {vdevice = "cpu:1"}>
    }}"""
    compare(text, np.ones(3, np.float32))
    assert "linalg" not in str(lowered(text))


CUDA = tensor("3:f32").replace(">", ', {vdevice = "cuda:0"}>')
ERRORS = [
    (
        f"""module attributes {{relax.vdevices = ["cpu:0", "cuda:0"]}} {{
        func.func @main(%x: tensor<3xf32>) -> {CUDA} {{
          %1 = "relax.to_vdevice"(%x) {{vdevice = "cuda:0"}} : (tensor<3xf32>) -> {CUDA}
          return %1 : {CUDA}
        }}}}""",
        "'relax.to_vdevice' op expected a copy within one kind of device, got one from 'cpu' to 'cuda:0'",
    ),
    (
        """func.func @main(%p: !relax.param_provider) -> tensor<3xf32> {
          %0 = "relax.get_param"(%p) {index = 0 : i64} : (!relax.param_provider) -> tensor<3xf32>
          return %0 : tensor<3xf32>
        }""",
        "'relax.get_param' op expected a module to compile without lazy IO, weights are streamed anyway",
    ),
    (
        "func.func @main(%x: tensor<3xi128>) -> tensor<3xi128> { return %x : tensor<3xi128> }",
        "expected one of the dtypes f64, f32",
    ),
    (
        """func.func @main(%x: tensor<3xui8>) -> tensor<2xui8> {
          %0 = tensor.extract_slice %x[0] [2] [1] : tensor<3xui8> to tensor<2xui8>
          return %0 : tensor<2xui8>
        }""",
        "'tensor.extract_slice' op expected operands of signless integers or floats, got ui8",
    ),
]


@pytest.mark.parametrize(("text", "message"), ERRORS)
def test_errors(text: str, message: str) -> None:
    with pytest.raises(RelaxError, match=re.escape(message)) as raised:
        lowered(text)
    assert raised.value.location


def test_a_tile_must_be_positive() -> None:
    with new_context():
        module = ir.Module.parse("module {}")
        with pytest.raises(RelaxError, match="expected a positive tile, got 0"):
            relax_to_linalg(module.operation, tile=0)

"""What functions pass to one another through the whole compiler: tuples at the edges, recursion that stays."""

from __future__ import annotations

import numpy as np
import pytest

import relaxir as rx

MODEL = """
func.func @main(%x: tensor<2x4xf32> {relax.name = "x"}, %a: tensor<3x4xf32> {relax.name = "fc.weight"},
                %b: tensor<3xf32> {relax.name = "fc.bias"}) -> tensor<2x3xf32> attributes {relax.num_input = 1 : i64} {
  %t = "relax.permute_dims"(%a) : (tensor<3x4xf32>) -> tensor<4x3xf32>
  %0 = "relax.matmul"(%x, %t) : (tensor<2x4xf32>, tensor<4x3xf32>) -> tensor<2x3xf32>
  %1 = "relax.add"(%0, %b) : (tensor<2x3xf32>, tensor<3xf32>) -> tensor<2x3xf32>
  return %1 : tensor<2x3xf32>
}"""

RECURSION = """
func.func private @f(%x: tensor<4xf32>, %k: index) -> tensor<4xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %y = "relax.square"(%x) : (tensor<4xf32>) -> tensor<4xf32>
  %s = "relax.sum"(%y) {axis = array<i64: 0>, keepdims = true} : (tensor<4xf32>) -> tensor<1xf32>
  %c = arith.cmpi sgt, %k, %c0 : index
  %0 = scf.if %c -> tensor<4xf32> {
    %k1 = arith.subi %k, %c1 : index
    %1 = func.call @f(%y, %k1) : (tensor<4xf32>, index) -> tensor<4xf32>
    scf.yield %1 : tensor<4xf32>
  } else {
    scf.yield %y : tensor<4xf32>
  }
  %r = "relax.add"(%0, %s) : (tensor<4xf32>, tensor<1xf32>) -> tensor<4xf32>
  %p = "relax.multiply"(%r, %y) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return %p : tensor<4xf32>
}
func.func @main(%x: tensor<4xf32> {relax.name = "x"}) -> tensor<4xf32> {
  %k = arith.constant 2 : index
  %0 = func.call @f(%x, %k) : (tensor<4xf32>, index) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}"""


def test_bundled_weights_are_prepared_and_bound_by_their_names():
    rng = np.random.default_rng(0)
    x = rng.standard_normal((2, 4)).astype(np.float32)
    weights = {"fc.weight": rng.standard_normal((3, 4)).astype(np.float32), "fc.bias": np.ones(3, np.float32)}
    bundled = rx.Module.parse(MODEL).run("relax-bundle-model-params")
    (want,) = rx.evaluate(bundled, "main", x, weights=weights)
    np.testing.assert_allclose(want, x @ weights["fc.weight"].T + 1, rtol=1e-5)
    exe = rx.compile(bundled)
    assert {s.name for s in bundled.functions["main"].weights} == {"model_params"}
    exe.bind(exe.prepare(weights))
    np.testing.assert_allclose(exe(x), want, rtol=1e-5)


def test_tuples_that_cannot_be_expanded_are_refused():
    text = """
    func.func @main(%x: tensor<4xf32>, %c: i1) -> tensor<4xf32> {
      %0 = scf.if %c -> tuple<tensor<4xf32>> {
        %2 = builtin.unrealized_conversion_cast %x : tensor<4xf32> to tuple<tensor<4xf32>>
        scf.yield %2 : tuple<tensor<4xf32>>
      } else {
        %2 = builtin.unrealized_conversion_cast %x : tensor<4xf32> to tuple<tensor<4xf32>>
        scf.yield %2 : tuple<tensor<4xf32>>
      }
      %1 = builtin.unrealized_conversion_cast %0 : tuple<tensor<4xf32>> to tensor<4xf32>
      return %1 : tensor<4xf32>
    }"""
    cast = r"'builtin\.unrealized_conversion_cast' op expected an operation that relaxir compiles"
    with pytest.raises(rx.RelaxError, match=rf"-:4:14: {cast}"):
        rx.compile(rx.Module.parse(text))
    constant = text.replace(", %c: i1", "").replace("%0 = scf", "%c = arith.constant true\n%0 = scf")
    with pytest.raises(rx.RelaxError, match=rf"-:5:\d+: {cast}"):
        rx.compile(rx.Module.parse(constant), pipeline="relax-expand-tuple-arguments")


def test_recursion_stays_and_is_refused():
    module = rx.Module.parse(RECURSION)
    with pytest.warns(rx.RelaxWarning, match=r"^-:2:1: 'func.func' op is recursive, calls of @f are not inlined"):
        kept = module.run("relax-inline-private-functions")
    with pytest.raises(rx.RelaxError, match=r"^-:2:1: 'func.func' op expected no recursion in compiled code, got the calls @f"):
        rx.compile(kept, pipeline="relax-canonicalize")


CHECKED = """func.func private @f(%x: tensor<?xf32>) -> tensor<?xf32> {
  %0 = "relax.match_cast"(%x) : (tensor<?xf32>) -> tensor<4xf32>
  %1 = "relax.match_cast"(%0) : (tensor<4xf32>) -> tensor<?xf32>
  return %1 : tensor<?xf32>
}
func.func private @g(%x: tensor<?xf32>) -> tensor<?xf32> {
  %0 = call @f(%x) : (tensor<?xf32>) -> tensor<?xf32>
  return %0 : tensor<?xf32>
}
func.func @main(%x: tensor<?xf32, {sym = ["n"]}>) -> tensor<?xf32, {sym = ["n"]}> {
  %0 = "relax.match_cast"(%x) : (tensor<?xf32, {sym = ["n"]}>) -> tensor<?xf32>
  %1 = call @g(%0) : (tensor<?xf32>) -> tensor<?xf32>
  %2 = "relax.match_cast"(%1) : (tensor<?xf32>) -> tensor<?xf32, {sym = ["n"]}>
  return %2 : tensor<?xf32, {sym = ["n"]}>
}"""


def test_an_inlined_check_that_fails_tells_its_place_and_its_callers():
    module, x = rx.Module.parse(CHECKED, "model.mlir"), np.zeros(5, np.float32)
    place = r"model.mlir:2:8 \(called at model.mlir:7:8\) \(called at model.mlir:12:8\): "
    with pytest.raises(rx.RelaxError, match=place + "expected dimension 0 to be 4"):
        rx.compile(module)(x)
    with pytest.raises(rx.RelaxError, match=place + "'relax.match_cast' op expected"):
        rx.evaluate(module.run("relax-inline-private-functions"), "main", x)

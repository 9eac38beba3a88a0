"""Control flow on tensors through the whole compiler: branches, counted loops, conditional loops, what they carry."""

from __future__ import annotations

import numpy as np
import pytest

import relaxir as rx

T = 'tensor<?x8xf32, {sym = ["n"]}>'

SWAP = f"""
func.func @main(%x: {T}, %y: {T}) -> ({T}, {T}) attributes {{relax.num_input = 2 : i64}} {{
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c5 = arith.constant 5 : index
  %r:2 = scf.for %i = %c0 to %c5 step %c1 iter_args(%a = %x, %b = %y) -> ({T}, {T}) {{
    %s = "relax.add"(%a, %b) : ({T}, {T}) -> {T}
    scf.yield %b, %s : {T}, {T}
  }}
  return %r#0, %r#1 : {T}, {T}
}}"""

UNCHANGED = SWAP.replace("scf.yield %b, %s", "scf.yield %a, %s")

WHILE = f"""
func.func @main(%x: {T}, %y: {T}) -> ({T}, {T}) attributes {{relax.num_input = 2 : i64}} {{
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %r:3 = scf.while (%i = %c0, %a = %x, %b = %y) : (index, {T}, {T}) -> (index, {T}, {T}) {{
    %p = arith.cmpi slt, %i, %c4 : index
    scf.condition(%p) %i, %b, %a : index, {T}, {T}
  }} do {{
  ^bb0(%i: index, %a: {T}, %b: {T}):
    %j = arith.addi %i, %c1 : index
    %s = "relax.subtract"(%a, %b) : ({T}, {T}) -> {T}
    scf.yield %j, %s, %a : index, {T}, {T}
  }}
  return %r#1, %r#2 : {T}, {T}
}}"""

BRANCH = f"""
func.func @main(%x: {T}, %y: {T}) -> ({T}, {T}) attributes {{relax.num_input = 2 : i64}} {{
  %total = "relax.sum"(%x) : ({T}) -> tensor<f32>
  %zero = "relax.full"() {{value = 0.0}} : () -> tensor<f32>
  %positive = "relax.greater"(%total, %zero) : (tensor<f32>, tensor<f32>) -> tensor<i1>
  %p = tensor.extract %positive[] : tensor<i1>
  %r:2 = scf.if %p -> ({T}, {T}) {{
    %s = "relax.add"(%x, %y) : ({T}, {T}) -> {T}
    scf.yield %s, %x : {T}, {T}
  }} else {{
    scf.yield %y, %y : {T}, {T}
  }}
  return %r#0, %r#1 : {T}, {T}
}}"""

# Canonicalization makes a tensor select of the branch, which may be either what the loop carries or what it does not.
SELECT = f"""
func.func @main(%x: {T}, %y: {T}) -> ({T}, {T}) attributes {{relax.num_input = 2 : i64}} {{
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c3 = arith.constant 3 : index
  %zero = arith.constant 0.0 : f32
  %r:3 = scf.while (%i = %c0, %a = %x, %b = %y) : (index, {T}, {T}) -> (index, {T}, {T}) {{
    %more = arith.cmpi ult, %i, %c3 : index
    %e = tensor.extract %y[%c0, %c0] : {T}
    %p = arith.cmpf ogt, %e, %zero : f32
    %s = scf.if %p -> ({T}) {{
      scf.yield %a : {T}
    }} else {{
      scf.yield %y : {T}
    }}
    scf.condition(%more) %i, %s, %b : index, {T}, {T}
  }} do {{
  ^bb0(%i: index, %a: {T}, %b: {T}):
    %j = arith.addi %i, %c1 : index
    %s = "relax.add"(%a, %b) : ({T}, {T}) -> {T}
    scf.yield %j, %s, %a : index, {T}, {T}
  }}
  return %r#1, %r#2 : {T}, {T}
}}"""

# What the loop passes on comes from outside of it, so that canonicalization drops what it carries.
OUTSIDE = f"""
func.func @main(%x: {T}, %y: {T}) -> ({T}, {T}) attributes {{relax.num_input = 2 : i64}} {{
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c3 = arith.constant 3 : index
  %r:3 = scf.while (%i = %c0, %a = %x, %b = %y) : (index, {T}, {T}) -> (index, {T}, {T}) {{
    %more = arith.cmpi ult, %i, %c3 : index
    %e = "relax.abs"(%x) : ({T}) -> {T}
    %f = "relax.subtract"(%b, %e) : ({T}, {T}) -> {T}
    scf.condition(%more) %i, %e, %f : index, {T}, {T}
  }} do {{
  ^bb0(%i: index, %a: {T}, %b: {T}):
    %j = arith.addi %i, %c1 : index
    %s = "relax.multiply"(%b, %y) : ({T}, {T}) -> {T}
    scf.yield %j, %x, %s : index, {T}, {T}
  }}
  return %r#1, %r#2 : {T}, {T}
}}"""

NESTED = f"""
func.func private @step(%a: {T}, %b: {T}) -> {T} {{
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %r = scf.for %i = %c0 to %c2 step %c1 iter_args(%v = %a) -> ({T}) {{
    %s = "relax.multiply"(%v, %b) : ({T}, {T}) -> {T}
    scf.yield %s : {T}
  }}
  return %r : {T}
}}
func.func @main(%x: {T}, %y: {T}) -> ({T}, {T}) attributes {{relax.num_input = 2 : i64}} {{
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c3 = arith.constant 3 : index
  %r = scf.for %i = %c0 to %c3 step %c1 iter_args(%v = %x) -> ({T}) {{
    %even = arith.remui %i, %c3 : index
    %p = arith.cmpi eq, %even, %c0 : index
    %w = scf.if %p -> ({T}) {{
      %s = func.call @step(%v, %y) : ({T}, {T}) -> {T}
      scf.yield %s : {T}
    }} else {{
      scf.yield %v : {T}
    }}
    scf.yield %w : {T}
  }}
  return %r, %r : {T}, {T}
}}"""


@pytest.mark.parametrize(
    "text",
    [SWAP, UNCHANGED, WHILE, BRANCH, SELECT, OUTSIDE, NESTED],
    ids=["swap", "unchanged", "while", "branch", "select", "outside", "nested"],
)
def test_control_flow_means_what_the_reference_says(text: str) -> None:
    module = rx.Module.parse(text)
    executable = rx.compile(module)
    rng = np.random.default_rng(0)
    for n, shift in ((1, 1.0), (5, -1.0), (33, 0.0)):
        x, y = (rng.standard_normal((n, 8), np.float32) + np.float32(shift) for _ in range(2))
        for want, got in zip(rx.evaluate(module, "main", x, y), executable(x, y), strict=True):
            np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-5)


def test_loops_that_carry_tensors_of_unknown_shape_are_refused() -> None:
    unknown = "tensor<?x8xf32>"
    loop = SWAP[SWAP.index("%r:2") : SWAP.index("return")].replace(T, unknown).replace("%x", "%u").replace("%y", "%u")
    text = f"""
      func.func @main(%x: {T}) -> {T} attributes {{relax.num_input = 1 : i64}} {{
        %c0 = arith.constant 0 : index
        %c1 = arith.constant 1 : index
        %c5 = arith.constant 5 : index
        %u = "relax.match_cast"(%x) : ({T}) -> {unknown}
        {loop}
        %k = "relax.match_cast"(%r#0) : ({unknown}) -> {T}
        return %k : {T}
      }}"""
    with pytest.raises(rx.RelaxError, match="expected loop-carried tensors of known shape, got tensor<\\?x8xf32>"):
        rx.compile(rx.Module.parse(text))

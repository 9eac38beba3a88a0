"""Control flow on tensors through the whole compiler: branches, counted loops, conditional loops, what they carry."""

from __future__ import annotations

import re

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


HANDED_ON = {
    "branch": "%r = scf.if %p -> ({T}) {{ scf.yield %s : {T} }} else {{ scf.yield %m : {T} }}",
    "branch in a branch": """%q = arith.cmpf olt, %e, %zero : f32
  %r = scf.if %p -> ({T}) {{
    %i = scf.if %q -> ({T}) {{ scf.yield %m : {T} }} else {{ scf.yield %x : {T} }}
    scf.yield %i : {T}
  }} else {{
    scf.yield %m : {T}
  }}""",
    "loop": "%r = scf.for %i = %c0 to %c3 step %c1 iter_args(%v = %y) -> ({T}) {{ scf.yield %m : {T} }}",
    "loop from it": """%r = scf.for %i = %c0 to %c3 step %c1 iter_args(%v = %m) -> ({T}) {{
    %n = "relax.multiply"(%v, %y) : ({T}, {T}) -> {T}
    scf.yield %n : {T}
  }}""",
    "loop in a branch": """%r = scf.if %p -> ({T}) {{
    %l = scf.for %i = %c0 to %c3 step %c1 iter_args(%v = %x) -> ({T}) {{
      %a = "relax.abs"(%x) : ({T}) -> {T}
      scf.yield %a : {T}
    }}
    scf.yield %l : {T}
  }} else {{
    scf.yield %m : {T}
  }}""",
    "loop from a branch": """%b = scf.if %p -> ({T}) {{ scf.yield %y : {T} }} else {{ scf.yield %x : {T} }}
  %r, %q = scf.for %i = %c0 to %c3 step %c1 iter_args(%v = %b, %w = %y) -> ({T}, {T}) {{
    %a = "relax.abs"(%x) : ({T}) -> {T}
    scf.yield %w, %a : {T}, {T}
  }}""",
}


@pytest.mark.parametrize("flow", HANDED_ON)
@pytest.mark.parametrize("returned", ["%m, %r", "%r, %m"])
def test_what_is_returned_may_be_handed_on_as_well(flow: str, returned: str) -> None:
    """A result is made in the caller's memory, which a branch or loop then reads."""
    module = rx.Module.parse(f"""
func.func @main(%x: {T}, %y: {T}) -> ({T}, {T}) attributes {{relax.num_input = 2 : i64}} {{
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c3 = arith.constant 3 : index
  %zero = arith.constant 0.0 : f32
  %m = "relax.exp"(%x) : ({T}) -> {T}
  %s = "relax.negative"(%y) : ({T}) -> {T}
  %e = tensor.extract %x[%c0, %c0] : {T}
  %p = arith.cmpf ogt, %e, %zero : f32
  {HANDED_ON[flow].format(T=T)}
  return {returned} : {T}, {T}
}}""")
    executable = rx.compile(module)
    for sign in (1, -1):
        x, y = np.full((3, 8), sign, "f4"), np.arange(24, dtype="f4").reshape(3, 8)
        for want, got in zip(rx.evaluate(module, "main", x, y), executable(x, y), strict=True):
            np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-5)


U = "tensor<?x4xf32>"
GROW = """
  %{name} = "relax.concat"({value}, %x) {{axis = 0 : i64}}
    : (tensor<?x4xf32>, tensor<?x4xf32, {{sym = ["n"]}}>) -> tensor<?x4xf32>
"""
FOR = """
  %r = scf.for %i = %c0 to %rounds step %c1 iter_args(%a = %u) -> (tensor<?x4xf32>) {
    %y = "relax.negative"(%a) : (tensor<?x4xf32>) -> tensor<?x4xf32>
    {grow}
    scf.yield %b : tensor<?x4xf32>
  }"""
WHILE = """
  %r, %last = scf.while (%a = %u, %j = %c0) : (tensor<?x4xf32>, index) -> (tensor<?x4xf32>, index) {
    %go = arith.cmpi slt, %j, %rounds : index
    %y = "relax.negative"(%a) : (tensor<?x4xf32>) -> tensor<?x4xf32>
    scf.condition(%go) %y, %j : tensor<?x4xf32>, index
  } do {
  ^bb0(%y: tensor<?x4xf32>, %k: index):
    {grow}
    %l = arith.addi %k, %c1 : index
    scf.yield %b, %l : tensor<?x4xf32>, index
  }"""
BRANCH = """
  %r = scf.if %flag -> (tensor<?x4xf32>) {
    {grow}
    scf.yield %b : tensor<?x4xf32>
  } else {
    scf.yield %u : tensor<?x4xf32>
  }"""


def _nested(outer: str, inner: str) -> str:
    """The inner one where the outer one grows what it has."""
    text = inner.replace("{grow}", GROW.format(name="b", value="%u")).replace("%", "%in_")
    for shared in ("c0", "c1", "rounds", "flag", "x"):
        text = re.sub(rf"%in_{shared}\b", f"%{shared}", text)
    value = "%u" if outer == BRANCH else "%y"
    same = f'%in_u = "relax.relu"({value}) : ({U}) -> {U}\n'
    return outer.replace("{grow}", same + text + GROW.format(name="b", value="%in_r"))


@pytest.mark.parametrize("inner", [None, FOR, WHILE, BRANCH])
@pytest.mark.parametrize("outer", [FOR, WHILE, BRANCH])
def test_tensors_may_change_their_size_in_loops_and_branches(outer: str, inner: str | None) -> None:
    flow = outer.replace("{grow}", GROW.format(name="b", value="%u" if outer == BRANCH else "%y"))
    module = rx.Module.parse(f"""
      func.func @main(%x: tensor<?x4xf32, {{sym = ["n"]}}> {{relax.name = "x"}}, %count: tensor<i64> {{relax.name = "count"}})
          -> (tensor<4xf32>, tensor<4xf32>) attributes {{relax.num_input = 2 : i64}} {{
        %c0 = arith.constant 0 : index
        %c1 = arith.constant 1 : index
        %number = tensor.extract %count[] : tensor<i64>
        %rounds = arith.index_cast %number : i64 to index
        %flag = arith.cmpi sgt, %rounds, %c1 : index
        %u = "relax.match_cast"(%x) : (tensor<?x4xf32, {{sym = ["n"]}}>) -> {U}
        {flow if inner is None else _nested(outer, inner)}
        %s = "relax.sum"(%r) {{axis = array<i64: 0>}} : ({U}) -> tensor<4xf32>
        %e = "relax.exp"(%r) : ({U}) -> {U}
        %t = "relax.sum"(%e) {{axis = array<i64: 0>}} : ({U}) -> tensor<4xf32>
        return %s, %t : tensor<4xf32>, tensor<4xf32>
      }}""")
    executable = rx.compile(module)
    x = np.random.default_rng(0).standard_normal((3, 4), np.float32)
    for count in (0, 1, 2, 5):
        want = rx.evaluate(module, "main", x, np.int64(count))
        for expected, got in zip(want, executable(x, np.int64(count)), strict=True):
            np.testing.assert_allclose(got, expected, rtol=1e-5, atol=1e-5)


DYNAMIC = 'tensor<?x4xf32, {sym = ["n"]}>'


@pytest.mark.parametrize("loop", ["for", "while"])
def test_loops_go_on_from_the_result_of_a_branch(loop: str) -> None:
    start = f"""
      func.func @main(%x: {DYNAMIC} {{relax.name = "x"}}, %c: tensor<i1> {{relax.name = "c"}}) -> {DYNAMIC} {{
        %b = tensor.extract %c[] : tensor<i1>
        %z = arith.constant 0 : index
        %o = arith.constant 1 : index
        %t = arith.constant 3 : index
        %v = scf.if %b -> ({DYNAMIC}) {{
          scf.yield %x : {DYNAMIC}
        }} else {{
          %g = "relax.relu"(%x) : ({DYNAMIC}) -> {DYNAMIC}
          scf.yield %g : {DYNAMIC}
        }}"""
    loops = {
        "for": f"""
        %w = scf.for %i = %z to %t step %o iter_args(%q = %v) -> ({DYNAMIC}) {{
          %h = "relax.negative"(%q) : ({DYNAMIC}) -> {DYNAMIC}
          scf.yield %h : {DYNAMIC}
        }}""",
        "while": f"""
        %w, %k = scf.while (%q = %v, %i = %z) : ({DYNAMIC}, index) -> ({DYNAMIC}, index) {{
          %l = arith.cmpi slt, %i, %t : index
          scf.condition(%l) %q, %i : {DYNAMIC}, index
        }} do {{
        ^bb0(%q: {DYNAMIC}, %i: index):
          %h = "relax.negative"(%q) : ({DYNAMIC}) -> {DYNAMIC}
          %j = arith.addi %i, %o : index
          scf.yield %h, %j : {DYNAMIC}, index
        }}""",
    }
    module = rx.Module.parse(f"{start}{loops[loop]}\n return %w : {DYNAMIC}\n}}")
    executable = rx.compile(module)
    x = np.random.default_rng(0).standard_normal((5, 4), np.float32)
    for flag in (True, False):
        (want,) = rx.evaluate(module, "main", x, np.array(flag))
        np.testing.assert_array_equal(executable(x, np.array(flag)), want)


@pytest.mark.parametrize("flow", [FOR, WHILE, BRANCH])
def test_constants_are_handed_on_under_unknown_sizes(flow: str) -> None:
    rows = "[1.0, 2.0, 3.0, 4.0], [5.0, 6.0, 7.0, 8.0]"
    first, other = (f"""
      %{name}_ = "relax.constant"() {{value = dense<[{numbers}]> : {kind}}} : () -> {kind}
      %{name} = "relax.match_cast"(%{name}_) : ({kind}) -> {U}""" for name, numbers, kind in (
        ("u", rows, "tensor<2x4xf32>"), ("b", f"{rows}, [9.0, 10.0, 11.0, 12.0]", "tensor<3x4xf32>")))  # fmt: skip
    module = rx.Module.parse(f"""
      func.func @main(%count: tensor<i64> {{relax.name = "count"}}) -> tensor<4xf32> attributes {{relax.num_input = 1 : i64}} {{
        %c0 = arith.constant 0 : index
        %c1 = arith.constant 1 : index
        %number = tensor.extract %count[] : tensor<i64>
        %rounds = arith.index_cast %number : i64 to index
        %flag = arith.cmpi sgt, %rounds, %c1 : index
        {first}
        {flow.replace("{grow}", other)}
        %s = "relax.sum"(%r) {{axis = array<i64: 0>}} : ({U}) -> tensor<4xf32>
        return %s : tensor<4xf32>
      }}""")
    executable = rx.compile(module)
    for count in (0, 1, 3):
        np.testing.assert_array_equal(executable(np.int64(count)), rx.evaluate(module, "main", np.int64(count))[0])


def test_a_loop_starts_from_a_state_that_rows_were_written_into_which_a_branch_hands_on() -> None:
    """Kernels that write rows write into what they are given, which others read here as it was."""
    t = "tensor<3x2xf32>"
    copy = f'"relax.index_copy"({{}}, %i, %x) : ({t}, tensor<1xi64>, tensor<1x2xf32>) -> {t}'
    module = rx.Module.parse(f"""
      func.func @main(%x: tensor<1x2xf32> {{relax.name = "x"}}, %a: {t} {{relax.name = "a"}})
          -> ({t} {{relax.name = "y"}}, {t} {{relax.name = "a"}})
          attributes {{relax.num_input = 2 : i64, relax.state = {{a = dense<0.0> : {t}}}}} {{
        %c0 = arith.constant 0 : index
        %c1 = arith.constant 1 : index
        %c2 = arith.constant 2 : index
        %zero = arith.constant 0.0 : f32
        %i = "relax.constant"() {{value = dense<1> : tensor<1xi64>}} : () -> tensor<1xi64>
        %e = tensor.extract %x[%c0, %c0] : tensor<1x2xf32>
        %flag = arith.cmpf ogt, %e, %zero : f32
        %r:2 = scf.if %flag -> ({t}, {t}) {{
          %v = {copy.format("%a")}
          %n = "relax.negative"(%v) : ({t}) -> {t}
          %w = {copy.format("%v")}
          %l = scf.for %k = %c0 to %c2 step %c1 iter_args(%q = %w) -> ({t}) {{
            %s = "relax.add"(%q, %n) : ({t}, {t}) -> {t}
            scf.yield %s : {t}
          }}
          scf.yield %l, %v : {t}, {t}
        }} else {{
          scf.yield %a, %a : {t}, {t}
        }}
        return %r#0, %r#1 : {t}, {t}
      }}""")
    executable, a = rx.compile(module), np.zeros((3, 2), np.float32)
    for first in (1, -1, 2):
        x = np.array([[first, 5]], np.float32)
        y, a = rx.evaluate(module, "main", x, a)
        np.testing.assert_array_equal(executable(x), y)
        np.testing.assert_array_equal(executable.state["a"], a)


def test_a_branch_hands_on_what_rows_were_written_into_or_what_nobody_may_write_to() -> None:
    t = "tensor<3x2xf32>"
    module = rx.Module.parse(f"""
      func.func @main(%x: tensor<1x2xf32> {{relax.name = "x"}}, %z: {t} {{relax.name = "z"}}, %a: {t} {{relax.name = "a"}})
          -> ({t} {{relax.name = "y"}}, {t} {{relax.name = "a"}})
          attributes {{relax.num_input = 3 : i64, relax.state = {{a = dense<0.0> : {t}}}}} {{
        %c0 = arith.constant 0 : index
        %c1 = arith.constant 1 : index
        %c2 = arith.constant 2 : index
        %zero = arith.constant 0.0 : f32
        %i = "relax.constant"() {{value = dense<1> : tensor<1xi64>}} : () -> tensor<1xi64>
        %e = tensor.extract %x[%c0, %c0] : tensor<1x2xf32>
        %flag = arith.cmpf ogt, %e, %zero : f32
        %l = scf.for %k = %c0 to %c2 step %c1 iter_args(%q = %z) -> ({t}) {{
          %r = scf.if %flag -> ({t}) {{
            %v = "relax.index_copy"(%a, %i, %x) : ({t}, tensor<1xi64>, tensor<1x2xf32>) -> {t}
            scf.yield %v : {t}
          }} else {{
            scf.yield %z : {t}
          }}
          %s = "relax.add"(%q, %r) : ({t}, {t}) -> {t}
          scf.yield %s : {t}
        }}
        return %l, %a : {t}, {t}
      }}""")
    executable, a = rx.compile(module), np.zeros((3, 2), np.float32)
    for first in (1, -1):
        x, z = np.array([[first, 5]], np.float32), np.ones((3, 2), np.float32)
        y, a = rx.evaluate(module, "main", x, z, a)
        np.testing.assert_array_equal(executable(x, z), y)
        np.testing.assert_array_equal(executable.state["a"], a)

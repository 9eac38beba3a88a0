"""Control flow that depends on symbolic sizes: by the reference semantics, after relax-compute-shape-values, and compiled."""

from __future__ import annotations

import random

import numpy as np
import pytest

import relaxir as rx
from relaxir.dialect import symbolic

X, Y, Z = 'tensor<?x3xf32, {sym = ["n"]}>', 'tensor<?xf32, {sym = ["m * 2 + n"]}>', "tensor<?xf32>"

LOOP = f"""
func.func @main(%x: {X} {{relax.name = "x"}}, %y: {Y} {{relax.name = "y"}}, %w: tensor<3xf32> {{relax.name = "w"}}) -> {X}
    attributes {{relax.num_input = 2 : i64}} {{
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %count = "relax.prim_value"() {{value = ["m + n"]}} : () -> index
  %0 = scf.for %i = %c0 to %count step %c1 iter_args(%a = %x) -> ({X}) {{
    %sum = "relax.add"(%a, %w) : ({X}, tensor<3xf32>) -> {X}
    scf.yield %sum : {X}
  }}
  %rest = "relax.prim_value"() {{value = ["(m - n) % 3"]}} : () -> index
  %even = arith.cmpi eq, %rest, %c0 : index
  %1 = scf.if %even -> {X} {{
    %negative = "relax.negative"(%0) : ({X}) -> {X}
    scf.yield %negative : {X}
  }} else {{
    scf.yield %0 : {X}
  }}
  return %1 : {X}
}}"""

CAST = f"""
func.func @main(%x: {X}, %z: {Z}) -> {X} attributes {{relax.num_input = 2 : i64}} {{
  %0 = "relax.match_cast"(%z) : ({Z}) -> tensor<?xf32, {{sym = ["k"]}}>
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %k = "relax.prim_value"() {{value = ["k // 2 + 1"]}} : () -> index
  %1 = scf.for %i = %c0 to %k step %c1 iter_args(%a = %x) -> ({X}) {{
    %more = "relax.add"(%a, %x) : ({X}, {X}) -> {X}
    scf.yield %more : {X}
  }}
  return %1 : {X}
}}"""


def by_hand(n: int, m: int) -> np.ndarray:
    x, w = rows(n), np.array([1, 2, 3], np.float32)
    total = x + (n + m) * w
    return -total if (m - n) % 3 == 0 else total


def rows(n: int) -> np.ndarray:
    return np.arange(n * 3, dtype=np.float32).reshape(n, 3)


def test_a_loop_and_a_branch_depend_on_sizes():
    module, weights = rx.Module.parse(LOOP), {"w": np.array([1, 2, 3], np.float32)}
    computed = module.run("relax-compute-shape-values")
    assert "prim_value" not in str(computed)
    executables = [rx.compile(m) for m in (module, computed)]
    for exe in executables:
        exe.bind(weights)
    for n, m in ((1, 1), (2, 5), (6, 3), (5, 1)):
        inputs = rows(n), np.zeros(2 * m + n, np.float32)
        for got in (rx.evaluate(m, "main", *inputs, weights=weights)[0] for m in (module, computed)):
            np.testing.assert_array_equal(got, by_hand(n, m))
        for exe in executables:
            np.testing.assert_array_equal(exe(*inputs), by_hand(n, m))


def test_a_symbol_of_a_cast():
    module = rx.Module.parse(CAST)
    for m in (module, module.run("relax-compute-shape-values")):
        exe = rx.compile(m)
        for k in (1, 2, 7):
            inputs = rows(2), np.zeros(k, np.float32)
            np.testing.assert_array_equal(exe(*inputs), rows(2) * (k // 2 + 2))
            np.testing.assert_array_equal(rx.evaluate(m, "main", *inputs)[0], rows(2) * (k // 2 + 2))


def test_a_symbol_that_nothing_defines():
    module = rx.Module.parse(LOOP.replace("m + n", "m + q"))
    with pytest.raises(rx.RelaxError, match=r"every symbol of 'm \+ q', got none for q"):
        rx.evaluate(module, "main", rows(2), np.zeros(4, np.float32), weights={"w": np.zeros(3, np.float32)})
    with pytest.raises(rx.RelaxError, match=r"arguments or relax.match_cast define, got 'm \+ q'"):
        rx.compile(module)


@pytest.mark.parametrize("seed", range(8))
def test_random_expressions(seed):
    """Ten values of one function; each dimension of an argument may be what gives a symbol."""
    rng = random.Random(seed)
    dims = ["a * 3 + 2", rng.choice(["b", "a + b", "b * 2 + a * 5"]), rng.choice(["c + a * b", "b + c", "c * 4 + b * b"])]
    texts = [_expression(rng, 3) for _ in range(10)]
    sym = ", ".join(f'"{d}"' for d in dims)
    type_ = f"tensor<?x?x?xi8, {{sym = [{sym}]}}>"
    values = "\n".join(f'%{i} = "relax.prim_value"() {{value = ["{t}"]}} : () -> index' for i, t in enumerate(texts))
    numbers = ", ".join(f"%{i}" for i in range(10))
    module = rx.Module.parse(f"""func.func @main(%x: {type_}) -> tensor<10xindex> {{
      {values}
      %10 = tensor.from_elements {numbers} : tensor<10xindex>
      return %10 : tensor<10xindex>
    }}""")
    computed = module.run("relax-compute-shape-values")
    for _ in range(5):
        sizes = {name: rng.randrange(1, 6) for name in "abc"}
        x = np.zeros([symbolic.evaluate(symbolic.parse(d), sizes) for d in dims], np.int8)
        for m in (module, computed):
            want = [symbolic.evaluate(symbolic.parse(t), sizes) for t in texts]
            assert rx.evaluate(m, "main", x)[0].tolist() == want


def _expression(rng: random.Random, depth: int) -> str:
    if not depth or rng.random() < 0.2:
        return rng.choice(["a", "b", "c", "1", "7"])
    left, right, op = _expression(rng, depth - 1), _expression(rng, depth - 1), rng.choice("+-*+-*/%")
    return f"({left}) {'//' if op == '/' else op} {rng.randrange(1, 5)}" if op in "/%" else f"({left}) {op} ({right})"

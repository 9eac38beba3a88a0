"""Changes of shape and order keep their meaning when lowered."""

from __future__ import annotations

import numpy as np
import pytest

from support.naive import Case, check, compare, lowered, tensor


@pytest.mark.parametrize("dtype", ["f32", "bf16", "i1", "i8", "i64", "i4", "f8E5M2"])
def test_dtypes(dtype: str) -> None:
    check(
        Case("permute_dims", [f"2, 3, 4:{dtype}"], f"4, 2, 3:{dtype}", "axes = array<i64: 2, 0, 1>"),
        Case("reshape", [f"2, 3, 4:{dtype}"], f"6, 4:{dtype}"),
        Case("broadcast_to", [f"3, 1:{dtype}"], f"2, 3, 4:{dtype}"),
        Case("concat", [f"2, 3:{dtype}", f"1, 3:{dtype}"], f"3, 3:{dtype}"),
        Case("flip", [f"2, 3:{dtype}"], f"2, 3:{dtype}", "axis = 1 : i64"),
    )


def test_permute_dims() -> None:
    check(
        Case("permute_dims", ["n, 3:f32"], "3, n:f32"),
        Case("permute_dims", ["n, m, 2:f32"], "2, n, m:f32", "axes = array<i64: -1, 0, 1>"),
        Case("permute_dims", [":f32"], ":f32"),
        n=5, m=4,
    )  # fmt: skip


RESHAPES = """
2, 6 -> 12 | 12 -> 2, 6 | 2, 6 -> 3, 4 | 4, 3 -> 2, 2, 3 | 2, 3, 4 -> 6, 4 | 2, 3, 4 -> 2, 12 | 1, 3 -> 3 | 3 -> 1, 3, 1
-> 1, 1 | 1, 1 -> | 2, 1, 3 -> 2, 3 | 2, 3 -> 2, 1, 3 | 0, 4 -> 0 | 0, 4 -> 2, 0 | 6, 4 -> 4, 6 | n, 12 -> n, 3, 4
n, 3, 4 -> n, 12 | n, 4 -> n * 4 | n * 4 -> n, 4 | n, m, 4 -> n * m, 4 | n * m, 4 -> n, m, 4 | n * m -> n, m | n, m -> m, n
1, n, 4 -> n, 4 | n, 4 -> 1, n, 1, 4 | n, 2, 3 -> n * 2, 3 | 2, n, 6 -> 2 * n, 2, 3 | n * 2, 3 -> 2, n, 3
1, n -> n, 1 | n -> n | n, 0 -> 0 | n, 0 -> 0, m | 0, n -> 2, 0, n
"""
X = tensor("4, 6:f32")
# Symbols that occur in products only are defined here.
SYMBOLS = Case("negative", ["n, m:f32"], "n, m:f32")


def test_reshape() -> None:
    shapes = [pair.split("->") for line in RESHAPES.strip().splitlines() for pair in line.split("|")]
    check(SYMBOLS, *(Case("reshape", [f"{a}:f32"], f"{b}:f32") for a, b in shapes), n=3, m=5)


def test_reshape_with_an_unknown_dimension() -> None:
    text = """
    func.func @main(%x: tensor<?x6xf32>) -> (tensor<?x3xf32>, tensor<?xf32>, tensor<2x?x3xf32>) {
      %0 = "relax.reshape"(%x) : (tensor<?x6xf32>) -> tensor<?x3xf32>
      %1 = "relax.reshape"(%0) : (tensor<?x3xf32>) -> tensor<?xf32>
      %2 = "relax.reshape"(%1) : (tensor<?xf32>) -> tensor<2x?x3xf32>
      return %0, %1, %2 : tensor<?x3xf32>, tensor<?xf32>, tensor<2x?x3xf32>
    }"""
    compare(text, np.arange(24, dtype=np.float32).reshape(4, 6))


def test_expand_dims_and_squeeze() -> None:
    check(
        Case("expand_dims", ["3, n:f32"], "1, 3, n, 1:f32", "axis = array<i64: 0, -1>"),
        Case("expand_dims", [":f32"], "1:f32", "axis = array<i64: 0>"),
        Case("expand_dims", ["n:f32"], "n:f32", "axis = array<i64>"),
        Case("squeeze", ["1, 3, 1, n:f32"], "3, n:f32"),
        Case("squeeze", ["1, 3, 1, n:f32"], "1, 3, n:f32", "axis = array<i64: 2>"),
        Case("squeeze", ["1, 1:f32"], ":f32"),
        n=5,
    )  # fmt: skip


def test_broadcast_to() -> None:
    shapes = [
        ("", "2, 3"),
        ("1", "n"),
        ("n", "m, n"),
        ("n, 1", "n, m"),
        ("1, 3", "0, 3"),
        ("2, 3", "2, 3"),
        ("1, n", "n * 2, n"),
    ]
    check(SYMBOLS, *(Case("broadcast_to", [f"{a}:f32"], f"{b}:f32") for a, b in shapes), n=3, m=4)


def test_concat() -> None:
    check(
        Case("concat", ["2, 3:f32", "2, 4:f32"], "2, 7:f32", "axis = 1 : i64"),
        SYMBOLS,
        Case("concat", ["n, 3:f32", "m, 3:f32"], "n + m, 3:f32", "axis = 0 : i64"),
        Case("concat", ["n, 3:f32", "n, 1:f32"], "n, 4:f32", "axis = -1 : i64"),
        Case("concat", ["0:f32", "3:f32"], "3:f32"),
        n=2, m=5,
    )  # fmt: skip


def _concat(lhs: str, rhs: str, result: str, axis: int) -> str:
    return f'"relax.concat"({lhs}) {{axis = {axis} : i64}} : ({rhs}) -> {result}'


N, THREE, SUM, ALL = (tensor(f"2, {d}:f32") for d in ("n", "3", "n + 3", "n * 2 + 6"))
CHAIN = f"""
func.func @main(%a: {N}, %b: {THREE}, %c: {N}) -> {ALL} {{
  %0 = {_concat("%a, %b", f"{N}, {THREE}", SUM, 1)}
  %1 = {_concat("%b, %c", f"{THREE}, {N}", SUM, -1)}
  %2 = {_concat("%0, %1", f"{SUM}, {SUM}", ALL, 1)}
  return %2 : {ALL}
}}"""


def test_a_chain_of_concats_has_one_destination() -> None:
    rng = np.random.default_rng(0)
    compare(CHAIN, *(rng.standard_normal(s, np.float32) for s in ((2, 4), (2, 3), (2, 4))))
    printed = str(lowered(CHAIN))
    assert printed.count("tensor.empty") == 1
    assert printed.count("tensor.insert_slice") == 4


def test_concats_that_are_read_twice_or_turn_are_no_chain() -> None:
    text = """
    func.func @main(%a: tensor<2x3xf32>) -> (tensor<4x3xf32>, tensor<6x3xf32>, tensor<4x6xf32>) {
      %0 = "relax.concat"(%a, %a) {axis = 0 : i64} : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<4x3xf32>
      %1 = "relax.concat"(%0, %a) {axis = 0 : i64} : (tensor<4x3xf32>, tensor<2x3xf32>) -> tensor<6x3xf32>
      %2 = "relax.concat"(%a, %a) {axis = 1 : i64} : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x6xf32>
      %3 = "relax.concat"(%2, %2) {axis = 0 : i64} : (tensor<2x6xf32>, tensor<2x6xf32>) -> tensor<4x6xf32>
      return %0, %1, %3 : tensor<4x3xf32>, tensor<6x3xf32>, tensor<4x6xf32>
    }"""
    compare(text, np.arange(6, dtype=np.float32).reshape(2, 3))


def test_split() -> None:
    check(
        Case("split", ["6, 4:f32"], ["2, 4:f32"] * 3, "sections = 3 : i64, axis = 0 : i64"),
        Case("split", ["3, 4:f32"], ["3, 2:f32"] * 2, "sections = 2 : i64, axis = -1 : i64"),
        Case("split", ["n * 2, 3:f32"], ["n, 3:f32"] * 2, "sections = 2 : i64, axis = 0 : i64"),
        Case("split", ["m, 3:f32"], ["m // 2, 3:f32"] * 2, "sections = 2 : i64, axis = 0 : i64"),
        Case("split", ["n, 3:f32"], ["n, 3:f32"], "sections = 1 : i64, axis = 0 : i64"),
        n=3, m=4,
    )  # fmt: skip


@pytest.mark.parametrize("dtype", ["f32", "bf16", "i8", "i64", "i1"])
def test_flip_of_rows_longer_than_vectors(dtype: str) -> None:
    cases = [Case("flip", [f"3, {size}:{dtype}"], f"3, {size}:{dtype}", "axis = 1 : i64") for size in (64, 100, "n")]
    check(*cases, n=77)


def test_flip_repeat_tile() -> None:
    check(
        *(Case("flip", ["3, n, 4:f32"], "3, n, 4:f32", f"axis = {axis} : i64") for axis in range(3)),
        Case("flip", ["0:f32"], "0:f32", "axis = 0 : i64"),
        Case("repeat", ["3, n:f32"], "6, n:f32", "axis = 0 : i64, repeats = 2 : i64"),
        Case("repeat", ["3, n:f32"], "3, n * 3:f32", "axis = -1 : i64, repeats = 3 : i64"),
        Case("tile", ["3, 1:f32"], "6, 5:f32", "repeats = array<i64: 2, 5>"),
        Case("tile", ["n, 2:f32"], "n * 2, 6:f32", "repeats = array<i64: 2, 3>"),
        Case("tile", ["n, 2:f32"], "n, 6:f32", "repeats = array<i64: 1, 3>"),
        Case("tile", ["0, 2:f32"], "0, 4:f32", "repeats = array<i64: 2, 2>"),
        n=5,
    )  # fmt: skip


#: Ops that move elements of a [4, 6] tensor, and the shape they make of it.
MOVES = [
    ("permute_dims", "6, 4", ""), ("flip", "4, 6", "axis = 1 : i64"), ("repeat", "8, 6", "axis = 0 : i64, repeats = 2 : i64"),
    ("tile", "4, 18", "repeats = array<i64: 1, 3>"), ("reshape", "3, 8", ""), ("reshape", "2, 2, 6", ""),
    ("broadcast_to", "3, 4, 6", ""), ("expand_dims", "4, 1, 6", "axis = array<i64: 1>"), ("tril", "4, 6", "k = 1 : i64"),
    ("strided_slice", "2, 3", "axes = array<i64: 0, 1>, begin = [1, 0], end = [4, 3], strides = array<i64: 2, 1>"),
    ("pad", "6, 6", "before = array<i64: 1, 0>, after = array<i64: 1, 0>, value = 2.0 : f64"), ("softmax", "4, 6", ""),
    ("sum", "4", "axis = array<i64: 1>"),
]  # fmt: skip


def test_movement_fuses_with_what_surrounds_it() -> None:
    """What MLIR's fusion makes of index maps, between an elementwise producer and one that reads the result, means the same."""
    lines, results = [], []
    for i, (name, shape, attributes) in enumerate(MOVES):
        kind = tensor(f"{shape}:f32")
        lines += [
            f'%e{i} = "relax.exp"(%x) : ({X}) -> {X}',
            f'%m{i} = "relax.{name}"(%e{i}) {{{attributes}}} : ({X}) -> {kind}',
            f'%n{i} = "relax.negative"(%m{i}) : ({kind}) -> {kind}',
        ]
        results.append(kind)
    returned = ", ".join(f"%n{i}" for i in range(len(MOVES)))
    body = "\n".join([*lines, f"return {returned} : {', '.join(results)}"])
    x = np.random.default_rng(0).standard_normal((4, 6), np.float32)
    compare(f"func.func @main(%x: {X}) -> ({', '.join(results)}) {{\n{body}\n}}", x, fuse=True)


def test_movement_fuses_with_its_readers() -> None:
    """What MLIR's fusion makes of index maps still means the same."""
    text = """
    func.func @main(%x: tensor<4x6xf32>) -> tensor<6x2xf32> {
      %t = "relax.permute_dims"(%x) : (tensor<4x6xf32>) -> tensor<6x4xf32>
      %f = "relax.flip"(%t) {axis = 0 : i64} : (tensor<6x4xf32>) -> tensor<6x4xf32>
      %e = "relax.exp"(%f) : (tensor<6x4xf32>) -> tensor<6x4xf32>
      %a, %b = "relax.split"(%e) {sections = 2 : i64, axis = 1 : i64} : (tensor<6x4xf32>) -> (tensor<6x2xf32>, tensor<6x2xf32>)
      %y = "relax.subtract"(%a, %b) : (tensor<6x2xf32>, tensor<6x2xf32>) -> tensor<6x2xf32>
      return %y : tensor<6x2xf32>
    }"""
    x = np.random.default_rng(0).standard_normal((4, 6), np.float32)
    compare(text, x)
    compare(text, x, fuse=True)

"""Modules that kernels once did not take: slices of slices, empty parts, reductions of nothing, sizes that casts name."""

from __future__ import annotations

import functools
from collections.abc import Sequence

import numpy as np
import pytest

import relaxir as rx
from support.guard_pages import guarded_copy

N = 'tensor<?x4xf32, {sym = ["n"]}>'


@functools.lru_cache(maxsize=1)
def compiled(module: rx.Module) -> rx.Executable:
    """Once, for all calls of a test."""
    return rx.compile(module)


def check(module: rx.Module, *shapes: Sequence[int], weights: dict[str, np.ndarray] | None = None) -> None:
    """Compiled and called with arrays against guard pages, of each shape, the results are the reference's."""
    rng = np.random.default_rng(0)
    executable = compiled(module)
    executable.bind(executable.prepare(weights or {}))
    inputs = [rng.standard_normal(s, np.float32) for s in shapes]
    want = rx.evaluate(module, "main", *inputs, weights=weights or {})
    got = executable(*(guarded_copy(x) for x in inputs))
    for expected, found in zip(want, got if isinstance(got, tuple) else (got,), strict=True):
        assert expected.shape == found.shape
        np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5)


def test_slices_of_slices() -> None:
    b = rx.Builder()
    with b.function("main"):
        x = b.input("x", (3, 64))
        outer = [
            b.strided_slice(x, axes=[1], begin=[i], end=[e], strides=[s]) for i, e, s in ((0, 48, 1), (3, 63, 2), (5, 64, 3))
        ]
        inner = [b.strided_slice(v, axes=[1], begin=[i], end=[i + 7], strides=[s]) for v in outer for i, s in ((0, 1), (2, 3))]
        repeated = b.strided_slice(b.repeat(outer[0], repeats=3, axis=1), axes=[1], begin=[0], end=[50], strides=[1])
        tiled = b.repeat(
            b.strided_slice(b.tile(outer[1], repeats=[1, 2]), axes=[1], begin=[0], end=[37], strides=[1]), repeats=2, axis=1
        )
        b.output(*inner, repeated, b.tanh(tiled), b.flip(tiled, axis=1))
    check(b.build(), (3, 64))


@pytest.mark.parametrize("rows", [1, 64])
def test_products_of_one_number_everywhere_with_elementwise_ops_behind(rows: int) -> None:
    b = rx.Builder()
    with b.function("main"):
        x, w = b.input("x", (64, 48)), b.weight("w", (64, 48))
        ones = b.full((rows, 64), 0.25, "f32")
        b.output(b.tanh(b.matmul(ones, x)), b.tanh(b.matmul(ones, w)))
    check(b.build(), (64, 48), weights={"w": np.random.default_rng(1).standard_normal((64, 48), np.float32)})


@pytest.mark.parametrize("interleaved", [False, True])
@pytest.mark.parametrize("turned", [4, 8, 16])
def test_rotary_embeddings_of_a_part_of_a_slice(turned: int, interleaved: bool) -> None:
    """What is left of a head that is turned whole is nothing, and is put behind it all the same."""
    b = rx.Builder()

    def part(value: rx.Value, begin: int, end: int, stride: int = 1) -> rx.Value:
        return b.strided_slice(value, axes=[-1], begin=[begin], end=[end], strides=[stride])

    with b.function("main"):
        x = b.input("x", (2, 5, 128))
        heads = b.permute_dims(b.reshape(part(x, 64, 96), (2, 5, 2, 16)), axes=[0, 2, 1, 3])
        rotated, rest = part(heads, 0, turned), part(heads, turned, 16)
        if interleaved:
            pairs = [b.expand_dims(v, axis=[4]) for v in (b.negative(part(rotated, 1, turned, 2)), part(rotated, 0, turned, 2))]
            swapped = b.reshape(b.concat(pairs, axis=-1), (2, 2, 5, turned))
        else:
            swapped = b.concat([b.negative(part(rotated, turned // 2, turned)), part(rotated, 0, turned // 2)], axis=-1)
        b.output(b.concat([b.add(rotated, swapped), rest], axis=-1))
    check(b.build(), (2, 5, 128))


def test_empty_parts_and_results() -> None:
    b = rx.Builder()
    with b.function("main"):
        x, w = b.input("x", ("n", 9)), b.weight("w", (0, 4))
        nothing = [b.strided_slice(x, axes=[1], begin=[i], end=[i], strides=[s]) for i, s in ((0, 3), (2, 3), (9, 1))]
        whole = b.concat([nothing[0], x, nothing[1]], axis=1)
        product = b.matmul(nothing[2], b.full((0, 5), 1.0, "f32"))
        sums = [b.sum(nothing[0], axis=[1]), b.prod(nothing[1], axis=[1]), b.max(nothing[2], axis=[1])]
        b.output(
            b.concat([w, w], axis=1), nothing[1], b.relu(whole), b.tanh(product), *sums, b.pad(w, before=[1, 0], after=[0, 2])
        )
    check(b.build(), (3, 9), weights={"w": np.zeros((0, 4), np.float32)})


@pytest.mark.parametrize("rows", [0, 1, 3])
def test_what_is_repeated_no_times_is_empty(rows: int) -> None:
    b = rx.Builder()
    with b.function("main"):
        x, w = b.input("x", ("n", 3)), b.weight("w", (2, 3))
        never = [b.repeat(v, repeats=0, axis=i) for v in (x, w) for i in (0, 1)]
        tiled = [b.tile(v, repeats=r) for v in (x, w) for r in ([0, 1], [2, 0])]
        sums = [b.sum(b.match_cast(v, ("k", 3)), axis=[0]) for v in (never[0], tiled[0])]
        b.output(*never, *tiled, *sums, b.concat([b.relu(never[0]), x], axis=0))
    check(b.build(), (rows, 3), weights={"w": np.ones((2, 3), np.float32)})


@pytest.mark.parametrize("flag", [False, True])
def test_what_is_repeated_no_times_stays_empty_behind_a_branch(flag: bool) -> None:
    never = f'"relax.repeat"(%x) {{axis = 0 : i64, repeats = 0 : i64}} : ({N}) -> tensor<0x4xf32>'
    text = f"""func.func @main(%x: {N}, %flag: tensor<i1>) -> tensor<4xf32> {{
      %0 = {never}
      %1 = tensor.extract %flag[] : tensor<i1>
      %2 = scf.if %1 -> (tensor<?x4xf32>) {{
        %4 = "relax.match_cast"(%0) : (tensor<0x4xf32>) -> tensor<?x4xf32>
        scf.yield %4 : tensor<?x4xf32>
      }} else {{
        %4 = "relax.tile"(%x) {{repeats = array<i64: 0, 1>}} : ({N}) -> tensor<0x4xf32>
        %5 = "relax.match_cast"(%4) : (tensor<0x4xf32>) -> tensor<?x4xf32>
        scf.yield %5 : tensor<?x4xf32>
      }}
      %3 = "relax.sum"(%2) {{axis = array<i64: 0>}} : (tensor<?x4xf32>) -> tensor<4xf32>
      return %3 : tensor<4xf32>
    }}"""
    got = rx.compile(rx.Module.parse(text))(np.ones((3, 4), np.float32), np.array(flag))
    np.testing.assert_array_equal(got, np.zeros(4))


def test_weights_that_grow_are_concatenated_with_nothing() -> None:
    """Each part's scales are repeated along the axis: those of nothing no times."""
    b = rx.Builder()
    with b.function("main"):
        x = b.input("x", (2, 4))
        q, scale = [b.weight(n, (4, 3), "i8") for n in ("q", "r")], [b.weight(n, (), "f32") for n in ("s", "t")]
        whole, part = (b.dequantize(w, s, b.full((), 0, "i8"), axis=0) for w, s in zip(q, scale, strict=True))
        nothing = b.strided_slice(part, axes=[0], begin=[2], end=[2], strides=[1])
        b.output(b.matmul(x, b.concat([whole, nothing], axis=0)))
    weights = {"q": np.arange(12, dtype=np.int8).reshape(4, 3), "s": np.array(2, np.float32), "t": np.array(3, np.float32)}
    check(b.build(), (2, 4), weights=weights | {"r": np.ones((4, 3), np.int8)})


def test_images_that_turn_out_empty_are_not_read() -> None:
    """What is padded on all sides is not empty any more; what would be read of it is not there."""
    b = rx.Builder()
    with b.function("main"):
        x, filters = b.input("x", ("n", 3, "z", "w")), b.input("filters", (4, 3, 1, 1))
        padded = b.pad(x, before=[0, 0, 1, 1], after=[0, 0, 1, 0], value=2.0)
        b.output(padded, b.conv2d(x, filters, padding=[1, 1, 1, 1]))
    text = str(b.build()).replace("relax.num_input", "relax.symbol_ranges = {z = [0], w = [0]}, relax.num_input")
    module = rx.Module.parse(text)
    for height, width in ((0, 0), (2, 0), (3, 4)):
        check(module, (2, 3, height, width), (4, 3, 1, 1))


def test_reductions_along_no_axes() -> None:
    b = rx.Builder()
    with b.function("main"):
        x = b.softmax(b.input("x", (48, 15)), axis=-1)
        b.output(b.mean(x, axis=[]), b.sum(b.max(x, axis=[]), axis=[1]), b.variance(x, axis=[]))
    check(b.build(), (48, 15))


def test_attention_of_heads_of_symbolic_size() -> None:
    b = rx.Builder()
    with b.function("main"):
        q, k, v = (b.input(name, (2, "s", "d")) for name in "qkv")
        b.output(b.attention(b.expand_dims(q, axis=[0]), *(b.expand_dims(y, axis=[0]) for y in (k, v)), causal=True))
    check(b.build(), *[(2, 5, 7)] * 3)


def test_weights_whose_sizes_a_private_function_names() -> None:
    """A prepared weight has static sizes; what says its sizes by symbols only is computed in inference, or with the cast."""
    named = 'tensor<?x?xf32, {sym = ["a", "b"]}>'
    module = rx.Module.parse(f"""
      func.func @main(%x: {N} {{relax.name = "x"}}, %w: tensor<17x4xf32> {{relax.name = "w"}})
          -> (tensor<i64>, tensor<4xf32>, {N}) attributes {{relax.num_input = 1 : i64}} {{
        %c = "relax.match_cast"(%w) : (tensor<17x4xf32>) -> {named}
        %y = call @helper(%c) : ({named}) -> {named}
        %rows = "relax.shape_value"() {{value = ["a"]}} : () -> tensor<i64>
        %s = "relax.sum"(%y) {{axis = array<i64: 0>}} : ({named}) -> tensor<?xf32, {{sym = ["b"]}}>
        %t = "relax.match_cast"(%s) : (tensor<?xf32, {{sym = ["b"]}}>) -> tensor<4xf32>
        %z = "relax.add"(%x, %t) : ({N}, tensor<4xf32>) -> {N}
        return %rows, %t, %z : tensor<i64>, tensor<4xf32>, {N}
      }}
      func.func private @helper(%v: {named}) -> {named} {{
        %0 = "relax.negative"(%v) : ({named}) -> {named}
        return %0 : {named}
      }}""")
    check(module, (3, 4), weights={"w": np.arange(68, dtype=np.float32).reshape(17, 4)})


def test_a_step_of_the_preparation_has_the_casts_that_define_its_symbols() -> None:
    """The loop mentions a symbol of the cast, and reads no value of it."""
    named = 'tensor<?x?xf32, {sym = ["a", "b"]}>'
    module = rx.Module.parse(f"""
      func.func @main(%x: {N} {{relax.name = "x"}}, %v: tensor<4xf32> {{relax.name = "v"}},
          %w: tensor<5x4xf32> {{relax.name = "w"}})
          -> {N} attributes {{relax.num_input = 1 : i64}} {{
        %c = "relax.match_cast"(%w) : (tensor<5x4xf32>) -> {named}
        %zero = arith.constant 0 : index
        %one = arith.constant 1 : index
        %a = "relax.prim_value"() {{value = ["a"]}} : () -> index
        %l = scf.for %i = %zero to %a step %one iter_args(%q = %v) -> (tensor<4xf32>) {{
          %d = "relax.add"(%q, %v) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
          scf.yield %d : tensor<4xf32>
        }}
        %y = "relax.add"(%x, %l) : ({N}, tensor<4xf32>) -> {N}
        return %y : {N}
      }}""")
    check(module, (3, 4), weights={"v": np.arange(4, dtype="f4"), "w": np.ones((5, 4), np.float32)})

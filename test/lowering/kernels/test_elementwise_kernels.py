"""Elementwise and data movement kernels against NumPy, over sizes, index maps, types and vector widths."""

import numpy as np
import pytest

from relaxir.lowering.target import Target
from support.kernel_harness import NUMPY, Compiled, arrays_for, function, generic, memref, narrower, random, read

ADD = "  %y = arith.addf %x0, %x1 : f32\n  linalg.yield %y : f32"
COPY = "  linalg.yield %x0 : f32"
SAME = "(i, j) -> (i, j)"

MAPS = [
    "(i, j) -> (j, i)",
    "(i, j) -> (i, j + 5)",
    "(i, j) -> (i + 2, j * 2)",
    "(i, j) -> (i * 3, j * 3 + 1)",
    "(i, j) -> (-i + 32, j)",
    "(i, j) -> (i, -j + 69)",
    "(i, j) -> (i, j floordiv 2)",
    "(i, j) -> (i, j floordiv 3)",
    "(i, j) -> (i mod 3, j)",
    "(i, j) -> (i, j mod 5)",
    "(i, j) -> (j floordiv 32, i, j mod 32)",
    "(i, j) -> (j floordiv 8, i, j mod 8)",
    "(i, j) -> (i floordiv 4, j, i mod 4)",
    "(i, j) -> (0, j)",
    "(i, j) -> (i, 0)",
    "(i, j) -> ()",
    "(i, j) -> (i, i)",
    "(i, j) -> (i + j)",
    "(i, j) -> ((i + j) floordiv 2)",
    "(i, j) -> ((j * 2 + 3) floordiv 5, i)",
    "(i, j) -> ((-j + 69) floordiv 2, i)",
    "(i, j) -> ((-j * 3 + 207) mod 11, i)",
]


def check(maps, sizes, body, reference, dynamic, target=None):
    arrays = arrays_for(maps, sizes)
    types = [memref(a.shape, dynamic=dynamic and a.ndim > 0) for a in arrays]
    compiled = Compiled(function(types, generic(maps, "p" * len(sizes), types, body)), target)
    compiled(*arrays)
    expected = reference(*[read(a, m, sizes) for a, m in zip(arrays[:-1], maps[:-1], strict=True)])
    np.testing.assert_array_equal(read(arrays[-1], maps[-1], sizes), expected)


@pytest.mark.parametrize("dynamic", [False, True])
@pytest.mark.parametrize("size", [1, 2, 7, 15, 16, 17, 31, 33, 47, 64, 70])
def test_every_size_has_its_tail(size, dynamic):
    check(["(i) -> (i)"] * 3, {"i": size}, ADD, np.add, dynamic)
    maps = ["(i, j) -> (j, i)", "(i, j) -> (j)", SAME]
    check(maps, {"i": size, "j": 18}, ADD, np.add, dynamic)


@pytest.mark.parametrize("dynamic", [False, True])
@pytest.mark.parametrize("index_map", MAPS)
def test_index_maps(index_map, dynamic):
    check([index_map, SAME], {"i": 33, "j": 70}, COPY, lambda x: x, dynamic)
    check([index_map, SAME], {"i": 3, "j": 5}, COPY, lambda x: x, dynamic)


@pytest.mark.parametrize("bits", [128, 256])
@pytest.mark.parametrize("index_map", MAPS[::3])
def test_narrower_vectors(index_map, bits):
    check([index_map, SAME], {"i": 9, "j": 37}, COPY, lambda x: x, True, narrower(bits))


def test_one_compilation_serves_every_size():
    maps = [SAME, "(i, j) -> (i)", SAME]
    types = [memref((0, 0), dynamic=True), memref((0,), dynamic=True), memref((0, 0), dynamic=True)]
    compiled = Compiled(function(types, generic(maps, "pp", types, ADD)))
    for rows in (0, 1, 5):
        for columns in (0, 1, 15, 16, 33, 70):
            x, y, out = random((rows, columns)), random((rows,)), np.zeros((rows, columns), np.float32)
            compiled(x, y, out)
            np.testing.assert_array_equal(out, x + y[:, None])


@pytest.mark.parametrize(
    ("source", "result", "operation"),
    [
        ("f32", "bf16", "arith.truncf"), ("bf16", "f32", "arith.extf"), ("f32", "f16", "arith.truncf"),
        ("f16", "f32", "arith.extf"), ("f32", "f64", "arith.extf"), ("f64", "f32", "arith.truncf"),
        ("i8", "f32", "arith.sitofp"), ("i8", "i32", "arith.extsi"), ("i64", "i32", "arith.trunci"),
        ("i32", "i64", "arith.extsi"), ("f32", "i32", "arith.fptosi"), ("i64", "f64", "arith.sitofp"),
        ("i32", "i8", "arith.trunci"),
    ],
)  # fmt: skip
def test_casts(source, result, operation):
    types = [memref((70,), source), memref((70,), result)]
    body = f"  %y = {operation} %x0 : {source} to {result}\n  linalg.yield %y : {result}"
    x, out = random((70,), source), np.zeros(70, NUMPY[result])
    Compiled(function(types, generic(["(i) -> (i)"] * 2, "p", types, body)))(x, out)
    np.testing.assert_array_equal(out, x.astype(NUMPY[result]))


@pytest.mark.parametrize("size", [1, 70])
def test_bf16_without_an_instruction_rounds_to_even_and_keeps_nan(size):
    host = Target.host()
    plain = Target(host.triple, host.cpu, "", 256, 16)
    types = [memref((size,)), memref((size,), "bf16")]
    body = "  %y = arith.truncf %x0 : f32 to bf16\n  linalg.yield %y : bf16"
    compiled = Compiled(function(types, generic(["(i) -> (i)"] * 2, "p", types, body)), plain)
    edges = np.array([1.00390625, 1.01171875, -1.00390625, np.inf, -np.inf, np.nan, 3.4e38, 0.0, -0.0, 1e-40], np.float32)
    for x in [random((size,))] + [np.full(size, e, np.float32) for e in edges]:
        out = np.zeros(size, NUMPY["bf16"])
        compiled(x, out)
        np.testing.assert_array_equal(out.astype(np.float32), x.astype(NUMPY["bf16"]).astype(np.float32))


@pytest.mark.parametrize("element", ["f32", "bf16", "i8"])
def test_transposition_in_tiles(element):
    maps = ["(i, j, k) -> (k, i, j)", "(i, j, k) -> (i, j, k)"]
    for sizes in ({"i": 3, "j": 33, "k": 50}, {"i": 1, "j": 16, "k": 32}, {"i": 2, "j": 40, "k": 15}):
        x, out = arrays_for(maps, sizes, element)
        types = [memref(a.shape, element, dynamic=sizes["i"] == 2) for a in (x, out)]
        Compiled(function(types, generic(maps, "ppp", types, f"  linalg.yield %x0 : {element}")))(x, out)
        np.testing.assert_array_equal(out, x.transpose(1, 2, 0))


@pytest.mark.parametrize("long", [False, True])
@pytest.mark.parametrize("element", ["f32", "bf16", "i8"])
def test_tiles_of_several_operands(element, long):
    """Three that lie across the result and one along it; rows of long bodies go by way of the stack."""
    kind, turned = "i" if element == "i8" else "f", "(i, j) -> (j, i)"
    maps = [turned, turned, turned, SAME, SAME]
    steps = [f"  %s0 = arith.sub{kind} %x0, %x1 : {element}", f"  %s1 = arith.mul{kind} %s0, %x2 : {element}"]
    steps += [f"  %s{n} = arith.add{kind} %s{n - 1}, %x3 : {element}" for n in range(2, 12 if long else 3)]
    body = "\n".join([*steps, f"  linalg.yield %s{len(steps) - 1} : {element}"])
    for sizes in ({"i": 33, "j": 50}, {"i": 16, "j": 32}, {"i": 40, "j": 15}, {"i": 1, "j": 40}):
        *inputs, out = arrays_for(maps, sizes, element)
        inputs = [np.round(x * 4).astype(x.dtype) if element == "bf16" else x for x in inputs]
        types = [memref(a.shape, element, dynamic=sizes["i"] != 16) for a in (*inputs, out)]
        Compiled(function(types, generic(maps, "pp", types, body)))(*inputs, out)
        a, b, c, d = inputs
        expected = (a - b).T * c.T
        for _ in steps[2:]:
            expected = expected + d
        np.testing.assert_array_equal(out, expected)


@pytest.mark.parametrize(("element", "count"), [("bf16", 2), ("i8", 4), ("i8", 2), ("f32", 2), ("i8", 3)])
@pytest.mark.parametrize("aligned", [True, False])
def test_neighbours_that_stay_together_are_transposed_as_words(element, count, aligned):
    """Panels of columns, groups of rows, and the same one element further, where no word of memory holds a group."""
    first = 0 if aligned else 1
    maps = [f"(p, k, t, r) -> (p * 8 + t, k * {count} + r + {first})", "(p, k, t, r) -> (p, k, t, r)"]
    sizes = {"p": 5, "k": 37, "t": 8, "r": count}
    x, out = arrays_for(maps, sizes, element)
    types = [memref(a.shape, element) for a in (x, out)]
    Compiled(function(types, generic(maps, "pppp", types, f"  linalg.yield %x0 : {element}")))(x, out)
    rows = x[:, first : first + 37 * count].reshape(5, 8, 37, count)
    np.testing.assert_array_equal(out, rows.transpose(0, 2, 1, 3))


def test_strided_memrefs():
    layout = "strided<[?, 2], offset: ?>"
    types = [f"memref<?x?xf32, {layout}>", "memref<?x?xf32>"]
    text = function(types, generic([SAME, SAME], "pp", types, COPY))
    x, out = random((6, 80))[:, ::2], np.zeros((6, 40), np.float32)
    Compiled(text)(x, out)
    np.testing.assert_array_equal(out, x)
    types = types[::-1]
    out, x = np.zeros((6, 80), np.float32), random((6, 40))
    Compiled(function(types, generic([SAME, SAME], "pp", types, COPY)))(x, out[:, ::2])
    np.testing.assert_array_equal(out[:, ::2], x)
    np.testing.assert_array_equal(out[:, 1::2], 0)


def test_fill_copy_and_named_operations():
    body = """
      %c = arith.constant 3.0 : f32
      linalg.fill ins(%c : f32) outs(%a1 : memref<?x7xf32>)
      memref.copy %a0, %a2 : memref<?x7xf32> to memref<?x7xf32>
      linalg.add ins(%a0, %a1 : memref<?x7xf32>, memref<?x7xf32>) outs(%a3 : memref<?x7xf32>)
      linalg.transpose ins(%a0 : memref<?x7xf32>) outs(%a4 : memref<7x?xf32>) permutation = [1, 0]"""
    types = ["memref<?x7xf32>"] * 4 + ["memref<7x?xf32>"]
    x = random((9, 7))
    outs = [np.zeros((9, 7), np.float32) for _ in range(3)] + [np.zeros((7, 9), np.float32)]
    Compiled(function(types, body))(x, *outs)
    for out, expected in zip(outs, [np.full_like(x, 3), x, x + 3, x.T], strict=True):
        np.testing.assert_array_equal(out, expected)

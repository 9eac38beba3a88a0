"""Contraction kernels against NumPy: row and column tails, batches, layouts, types, epilogues."""

import itertools

import numpy as np
import pytest

from support.contractions import MARK, MULTIPLY_ADD, SCALED_MULTIPLY_ADD, contraction, packed, with_epilogue
from support.kernel_harness import NUMPY, Compiled, function, generic, memref, narrower, random

PACKED = ["(m, n, k) -> (m, k)", "(m, n, k) -> (n floordiv 32, k, n mod 32)", "(m, n, k) -> (m, n)"]
SAME = "(m, n) -> (m, n)"


@pytest.mark.parametrize("m", [1, 3, 7, 8, 9, 12, 17])
@pytest.mark.parametrize("n", [1, 16, 31, 32, 33, 65])
def test_static_tails(m, n):
    a, b, c = random((m, 7)), random((7, n), seed=1), np.full((m, n), 9, np.float32)
    contraction(PACKED, "ppr", [memref(a.shape), memref(packed(b).shape), memref(c.shape)])(a, packed(b), c)
    np.testing.assert_allclose(c, a @ b, atol=1e-4)


@pytest.mark.parametrize("bits", [128, 256, None])
def test_dynamic_tails(bits):
    types = [memref((0, 0), dynamic=True), "memref<?x?x32xf32>", memref((0, 0), dynamic=True)]
    compiled = contraction(PACKED, "ppr", types, target=narrower(bits) if bits else None)
    for m, n, k in itertools.product(range(18), (1, 31, 32, 33, 70), (0, 1, 2, 19)):
        a, b, c = random((m, k)), random((k, n), seed=1), np.full((m, n), 9, np.float32)
        compiled(a, packed(b), c)
        np.testing.assert_allclose(c, a @ b, atol=1e-4)


@pytest.mark.parametrize("dynamic", [False, True])
@pytest.mark.parametrize(
    ("left", "right"), [("m, k", "k, n"), ("m, k", "n, k"), ("k, m", "k, n"), ("k, m", "n, k")]
)  # fmt: skip
def test_unpacked_layouts(left, right, dynamic):
    maps = [f"(m, n, k) -> ({left})", f"(m, n, k) -> ({right})", "(m, n, k) -> (m, n)"]
    for m, n, k in [(9, 40, 7), (1, 70, 5), (4, 15, 33)]:
        a, b, c = random((m, k)), random((k, n), seed=1), np.zeros((m, n), np.float32)
        arguments = [a if left == "m, k" else a.T.copy(), b if right == "k, n" else b.T.copy(), c]
        contraction(maps, "ppr", [memref(x.shape, dynamic=dynamic) for x in arguments])(*arguments)
        np.testing.assert_allclose(c, a @ b, atol=1e-4)


def test_operands_in_the_other_order_and_a_transposed_result():
    a, b = random((9, 7)), random((7, 40), seed=1)
    c = np.zeros((9, 40), np.float32)
    maps = [PACKED[1], PACKED[0], PACKED[2]]
    contraction(maps, "ppr", [memref(packed(b).shape), memref(a.shape), memref(c.shape)])(packed(b), a, c)
    np.testing.assert_allclose(c, a @ b, atol=1e-4)
    c = np.zeros((40, 9), np.float32)
    maps = [*PACKED[:2], "(m, n, k) -> (n, m)"]
    contraction(maps, "ppr", [memref(a.shape), memref(packed(b).shape), memref(c.shape)])(a, packed(b), c)
    np.testing.assert_allclose(c, (a @ b).T, atol=1e-4)


@pytest.mark.parametrize("dynamic", [False, True])
@pytest.mark.parametrize(
    ("right", "share"), [("b, h, ", lambda w: w), ("b, h floordiv 2, ", lambda w: w[:, ::2]), ("", lambda w: w[0, 0])]
)
def test_batches(right, share, dynamic):
    loops = "(b, h, m, n, k)"
    maps = [f"{loops} -> (b, h, m, k)", f"{loops} -> ({right}n floordiv 32, k, n mod 32)", f"{loops} -> (b, h, m, n)"]
    a, c = random((2, 4, 5, 9)), np.zeros((2, 4, 5, 40), np.float32)
    b = np.ascontiguousarray(share(random((2, 4, 9, 40), seed=1)))
    expected = a @ (b.repeat(2, 1) if "floordiv" in right.split("n ")[0] else b)
    types = [memref(a.shape, dynamic=dynamic), memref(packed(b).shape), memref(c.shape, dynamic=dynamic)]
    contraction(maps, "ppppr", types)(a, packed(b), c)
    np.testing.assert_allclose(c, expected, atol=1e-4)


BIAS = "  %s = arith.addf %x0, %x1 : f32\n  linalg.yield %s : f32"
SWISH_RESIDUAL = """
  %one = arith.constant 1.0 : f32
  %0 = arith.addf %x0, %x1 : f32
  %1 = arith.negf %0 : f32
  %2 = math.exp %1 : f32
  %3 = arith.addf %2, %one : f32
  %4 = arith.divf %0, %3 : f32
  %5 = arith.addf %4, %x2 : f32
  linalg.yield %5 : f32"""


@pytest.mark.parametrize("dynamic", [False, True])
@pytest.mark.parametrize(("m", "n"), [(8, 64), (13, 40), (1, 70)])
def test_epilogues(m, n, dynamic):
    rows = "?" if dynamic else m
    a, b, bias, residual = random((m, 7)), random((7, n), seed=1), random((n,), seed=2), random((m, n), seed=3)
    types = [f"memref<{rows}x7xf32>", memref(packed(b).shape), memref((n,))]
    matrix = f"memref<{rows}x{n}xf32>"
    out = np.zeros((m, n), np.float32)
    with_epilogue(PACKED, [*types, matrix], BIAS, [SAME, "(m, n) -> (n)", SAME])(a, packed(b), bias, out)
    np.testing.assert_allclose(out, a @ b + bias, atol=1e-4)
    maps = [SAME, "(m, n) -> (n)", SAME, SAME]
    with_epilogue(PACKED, [*types, matrix, matrix], SWISH_RESIDUAL, maps)(a, packed(b), bias, residual, out)
    y = a @ b + bias
    np.testing.assert_allclose(out, y / (1 + np.exp(-y)) + residual, atol=1e-4)


@pytest.mark.parametrize(("bits", "lines"), [(512, 4 * 2), (256, 4), (128, 4)])
def test_an_epilogue_fetches_a_line_of_a_residual_once(bits, lines):
    """Per code of a tile: 8 rows are two tiles of one code."""
    types = [memref((8, 7)), memref((64 * 32 // bits, 7, bits // 16)), memref((8, 64)), memref((8, 64))]
    body = "  %s = arith.addf %x0, %x1 : f32\n  linalg.yield %s : f32"
    residual = with_epilogue(_panels(bits), types, body, [SAME, SAME, SAME], target=narrower(bits))
    types[2] = memref((64,))
    bias = with_epilogue(_panels(bits), types, body, [SAME, "(m, n) -> (n)", SAME], target=narrower(bits))
    assert residual.text.count("llvm.intr.prefetch") - bias.text.count("llvm.intr.prefetch") == lines


def _panels(bits):
    """Maps of a product whose right factor is packed for vectors of that width."""
    return [PACKED[0], PACKED[1].replace("32", str(bits // 16)), PACKED[2]]


def test_epilogue_keeps_the_temporary_in_registers():
    types = [memref((8, 7)), memref((2, 7, 32)), memref((64,)), memref((8, 64))]
    compiled = with_epilogue(PACKED, types, BIAS, [SAME, "(m, n) -> (n)", SAME])
    assert "malloc" not in compiled.text
    assert "@free" not in compiled.text


@pytest.mark.parametrize(
    ("m", "element", "bits", "fetches"),
    [
        (2, "f32", 256, 0),
        (4, "f32", 256, 4),
        (4, "i8", 256, 1),
        (12, "f32", 256, 2),
        (12, "i8", 256, 1),
        (13, "f32", 256, 3 * 2),
        (24, "f32", 256, 1),
        (30, "f64", 256, 2),
        (4, "f32", 512, 0),
        (5, "f32", 512, 2 * 4),
        (4, "i8", 512, 2),
    ],
)
def test_packed_panels_are_fetched_ahead(m, element, bits, fetches):
    """In four steps of k: a busy single tile what it reads, several tiles each their share of the next panel's lines."""
    target = narrower(bits)
    tile = target.matmul_tile[1]
    maps = [PACKED[0], f"(m, n, k) -> (n floordiv {tile}, k, n mod {tile})", PACKED[2]]
    wide = "f64" if element == "f64" else "f32"
    types = [memref((m, 40), wide), memref((2, 40, tile), element), memref((m, 2 * tile), wide)]
    widen = "  %w = arith.sitofp %x1 : i8 to f32\n" if element == "i8" else ""
    factor = "%w" if widen else "%x1"
    body = widen + MULTIPLY_ADD.replace("%x0, %x1", f"%x0, {factor}").replace("f32", wide)
    compiled = contraction(maps, "ppr", types, body, target)
    assert compiled.text.count("llvm.intr.prefetch") == fetches
    a, b, c = random((m, 40), wide), random((40, 2 * tile), element, seed=1), np.zeros((m, 2 * tile), NUMPY[wide])
    compiled(a, packed(b, tile), c)
    np.testing.assert_allclose(c, a @ b.astype(np.float32), atol=1e-3)


@pytest.mark.parametrize("bits", [128, 256, 512])
@pytest.mark.parametrize("m", [1, 3, 13])
def test_bf16_of_two_vectors_is_widened_by_a_shift_and_a_mask(m, bits):
    target = narrower(bits)
    tile = target.matmul_tile[1]
    maps = [PACKED[0], f"(m, n, k) -> (n floordiv {tile}, k, n mod {tile})", PACKED[2]]
    body = "  %w = arith.extf %x1 : bf16 to f32\n" + MULTIPLY_ADD.replace("%x0, %x1", "%x0, %w")
    for n in (4 * tile, tile + tile // 2, tile - 1):
        a, b, c = random((m, 21)), random((21, n), "bf16", seed=1), np.zeros((m, n), np.float32)
        panels = packed(b, tile)
        compiled = contraction(maps, "ppr", [memref(a.shape), memref(panels.shape, "bf16"), memref(c.shape)], body, target)
        if n % tile == 0:
            assert "fpext" not in compiled.text
            assert "zext" not in compiled.text
        compiled(a, panels, c)
        np.testing.assert_allclose(c, a @ b.astype(np.float32), atol=1e-4)


UNPACKED = ["(m, n, k) -> (m, k)", "(m, n, k) -> (k, n)", "(m, n, k) -> (m, n)"]


@pytest.mark.parametrize(("m", "n", "fetches"), [(6, 64, True), (1, 64, True), (60, 64, False), (6, 4096, False)])
def test_unpacked_rows_are_fetched_ahead_where_one_tile_reads_them_once(m, n, fetches):
    compiled = contraction(UNPACKED, "ppr", [memref((m, 40)), memref((40, n)), memref((m, n))], target=narrower(256))
    assert ("prefetch" in compiled.text) == fetches


@pytest.mark.parametrize("bits", [128, 256, 512])
@pytest.mark.parametrize("element", ["f32", "bf16", "f16"])
@pytest.mark.parametrize("n", [3, 4, 7, 8])
@pytest.mark.parametrize("dynamic", [False, True])
def test_few_columns_have_several_steps_in_a_vector(n, element, bits, dynamic):
    body = MULTIPLY_ADD
    if element != "f32":
        body = f"  %w = arith.extf %x0 : {element} to f32\n" + MULTIPLY_ADD.replace("%x0", "%w")
    for m, k in [(1, 4), (5, 33), (27, 72)]:
        a, b, c = random((m, k), element), random((k, n), seed=1), np.ones((m, n), np.float32)
        rows = "?" if dynamic else m
        types = [f"memref<{rows}x{k}x{element}>", memref(b.shape), f"memref<{rows}x{n}xf32>"]
        compiled = Compiled(function(types, generic(UNPACKED, "ppr", types, body, MARK)), narrower(bits))
        compiled(a, b, c)
        np.testing.assert_allclose(c, 1 + a.astype(np.float32) @ b, atol=1e-4)


def test_an_epilogue_that_is_not_the_only_reader_is_separate():
    copy = "%late = memref.dim %t, %zero : TEMPORARY\nmemref.copy %t, %a3 : TEMPORARY to TEMPORARY\n"
    a, b, bias = random((9, 7)), random((7, 40), seed=1), random((40,), seed=2)
    kept, out = np.zeros((9, 40), np.float32), np.zeros((9, 40), np.float32)
    types = [memref(a.shape), memref(packed(b).shape), memref(bias.shape), memref(kept.shape), memref(out.shape)]
    extra = "%zero = arith.constant 0 : index\n" + copy
    maps = [SAME, "(m, n) -> (n)", SAME, SAME]
    with_epilogue(PACKED, types, BIAS, maps, extra=extra)(a, packed(b), bias, kept, out)
    np.testing.assert_allclose(kept, a @ b, atol=1e-4)
    np.testing.assert_allclose(out, a @ b + bias, atol=1e-4)


@pytest.mark.parametrize("element", ["bf16", "f16"])
@pytest.mark.parametrize(("m", "n"), [(9, 40), (1, 64)])
def test_narrow_floats_are_summed_in_f32(element, m, n):
    body = f"""
      %u = arith.extf %x0 : {element} to f32
      %v = arith.extf %x1 : {element} to f32
      %p = arith.mulf %u, %v : f32
      %q = arith.addf %x2, %p : f32
      linalg.yield %q : f32"""
    narrow = f"  %s = arith.truncf %x0 : f32 to {element}\n  linalg.yield %s : {element}"
    a, b, out = random((m, 33), element), random((33, n), element, 1), np.zeros((m, n), NUMPY[element])
    types = [memref(a.shape, element), memref(packed(b).shape, element), memref(out.shape, element)]
    with_epilogue(PACKED, types, narrow, [SAME, SAME], body)(a, packed(b), out)
    expected = a.astype(np.float32) @ b.astype(np.float32)
    np.testing.assert_allclose(out.astype(np.float32), expected, rtol=2**-8, atol=2**-8)


def test_integers_and_f64():
    body = """
      %u = arith.extsi %x0 : i8 to i32
      %v = arith.extsi %x1 : i8 to i32
      %p = arith.muli %u, %v : i32
      %q = arith.addi %x2, %p : i32
      linalg.yield %q : i32"""
    a, b, c = random((9, 33), "i8"), random((33, 40), "i8", 1), np.zeros((9, 40), np.int32)
    contraction(PACKED, "ppr", [memref(a.shape, "i8"), memref(packed(b).shape, "i8"), memref(c.shape, "i32")], body)(
        a, packed(b), c
    )
    np.testing.assert_array_equal(c, a.astype(np.int32) @ b.astype(np.int32))
    a, b, c = random((9, 33), "f64"), random((33, 40), "f64", 1), np.zeros((9, 40))
    types = [memref(x.shape, "f64") for x in (a, packed(b), c)]
    contraction(PACKED, "ppr", types, MULTIPLY_ADD.replace("f32", "f64"))(a, packed(b), c)
    np.testing.assert_allclose(c, a @ b, rtol=1e-12)


def test_scales_inside_the_body():
    """Weight-only quantization: B is i8 with one scale per column."""
    maps = [PACKED[0], PACKED[1], "(m, n, k) -> (n)", PACKED[2]]
    a, b, scale, c = random((5, 9)), random((9, 40), "i8", 1), random((40,), seed=2), np.zeros((5, 40), np.float32)
    types = [memref(a.shape), memref(packed(b).shape, "i8"), memref(scale.shape), memref(c.shape)]
    Compiled(function(types, generic(maps, "ppr", types, SCALED_MULTIPLY_ADD, MARK)))(a, packed(b), scale, c)
    np.testing.assert_allclose(c, a @ (b * scale), rtol=1e-4, atol=1e-2)


def test_without_a_fill_it_adds_to_what_is_there():
    a, b, c = random((9, 7)), random((7, 40), seed=1), random((9, 40), seed=2)
    expected = c + a @ b
    types = [memref(x.shape) for x in (a, packed(b), c)]
    Compiled(function(types, generic(PACKED, "ppr", types, MULTIPLY_ADD, MARK)))(a, packed(b), c)
    np.testing.assert_allclose(c, expected, atol=1e-4)


def test_products_with_vectors():
    a, b = random((9, 33)), random((33,), seed=1)
    out = np.zeros(9, np.float32)
    contraction(["(m, k) -> (m, k)", "(m, k) -> (k)", "(m, k) -> (m)"], "pr", [memref(x.shape) for x in (a, b, out)])(a, b, out)
    np.testing.assert_allclose(out, a @ b, atol=1e-4)
    total = np.zeros((), np.float32)
    contraction(["(k) -> (k)", "(k) -> (k)", "(k) -> ()"], "r", [memref(b.shape), memref(b.shape), "memref<f32>"])(b, b, total)
    np.testing.assert_allclose(total, b @ b, atol=1e-4)


def test_two_contractions_in_one_function():
    a, b, c = random((9, 7)), random((7, 40), seed=1), random((40, 33), seed=2)
    types = [memref(x.shape) for x in (a, packed(b), packed(c))] + [memref((9, 40)), memref((9, 33))]
    fills = "".join(f"linalg.fill ins(%z : f32) outs(%a{i} : {types[i]})\n" for i in (3, 4))
    first = generic(PACKED, "ppr", [types[0], types[1], types[3]], MULTIPLY_ADD, MARK, names=["%a0", "%a1", "%a3"])
    second = generic(PACKED, "ppr", [types[3], types[2], types[4]], MULTIPLY_ADD, MARK, names=["%a3", "%a2", "%a4"])
    middle, out = np.ones((9, 40), np.float32), np.ones((9, 33), np.float32)
    text = function(types, f"%z = arith.constant 0.0 : f32\n{fills}{first}\n{second}")
    Compiled(text)(a, packed(b), packed(c), middle, out)
    np.testing.assert_allclose(out, a @ b @ c, atol=1e-3)


GROUPED = """
  %a = arith.extui %x1 : i8 to i32
  %b = arith.shli %a, %c28 : i32
  %c = arith.shrsi %b, %c28 : i32
  %d = arith.sitofp %c : i32 to f32
  %e = arith.mulf %d, %x2 : f32
  %p = arith.mulf %x0, %e : f32
  %q = arith.addf %x3, %p : f32
  linalg.yield %q : f32"""


@pytest.mark.parametrize("bits", [128, 256, None])
@pytest.mark.parametrize("m", [5, 9, "?"])
def test_a_factor_of_many_operations(bits, m):
    """Int4 with a scale per two rows: computed per tile for few rows, per panel for many."""
    n, k, target = 65, 6, narrower(bits) if bits else None
    q = np.random.default_rng(1).integers(-8, 8, (k, n)).astype(np.int8)
    s = random((k // 2, n), seed=2)
    maps = [*PACKED[:2], "(m, n, k) -> (n floordiv 32, k floordiv 2, n mod 32)", PACKED[2]]
    weights = [memref(packed(q).shape).replace("f32", "i8"), memref(packed(s).shape)]
    types = [f"memref<{m}x{k}xf32>", *weights, f"memref<{m}x{n}xf32>"]
    fill = f"%z = arith.constant 0.0 : f32\nlinalg.fill ins(%z : f32) outs(%a3 : {types[3]})\n"
    body = "%c28 = arith.constant 28 : i32\n" + fill + generic(maps, "ppr", types, GROUPED, MARK)
    compiled = Compiled(function(types, body), target)
    for rows in [m] if m != "?" else (0, 1, 8, 9, 33):
        a, c = random((rows, k)), np.full((rows, n), 9, np.float32)
        compiled(a, packed(q & 15), packed(s), c)
        np.testing.assert_allclose(c, a @ (q * s.repeat(2, 0)), atol=1e-3)


@pytest.mark.parametrize("m", [1, 5, 40, "?"])
def test_a_group_that_is_cut_off(m):
    """Int8 with a scale per 32 rows, of which the last ones are fewer: they were read beyond the end."""
    n, k = 37, 70
    q, s = random((k, n), "i8", 1), random((3, n), seed=2)
    maps = [*PACKED[:2], "(m, n, k) -> (k floordiv 32, n)", PACKED[2]]
    types = [f"memref<{m}x{k}xf32>", memref(packed(q).shape, "i8"), memref(s.shape), f"memref<{m}x{n}xf32>"]
    compiled = Compiled(function(types, generic(maps, "ppr", types, SCALED_MULTIPLY_ADD, MARK)))
    for rows in [m] if m != "?" else (1, 40):
        a, c = random((rows, k)), np.zeros((rows, n), np.float32)
        compiled(a, packed(q), s, c)
        np.testing.assert_allclose(c, a @ (q * s.repeat(32, 0)[:k]), atol=1e-2)

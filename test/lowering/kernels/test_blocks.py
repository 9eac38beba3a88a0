"""Contractions of a long k against NumPy: edges of blocks of k and rows, of chunks of columns, and of copies, made small."""

from __future__ import annotations

import numpy as np
import pytest

import relaxir as rx
from relaxir.lowering.cpu.kernels.contraction import tuning
from relaxir.lowering.cpu.kernels.contraction.plan import plan_contraction
from relaxir.lowering.cpu.kernels.contraction.shape import ContractionShape
from relaxir.lowering.cpu.kernels.contraction.tuning import TUNINGS
from relaxir.lowering.target import Target
from support.contractions import (
    FEW_BLOCKS,
    MARK,
    MULTIPLY_ADD,
    SMALL_BLOCKS,
    SMALL_COPIES,
    contraction,
    packed,
    tune,
    with_epilogue,
)
from support.kernel_harness import NUMPY, Compiled, function, generic, memref, narrower, random

PACKED = ["(m, n, k) -> (m, k)", "(m, n, k) -> (n floordiv 16, k, n mod 16)", "(m, n, k) -> (m, n)"]
#: As they are: 160 steps have no blocks.
WHOLE = dict(TUNINGS)
WIDEN = """
  %u = arith.{widen} %x0 : {narrow} to {wide}
  %v = arith.{widen} %x1 : {narrow} to {wide}
  %p = arith.mul{kind} %u, %v : {wide}
  %q = arith.add{kind} %x2, %p : {wide}
  linalg.yield %q : {wide}"""


@pytest.fixture(autouse=True, params=[SMALL_BLOCKS, SMALL_COPIES, FEW_BLOCKS], ids=["read", "copied", "few"])
def _small(monkeypatch, request):
    tune(monkeypatch, **request.param)


def close(result, a, b):
    want = a.astype(np.float64) @ b.astype(np.float64)
    np.testing.assert_allclose(result, want, rtol=1e-5, atol=1e-5 * np.abs(want).max(initial=1))


def is_blocked(compiled):
    """Whether sums are kept on the stack."""
    return "llvm.alloca" in compiled.text


@pytest.mark.parametrize("k", [17, 31, 32, 33, 49])
def test_edges(k):
    types = [f"memref<?x{k}xf32>", f"memref<?x{k}x16xf32>", memref((0, 0), dynamic=True)]
    compiled = contraction(PACKED, "ppr", types)
    assert is_blocked(compiled)
    for m in (0, 1, 6, 18, 19, 23, 24, 25, 36, 37, 53):
        for n in (1, 15, 16, 17, 31, 32, 33, 64, 71):
            a, b, c = random((m, k)), random((k, n), seed=1), np.full((m, n), 9, np.float32)
            compiled(a, packed(b, 16), c)
            close(c, a, b)


@pytest.mark.parametrize("bits", [128, 256, 512])
@pytest.mark.parametrize(("m", "n"), [(25, 64), (47, 37), (96, 100), (19, 16), (67, 96)])
def test_static_sizes(m, n, bits):
    a, b, c = random((m, 37)), random((37, n), seed=1), np.full((m, n), 9, np.float32)
    compiled = contraction(PACKED, "ppr", [memref(x.shape) for x in (a, packed(b, 16), c)], target=narrower(bits))
    assert is_blocked(compiled)
    compiled(a, packed(b, 16), c)
    close(c, a, b)


@pytest.mark.parametrize(
    ("rows", "target", "height"), [(128, "znver3", 128), (129, "znver3", 66), (197, "znver4", 104), (1024, "znver4", 128)]
)
def test_blocks_of_rows_are_of_similar_height(rows, target, height, monkeypatch):
    """Threads get as many."""
    tune(monkeypatch, block_rows=128)
    assert plan_contraction(ContractionShape(rows, 4096, 4096), Target.parse(f"cpu:{target}")).blocks.rows == height


def test_few_rows_and_a_short_k_have_no_blocks():
    for m, k in ((18, 64), (30, 16)):
        types = [memref((m, k)), memref((2, k, 16)), memref((m, 32))]
        assert not is_blocked(contraction(PACKED, "ppr", types, target=narrower(256)))


@pytest.mark.parametrize("element", ["f64", "bf16", "i8"])
def test_element_types(element):
    m, n, k = 29, 41, 40
    if element == "f64":
        body, wide = MULTIPLY_ADD.replace("f32", "f64"), "f64"
    else:
        widen, wide = ("extsi", "i32") if element == "i8" else ("extf", "f32")
        body = WIDEN.format(widen=widen, narrow=element, wide=wide, kind=wide[0])
    a, b, c = random((m, k), element), random((k, n), element, 1), np.ones((m, n), NUMPY[wide])
    types = [memref(a.shape, element), memref(packed(b, 16).shape, element), memref(c.shape, wide)]
    compiled = contraction(PACKED, "ppr", types, body)
    assert is_blocked(compiled)
    compiled(a, packed(b, 16), c)
    close(c, a, b)


def test_a_factor_that_is_cast():
    body = "  %w = arith.sitofp %x1 : i8 to f32\n" + MULTIPLY_ADD.replace("%x0, %x1", "%x0, %w")
    a, b, c = random((25, 40)), random((40, 41), "i8", 1), np.ones((25, 41), np.float32)
    types = [memref(a.shape), memref(packed(b, 16).shape, "i8"), memref(c.shape)]
    compiled = contraction(PACKED, "ppr", types, body)
    assert is_blocked(compiled)
    compiled(a, packed(b, 16), c)
    close(c, a, b)


def test_batches_and_an_unpacked_matrix():
    loops = "(b, m, n, k)"
    maps = [f"{loops} -> (b, m, k)", f"{loops} -> (b, k, n)", f"{loops} -> (b, m, n)"]
    a, b, c = random((3, 25, 40)), random((3, 40, 41), seed=1), np.ones((3, 25, 41), np.float32)
    compiled = contraction(maps, "pppr", [memref(x.shape) for x in (a, b, c)])
    assert is_blocked(compiled)
    compiled(a, b, c)
    close(c, a, b)


def test_what_was_there_is_added_to():
    a, b, c = random((25, 40)), random((40, 41), seed=1), random((25, 41), seed=2)
    want = c + a @ b
    types = [memref(x.shape) for x in (a, packed(b, 16), c)]
    Compiled(function(types, generic(PACKED, "ppr", types, MULTIPLY_ADD, MARK)))(a, packed(b, 16), c)
    np.testing.assert_allclose(c, want, atol=1e-4)


@pytest.mark.parametrize("rows", [25, "?"])
def test_an_epilogue(rows):
    a, b, bias, out = random((25, 40)), random((40, 41), seed=1), random((41,), seed=2), np.zeros((25, 41), np.float32)
    body = "  %s = arith.addf %x0, %x1 : f32\n  linalg.yield %s : f32"
    types = [f"memref<{rows}x40xf32>", memref(packed(b, 16).shape), memref(bias.shape), f"memref<{rows}x41xf32>"]
    compiled = with_epilogue(PACKED, types, body, ["(m, n) -> (m, n)", "(m, n) -> (n)", "(m, n) -> (m, n)"])
    compiled(a, packed(b, 16), bias, out)
    close(out - bias, a, b)
    assert "malloc" not in compiled.text


def test_rows_that_are_columns_of_a_matrix():
    """Their elements are no neighbours: a copy gathers them."""
    maps = ["(m, n, k) -> (k, m)", *PACKED[1:]]
    a, b, c = random((40, 25)), random((40, 41), seed=1), np.full((25, 41), 9, np.float32)
    compiled = contraction(maps, "ppr", [memref(x.shape) for x in (a, packed(b, 16), c)])
    assert is_blocked(compiled)
    compiled(a, packed(b, 16), c)
    close(c, a.T, b)


@pytest.mark.parametrize("rows", [26, 29, "m"])
@pytest.mark.parametrize("weights", ["bf16", "int8", "int4"])
def test_narrow_weights(weights, rows, monkeypatch):
    """Widened as they are, or computed once per block; 71 columns are no whole panels, 160 steps no whole blocks of any."""
    builder = rx.Builder()
    with builder.function("main"):
        x, w = builder.input("x", (rows, 160), "f32"), builder.weight("w", (160, 71), "f32")
        builder.output(builder.relu(builder.matmul(x, w)))
    module, b, made = builder.build(), random((160, 71), seed=1), []
    for tunings in (dict(TUNINGS), WHOLE):
        monkeypatch.setattr(tuning, "TUNINGS", tunings)
        executable = rx.compile(module, weights=weights, cache=False)
        made.append(executable.bind(executable.prepare({"w": b})))
    plans = [k.plan for e in made for s in e.report.sections if s.kind == "kernels" for k in s.kernels if k.plan]
    # Tile registers multiply bf16 and bytes where the processor has them, and take no blocks.
    in_vectors = [plan for plan in plans if "sums=" in plan and "matrix=" not in plan]
    instruction = {"bf16": "llvm.x86.tdpbf16ps", "int8": "llvm.x86.tdpbsud"}.get(weights)
    has_tiles = instruction is not None and Target.host().multiplies_tiles(instruction)
    assert ["blocks=" in plan for plan in in_vectors] == ([] if has_tiles else [True, False])
    for count in (rows,) if rows != "m" else (0, 1, 5, 13, 29, 53):
        a = random((count, 160))
        in_blocks, whole = (np.asarray(e(a)) for e in made)
        np.testing.assert_allclose(in_blocks, whole, rtol=1e-5, atol=2e-5)


@pytest.mark.parametrize("rows", [200, "m"])
def test_threads_do_not_change_a_bit(rows):
    builder = rx.Builder()
    with builder.function("main"):
        x, w = builder.input("x", (rows, 300), "f32"), builder.weight("w", (300, 101), "f32")
        builder.output(builder.matmul(x, w))
    executable = rx.compile(builder.build())
    a, b = random((200, 300)), random((300, 101), seed=1)
    executable.bind(executable.prepare({"w": b}))
    results = []
    for threads in (1, 2):
        executable.threads = threads
        results.append(np.asarray(executable(a)).copy())
    np.testing.assert_array_equal(*results)
    close(results[0], a, b)

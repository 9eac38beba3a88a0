"""Bodies that use loop indices and read buffers themselves: gather, concat, padding, masks."""

import numpy as np
import pytest

from support.guard_pages import ChildError, guarded, in_child
from support.kernel_harness import Compiled, function, generic, memref, narrower, random

SAME = "(i, j) -> (i, j)"
STATIC_AND_DYNAMIC = pytest.mark.parametrize("dynamic", [False, True])


@STATIC_AND_DYNAMIC
@pytest.mark.parametrize("columns", [1, 16, 100])
def test_gather_of_rows(columns, dynamic):
    types = [memref((50, columns), dynamic=dynamic), memref((9,), "i64", dynamic), memref((9, columns), dynamic=dynamic)]
    body = f"""
      %j = linalg.index 1 : index
      %i = arith.index_cast %x0 : i64 to index
      %v = memref.load %a0[%i, %j] : {types[0]}
      linalg.yield %v : f32"""
    text = function(types, generic(["(i, j) -> (i)", SAME], "pp", types[1:], body, names=["%a1", "%a2"]))
    table, ids, out = random((50, columns)), np.random.default_rng(0).integers(0, 50, 9), np.zeros((9, columns), np.float32)
    Compiled(text)(table, ids, out)
    np.testing.assert_array_equal(out, table[ids])


@STATIC_AND_DYNAMIC
def test_gather_along_the_last_dimension(dynamic):
    types = [memref((6, 50), dynamic=dynamic), memref((21,), "i32", dynamic), memref((6, 21), dynamic=dynamic)]
    body = f"""
      %i = linalg.index 0 : index
      %j = arith.index_cast %x0 : i32 to index
      %v = memref.load %a0[%i, %j] : {types[0]}
      linalg.yield %v : f32"""
    text = function(types, generic(["(i, j) -> (j)", SAME], "pp", types[1:], body, names=["%a1", "%a2"]))
    table, out = random((6, 50)), np.zeros((6, 21), np.float32)
    ids = np.random.default_rng(0).integers(0, 50, 21).astype(np.int32)
    Compiled(text)(table, ids, out)
    np.testing.assert_array_equal(out, table[:, ids])


def test_gather_from_an_empty_table_into_an_empty_result_reads_nothing():
    types = [memref((0, 0), dynamic=True), memref((0, 0), dynamic=True)]
    body = f"""
      %v = memref.load %a0[%c0, %c0] : {types[0]}
      linalg.yield %v : f32"""
    text = function(types, "%c0 = arith.constant 0 : index\n" + generic([SAME], "pp", types[1:], body, names=["%a1"]))
    table, out = guarded((0, 5), np.float32), guarded((3, 0), np.float32)
    compiled = Compiled(text)
    assert in_child(lambda: (compiled(table, out), out.shape)[1]) == (3, 0)
    one = guarded((3, 1), np.float32)
    with pytest.raises(ChildError, match="SIGSEGV"):  # what reads the table dies
        in_child(lambda: (compiled(table, one), one.shape)[1])


@STATIC_AND_DYNAMIC
@pytest.mark.parametrize("transposed", [False, True])
@pytest.mark.parametrize("columns", [5, 31, 64, 70])
def test_packing_with_zeros_beyond_the_end(columns, transposed, dynamic):
    panels, depth = -(-columns // 32), 9
    shape = (columns, depth) if transposed else (depth, columns)
    source = memref(shape, dynamic=dynamic)
    target = "memref<?x?x32xf32>" if dynamic else memref((panels, depth, 32))
    body = f"""
      %p = linalg.index 0 : index
      %k = linalg.index 1 : index
      %t = linalg.index 2 : index
      %first = arith.muli %p, %c32 : index
      %column = arith.addi %first, %t : index
      %inside = arith.cmpi slt, %column, %width : index
      %clamped = arith.select %inside, %column, %last : index
      %v = memref.load %a0[{"%clamped, %k" if transposed else "%k, %clamped"}] : {source}
      %r = arith.select %inside, %v, %zero : f32
      linalg.yield %r : f32"""
    head = f"""
      %c1 = arith.constant 1 : index
      %c32 = arith.constant 32 : index
      %axis = arith.constant {0 if transposed else 1} : index
      %zero = arith.constant 0.0 : f32
      %width = memref.dim %a0, %axis : {source}
      %last = arith.subi %width, %c1 : index
      """
    nest = generic(["(p, k, t) -> (p, k, t)"], "ppp", [target], body, names=["%a1"])
    x, out = random(shape), np.ones((panels, depth, 32), np.float32)
    Compiled(function([source, target], head + nest))(x, out)
    padded = np.zeros((panels * 32, depth), np.float32)
    padded[:columns] = x if transposed else x.T
    np.testing.assert_array_equal(out, padded.reshape(panels, 32, depth).transpose(0, 2, 1))


@STATIC_AND_DYNAMIC
@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("lengths", [(1, 1), (5, 20), (16, 16), (40, 33)])
def test_concat_by_clamped_indices(lengths, axis, dynamic):
    shapes = [(7, n) if axis else (n, 7) for n in (*lengths, sum(lengths))]
    types = [memref(s, dynamic=dynamic) for s in shapes]
    along = "%j" if axis else "%i"
    low, high = ("%i, %low", "%i, %high") if axis else ("%low, %j", "%high, %j")
    body = f"""
      %i = linalg.index 0 : index
      %j = linalg.index 1 : index
      %low = arith.minsi {along}, %last : index
      %rest = arith.subi {along}, %length : index
      %high = arith.maxsi %rest, %c0 : index
      %first = arith.cmpi slt, {along}, %length : index
      %v = memref.load %a0[{low}] : {types[0]}
      %w = memref.load %a1[{high}] : {types[1]}
      %r = arith.select %first, %v, %w : f32
      linalg.yield %r : f32"""
    head = f"""
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %axis = arith.constant {axis} : index
      %length = memref.dim %a0, %axis : {types[0]}
      %last = arith.subi %length, %c1 : index
      """
    x, y, out = random(shapes[0]), random(shapes[1], seed=1), np.ones(shapes[2], np.float32)
    Compiled(function(types, head + generic([SAME], "pp", types[2:], body, names=["%a2"])))(x, y, out)
    np.testing.assert_array_equal(out, np.concatenate([x, y], axis))


@STATIC_AND_DYNAMIC
@pytest.mark.parametrize(
    ("predicate", "compare"), [("sle", np.less_equal), ("slt", np.less), ("sgt", np.greater), ("sge", np.greater_equal)]
)
def test_causal_masks(predicate, compare, dynamic):
    types = [memref((33, 70), dynamic=dynamic)] * 2
    body = f"""
      %i = linalg.index 0 : index
      %j = linalg.index 1 : index
      %c = arith.cmpi {predicate}, %j, %i : index
      %m = arith.cmpi {predicate}, %i, %j : index
      %v = arith.select %c, %x0, %low : f32
      %w = arith.select %m, %v, %one : f32
      linalg.yield %w : f32"""
    head = "%low = arith.constant -1.0e38 : f32\n%one = arith.constant 1.0 : f32\n"
    x, out = random((33, 70)), np.zeros((33, 70), np.float32)
    Compiled(function(types, head + generic([SAME] * 2, "pp", types, body)))(x, out)
    i, j = np.indices((33, 70))
    np.testing.assert_array_equal(out, np.where(compare(i, j), np.where(compare(j, i), x, np.float32(-1e38)), np.float32(1)))


@pytest.mark.parametrize("bits", [128, 256, None])
@pytest.mark.parametrize(
    ("expression", "reference"),
    [
        ("d0 floordiv 3", lambda i: i // 3),
        ("d0 mod 7", lambda i: i % 7),
        ("39 - d0", lambda i: 39 - i),
        ("d0 + 2", lambda i: i + 2),
        ("(d0 * 5) mod 40", lambda i: i * 5 % 40),
    ],
)
def test_affine_apply_as_index(expression, reference, bits):
    types = [memref((40,)), memref((37,), dynamic=True)]
    body = f"""
      %i = linalg.index 0 : index
      %k = affine.apply affine_map<(d0) -> ({expression})>(%i)
      %v = memref.load %a0[%k] : {types[0]}
      linalg.yield %v : f32"""
    x, out = random((40,)), np.zeros(37, np.float32)
    text = function(types, generic(["(i) -> (i)"], "p", types[1:], body, names=["%a1"]))
    Compiled(text, narrower(bits) if bits else None)(x, out)
    np.testing.assert_array_equal(out, x[reference(np.arange(37))])


@STATIC_AND_DYNAMIC
def test_numbers_made_from_indices(dynamic):
    types = [memref((5, 37), dynamic=dynamic)]
    body = """
      %i = linalg.index 0 : index
      %j = linalg.index 1 : index
      %a = arith.muli %j, %c3 : index
      %b = arith.subi %a, %i : index
      %c = arith.index_cast %b : index to i64
      %d = arith.sitofp %c : i64 to f32
      linalg.yield %d : f32"""
    out = np.zeros((5, 37), np.float32)
    Compiled(function(types, "%c3 = arith.constant 3 : index\n" + generic([SAME], "pp", types, body)))(out)
    i, j = np.indices((5, 37))
    np.testing.assert_array_equal(out, 3 * j - i)


@pytest.mark.parametrize("bits", [128, None])
@pytest.mark.parametrize("stride", [1, 2])
@pytest.mark.parametrize("width", [3, 5, 16, 28, 41])
def test_windows_of_a_padded_image(width, stride, bits):
    """im2col: the window's row and column come from a division of the loop index, the padding from clamped indices."""
    height, pad = 4, 1
    columns = (width + 2 * pad - 3) // stride + 1
    rows = (height + 2 * pad - 3) // stride + 1
    panels = -(-rows * columns // 32)
    types = [memref((2, height, width)), memref((panels, 18, 32))]
    body = f"""
      %p = linalg.index 0 : index
      %tap = linalg.index 1 : index
      %lane = linalg.index 2 : index
      %0 = arith.muli %p, %c32 : index
      %window = arith.addi %0, %lane : index
      %within = arith.remsi %tap, %c9 : index
      %channel = arith.divsi %tap, %c9 : index
      %u = arith.divsi %within, %c3 : index
      %v = arith.remsi %within, %c3 : index
      %y = arith.divsi %window, %columns : index
      %x = arith.remsi %window, %columns : index
      %in = arith.cmpi slt, %window, %windows : index
      %1 = arith.muli %y, %stride : index
      %2 = arith.addi %1, %u : index
      %row = arith.subi %2, %c1 : index
      %3 = arith.muli %x, %stride : index
      %4 = arith.addi %3, %v : index
      %column = arith.subi %4, %c1 : index
      %5 = arith.cmpi sge, %row, %c0 : index
      %6 = arith.cmpi sle, %row, %last_row : index
      %7 = arith.cmpi sge, %column, %c0 : index
      %8 = arith.cmpi sle, %column, %last_column : index
      %9 = arith.andi %in, %5 : i1
      %10 = arith.andi %9, %6 : i1
      %11 = arith.andi %10, %7 : i1
      %inside = arith.andi %11, %8 : i1
      %12 = arith.minsi %row, %last_row : index
      %13 = arith.maxsi %12, %c0 : index
      %14 = arith.minsi %column, %last_column : index
      %15 = arith.maxsi %14, %c0 : index
      %value = memref.load %a0[%channel, %13, %15] : {types[0]}
      %result = arith.select %inside, %value, %zero : f32
      linalg.yield %result : f32"""
    numbers = {
        "c0": 0, "c1": 1, "c3": 3, "c9": 9, "c32": 32, "columns": columns, "windows": rows * columns, "stride": stride,
        "last_row": height - 1, "last_column": width - 1,
    }  # fmt: skip
    head = "%zero = arith.constant 0.0 : f32\n" + "".join(
        f"%{name} = arith.constant {number} : index\n" for name, number in numbers.items()
    )
    nest = generic(["(p, k, t) -> (p, k, t)"], "ppp", types[1:], body, names=["%a1"])
    x, out = random((2, height, width)), np.ones((panels, 18, 32), np.float32)
    Compiled(function(types, head + nest), narrower(bits) if bits else None)(x, out)
    padded = np.pad(x, ((0, 0), (1, 1), (1, 1)))
    views = np.lib.stride_tricks.sliding_window_view(padded, (3, 3), (1, 2))[:, ::stride, ::stride]
    taps = views.transpose(0, 3, 4, 1, 2).reshape(18, rows * columns)
    expected = np.zeros((18, panels * 32), np.float32)
    expected[:, : rows * columns] = taps
    np.testing.assert_array_equal(out, expected.reshape(18, panels, 32).transpose(1, 0, 2))


@pytest.mark.parametrize("operation", ["minsi", "maxsi"])
@pytest.mark.parametrize("bound", [-(2**63), -1, 0, 5, 20, 2**63 - 1])
def test_extremes_of_an_index_and_far_bounds(operation, bound):
    types = [memref((37,), "i64")]
    body = f"""
      %i = linalg.index 0 : index
      %j = arith.index_cast %i : index to i64
      %k = arith.{operation} %j, %bound : i64
      %less = arith.cmpi sle, %j, %bound : i64
      %one = arith.extui %less : i1 to i64
      %r = arith.xori %k, %one : i64
      linalg.yield %r : i64"""
    out = np.zeros(37, np.int64)
    head = f"%bound = arith.constant {bound} : i64\n"
    Compiled(function(types, head + generic(["(i) -> (i)"], "p", types, body)))(out)
    lanes = np.arange(37)
    chosen = (np.minimum if operation == "minsi" else np.maximum)(lanes, bound)
    np.testing.assert_array_equal(out, chosen ^ (lanes <= bound))


def test_small_integers_made_from_indices_wrap_around():
    types = [memref((300,), "i8")]
    body = """
      %i = linalg.index 0 : index
      %j = arith.muli %i, %c3 : index
      %k = arith.index_cast %j : index to i8
      linalg.yield %k : i8"""
    out = np.zeros(300, np.int8)
    Compiled(function(types, "%c3 = arith.constant 3 : index\n" + generic(["(i) -> (i)"], "p", types, body)))(out)
    np.testing.assert_array_equal(out, (np.arange(300) * 3).astype(np.int8))

"""Gathers and slices keep their meaning when lowered; indices and bounds out of range fail a run-time check."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from relaxir.dialect.errors import RelaxError
from support.naive import Case, check, lowered, module_of, run_linalg


@pytest.mark.parametrize("dtype", ["i32", "i64", "i8"])
def test_take(dtype: str) -> None:
    kind = {"i32": np.int32, "i64": np.int64, "i8": np.int8}[dtype]
    given = {1: np.array([[0, 2, -1], [1, -3, 2]], kind)}
    check(
        Case("take", ["3, 5:f32", f"2, 3:{dtype}"], "2, 3, 5:f32", values=given),
        Case("take", ["5, 3:f32", f"2, 3:{dtype}"], "5, 2, 3:f32", "axis = 1 : i64", given),
        Case("take", ["5, 3, 4:bf16", f"2, 3:{dtype}"], "5, 2, 3, 4:bf16", "axis = -2 : i64", given),
        Case("take", ["m, 5:f32", f"n, 3:{dtype}"], "n, 3, 5:f32", values=given),
        Case("take", ["3:f32", f":{dtype}"], ":f32", values={1: np.array(-2, kind)}),
        n=2, m=3,
    )  # fmt: skip


@pytest.mark.parametrize("dtype", ["i32", "i64", "i8"])
def test_packed_take(dtype: str) -> None:
    kind = {"i32": np.int32, "i64": np.int64, "i8": np.int8}[dtype]
    given = {1: np.array([[0, 6, -1], [4, -7, 3]], kind)}
    check(
        Case("packed_take", ["2, 5, 4:f32", f"2, 3:{dtype}"], "2, 3, 5:f32", 'layout = "tile 4", n = 7 : i64', given),
        Case("packed_take", ["1, 5, 16:bf16", f"2, 3:{dtype}"], "2, 3, 5:bf16", 'layout = "tile 16", n = 7 : i64', given),
        Case("packed_take", ["2, 5, 4:i8", f"n, 3:{dtype}"], "n, 3, 5:i8", 'layout = "tile 4", n = 7 : i64', given),
        Case("packed_take", ["7, 5, 1:f32", f":{dtype}"], "5:f32", 'layout = "tile 1", n = 7 : i64', {1: np.array(-2, kind)}),
        n=2,
    )


def test_packed_take_out_of_range_fails_a_check() -> None:
    text = module_of([Case("packed_take", ["2, 5, 4:f32", "2:i64"], "2, 5:f32", 'layout = "tile 4", n = 7 : i64')])
    x = np.ones((2, 5, 4), np.float32)
    for indices, failed in (([0, 6], []), ([0, 7], [0]), ([-8, 0], [0])):
        assert run_linalg(lowered(text), [x, np.array(indices, np.int64)]).failed == failed
    assert "expected indices in [-7, 7)" in str(lowered(text).operation.attributes["relax.checks"])


def test_take_with_unsigned_indices() -> None:
    given = {1: np.array([0, 200, 255], np.uint8)}
    check(Case("take", ["256, 2:i1", "3:ui8"], "3, 2:i1", values=given))


def test_take_out_of_range_fails_a_check() -> None:
    text = module_of([Case("take", ["3, 5:f32", "2:i64"], "2, 5:f32")])
    x = np.ones((3, 5), np.float32)
    for indices, failed in (([0, 2], []), ([0, 3], [0]), ([-4, 0], [0]), ([-3, 1], [])):
        assert run_linalg(lowered(text), [x, np.array(indices, np.int64)]).failed == failed
    assert "expected indices in [-3, 3)" in str(lowered(text).operation.attributes["relax.checks"])


@pytest.mark.parametrize(
    ("op", "operands", "result", "attrs", "bad"),
    [
        ("take", ["3, 5:f32", "2:i64"], "2, 5:f32", "axis = 0 : i64", [0, -1]),
        ("packed_take", ["2, 5, 4:f32", "2:i64"], "2, 5:f32", 'layout = "tile 4", n = 7 : i64', [0, -1]),
        ("gather_elements", ["3, 2:f32", "1, 2:i64"], "1, 2:f32", "axis = 0 : i64", [[0, -1]]),
        ("gather_nd", ["3, 5:f32", "2, 1:i64"], "2, 5:f32", "batch_dims = 0 : i64", [[0], [-1]]),
        ("index_copy", ["3, 5:f32", "2:i64", "2, 5:f32"], "3, 5:f32", "axis = 0 : i64", [0, -1]),
        ("scatter_elements", ["3, 2:f32", "1, 2:i64", "1, 2:f32"], "3, 2:f32", "axis = 0 : i64", [[0, -1]]),
    ],
)
def test_a_negative_index_fails_a_check_where_it_does_not_count_from_the_end(
    op: str, operands: list[str], result: str, attrs: str, bad: list[Any]
) -> None:  # fmt: skip
    text, bounds = module_of([Case(op, operands, result, f"{attrs}, wrap_negative_indices = false")]), np.array(bad)
    shapes = [[int(n) for n in o.split(":")[0].split(",") if n] for o in operands]
    others = [np.ones(shape, np.float32) for shape in shapes]
    for indices, failed in ((bounds, [0]), (abs(bounds), [])):
        assert run_linalg(lowered(text), [others[0], indices, *others[2:]]).failed == failed
    assert "expected indices in [0, " in str(lowered(text).operation.attributes["relax.checks"])


def test_a_constant_index_is_checked_when_lowering() -> None:
    text = """
    func.func @main(%x: tensor<3x5xf32>) -> tensor<5xf32> {
      %i = "relax.constant"() {value = dense<3> : tensor<i64>} : () -> tensor<i64>
      %0 = "relax.take"(%x, %i) : (tensor<3x5xf32>, tensor<i64>) -> tensor<5xf32>
      return %0 : tensor<5xf32>
    }"""
    with pytest.raises(RelaxError, match=r"'relax.take' op expected indices in \[-3, 3\), got 3"):
        lowered(text)
    assert "relax_check" not in str(lowered(text.replace("dense<3>", "dense<-3>")))


def test_gather_elements() -> None:
    rng = np.random.default_rng(1)
    given = {1: rng.integers(-3, 3, (2, 4))}
    check(
        Case("gather_elements", ["3, 4:f32", "2, 4:i64"], "2, 4:f32", values=given),
        Case("gather_elements", ["2, 3:f32", "2, 4:i64"], "2, 4:f32", "axis = 1 : i64", given),
        Case("gather_elements", ["n, 3:f32", "n, 4:i64"], "n, 4:f32", "axis = -1 : i64", given),
        n=2,
    )


def test_gather_nd() -> None:
    rng = np.random.default_rng(1)
    pairs, singles = rng.integers(-2, 2, (3, 2)), rng.integers(-3, 3, (2, 4, 1))
    check(
        Case("gather_nd", ["2, 3, 4:f32", "3, 2:i64"], "3, 4:f32", values={1: pairs}),
        Case("gather_nd", ["2, 2:f32", "3, 2:i64"], "3:f32", values={1: pairs}),
        Case("gather_nd", ["2, 3, 4:f32", "2, 4, 1:i64"], "2, 4, 4:f32", "batch_dims = 1 : i64", {1: singles}),
        Case("gather_nd", ["2, 3:f32", "4, 0:i64"], "4, 2, 3:f32"),
        Case("gather_nd", ["n, 3, 4:f32", "n, 4, 1:i64"], "n, 4, 4:f32", "batch_dims = 1 : i64", {1: singles}),
        n=2,
    )


@pytest.mark.parametrize("dtype", ["f32", "i1", "bf16"])
def test_index_copy(dtype: str) -> None:
    given = {1: np.array([2, -3])}
    check(
        Case("index_copy", [f"3, 5:{dtype}", "2:i64", f"2, 5:{dtype}"], f"3, 5:{dtype}", values=given),
        Case("index_copy", [f"2, 3, 4:{dtype}", "2:i32", f"2, 2, 4:{dtype}"], f"2, 3, 4:{dtype}", "axis = 1 : i64",
             {1: np.array([2, -3], np.int32)}),
        Case("index_copy", [f"5, 3:{dtype}", "2:i64", f"5, 2:{dtype}"], f"5, 3:{dtype}", "axis = -1 : i64", given),
        Case("index_copy", [f"m, 5:{dtype}", "n:i64", f"n, 5:{dtype}"], f"m, 5:{dtype}", values=given),
        Case("index_copy", [f"3, 2:{dtype}", "2:i64", f"2, 2:{dtype}"], f"3, 2:{dtype}", values={1: np.array([1, 1])}),
        Case("index_copy", [f"3, 2:{dtype}", "0:i64", f"0, 2:{dtype}"], f"3, 2:{dtype}"),
        Case("index_copy", [f"1, 2:{dtype}", "n:ui32", f"n, 2:{dtype}"], f"1, 2:{dtype}", values={1: np.zeros(2, np.uint32)}),
        n=2, m=3,
    )  # fmt: skip


def test_index_copy_checks_its_positions() -> None:
    text = module_of([Case("index_copy", ["3, 5:f32", "2:i64", "2, 5:f32"], "3, 5:f32")])
    x, values = np.ones((3, 5), np.float32), np.ones((2, 5), np.float32)
    for indices, failed in (([0, 2], []), ([0, 3], [0]), ([-4, 0], [0])):
        assert run_linalg(lowered(text), [x, np.array(indices, np.int64), values]).failed == failed


END = "9223372036854775807"


def sliced(x: str, result: str, axes: str, begin: str, end: str, strides: str = "") -> Case:
    attributes = f"axes = array<i64: {axes}>, begin = [{begin}], end = [{end}]"
    return Case(
        "strided_slice", [f"{x}:f32"], f"{result}:f32", attributes + (f", strides = array<i64: {strides}>" if strides else "")
    )


def test_strided_slice() -> None:
    check(
        Case("negative", ["n, m:f32"], "n, m:f32"),
        sliced("6, 5", "3, 5", "0", "1", "4"),
        sliced("6, 5", "2, 3", "0, 1", "-3, 0", "-1, 5", "1, 2"),
        sliced("6, 5", "6, 2", "-1", "3", "100"),
        sliced("6, 5", "0, 5", "0", "4", "2"),
        sliced("6, 5", "6, 5", "0", "-100", END),
        sliced("n, 5", "n - 1, 5", "0", "1", END),
        sliced("n, 5", "1, 5", "0", "0", "1"),
        sliced("n, 5", "n, 2", "1", "1", "3"),
        sliced("n, 5", "1, 5", "0", "-1", END),
        sliced("n, 5", "n - 1, 5", "0", "0", "-1"),
        sliced("n, 5", "(n + 1) // 2, 5", "0", "0", END, "2"),
        sliced("n, 5", "n - m, 5", "0", '"m"', '"n"'),
        sliced("9, 5", "m, 5", "0", "0", '"m"'),
        sliced("n + 2, n", "2, n", "0", '"n"', '"n + 2"'),
        sliced("n, n + m", "n, m", "1", '"n"', '"n + m"'),
        sliced("n, n + m", "n, (m + 1) // 2", "1", '"n"', '"n + m"', "2"),
        n=6,
        m=3,
    )


def test_bounds_outside_fail_a_check() -> None:
    text = module_of([Case("negative", ["n:f32"], "n:f32"), sliced("9", "n", "0", "0", '"n"')])
    assert not run_linalg(lowered(text), [np.ones(4, np.float32), np.ones(9, np.float32)]).failed
    assert "expected a slice inside of dimension 0" in str(lowered(text).operation.attributes["relax.checks"])


def test_static_slices_need_no_check() -> None:
    assert "relax_check" not in str(lowered(module_of([sliced("6, 5", "3, 5", "0", "1", "4")])))


@pytest.mark.parametrize("reduction", ["update", "add", "mul", "min", "max"])
@pytest.mark.parametrize("dtype", ["f32", "bf16", "i8", "ui8", "i4"])
def test_scatter_elements(dtype: str, reduction: str) -> None:
    given = {1: np.random.default_rng(2).integers(-3, 3, (7, 2))}
    attributes = f'axis = 0 : i64, reduction = "{reduction}"'
    check(Case("scatter_elements", [f"3, n:{dtype}", "7, n:i64", f"7, n:{dtype}"], f"3, n:{dtype}", attributes, given), n=2)


@pytest.mark.parametrize("reduction", ["update", "add", "mul", "min", "max"])
@pytest.mark.parametrize("dtype", ["f32", "bf16", "i8", "ui8", "i4"])
def test_scatter_elements_by_one_index_for_a_row(dtype: str, reduction: str) -> None:
    """Indices of size one besides the axis: whole rows, and elements where the axis is last or some are of full size."""
    rng = np.random.default_rng(2)
    for axis, shape in ((0, "7, 1, 1"), (1, "1, 7, 1"), (2, "1, 1, 7"), (1, "2, 7, 1"), (0, "7, 1, 3")):
        sizes = [int(n) for n in shape.split(",")]
        x = [2, 2, 3]
        updates = [7 if d == axis else n for d, n in enumerate(x)]
        x[axis] = 3
        types = [", ".join(map(str, n)) for n in (x, updates)]
        given = {1: rng.integers(-3, 3, sizes)}
        attributes = f'axis = {axis} : i64, reduction = "{reduction}"'
        operands = [f"{types[0]}:{dtype}", f"{shape}:i64", f"{types[1]}:{dtype}"]
        check(Case("scatter_elements", operands, f"{types[0]}:{dtype}", attributes, given))
    check(
        Case(
            "scatter_elements",
            ["1, n:f32", "4, 1:i64", "4, n:f32"],
            "1, n:f32",
            'reduction = "add"',
            {1: np.zeros((4, 1), np.int64)},
        ),
        n=5,
    )


def test_scatter_elements_of_nothing() -> None:
    check(Case("scatter_elements", ["3, n:f32", "0, n:i64", "0, n:f32"], "3, n:f32"), n=2)
    check(Case("scatter_elements", ["3, n:f32", "2, n:i32", "2, n:f32"], "3, n:f32"), n=0)

"""Results whose sizes data decides: slices by elements, on a CPU and an emulated GPU, and in artifacts."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import relaxir as rx
from relaxir import RelaxError

TEXT = """
func.func @main(%x: tensor<?x6xf32, {sym = ["n"]}>, %begin: tensor<2xi64>, %end: tensor<2xi64>)
    -> (tensor<?x?xf32, {sym = ["u", "v"]}> {relax.name = "part"}, tensor<?xf32, {sym = ["v"]}> {relax.name = "sums"})
    attributes {relax.num_input = 3 : i64} {
  %0 = "relax.dynamic_strided_slice"(%x, %begin, %end) {axes = array<i64: 0, 1>, strides = array<i64: 1, 2>}
      : (tensor<?x6xf32, {sym = ["n"]}>, tensor<2xi64>, tensor<2xi64>) -> tensor<?x?xf32>
  %1 = "relax.match_cast"(%0) : (tensor<?x?xf32>) -> tensor<?x?xf32, {sym = ["u", "v"]}>
  %2 = "relax.negative"(%1) : (tensor<?x?xf32, {sym = ["u", "v"]}>) -> tensor<?x?xf32, {sym = ["u", "v"]}>
  %3 = "relax.sum"(%2) {axis = array<i64: 0>} : (tensor<?x?xf32, {sym = ["u", "v"]}>) -> tensor<?xf32, {sym = ["v"]}>
  return %2, %3 : tensor<?x?xf32, {sym = ["u", "v"]}>, tensor<?xf32, {sym = ["v"]}>
}
"""

#: Rows and columns from where to where: inside, behind the end, from the end, none.
BOUNDS = [((1, 0), (3, 6)), ((0, 1), (100, 5)), ((-3, -5), (-1, 2**62)), ((4, 0), (2, 6)), ((-(2**62), 5), (2, 5))]


@pytest.fixture(scope="module")
def module() -> rx.Module:
    return rx.Module.parse(TEXT)


@pytest.fixture(scope="module")
def exe(module: rx.Module) -> rx.Executable:
    return rx.compile(module)


def numbers(rows: int) -> np.ndarray:
    return np.arange(rows * 6, dtype=np.float32).reshape(rows, 6)


def assert_as_python(exe: rx.Executable, rows: int, begin: tuple[int, int], end: tuple[int, int]) -> None:
    part, sums = exe(numbers(rows), np.array(begin), np.array(end))
    wanted = -numbers(rows)[begin[0] : end[0], begin[1] : end[1] : 2]
    np.testing.assert_array_equal(part, wanted)
    np.testing.assert_array_equal(sums, wanted.sum(0))


@pytest.mark.parametrize("bounds", BOUNDS)
def test_slices_are_pythons(module: rx.Module, exe: rx.Executable, bounds: tuple[tuple[int, int], tuple[int, int]]) -> None:
    begin, end = bounds
    assert_as_python(exe, 5, begin, end)
    assert_as_python(exe, 1, begin, end)
    (part, _) = rx.evaluate(module, "main", numbers(5), np.array(begin), np.array(end))
    np.testing.assert_array_equal(part, -numbers(5)[begin[0] : end[0], begin[1] : end[1] : 2])


def test_on_an_emulated_gpu(module: rx.Module) -> None:
    exe = rx.compile(module, "cuda:sm_80", device="emulated")
    for begin, end in BOUNDS[:2]:
        assert_as_python(exe, 5, begin, end)


def test_an_artifact_says_how_large_results_can_be(exe: rx.Executable, tmp_path: Path) -> None:
    exe.save(tmp_path / "model.relax")
    loaded = rx.load(tmp_path / "model.relax")
    entry = loaded.entries["main"]
    assert [r.name for r in entry.results] == ["part", "sums"]
    assert "part: at most f32[n, 3], sums: at most f32[3]" in str(entry)
    assert_as_python(loaded, 4, *BOUNDS[0])


def test_memory_for_them_is_nothing_that_a_caller_has(exe: rx.Executable) -> None:
    given = np.zeros((5, 3), np.float32), np.zeros(3, np.float32)
    with pytest.raises(RelaxError, match="expected no memory for results, the size of 'part' is known after the call"):
        exe(numbers(5), np.array([0, 0]), np.array([5, 6]), out=given)

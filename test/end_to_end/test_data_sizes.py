"""Results whose sizes data decides: slices by elements, on a CPU and an emulated GPU, and in artifacts."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import relaxir as rx
from relaxir import RelaxError
from support.guard_pages import guarded_copy, in_child

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


#: What a function makes of a slice whose rows data decides and its type says: nothing, more work, what a region and a loop do.
REST = {
    "returned": "return %0 : tensor<32x4xf32>",
    "computed with": """%1 = "relax.negative"(%0) : (tensor<32x4xf32>) -> tensor<32x4xf32>
        return %1 : tensor<32x4xf32>""",
    "summed": """%s = "relax.sum"(%0) {axis = array<i64: 0>, keepdims = true} : (tensor<32x4xf32>) -> tensor<1x4xf32>
        %1 = "relax.subtract"(%0, %s) : (tensor<32x4xf32>, tensor<1x4xf32>) -> tensor<32x4xf32>
        return %1 : tensor<32x4xf32>""",
    "read later": """%e = "relax.exp"(%x) : (tensor<?x4xf32, {sym = ["n"]}>) -> tensor<?x4xf32, {sym = ["n"]}>
        %s = "relax.max"(%e) {axis = array<i64: 0>, keepdims = true} : (tensor<?x4xf32, {sym = ["n"]}>) -> tensor<1x4xf32>
        %1 = "relax.add"(%0, %s) : (tensor<32x4xf32>, tensor<1x4xf32>) -> tensor<32x4xf32>
        return %1 : tensor<32x4xf32>""",
    "in a loop": """%c0 = arith.constant 0 : index
        %c1 = arith.constant 1 : index
        %c3 = arith.constant 3 : index
        %1 = scf.for %i = %c0 to %c3 step %c1 iter_args(%y = %0) -> tensor<32x4xf32> {
          %2 = "relax.negative"(%y) : (tensor<32x4xf32>) -> tensor<32x4xf32>
          scf.yield %2 : tensor<32x4xf32>
        }
        return %1 : tensor<32x4xf32>""",
}


@pytest.mark.parametrize("target", ["cpu", "cuda:sm_80"])
@pytest.mark.parametrize("rest", list(REST))
def test_a_type_that_promises_more_than_data_gives(rest: str, target: str) -> None:
    """Such a call is refused, and has read nothing outside."""
    module = rx.Module.parse(f"""
      func.func @main(%x: tensor<?x4xf32, {{sym = ["n"]}}>, %begin: tensor<1xi64>, %end: tensor<1xi64>) -> tensor<32x4xf32>
          attributes {{relax.num_input = 3 : i64}} {{
        %0 = "relax.dynamic_strided_slice"(%x, %begin, %end) {{axes = array<i64: 0>}}
            : (tensor<?x4xf32, {{sym = ["n"]}}>, tensor<1xi64>, tensor<1xi64>) -> tensor<32x4xf32>
        {REST[rest]}
      }}""")
    exe = rx.compile(module) if target == "cpu" else rx.compile(module, target, device="emulated")

    def results(rows: int, begin: int, end: int) -> list[Any]:
        x = guarded_copy(np.random.default_rng(0).random((rows, 4), np.float32))
        given = x, np.array([begin]), np.array([end])
        try:
            expected: Any = rx.evaluate(module, "main", *given)[0]
        except RelaxError:
            with pytest.raises(
                RelaxError, match=r"'relax.dynamic_strided_slice' op expected a result of size 32 at dimension 0"
            ):
                exe(*given)
            return []
        np.testing.assert_allclose(exe(*given), expected, rtol=1e-5, atol=1e-6)  # sums of 32 in another order
        return [expected.shape]

    calls = [(0, 0, 32), (1, 0, 1), (5, 4, 5), (31, 0, 32), (32, 1, 32), (100, 99, 200), (40, 4, -4), (32, 0, 32), (32, 0, 99)]
    found = in_child(lambda: [results(*call) for call in calls])
    assert found == [[]] * 6 + [[(32, 4)]] * 3

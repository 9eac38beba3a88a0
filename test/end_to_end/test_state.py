"""Functions that update state: in place, one call after the other, apart for each sequence, and as the reference has it."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import relaxir as rx
from support.stages import lowered

#: Writes a row of a cache, counts the calls, and returns the sum of all rows.
STEP = """
func.func @{name}(%x: tensor<4xf32> {{relax.name = "x"}}, %n: tensor<i64> {{relax.name = "n"}},
                  %i: tensor<1xi64> {{relax.name = "i"}}, %k: tensor<8x4xf32> {{relax.name = "k"}})
    -> (tensor<8x4xf32> {{relax.name = "k"}}, tensor<4xf32> {{relax.name = "y"}}, tensor<i64> {{relax.name = "n"}})
    attributes {{relax.num_input = 4 : i64, relax.state = {{k = dense<0.0> : tensor<8x4xf32>, n = dense<{first}> : tensor<i64>}}}} {{
  %one = "relax.constant"() {{value = dense<1> : tensor<i64>}} : () -> tensor<i64>
  %m = "relax.add"(%n, %one) : (tensor<i64>, tensor<i64>) -> tensor<i64>
  %row = "relax.expand_dims"(%x) {{axis = array<i64: 0>}} : (tensor<4xf32>) -> tensor<1x4xf32>
  %l = "relax.index_copy"(%k, %i, %row) : (tensor<8x4xf32>, tensor<1xi64>, tensor<1x4xf32>) -> tensor<8x4xf32>
  %y = "relax.sum"(%l) {{axis = array<i64: 0>}} : (tensor<8x4xf32>) -> tensor<4xf32>
  return %l, %y, %m : tensor<8x4xf32>, tensor<4xf32>, tensor<i64>
}}"""  # noqa: E501
MODULE = STEP.format(name="main", first=5)


def rows(value: float) -> np.ndarray[Any, Any]:
    return np.full(4, value, np.float32)


def at(position: int) -> np.ndarray[Any, Any]:
    return np.array([position])


@pytest.fixture
def step() -> rx.Executable:
    return rx.compile(rx.Module.parse(MODULE))


def test_calls_follow_the_reference(step: rx.Executable) -> None:
    rng = np.random.default_rng(0)
    k, n = np.zeros((8, 4), np.float32), np.array(5)
    for position in (0, 3, 7, 3, -2):
        x = rng.standard_normal(4, np.float32)
        k, y, n = rx.evaluate(rx.Module.parse(MODULE), "main", x, n, at(position), k)
        np.testing.assert_allclose(step(x, at(position)), y, rtol=1e-6, atol=1e-6)
        np.testing.assert_array_equal(step.state["k"], k)
        assert step.state["n"] == n


def test_each_sequence_has_a_state(step: rx.Executable) -> None:
    other = step.new_state()
    step(rows(1), at(0))
    assert step(rows(2), at(1), state=other).tolist() == [2] * 4
    assert step(i=at(1), x=rows(3)).tolist() == [4] * 4
    again = other.copy()
    assert step(rows(5), at(0), state=other).tolist() == [7] * 4
    assert step(rows(1), at(0), state=again).tolist() == [3] * 4
    assert (step.state["n"], other["n"], again["n"]) == (7, 7, 7)
    step.reset_state()
    assert step.state["n"] == 5
    assert not step.state["k"].any()


@pytest.mark.parametrize("make", [np.zeros, torch.zeros])
def test_memory_of_the_caller_is_updated(step: rx.Executable, make: Any) -> None:
    k = make((8, 4), dtype=np.float32 if make is np.zeros else torch.float32)
    state = step.new_state({"k": k})
    step(rows(2), at(6), state=state)
    assert k[6].tolist() == [2] * 4
    assert state["n"] == 6
    state["n"] = torch.tensor(1)
    state["k"] = np.ones((8, 4), np.float32)
    assert step(rows(2), at(0), state=state).tolist() == [9] * 4
    assert state["n"] == 2
    assert k[0].tolist() == [2] * 4


def test_saved_and_loaded(step: rx.Executable, tmp_path: Path) -> None:
    step.save(tmp_path / "step.relax")
    loaded = rx.load(tmp_path / "step.relax")
    assert str(loaded.entries["main"]).endswith("updates (n: i64[], k: f32[8, 4])")
    assert loaded(rows(1), at(0)).tolist() == [1] * 4
    assert loaded.state["n"] == 6
    lines = [line.strip(" *") for line in loaded.header.splitlines() if "tensors[" in line]
    assert [line.split()[1:3] for line in lines] == [
        ["input", "x:"], ["state", "n:"], ["input", "i:"], ["state", "k:"], ["output", "y:"]
    ]  # fmt: skip


def test_a_failed_call_leaves_a_state_that_must_be_reset(step: rx.Executable) -> None:
    with pytest.raises(rx.RelaxError, match=r"expected indices in \[-8, 8\) of state 'k': one that is full takes no more"):
        step(rows(1), at(8))
    for use in (lambda: step(rows(1), at(0)), step.state.copy):
        with pytest.raises(
            rx.RelaxError, match="expected a whole state, got one that a failed call left half updated: call reset"
        ):
            use()
    step.reset_state()
    assert step(rows(1), at(0)).tolist() == [1] * 4


def test_a_wrong_input_leaves_the_state_alone(step: rx.Executable) -> None:
    with pytest.raises(rx.RelaxError, match="input 'x'"):
        step(np.ones(4), at(0))
    assert step(rows(1), at(0)).tolist() == [1] * 4


def test_mistakes_are_named(step: rx.Executable) -> None:
    with pytest.raises(rx.RelaxError, match="expected state out of n, k, got 'v'"):
        step.state["v"]
    with pytest.raises(rx.RelaxError, match="expected state out of n, k, got 'v'"):
        step.new_state({"v": rows(1)})
    with pytest.raises(rx.RelaxError, match=r"state 'k': expected f32\[8, 4\], got f64\[8, 4\]"):
        step.state["k"] = np.zeros((8, 4))
    with pytest.raises(rx.RelaxError, match=r"state 'k': expected f32\[8, 4\], got f32\[4, 8\]"):
        step.new_state({"k": np.zeros((4, 8), np.float32)})
    with pytest.raises(rx.RelaxError, match="state 'k': expected memory that is contiguous, aligned and writable"):
        step.new_state({"k": np.zeros((4, 8), np.float32).T})
    with pytest.raises(rx.RelaxError, match="expected a state that new_state made, got dict"):
        step(rows(1), at(0), state={})  # type: ignore[arg-type]
    stateless = rx.compile(rx.Module.parse(MODULE.replace("relax.state", "relax.other")))
    with pytest.raises(rx.RelaxError, match=r"expected state out of \(none\), got 'k'"):
        stateless.state["k"]


def test_threads_that_share_a_state_take_turns(step: rx.Executable) -> None:
    workers = [threading.Thread(target=lambda: [step(rows(1), at(0)) for _ in range(200)]) for _ in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert step.state["n"] == 805


def test_entries_share_state_by_name() -> None:
    both = rx.compile(rx.Module.parse(STEP.format(name="prefill", first=1) + STEP.format(name="decode", first=1)))
    both(rows(1), at(0), entry="prefill")
    assert both(rows(2), at(1), entry="decode").tolist() == [3] * 4
    assert both.state["n"] == 3
    different = rx.Module.parse(STEP.format(name="prefill", first=1) + STEP.format(name="decode", first=2))
    with pytest.raises(
        rx.RelaxError, match="expected one type and first value for state 'n', got others in @prefill and @decode"
    ):
        rx.compile(different)


def on_buffers(text: str) -> str:
    """The entry when it has its arena."""
    seen = str(lowered(rx.Module.parse(text), upto="relax-share-copies"))
    return seen[seen.index("func.func @main") : seen.index("func.func private @kernel")]


def test_an_update_of_a_row_moves_that_row_only() -> None:
    large = MODULE.replace("8x4xf32", "1000000x4xf32")
    executable, entry = rx.compile(rx.Module.parse(large)), on_buffers(large)
    copies = [line for line in entry.splitlines() if "copy" in line.replace("@index_copy", "")]
    assert all("memref<i64>" in line for line in copies), copies
    assert executable(rows(3), at(999_999)).tolist() == [3] * 4
    assert executable._scratch.take().size < 4096


def function(body: str, first: str = "dense<[1.0, 2.0]>") -> str:
    """Two states of two numbers each; the body defines their next values %c and %d, and %y."""
    names = '{{relax.name = "{}"}}'
    a, b, x, y = (names.format(n) for n in "abxy")
    t = "tensor<2xf32>"
    return f"""
      func.func @main(%a: {t} {a}, %b: {t} {b}, %x: {t} {x}) -> ({t} {y}, {t} {a}, {t} {b})
          attributes {{relax.num_input = 3 : i64, relax.state = {{a = {first} : {t}, b = dense<[3.0, 4.0]> : {t}}}}} {{
        {body}
      }}"""


CASES = {
    "swapped": "return %x, %b, %a : tensor<2xf32>, tensor<2xf32>, tensor<2xf32>",
    "unchanged": "return %x, %a, %b : tensor<2xf32>, tensor<2xf32>, tensor<2xf32>",
    "returned as it was": "return %a, %x, %a : tensor<2xf32>, tensor<2xf32>, tensor<2xf32>",
    "one value for all": """
        %0 = "relax.add"(%a, %x) : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
        return %0, %0, %0 : tensor<2xf32>, tensor<2xf32>, tensor<2xf32>""",
    "constant": """
        %0 = "relax.constant"() {value = dense<[7.0, 8.0]> : tensor<2xf32>} : () -> tensor<2xf32>
        return %0, %0, %x : tensor<2xf32>, tensor<2xf32>, tensor<2xf32>""",
    "of one another": """
        %0 = "relax.add"(%b, %x) : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
        %1 = "relax.multiply"(%a, %x) : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
        return %a, %0, %1 : tensor<2xf32>, tensor<2xf32>, tensor<2xf32>""",
    "turned": """
        %0 = "relax.flip"(%a) {axis = 0 : i64} : (tensor<2xf32>) -> tensor<2xf32>
        %1 = "relax.flip"(%0) {axis = 0 : i64} : (tensor<2xf32>) -> tensor<2xf32>
        return %1, %0, %a : tensor<2xf32>, tensor<2xf32>, tensor<2xf32>""",
    "written into one another": """
        %i = "relax.constant"() {value = dense<1> : tensor<1xi64>} : () -> tensor<1xi64>
        %h = "relax.strided_slice"(%x) {axes = array<i64: 0>, begin = [0], end = [1]} : (tensor<2xf32>) -> tensor<1xf32>
        %0 = "relax.index_copy"(%b, %i, %h) : (tensor<2xf32>, tensor<1xi64>, tensor<1xf32>) -> tensor<2xf32>
        %1 = "relax.index_copy"(%a, %i, %h) : (tensor<2xf32>, tensor<1xi64>, tensor<1xf32>) -> tensor<2xf32>
        return %b, %0, %1 : tensor<2xf32>, tensor<2xf32>, tensor<2xf32>""",
    "written and read as it was": """
        %i = "relax.constant"() {value = dense<1> : tensor<1xi64>} : () -> tensor<1xi64>
        %h = "relax.strided_slice"(%x) {axes = array<i64: 0>, begin = [0], end = [1]} : (tensor<2xf32>) -> tensor<1xf32>
        %0 = "relax.index_copy"(%a, %i, %h) : (tensor<2xf32>, tensor<1xi64>, tensor<1xf32>) -> tensor<2xf32>
        %1 = "relax.add"(%a, %0) : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
        return %1, %0, %0 : tensor<2xf32>, tensor<2xf32>, tensor<2xf32>""",
    "in a branch": """
        %z = "relax.constant"() {value = dense<0.0> : tensor<f32>} : () -> tensor<f32>
        %i = "relax.constant"() {value = dense<1> : tensor<1xi64>} : () -> tensor<1xi64>
        %h = "relax.strided_slice"(%x) {axes = array<i64: 0>, begin = [0], end = [1]} : (tensor<2xf32>) -> tensor<1xf32>
        %s = "relax.sum"(%a) : (tensor<2xf32>) -> tensor<f32>
        %g = "relax.greater"(%s, %z) : (tensor<f32>, tensor<f32>) -> tensor<i1>
        %p = tensor.extract %g[] : tensor<i1>
        %0 = scf.if %p -> tensor<2xf32> {
          %1 = "relax.index_copy"(%a, %i, %h) : (tensor<2xf32>, tensor<1xi64>, tensor<1xf32>) -> tensor<2xf32>
          scf.yield %1 : tensor<2xf32>
        } else {
          scf.yield %b : tensor<2xf32>
        }
        return %x, %0, %a : tensor<2xf32>, tensor<2xf32>, tensor<2xf32>""",
    "in a loop": """
        %i = "relax.constant"() {value = dense<1> : tensor<1xi64>} : () -> tensor<1xi64>
        %h = "relax.strided_slice"(%x) {axes = array<i64: 0>, begin = [0], end = [1]} : (tensor<2xf32>) -> tensor<1xf32>
        %l = arith.constant 0 : index
        %m = arith.constant 1 : index
        %u = arith.constant 3 : index
        %0 = scf.for %j = %l to %u step %m iter_args(%c = %a) -> tensor<2xf32> {
          %1 = "relax.add"(%c, %b) : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
          %2 = "relax.index_copy"(%1, %i, %h) : (tensor<2xf32>, tensor<1xi64>, tensor<1xf32>) -> tensor<2xf32>
          scf.yield %2 : tensor<2xf32>
        }
        return %a, %0, %x : tensor<2xf32>, tensor<2xf32>, tensor<2xf32>""",
}


@pytest.mark.parametrize("case", CASES)
def test_next_values_are_the_reference_s(case: str) -> None:
    module = rx.Module.parse(function(CASES[case]))
    executable = rx.compile(module)
    a, b = np.array([1, 2], np.float32), np.array([3, 4], np.float32)
    for i in range(3):
        x = np.array([i + 5, -i - 4], np.float32)
        y, a, b = rx.evaluate(module, "main", a, b, x)
        np.testing.assert_array_equal(executable(x), y)
        np.testing.assert_array_equal(executable.state["a"], a)
        np.testing.assert_array_equal(executable.state["b"], b)


@pytest.mark.parametrize(
    ("dtype", "value"), [("i1", "true"), ("bf16", "1.5"), ("ui8", "200"), ("i4", "-3"), ("f8E4M3FN", "0.5")]
)
def test_first_values_of_every_kind(dtype: str, value: str) -> None:
    text = """
      func.func @main(%x: TYPE {relax.name = "x"}, %s: TYPE {relax.name = "s"})
          -> (TYPE {relax.name = "y"}, TYPE {relax.name = "s"})
          attributes {relax.num_input = 2 : i64, relax.state = {s = dense<FIRST> : TYPE}} {
        return %s, %x : TYPE, TYPE
      }"""
    executable = rx.compile(rx.Module.parse(text.replace("TYPE", f"tensor<3x{dtype}>").replace("FIRST", value)))
    first = executable.state["s"].copy()
    x = np.zeros(3, first.dtype)
    assert {str(v).lower() for v in first} == {value}
    assert executable(x).tolist() == first.tolist()
    assert executable(x).tolist() == x.tolist()


def test_a_choice_of_states_of_which_one_is_written() -> None:
    """Both are copied for the branch; a choice reads what was there before the write."""
    text = """
func.func @main(%f: tensor<i1> {relax.name = "f"}, %g: tensor<i1> {relax.name = "g"}, %i: tensor<1xi64> {relax.name = "i"},
                %k: tensor<3x2xf32> {relax.name = "k"}, %l: tensor<3x2xf32> {relax.name = "l"})
    -> (tensor<3x2xf32> {relax.name = "y"}, tensor<3x2xf32> {relax.name = "k"}, tensor<3x2xf32> {relax.name = "l"})
    attributes {relax.num_input = 5 : i64,
                relax.state = {k = dense<1.0> : tensor<3x2xf32>, l = dense<2.0> : tensor<3x2xf32>}} {
  %c = tensor.extract %f[] : tensor<i1>
  %y = scf.if %c -> (tensor<3x2xf32>) {
    scf.yield %k : tensor<3x2xf32>
  } else {
    %d = tensor.extract %g[] : tensor<i1>
    %s = scf.if %d -> (tensor<3x2xf32>) { scf.yield %l : tensor<3x2xf32> } else { scf.yield %k : tensor<3x2xf32> }
    %r = "relax.strided_slice"(%s) {axes = array<i64: 0>, begin = [0], end = [1]} : (tensor<3x2xf32>) -> tensor<1x2xf32>
    %t = "relax.add"(%r, %r) : (tensor<1x2xf32>, tensor<1x2xf32>) -> tensor<1x2xf32>
    %z = "relax.index_copy"(%k, %i, %t) : (tensor<3x2xf32>, tensor<1xi64>, tensor<1x2xf32>) -> tensor<3x2xf32>
    scf.yield %z : tensor<3x2xf32>
  }
  return %y, %k, %l : tensor<3x2xf32>, tensor<3x2xf32>, tensor<3x2xf32>
}"""
    module = rx.Module.parse(text)
    executable = rx.compile(module)
    for flag, other in ((True, True), (False, True), (False, False)):
        given = [np.array(flag), np.array(other), at(1)]
        wanted, *_ = rx.evaluate(module, "main", *given, np.full((3, 2), 1, np.float32), np.full((3, 2), 2, np.float32))
        np.testing.assert_array_equal(executable(*given), wanted)

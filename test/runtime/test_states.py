"""States: whose they are, threads that use one first, copies."""

from __future__ import annotations

import copy
import pickle
import threading

import numpy as np
import pytest

import relaxir as rx


def counting(size: int, dtype: str = "f32", name: str = "total") -> rx.Executable:
    """Adds what it is given to a state, which it returns."""
    kind = f"tensor<{size}x{dtype}>"
    text = f"""
func.func @main(%x: {kind} {{relax.name = "x"}}, %n: {kind} {{relax.name = "{name}"}})
    -> ({kind} {{relax.name = "y"}}, {kind} {{relax.name = "{name}"}})
    attributes {{relax.num_input = 2 : i64, relax.state = {{{name} = dense<0.0> : {kind}}}}} {{
  %m = "relax.add"(%n, %x) : ({kind}, {kind}) -> {kind}
  return %m, %m : {kind}, {kind}
}}"""
    return rx.compile(rx.Module.parse(text))


def test_a_state_is_a_mapping() -> None:
    state = counting(4).new_state()
    assert (state.get("total") is not None, state.get("sum"), state.get("sum", 3), "sum" in state) == (True, None, 3, False)
    for name in ("sum", 3):
        with pytest.raises(rx.RelaxError, match=f"expected state out of total, got '{name}'"):
            state[name]  # type: ignore[index]


@pytest.mark.parametrize(
    ("other", "message"),
    [
        (("f32", "total", 4), r"state 'total': expected f32\[4096\], got f32\[4\], of another executable"),
        (("f64", "total", 4096), r"state 'total': expected f32\[4096\], got f64\[4096\], of another executable"),
        (("f32", "sum", 4096), r"expected a state with 'total', got one with sum, of another executable"),
    ],
)
def test_states_of_other_executables_are_refused(other: tuple[str, str, int], message: str) -> None:
    dtype, name, size = other
    exe, state = counting(4096), counting(size, dtype, name).new_state()
    x, out = np.ones(4096, np.float32), np.zeros(4096, np.float32)
    for more in ({}, {"out": out}):
        with pytest.raises(rx.RelaxError, match=message):
            exe(x, state=state, **more)
    np.testing.assert_array_equal(exe(x, state=exe.new_state()), x)
    with pytest.raises(rx.RelaxError, match=message):  # also behind one that fits
        exe(x, state=state)


def test_a_state_of_the_same_tensors_serves_another_executable() -> None:
    exe, other = counting(4), counting(4)
    state, x = exe.new_state(), np.ones(4, np.float32)
    exe(x, state=state)
    np.testing.assert_array_equal(other(x, state=state), 2 * x)


def test_threads_that_use_a_state_first_see_one_array() -> None:
    exe = counting(64)
    for _ in range(50):
        state, seen, start = exe.new_state(), list[np.ndarray](), threading.Barrier(4)

        def read(state=state, seen=seen, start=start) -> None:
            start.wait()
            seen.append(state["total"])

        threads = [threading.Thread(target=read) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len({array.ctypes.data for array in seen}) == 1
        exe(np.ones(64, np.float32), state=state)
        assert seen[0][0] == 1


@pytest.mark.parametrize("how", [copy.copy, copy.deepcopy, lambda s: pickle.loads(pickle.dumps(s)), lambda s: s.copy()])
def test_copies_have_memory_of_their_own(how) -> None:
    exe, x = counting(4), np.ones(4, np.float32)
    state = exe.new_state()
    exe(x, state=state)
    other = how(state)
    exe(x, state=state)
    np.testing.assert_array_equal(other["total"], x)
    np.testing.assert_array_equal(exe(x * 5, state=other), 6 * x)
    np.testing.assert_array_equal(state["total"], 2 * x)
    other.reset()
    np.testing.assert_array_equal(other["total"], 0 * x)

"""Results in memory of the caller: written in place, returned as they were given, refused where that would go wrong."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
import torch

import relaxir as rx
from relaxir import RelaxError
from relaxir.runtime.executable import Executable
from relaxir.runtime.outputs import MemoryRanges
from support.hand_compiled import entry, executable_of, manifest, scaled_executable, tensor

SCALE = np.array([2, 4, 6, 8], np.float32)


@pytest.fixture(scope="module")
def scaled() -> Executable:
    """``main(x[n, 4])`` times a weight of 4 elements."""
    executable = scaled_executable()
    raw = {"w": np.array([1, 2, 3, 4], np.float32), "bias": np.zeros(3, np.int8)}
    return executable.bind(executable.prepare(raw))


@pytest.fixture(scope="module")
def two() -> Executable:
    """The sum and the difference of two vectors of 4."""
    b = rx.Builder()
    with b.function("main"):
        x, y = b.input("x", (4,), "f32"), b.input("y", (4,), "f32")
        b.output(sum=b.add(x, y), difference=b.subtract(x, y))
    return rx.compile(b.build())


def ones(*shape: int) -> np.ndarray[Any, Any]:
    return np.ones(shape, np.float32)


def test_numpy_and_torch(scaled: Executable) -> None:
    array, made = np.empty((3, 4), np.float32), torch.empty(3, 4)
    assert scaled(ones(3, 4), out=array) is array
    assert array.tolist() == [SCALE.tolist()] * 3
    assert scaled(torch.ones(3, 4) * 2, out=made) is made
    assert made.tolist() == [(2 * SCALE).tolist()] * 3
    assert scaled(ones(3, 4), out=made) is made
    assert made.tolist() == array.tolist()
    part = np.zeros((5, 4), np.float32)
    scaled(ones(2, 4), out=part[1:3])
    assert part.sum(1).tolist() == [0, 20, 20, 0, 0]
    assert scaled(ones(1, 4), out=None).shape == (1, 4)


def test_several_outputs(two: Executable) -> None:
    x, y = ones(4) * 3, ones(4)
    for out in ((np.empty(4, np.float32), None), {"sum": np.empty(4, np.float32)}, [np.empty(4, np.float32)] * 1 + [None]):
        total, difference = two(x, y, out=out)
        assert total is (out["sum"] if isinstance(out, dict) else out[0])
        assert (total.tolist(), difference.tolist()) == ([4] * 4, [2] * 4)
    both = torch.empty(2, 4)
    two(torch.from_numpy(x), torch.from_numpy(y), out=list(both))
    assert both.tolist() == [[4] * 4, [2] * 4]
    made = two(torch.from_numpy(x), y, out={"difference": both[1]})
    assert isinstance(made[0], torch.Tensor)


def test_narrow_dtypes() -> None:
    main = entry("main", "relaxir_copy", inputs=[tensor("x", [], "bf16")], outputs=[tensor("y", [], "bf16")])
    executable = executable_of(manifest(entries=[main]))
    made, array = torch.empty((), dtype=torch.bfloat16), np.empty((), ml_dtypes.bfloat16)
    assert executable(torch.tensor(-1.5, dtype=torch.bfloat16), out=made).item() == -1.5
    assert float(executable(np.array(2.5, ml_dtypes.bfloat16), out=array)) == 2.5


def read_only() -> np.ndarray[Any, Any]:
    array = ones(2, 4)
    array.flags.writeable = False
    return array


@pytest.mark.parametrize(
    ("out", "message"),
    [
        (np.empty((2, 4)), r"output 'y': expected f32\[2, 4\], got f64\[2, 4\]"),
        (np.empty((3, 4), np.float32), r"output 'y': expected f32\[2, 4\], got f32\[3, 4\]"),
        (torch.empty(2, 4, dtype=torch.int32), r"output 'y': expected f32\[2, 4\], got i32\[2, 4\]"),
        (np.empty((4, 4), np.float32)[::2], "output 'y': expected memory that is contiguous, aligned and writable"),
        (np.empty(33, np.uint8)[1:].view(np.float32).reshape(2, 4), "output 'y': expected memory that is contiguous, aligned"),
        (read_only(), "output 'y': expected memory that is contiguous, aligned and writable"),
        (torch.empty(2, 4, requires_grad=True), "output 'y': expected a tensor that requires no gradient, got one that does"),
        (torch.empty(2, 4, device="meta"), "output 'y': expected a tensor in host memory, got one on 'meta'"),
        ("y", "output 'y': expected an array"),
        ((ones(2, 4), ones(2, 4)), r"entry 'main': expected 1 output \(y\), got 2"),
        ({"z": ones(2, 4)}, r"entry 'main': expected 1 output \(y\), got one named 'z'"),
    ],
)
def test_wrong_outputs(scaled: Executable, out: object, message: str) -> None:
    with pytest.raises(RelaxError, match=message):
        scaled(ones(2, 4), out=out)


def test_memory_that_a_call_reads(scaled: Executable, two: Executable) -> None:
    both = np.arange(24, dtype=np.float32).reshape(6, 4)
    for x, out in ((both[:2], both[:2]), (both[:2], both[1:3]), (both[1:3], both[:2])):
        with pytest.raises(RelaxError, match="output 'y': expected memory of its own, got some that input 'x' has"):
            scaled(x, out=out)
    with pytest.raises(RelaxError, match="output 'y': expected memory of its own, got some that input 'x' has"):
        scaled(torch.from_numpy(both[:2]), out=both[:2])
    assert scaled(both[:2], out=both[2:4]).tolist() == (both[:2] * SCALE).tolist()
    assert both[4:].tolist() == np.arange(16, 24).reshape(2, 4).tolist()
    # An input that has to be copied is not what the call reads.
    assert scaled(both[::3], out=both[:2]).tolist() == both[:2].tolist()
    out = np.empty(4, np.float32)
    with pytest.raises(RelaxError, match="output 'difference': expected memory of its own, got some that output 'sum' has"):
        two(ones(4), ones(4), out=(out, out))


def test_memory_of_weights_and_state() -> None:
    weights = {"w": ones(1, 4)[0]}
    b = rx.Builder()
    with b.function("main"):
        b.output(b.add(b.input("x", (4,), "f32"), b.weight("w", (4,), "f32")))
    executable = rx.compile(b.build()).bind(weights)
    with pytest.raises(RelaxError, match="output 'output0': expected memory of its own, got some that weight 'w' has"):
        executable(ones(4), out=weights["w"])
    step = rx.compile(
        rx.Module.parse("""
    func.func @main(%x: tensor<4xf32> {relax.name = "x"}, %k: tensor<4xf32> {relax.name = "k"})
        -> (tensor<4xf32> {relax.name = "k"}, tensor<4xf32> {relax.name = "y"})
        attributes {relax.num_input = 2 : i64, relax.state = {k = dense<0.0> : tensor<4xf32>}} {
      %l = "relax.add"(%k, %x) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
      %y = "relax.exp"(%l) : (tensor<4xf32>) -> tensor<4xf32>
      return %l, %y : tensor<4xf32>, tensor<4xf32>
    }""")
    )
    with pytest.raises(RelaxError, match="output 'y': expected memory of its own, got some that state 'k' has"):
        step(ones(4), out=step.state["k"])
    assert step.state["k"].tolist() == [0] * 4
    y = np.empty(4, np.float32)
    np.testing.assert_allclose(step(ones(4), out=y), np.exp(ones(4)), rtol=1e-6)
    other = step.new_state()
    step(ones(4) * 2, state=other, out=y)
    step(ones(4), out=y)
    assert (step.state["k"][0], other["k"][0]) == (2, 2)


def test_ranges_that_overlap() -> None:
    memory = MemoryRanges([(10, 20, "a"), (12, 15, "within"), (15, 30, "b"), (40, 40, "empty"), (50, 60, "c")])
    found = [memory.overlap(i, i + 1) for i in (9, 10, 14, 15, 29, 30, 40, 49, 50, 59, 60)]
    assert found == [None, "a", "a", "b", "b", None, None, None, "c", "c", None]
    assert memory.overlap(0, 100) == "c"
    assert memory.overlap(30, 50) is None
    assert memory.overlap(55, 55) is None
    assert MemoryRanges([]).overlap(0, 100) is None

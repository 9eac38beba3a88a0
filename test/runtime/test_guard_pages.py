"""The tests' own arrays beside inaccessible pages: one element too far kills the child, and is told."""

from __future__ import annotations

import ctypes
from typing import Literal

import numpy as np
import pytest

import relaxir as rx
from support.guard_pages import ChildError, guarded, guarded_copy, in_child


def _byte(array: np.ndarray, offset: int) -> int:
    return ctypes.string_at(array.__array_interface__["data"][0] + offset, 1)[0]


@pytest.mark.parametrize("shape", [(3,), (1024,), (0, 4), (5, 7)])
@pytest.mark.parametrize(("edge", "beyond"), [("end", lambda n: n), ("start", lambda n: -1)])
def test_a_byte_beside_a_guarded_array_cannot_be_read(shape: tuple[int, ...], edge: Literal["start", "end"], beyond) -> None:
    array = guarded(shape, np.float32, edge)
    assert array.flags.c_contiguous
    with pytest.raises(ChildError, match="SIGSEGV"):
        in_child(lambda: _byte(array, beyond(array.nbytes)))


def test_a_guarded_copy_has_the_values_and_can_be_written_to() -> None:
    copy = guarded_copy(np.arange(6, dtype=np.int64).reshape(2, 3))
    copy += 1
    np.testing.assert_array_equal(copy, [[1, 2, 3], [4, 5, 6]])
    assert guarded((4,), np.uint8, fill=7).tolist() == [7] * 4


def test_a_child_returns_and_raises_what_its_function_does() -> None:
    assert in_child(lambda: [1, "two"]) == [1, "two"]

    def refused() -> None:
        raise rx.RelaxError("expected one, got two")

    with pytest.raises(rx.RelaxError, match="expected one, got two"):
        in_child(refused)


def test_a_child_that_takes_too_long_is_told() -> None:
    def spin() -> None:
        while True:
            pass

    with pytest.raises(ChildError, match="SIGXCPU"):
        in_child(spin, seconds=1)

"""Memory of a preparation's steps: what is written behind them, and what of the buffers goes when another step needs more."""

from __future__ import annotations

import threading

import pytest

from relaxir.runtime.step_buffers import Need, StepBuffers, WriteBehind

LARGE = 1 << 20


def test_large_results_are_written_while_the_next_ones_are_made() -> None:
    started, go_on = threading.Event(), threading.Event()

    def write() -> None:
        started.set()
        assert go_on.wait(10)

    with WriteBehind() as behind:
        behind.put(write, LARGE, held=7)
        assert started.wait(10)  # and put has returned
        assert behind.held == 7
        go_on.set()
        behind.wait()
        assert behind.held == 0


def test_small_results_are_written_at_once() -> None:
    threads: list[threading.Thread] = []
    with WriteBehind() as behind:
        behind.put(lambda: threads.append(threading.current_thread()), LARGE - 1)
        assert threads == [threading.current_thread()]


def fail() -> None:
    raise KeyError("disk")


def test_what_writing_raises_is_raised_by_what_comes_next() -> None:
    done: list[int] = []
    behind = WriteBehind()
    behind.put(fail, LARGE)
    with pytest.raises(KeyError, match="disk"):
        behind.put(lambda: done.append(1), LARGE)
    with pytest.raises(KeyError, match="disk"):
        behind.put(fail, 1)
    assert done == []


def test_what_writing_raises_last_is_raised_at_the_end() -> None:
    with pytest.raises(KeyError, match="disk"), WriteBehind() as behind:
        behind.put(fail, LARGE)


def test_another_error_goes_before_that_of_writing() -> None:
    def failing() -> None:
        with WriteBehind() as behind:
            behind.put(fail, LARGE)
            raise ValueError("compute")

    with pytest.raises(ValueError, match="compute"):
        failing()


def test_buffers_keep_what_fits_and_free_what_would_exceed_the_limit() -> None:
    buffers = StepBuffers(100)
    assert buffers.make_room(Need(10, 80, 10, 0), beside=0) == 100
    assert not buffers.has_room(Need(10, 10, 80, 0), beside=0)
    assert buffers.make_room(Need(10, 10, 80, 0), beside=0) == 100
    assert buffers.has_room(Need(10, 10, 10, 0), beside=0)
    assert not buffers.has_room(Need(10, 10, 10, 0), beside=1)
    assert buffers.make_room(Need(10, 10, 10, 0), beside=0) == 100


def test_results_that_are_written_have_a_buffer_beside_those_that_are_made() -> None:
    buffers = StepBuffers(100)
    assert not buffers.can_have(Need(20, 20, 30, 30), beside=1)
    assert buffers.make_room(Need(20, 20, 30, 30), beside=0) == 100
    first = buffers.results
    buffers.swap()
    assert buffers.results is not first
    buffers.swap()
    assert buffers.results is first
    assert buffers.make_room(Need(20, 20, 60, 0), beside=0) == 100
    buffers.swap()
    assert buffers.used == Need(20, 20, 0, 60)

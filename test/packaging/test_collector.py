"""Python's garbage collector waits while it is told to, and runs again afterwards."""

from __future__ import annotations

import gc

import pytest

from relaxir.collector import collector_paused


def test_it_runs_again_after_the_outermost_pause():
    assert gc.isenabled()
    with collector_paused():
        with collector_paused():
            assert not gc.isenabled()
        assert not gc.isenabled()
    assert gc.isenabled()


def test_one_that_did_not_run_stays_so():
    gc.disable()
    try:
        with collector_paused():
            pass
        assert not gc.isenabled()
    finally:
        gc.enable()


def test_errors_end_a_pause():
    @collector_paused()
    def fails() -> None:
        assert not gc.isenabled()
        raise ValueError

    for _ in range(2):
        with pytest.raises(ValueError, match=r"^$"):
            fails()
        assert gc.isenabled()

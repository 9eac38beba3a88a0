"""What packages log of themselves is not said; that imports say nothing is in packaging/test_wheel.py."""

import logging

import pytest

from relaxir.frontend.torch_warnings import without_logs


@without_logs()
def failing():
    logging.getLogger("torchao").warning("Failed to load a library")
    raise ZeroDivisionError


def test_logs_are_back_afterwards_also_after_an_error(caplog):
    with pytest.raises(ZeroDivisionError):
        failing()
    logging.getLogger("torchao").warning("said afterwards")
    assert caplog.messages == ["said afterwards"]

"""``import relaxir.transformers`` says nothing, whatever the packages under it log of themselves."""

import logging
import subprocess
import sys

import pytest

from relaxir.frontend.torch_warnings import without_logs


def test_nothing_is_printed_by_the_import():
    pytest.importorskip("transformers")
    done = subprocess.run(
        [sys.executable, "-c", "import relaxir.transformers"], capture_output=True, text=True, check=True, timeout=300
    )
    assert (done.stdout, done.stderr) == ("", "")


@without_logs()
def failing():
    logging.getLogger("torchao").warning("Failed to load a library")
    raise ZeroDivisionError


def test_logs_are_back_afterwards_also_after_an_error(caplog):
    with pytest.raises(ZeroDivisionError):
        failing()
    logging.getLogger("torchao").warning("said afterwards")
    assert caplog.messages == ["said afterwards"]

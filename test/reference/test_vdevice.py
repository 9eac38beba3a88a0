"""Placement changes no value: hint_on_device and to_vdevice."""

from __future__ import annotations

import numpy as np
import pytest

from relaxir.dialect.reference.registry import reference_of


@pytest.mark.parametrize("name", ["hint_on_device", "to_vdevice"])
def test_the_operand_is_copied(name: str) -> None:
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    got = reference_of(name).function(x, vdevice="cuda:0")
    np.testing.assert_array_equal(got, x)
    assert not np.shares_memory(got, x)

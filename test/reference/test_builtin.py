"""Ops that hand their operand on: match_cast, stop_lift_params, and the devices' hint_on_device and to_vdevice."""

from __future__ import annotations

import numpy as np
import pytest

from relaxir.dialect.reference.registry import reference_of


@pytest.mark.parametrize("name", ["match_cast", "stop_lift_params"])
def test_the_operand_is_copied(name: str) -> None:
    x = np.arange(6, dtype=np.float32).reshape(2, 3).T
    got = reference_of(name).function(x)
    np.testing.assert_array_equal(got, x)
    assert got.flags.c_contiguous
    assert not np.shares_memory(got, x)


def test_a_value_is_an_index() -> None:
    got = reference_of("prim_value").function(value=[12])
    assert got == 12
    assert isinstance(got, np.int64)


def test_what_is_kept_is_nothing() -> None:
    assert reference_of("keep").function(np.zeros(3)) == ()

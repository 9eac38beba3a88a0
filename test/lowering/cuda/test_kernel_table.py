"""Kernels of large models' sizes, as machine code, are those of the table, and none spills registers."""

from __future__ import annotations

import pytest

from support.device_cases import CASES
from support.kernel_table import lines_of, recorded

_ALL = [(name, target) for name, case in CASES.items() for target in case.targets]


@pytest.mark.parametrize(("name", "target"), _ALL)
def test_kernels_are_those_of_the_table(name: str, target: str) -> None:
    found = lines_of(name, target)
    assert found == recorded()[(name, target)], "a better kernel, or one that is meant so: make kernel-table, and commit it"
    assert not [line for line in found if line.split()[5] != "0"], "registers are spilled"


def test_the_table_has_no_other_cases() -> None:
    assert list(recorded()) == _ALL

"""Random modules, compiled, against the reference: sharing, calls, control flow, symbols, duplicate outputs."""

from __future__ import annotations

import pytest

from fuzzing.random_modules import check

MODULES = 60


@pytest.mark.parametrize("chunk", range(6))
def test_compiled_random_modules_mean_what_they_did(chunk: int) -> None:
    refused = [check(seed) for seed in range(chunk, MODULES, 6)]
    assert None in refused

"""Modules of every shape for a GPU, on the emulator: the same numbers as the reference, and no access that is wrong."""

from __future__ import annotations

import os

import pytest

from fuzzing.random_shapes import check
from fuzzing.targets import GPUS, compiling_for

#: One takes 0.7 s of a core.
SEEDS = int(os.environ.get("RELAXIR_GPU_SHAPES", "8"))


# 1018: a branch hands on a concatenation or an argument, for which bufferization copied a buffer that was written in part.
@pytest.mark.parametrize("seed", [*range(1, SEEDS + 1), 1018])
def test_random_shapes(seed: int) -> None:
    with compiling_for(GPUS[0]):
        check(seed)

"""Random modules, compiled, against the reference: sharing, calls, control flow, symbols, duplicate outputs."""

from __future__ import annotations

import os

import pytest

from fuzzing.generators import GENERATORS
from fuzzing.random_modules import check
from fuzzing.worker import outcomes

MODULES = 42
#: Modules of every shape: 0.2 s of a core each.
SHAPES = int(os.environ.get("RELAXIR_RANDOM_SHAPES", "48"))


@pytest.mark.parametrize("chunk", range(6))
def test_compiled_random_modules_mean_what_they_did(chunk: int) -> None:
    refused = [check(seed) for seed in range(chunk, MODULES, 6)]
    assert None in refused


@pytest.mark.parametrize("chunk", range(6))
def test_modules_of_every_shape_compile_and_stay_within_their_memory(chunk: int) -> None:
    """None is refused; in a process of their own, as arrays lie against guard pages."""
    found = list(outcomes(GENERATORS["shapes"].check, range(chunk, SHAPES, 6), seconds=60))
    assert not [f"make fuzz ONLY=shapes SEED={o.seed}: {o.reason}" for o in found if o.reason]

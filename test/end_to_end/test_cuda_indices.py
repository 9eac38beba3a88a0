"""Indices of random functions on an emulated GPU: results, and what is said of one that is out of range, are the CPU's."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest

import relaxir as rx
from support.index_modules import index_case

_FUNCTIONS, _CALLS = 8, 3


def outcome(call: Any, *inputs: np.ndarray, **options: str) -> list[np.ndarray] | str:
    """Results, or the error."""
    try:
        found = call(*inputs, **options)
    except rx.RelaxError as error:
        return str(error)
    return [np.asarray(f) for f in (found if isinstance(found, tuple) else (found,))]


def same(one: list[np.ndarray] | str, other: list[np.ndarray] | str) -> bool:
    if isinstance(one, str) or isinstance(other, str):
        return one == other
    return all(map(np.array_equal, one, other))


@pytest.mark.parametrize(("target", "seed"), [("cuda:sm_80", 1), ("cuda:sm_90a", 2)])
def test_indices_of_sizes_that_are_known_or_not(target: str, seed: int) -> None:
    rng, builder = random.Random(seed), rx.Builder()
    cases = [index_case(builder, f"f{i}", rng) for i in range(_FUNCTIONS)]
    module = builder.build()
    host, device = rx.compile(module), rx.compile(module, target, device="emulated")
    wrong = 0
    for number, case in enumerate(cases):
        for call in range(_CALLS):
            inputs, entry = case.arrays(rng, wrong=call > 0), f"f{number}"
            expected = outcome(host, *inputs, entry=entry)
            found = outcome(device, *inputs, entry=entry)
            assert same(found, expected), (seed, entry, case)
            meant = outcome(lambda *given, entry=entry: rx.evaluate(module, entry, *given), *inputs)
            assert isinstance(meant, str) == isinstance(expected, str), (seed, entry, case)
            wrong += isinstance(expected, str)
    assert wrong >= _FUNCTIONS

"""One in forty of ONNX's own tests of backends; ``.ci/run`` runs them all."""

from __future__ import annotations

import functools
from typing import Any

import pytest
from conformance import onnx_backend

_EXPECTED = onnx_backend.expected_failures()


@functools.cache
def _tests() -> dict[str, Any]:
    """Read when the first test runs, not when tests are collected: all processes collect, and this takes 5 s of each."""
    return onnx_backend.tests()


@pytest.mark.parametrize("part", range(40))
def test_nodes_of_onnx(part: int) -> None:
    names = sorted(n for n in _tests() if onnx_backend.reason_for(n, _EXPECTED) is None)[::40]
    assert names
    chosen = names[part::40]
    assert {n: onnx_backend.outcome(_tests()[n]) for n in chosen} == {n: ("right", "") for n in chosen}


def test_every_expected_failure_is_a_test() -> None:
    unknown = [p for p in _EXPECTED if not any(onnx_backend.reason_for(n, {p: ""}) is not None for n in _tests())]
    assert not unknown

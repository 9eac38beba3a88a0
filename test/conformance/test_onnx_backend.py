"""One in forty of ONNX's own tests of backends; ``.ci/run`` runs them all."""

from __future__ import annotations

import pytest
from conformance import onnx_backend

_TESTS = onnx_backend.tests()
_EXPECTED = onnx_backend.expected_failures()
_NAMES = sorted(n for n in _TESTS if onnx_backend.reason_for(n, _EXPECTED) is None)[::40]


@pytest.mark.parametrize("name", _NAMES)
def test_node_of_onnx(name: str) -> None:
    assert onnx_backend.outcome(_TESTS[name]) == ("right", "")


def test_every_expected_failure_is_a_test() -> None:
    unknown = [p for p in _EXPECTED if not any(onnx_backend.reason_for(n, {p: ""}) is not None for n in _TESTS)]
    assert not unknown

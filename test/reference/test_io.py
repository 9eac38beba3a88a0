"""Lazy IO calls back with index and name: get_param, set_output and bind_argument."""

from __future__ import annotations

import numpy as np

from relaxir.dialect.reference.registry import reference_of


def test_get_param_asks_the_provider() -> None:
    asked = []

    def provider(index: int, name: str | None) -> np.ndarray:
        asked.append((index, name))
        return np.full(2, index, np.float32)

    assert reference_of("get_param").function(provider, index=3, name="w").tolist() == [3, 3]
    assert asked == [(3, "w")]


def test_set_output_tells_the_sink() -> None:
    told = []
    value = np.ones(2, np.float32)
    assert reference_of("set_output").function(lambda *args: told.append(args), value, index=1, name=None) == ()
    assert [t[:2] for t in told] == [(1, None)]
    assert told[0][2] is value


def test_bind_argument_adds_a_keyword() -> None:
    told = []
    bind = reference_of("bind_argument").function
    provider = bind(
        bind(lambda *args, **bound: told.append((args, bound)) or np.zeros(2), 3, name="rank"), "cpu", name="device"
    )
    assert reference_of("get_param").function(provider, index=0, name="w").shape == (2,)
    assert told == [((0, "w"), {"rank": 3, "device": "cpu"})]

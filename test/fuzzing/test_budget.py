"""A few seeds of every generator: what ``make fuzz`` runs by the hour runs here by the second."""

from __future__ import annotations

import pytest

from fuzzing.generators import GENERATORS
from fuzzing.worker import outcomes


@pytest.mark.parametrize("name", GENERATORS)
def test_first_seeds_find_nothing(name: str) -> None:
    generator = GENERATORS[name]
    found = list(outcomes(generator.check, range(generator.budget), generator.seconds))
    finds = [f"make fuzz ONLY={name} SEED={o.seed}: {o.reason}\n{o.detail}" for o in found if o.is_find]
    assert not finds, "\n".join(finds)
    assert [o.seed for o in found] == list(range(generator.budget))

"""Random modules through passes in random order: contracts of the passes, and meaning."""

from __future__ import annotations

import random

from relaxir.dialect.context import new_context
from support.contracts import check_contracts
from support.module_generator import random_module
from support.random_pipelines import random_pipeline

__all__ = ["check"]

#: Pipelines per module.
PIPELINES = 3


def check(seed: int) -> None:
    """Raises AssertionError for a pass that breaks a contract; refusals by a pass are part of the contracts."""
    rng = random.Random(seed)
    check_contracts(random_module(seed), new_context(), [random_pipeline(rng) for _ in range(PIPELINES)])

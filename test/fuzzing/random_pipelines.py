"""Random modules through passes in random order: contracts of the passes, and meaning."""

from __future__ import annotations

import random

from relaxir.dialect.context import new_context
from support.contracts import check_contracts
from support.module_generator import random_module
from support.random_pipelines import random_pipeline

__all__ = ["check", "check_seeded", "text"]

#: Pipelines per module.
PIPELINES = 3


def text(seed: int) -> str:
    """The module of a seed."""
    return random_module(seed)


def check(seed: int) -> None:
    """Raises AssertionError for a pass that breaks a contract; refusals by a pass are part of the contracts."""
    check_seeded(text(seed), seed)


def check_seeded(text: str, seed: int) -> None:
    """The same of a module, with the pipelines of a seed."""
    rng = random.Random(seed)
    check_contracts(text, new_context(), [random_pipeline(rng) for _ in range(PIPELINES)])

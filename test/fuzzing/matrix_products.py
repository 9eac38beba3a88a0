"""Random products of matrices through the passes that rewrite them, in random order: contracts and meaning."""

from __future__ import annotations

import random

from relaxir.dialect.context import new_context
from support.contracts import check_contracts
from support.matmul_generator import random_matmul_module

__all__ = ["OTHERS", "PASSES", "check", "check_seeded", "text"]

PASSES = [
    "relax-combine-parallel-matmul",
    "relax-combine-parallel-matmul{max-count=2}",
    "relax-combine-parallel-matmul{always=true}",
    "relax-reorder-permute-dims-after-concat",
    "relax-reorder-take-after-matmul",
    "relax-reorder-take-after-matmul{always=true}",
    "relax-expand-matmul-of-sum",
    "relax-expand-matmul-of-sum{always=true}",
    "relax-adjust-matmul-order",
]
OTHERS = [
    "relax-lift-transform-params",
    "relax-lift-transform-params{shared=true}",
    "relax-canonicalize",
    "canonicalize",
    "cse",
]


def text(seed: int) -> str:
    """The module of a seed."""
    return random_matmul_module(seed)


def check(seed: int) -> None:
    """Raises AssertionError for a pass that breaks a contract."""
    check_seeded(text(seed), seed)


def check_seeded(text: str, seed: int) -> None:
    """The same of a module, with the pipelines of a seed."""
    rng = random.Random(seed)
    mixed = [",".join(rng.sample(PASSES + OTHERS, 7)) for _ in range(2)]
    pipelines = rng.sample(PASSES, 3) + mixed
    assert check_contracts(text, new_context(), pipelines) == len(pipelines)

"""Collectives: through the communicator of the thread; without one there is one rank."""

from __future__ import annotations

import numpy as np

from ..communicator import Alone, Communicator, current_communicator
from ..errors import RelaxError
from .numeric import Array
from .registry import reference

__all__: list[str] = []


@reference
def all_reduce(x: Array) -> Array:
    return _ranks().all_reduce(x)


@reference
def all_gather(x: Array, *, ranks: int) -> Array:
    found = _ranks()
    if found.size != ranks:
        raise RelaxError(f"expected {ranks} ranks, got {found.size}")
    return found.all_gather(x)


@reference
def rank() -> Array:
    return np.array(_ranks().rank, np.int64)


def _ranks() -> Communicator:
    return current_communicator() or Alone()

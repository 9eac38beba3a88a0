"""Lazy weight IO: the provider and the sink are Python callables."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .numeric import Array
from .registry import reference

__all__: list[str] = []


@reference
def get_param(provider: Callable[[int, str | None], Any], *, index: int, name: str | None) -> Array:
    return np.asarray(provider(index, name))


@reference
def set_output(sink: Callable[[int, str | None, Array], None], value: Array, *, index: int, name: str | None) -> tuple[()]:
    sink(index, name, value)
    return ()

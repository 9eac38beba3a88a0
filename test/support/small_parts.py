"""Products whose rows are in parts of few rows, as only large ones are by themselves."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import replace
from unittest import mock

from relaxir.lowering.cpu.kernels.contraction.tuning import TUNINGS

__all__ = ["small_parts"]


@contextmanager
def small_parts(rows: int = 1) -> Generator[None]:
    """While this lasts, parts of products have about so many rows, whatever their depth."""
    small = {name: replace(tuning, part_rows=rows, part_left=1) for name, tuning in TUNINGS.items()}
    with mock.patch.dict(TUNINGS, small):
        yield

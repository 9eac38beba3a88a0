"""Products in parts of few rows, and in small blocks of tile registers, as only large ones are by themselves."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any
from unittest import mock

from relaxir.lowering.cpu.kernels.contraction import split_blocks
from relaxir.lowering.cpu.kernels.contraction.tuning import TUNINGS

__all__ = ["SMALL_SPLITS", "small_parts", "small_splits"]

#: Blocks of 64 rows, 64 steps and two or three panels, from a few rows, columns and steps on.
SMALL_SPLITS: dict[str, Any] = {
    "split_rows": 8,
    "split_rows_short": 8,
    "split_columns": 32,
    "split_steps": 16,
    "split_block_rows": 64,
    "split_block_depth": 64,
    "split_panels": 3,
    "split_blocks": 3,
}


@contextmanager
def small_parts(rows: int = 1) -> Generator[None]:
    """While this lasts, parts of products have about so many rows, whatever their depth."""
    with _tuned(part_rows=rows, part_left=1):
        yield


@contextmanager
def small_splits() -> Generator[None]:
    """While this lasts, products of f32 are split for tile registers from a few rows, columns and steps on."""
    with _tuned(**SMALL_SPLITS), mock.patch.object(split_blocks, "_LEAST_PANELS", 1):
        yield


@contextmanager
def _tuned(**changes: Any) -> Generator[None]:
    with mock.patch.dict(TUNINGS, {name: replace(tuning, **changes) for name, tuning in TUNINGS.items()}):
        yield

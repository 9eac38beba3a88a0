"""The passes of this folder under their names in pipelines."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING

from ..dialect.passes.registry import register

if TYPE_CHECKING:
    from ..dialect.passes.manager import Pass

__all__ = ["register_passes"]


def _relax_to_linalg() -> type[Pass]:
    from .linalg.to_linalg import RelaxToLinalg

    return RelaxToLinalg


@functools.cache
def register_passes() -> None:
    """Adds them to the registry; a second call does nothing."""
    register("relax-to-linalg", _relax_to_linalg)

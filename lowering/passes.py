"""The passes of this folder under their names in pipelines; a pass is imported when it first runs."""

from __future__ import annotations

import functools
import importlib
from collections.abc import Callable
from typing import TYPE_CHECKING

from ..dialect.passes.registry import register

if TYPE_CHECKING:
    from ..dialect.passes.base import Pass

__all__ = ["PASSES", "register_passes"]


def _load(module: str, name: str) -> type[Pass]:
    return getattr(importlib.import_module(module, __package__), name)


def _ours(module: str, name: str) -> Callable[[], type[Pass]]:
    return functools.partial(_load, module, name)


#: What imports and returns each pass.
PASSES: dict[str, Callable[[], type[Pass]]] = {
    "relax-set-target": _ours(".set_target", "SetTarget"),
    "relax-to-linalg": _ours(".linalg.to_linalg", "RelaxToLinalg"),
}


def register_passes() -> None:
    """Adds them to the registry; a second call does nothing."""
    for name, loader in PASSES.items():
        register(name, loader)

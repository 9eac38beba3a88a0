"""What commands take for models: artifacts, which are folders, and modules, from files or from standard input."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ..module import Module

__all__ = ["is_artifact", "load_module"]


def is_artifact(path: str) -> bool:
    """Whether a path is that of an artifact, or should have been: there is nothing, and the name is one."""
    path = os.path.expanduser(path)
    return os.path.isdir(path) or (not os.path.lexists(path) and path.endswith(".relax"))


def load_module(path: str) -> Module:
    """Reads a module; ``-`` is standard input. Raises RelaxError."""
    from ..module import Module

    return Module.load("/dev/stdin" if path == "-" else path)

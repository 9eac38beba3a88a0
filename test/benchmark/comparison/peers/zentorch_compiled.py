"""AMD's zentorch, a backend of ``torch.compile``, with frozen weights: without them its linear layers give wrong numbers."""

from __future__ import annotations

from pathlib import Path

import zentorch  # noqa: F401, registers the backend

from ..cases import Case
from . import Loaded, torch_compiled

__all__ = ["load"]


def load(case: Case, folder: Path, threads: int) -> Loaded:
    return torch_compiled.load(case, folder, threads, "zentorch")

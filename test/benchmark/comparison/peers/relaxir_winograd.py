"""relaxir with 3x3 convolutions by Winograd's filtering, which its default pipeline leaves as they are."""

from __future__ import annotations

from pathlib import Path

from ..cases import Case
from . import Loaded, NotApplicableError, relaxir

__all__ = ["load"]


def load(case: Case, folder: Path, threads: int) -> Loaded:
    if case.file or case.weights != "f32":
        raise NotApplicableError("convolutions of f32 are computed so")
    return relaxir.load(case, folder, threads, convolutions="winograd")

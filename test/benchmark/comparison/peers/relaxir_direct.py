"""relaxir with all convolutions as sums of their windows, where its default pipeline has Winograd's filtering."""

from __future__ import annotations

from pathlib import Path

from ..cases import Case
from . import Loaded, NotApplicableError, relaxir

__all__ = ["load"]


def load(case: Case, folder: Path, threads: int) -> Loaded:
    if case.file or case.weights != "f32":
        raise NotApplicableError("convolutions of f32 have another form")
    return relaxir.load(case, folder, threads, convolutions="direct")

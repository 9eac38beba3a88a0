"""relaxir with quantized activations, as most peers have them for int8 and int4 weights."""

from __future__ import annotations

from pathlib import Path

from ..cases import Case
from . import Loaded, NotApplicableError, relaxir

__all__ = ["load"]


def load(case: Case, folder: Path, threads: int) -> Loaded:
    if case.weights not in ("int8", "int4"):
        raise NotApplicableError("activations are quantized for int8 and int4 weights")
    return relaxir.load(case, folder, threads, activations="int8")

"""``torch.compile`` with frozen weights."""

from __future__ import annotations

from pathlib import Path

import torch

from ..cases import Case
from . import Loaded, NotApplicableError
from .torch_eager import arrays, in_bf16, start

__all__ = ["load"]


def load(case: Case, folder: Path, threads: int, backend: str = "inductor") -> Loaded:
    if case.weights not in ("f32", "bf16"):
        raise NotApplicableError("compiles nothing for narrow weights beyond what eager torch has")
    start(threads)
    torch._inductor.config.freezing = True
    torch._dynamo.reset()
    built = case.make() if case.weights == "f32" else in_bf16(case.make())
    compiled = torch.compile(built.module, backend=backend)
    compiled(**built.inputs)
    return Loaded(lambda: compiled(**built.inputs), arrays, "" if case.weights == "f32" else "all in bf16")

"""relaxir with the cache of a decoding step as state in f16, which is how llama.cpp has it: loaded from the model's folder."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import torch

import relaxir as rx

from ..cases import Case
from ..networks import Decode
from . import Loaded, NotApplicableError
from .relaxir import weights_as

__all__ = ["load"]


def load(case: Case, folder: Path, threads: int) -> Loaded:
    if case.file:
        raise NotApplicableError("a file has its own cache")
    built = case.make()
    module: Any = built.module
    if not isinstance(module, Decode):
        raise NotApplicableError("no step behind a cache")
    os.environ["RELAXIR_CACHE_DIR"] = str(folder / "cache")  # weights are kept on disk, until the run's folder goes
    saved, length = folder / "huggingface", len(module.prompt) + 1
    module.model.save_pretrained(saved)
    narrow = {"activations": "int8"} if case.weights in ("int8", "int4") else {}
    weights = weights_as(case) or ("bf16" if case.weights == "bf16" else None)
    model = rx.transformers.load(saved, weights, kv_cache="f16", max_length=length, threads=threads, **narrow)
    x = built.inputs["x"]
    cache = model(torch.tensor([module.prompt]), logits_to_keep=1).past_key_values

    def call() -> torch.Tensor:
        logits: torch.Tensor = model(x, past_key_values=cache, logits_to_keep=1).logits
        cache.crop(1)  # forgets what this call added
        return logits

    def logits(result: torch.Tensor) -> list[np.ndarray]:
        return [result.numpy()]

    return Loaded(call, logits, "f16 cache" + (", int8 activations" if narrow else ""))

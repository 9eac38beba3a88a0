"""llama.cpp through llama-cpp-python, for cases that are a Llama."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from llama_cpp import Llama

from ..cases import Case
from . import Loaded, NotApplicableError, inputs_of

__all__ = ["load"]


def load(case: Case, folder: Path, threads: int) -> Loaded:
    if not case.gguf:
        raise NotApplicableError("not a Llama")
    tokens = inputs_of(folder)["x"][0].tolist()
    prompt = np.load(folder / "prompt.npy").tolist() if (folder / "prompt.npy").exists() else []
    length = len(prompt) + len(tokens)
    model = Llama(
        str(folder / "model.gguf"),
        n_ctx=max(256, length),
        n_batch=512,
        n_ubatch=512,
        n_threads=threads,
        n_threads_batch=threads,
        verbose=False,
    )
    if prompt:
        model.eval(prompt)

    def call() -> None:
        model.n_tokens = len(prompt)  # forgets what the call before added
        model.eval(tokens)

    def logits(_: object) -> list[np.ndarray]:
        row = np.ctypeslib.as_array(model._ctx.get_logits(), shape=(model.n_vocab(),)).copy()
        return [row.reshape(1, 1, -1)]

    quantized = {"int8": ", Q8_0", "int4": ", Q4_0", "bf16": ", BF16"}.get(case.weights, "")
    return Loaded(call, logits, f"f16 cache{quantized}")

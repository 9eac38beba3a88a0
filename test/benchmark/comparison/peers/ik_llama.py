"""ik_llama.cpp through ik-llama-cpp-python, for cases that are a Llama; it repacks weights for its kernels at loading."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from ik_llama_cpp import _ctypes_api as api
from ik_llama_cpp._internals import IkContext, make_batch_range
from ik_llama_cpp._lib_loader import load_shared_library

from ..cases import Case
from . import Loaded, NotApplicableError, inputs_of

__all__ = ["load"]


class _Model:
    """What :class:`IkContext` takes; the package's own class does not repack."""

    def __init__(self, path: Path):
        api.llama_backend_init()
        params = api.llama_model_default_params()
        params.use_mmap = False
        params.repack_tensors = True
        self.model = api.llama_model_load_from_file(str(path).encode(), params)
        if not self.model:
            raise RuntimeError("it does not load the file")
        self.n_vocab = api.llama_vocab_n_tokens(api.llama_model_get_vocab(self.model))


def load(case: Case, folder: Path, threads: int) -> Loaded:
    if not case.gguf:
        raise NotApplicableError("not a Llama")
    tokens = inputs_of(folder)["x"][0].tolist()
    prompt = np.load(folder / "prompt.npy").tolist() if (folder / "prompt.npy").exists() else []
    model = _Model(folder / "model.gguf")
    context = IkContext(model, n_ctx=max(256, len(prompt) + len(tokens)), n_threads=threads)
    forget = load_shared_library().llama_kv_cache_seq_rm
    forget.argtypes, forget.restype = [ctypes.c_void_p, ctypes.c_int32, ctypes.c_int32, ctypes.c_int32], ctypes.c_bool
    _append(context, prompt, 0)
    batches = _batches(context, tokens, len(prompt))

    def call() -> None:
        forget(context.ctx, 0, len(prompt), -1)  # what the call before added
        _decode(context, batches)

    def logits(_: object) -> list[np.ndarray]:
        row = np.ctypeslib.as_array(context.get_logits(), shape=(model.n_vocab,)).copy()
        return [row.reshape(1, 1, -1)]

    quantized = {"int8": ", Q8_0", "int4": ", Q4_0", "bf16": ", BF16"}.get(case.weights, "")
    return Loaded(call, logits, f"f16 cache{quantized}, repacked")


def _batches(context: IkContext, tokens: Sequence[int], start: int) -> list[api.llama_batch]:
    """Tokens from a position on, as many at once as it takes; logits are of the last one."""
    step = context._n_ubatch
    parts = [(i, list(tokens[i : i + step])) for i in range(0, len(tokens), step)]
    return [make_batch_range(part, pos_start=start + i, logits_last=i + step >= len(tokens)) for i, part in parts]


def _append(context: IkContext, tokens: Sequence[int], start: int) -> None:
    batches = _batches(context, tokens, start)
    _decode(context, batches)
    for batch in batches:
        api.llama_batch_free(batch)


def _decode(context: IkContext, batches: Sequence[api.llama_batch]) -> None:
    for batch in batches:
        if status := context.decode(batch):
            raise RuntimeError(f"llama_decode returned {status}")

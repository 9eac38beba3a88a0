"""relaxir: imported from torch, its weights prepared and bound; narrow weights through ``dequantize`` and ``astype``."""

from __future__ import annotations

import logging
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import torch

import relaxir as rx

from ..cases import Built, Case
from . import Loaded

__all__ = ["load"]


def load(case: Case, folder: Path, threads: int, activations: str | None = None) -> Loaded:
    built = case.make()
    stack = case.weights != "f32" and not case.gguf
    module, weights = _narrow(case, built) if stack else imported(built)
    weights_as = case.weights if case.gguf and case.weights != "f32" else None
    executable = rx.compile(module, weights=weights_as, activations=activations)
    executable.bind(executable.prepare(weights))
    executable.threads = threads
    inputs = {name: value.numpy() for name, value in built.inputs.items()}
    return Loaded(lambda: executable(**inputs), _arrays)


def _arrays(result: Any) -> list[np.ndarray]:
    return list(result) if isinstance(result, tuple) else [result]


def imported(built: Built) -> tuple[rx.Module, dict[str, np.ndarray]]:
    from support.models import weights_of

    logging.getLogger("torch.export").setLevel(logging.ERROR)
    with torch.no_grad(), warnings.catch_warnings(action="ignore"):
        program = torch.export.export(built.module, (), built.inputs)
    module = rx.from_torch(program)
    return module, weights_of(program, module)


def _narrow(case: Case, built: Built) -> tuple[rx.Module, dict[str, np.ndarray]]:
    """The stack of layers as a user writes it."""
    layers: Any = built.module
    rows, size = built.inputs["x"].shape
    b, weights = rx.Builder(), {}
    with b.function("main"):
        x = b.input("x", (rows, size))
        for i in range(layers.layers):
            x = b.matmul(x, b.permute_dims(_wide(b, case, layers, i, weights), axes=[1, 0]))
        b.output(y=x)
    return b.build(), weights


def _wide(b: rx.Builder, case: Case, layers: Any, i: int, weights: dict[str, np.ndarray]) -> Any:
    """One weight ``[out, in]`` in f32; what it is stored as goes to ``weights``."""
    from relaxir.dialect.dtypes import numpy_dtype

    q = getattr(layers, f"q{i}")
    dtype = {"bf16": "bf16", "int8": "i8", "int4": "i4"}[case.weights]
    values = q.float().numpy() if dtype == "bf16" else q.numpy()
    weights[f"q{i}"] = values.astype(numpy_dtype(dtype))
    stored = b.weight(f"q{i}", tuple(q.shape), dtype)
    if dtype == "bf16":
        return b.astype(stored, "f32")
    weights[f"s{i}"] = getattr(layers, f"s{i}").numpy()
    scale = b.weight(f"s{i}", weights[f"s{i}"].shape, "f32")
    return b.dequantize(stored, scale, b.full((), 0, dtype))

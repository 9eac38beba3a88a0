"""relaxir: imported from torch, its weights prepared and bound; narrow ones through ``dequantize``, or all in bf16."""

from __future__ import annotations

import logging
import tempfile
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import torch

import relaxir as rx
from relaxir.weights.arrays import to_numpy

from .. import onnx_file
from ..cases import Built, Case
from . import Loaded, NotApplicableError, inputs_of
from .torch_eager import in_bf16

__all__ = ["imported", "load", "made", "module_of", "weights_as"]


def load(
    case: Case, folder: Path, threads: int, activations: str | None = None, convolutions: str | None = None
) -> Loaded:  # fmt: skip
    if case.file:
        return _of_file(folder, threads)
    built, module, weights = made(case)
    executable = rx.compile(module, weights=weights_as(case), activations=activations, convolutions=convolutions)
    if convolutions == "direct" and "relax.winograd_conv2d" not in rx.compile(module, weights=weights_as(case)).module_text:
        raise NotApplicableError("all convolutions are direct")
    executable.bind(executable.prepare(weights))
    executable.threads = threads
    inputs = {name: to_numpy(value, name) for name, value in built.inputs.items()}
    return Loaded(lambda: executable(**inputs), _arrays)


def _of_file(folder: Path, threads: int) -> Loaded:
    path = folder / "file.onnx"
    executable = rx.compile(path)
    executable.bind(executable.prepare(path))
    executable.threads = threads
    inputs = inputs_of(folder)
    return Loaded(lambda: executable(**inputs), _arrays)


def made(case: Case) -> tuple[Built, rx.Module, dict[str, np.ndarray]]:
    """What a case is in torch, its module, and the arrays of its weights."""
    built = in_bf16(case.make()) if case.weights == "bf16" else case.make()
    return built, *(_narrow(case, built) if case.layers else imported(built))


def module_of(case: Case) -> rx.Module:
    """The module of a case, of an ONNX file, too; what its weights are does not matter."""
    if not case.file:
        return made(case)[1]
    with tempfile.TemporaryDirectory() as folder:
        return rx.from_onnx(onnx_file.write_model(case, case.make(), Path(folder)))


def weights_as(case: Case) -> str | None:
    """What ``relaxir.compile`` is to store the weights as; a file says it itself."""
    return case.weights if not (case.layers or case.file) and case.weights not in ("f32", "bf16") else None


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
        x = b.input("x", (rows, size), "bf16" if case.weights == "bf16" else "f32")
        for i in range(layers.layers):
            x = b.matmul(x, b.permute_dims(_wide(b, case, layers, i, weights), axes=[1, 0]))
        b.output(y=x)
    return b.build(), weights


def _wide(b: rx.Builder, case: Case, layers: Any, i: int, weights: dict[str, np.ndarray]) -> Any:
    """One weight ``[out, in]`` as it is multiplied; what it is stored as goes to ``weights``."""
    from relaxir.dialect.dtypes import numpy_dtype

    q = getattr(layers, f"q{i}")
    dtype = {"bf16": "bf16", "int8": "i8", "int4": "i4"}[case.weights]
    weights[f"q{i}"] = to_numpy(q, f"q{i}").astype(numpy_dtype(dtype))
    stored = b.weight(f"q{i}", tuple(q.shape), dtype)
    if dtype == "bf16":
        return stored
    weights[f"s{i}"] = getattr(layers, f"s{i}").numpy()
    scale = b.weight(f"s{i}", weights[f"s{i}"].shape, "f32")
    return b.dequantize(stored, scale, b.full((), 0, dtype))

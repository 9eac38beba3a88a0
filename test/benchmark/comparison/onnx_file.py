"""A case as the ONNX file that users have of it: exported by torch.onnx, then quantized by ONNX Runtime's own tools."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from .cases import Built, Case

__all__ = ["write", "write_model"]


def write_model(case: Case, built: Built, folder: Path) -> Path:
    """Writes ``file.onnx``."""
    from support import exported_onnx

    inputs = {name: value.numpy() for name, value in built.inputs.items()}
    path = folder / "file.onnx"
    plain = path if case.file == "exported" else folder / "plain.onnx"
    exported_onnx.export(built.module, built.inputs, plain)
    if plain != path:
        exported_onnx.derive(case.file, plain, path, inputs)
    return path


def write(case: Case, built: Built, folder: Path) -> None:
    """Writes ``file.onnx``, and instead of torch's results those of ONNX Runtime, which computes each operator as it stands."""
    import onnxruntime

    path = write_model(case, built, folder)
    inputs = {name: value.numpy() for name, value in built.inputs.items()}
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    np.savez(folder / "expected.npz", *[np.asarray(found) for found in session.run(None, inputs)])

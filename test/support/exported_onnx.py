"""ONNX files as users have them: torch modules exported, then quantized or fused by ONNX Runtime's own tools."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

__all__ = ["VARIANTS", "derive", "export"]

_Arrays = Mapping[str, np.ndarray[Any, Any]]

#: How a file comes from the exported one, and what that is called.
VARIANTS = {
    "int8": "weights in int8, activations as they come (quantize_dynamic)",
    "qdq": "weights and activations in int8 by calibration, in QDQ form (quantize_static)",
    "qoperator": "the same as QLinear operators",
    "nbits": "weights of products in four bits, in blocks of 32 (MatMulNBits)",
    "fused": "operators joined by ONNX Runtime's optimizer",
}


def export(module: Any, inputs: Mapping[str, Any], path: Path, dynamic: Mapping[str, Mapping[int, str]] | None = None) -> None:
    """Writes a module as torch.onnx exports it, weights beside it; ``dynamic`` names sizes of inputs that stay open."""
    import torch

    for name in ("torch.onnx", "torch.export", "onnxscript"):
        logging.getLogger(name).setLevel(logging.ERROR)
    shapes = None
    if dynamic is not None:
        shapes = {name: {axis: torch.export.Dim.DYNAMIC for axis in dynamic.get(name, {})} for name in inputs}
    with torch.no_grad(), warnings.catch_warnings(action="ignore"):
        program = torch.export.export(module, (), dict(inputs), dynamic_shapes=shapes)
        exported: Any = torch.onnx.export(program, kwargs=dict(inputs), input_names=list(inputs), verbose=False)
        exported.save(str(path), external_data=True)


def derive(variant: str, source: Path, path: Path, inputs: _Arrays, kind: str = "") -> None:
    """Writes another form of an exported file.

    Args:
        variant: of :data:`VARIANTS`.
        inputs: what a calibration runs it with.
        kind: what ONNX Runtime's optimizer calls such models, ``"bert"`` or ``"gpt2"``; where there is nothing, what a session
            makes of it for any processor.
    """
    logging.disable(logging.WARNING)  # each of its tools has a logger of its own, which says what it does with every node
    with warnings.catch_warnings(action="ignore"):
        makers = {"int8": _dynamic, "qdq": _static, "qoperator": _static, "nbits": _nbits, "fused": _fused}
        makers[variant](variant, source, path, inputs, kind)


def _dynamic(_: str, source: Path, path: Path, __: _Arrays, ___: str) -> None:
    from onnxruntime.quantization import QuantType, quantize_dynamic

    types = ["MatMul", "Gemm", "Gather"]  # ConvInteger has no kernel for weights that are signed
    quantize_dynamic(_settled(source, path), path, types, weight_type=QuantType.QInt8)


class _Reader:
    """One set of inputs, for a calibration."""

    def __init__(self, inputs: _Arrays):
        self._sets: Iterator[_Arrays] = iter([inputs])

    def get_next(self) -> _Arrays | None:
        return next(self._sets, None)


def _static(variant: str, source: Path, path: Path, inputs: _Arrays, _: str) -> None:
    from onnxruntime.quantization import QuantFormat, QuantType, quantize_static

    form: Any = QuantFormat.QDQ if variant == "qdq" else QuantFormat.QOperator
    types = {"activation_type": QuantType.QUInt8, "weight_type": QuantType.QInt8}
    reader: Any = _Reader(inputs)
    quantize_static(_settled(source, path), path, reader, form, per_channel=variant == "qdq", **types)


def _settled(source: Path, path: Path) -> Path:
    """As the documentation of the tools asks for: shapes inferred and graphs simplified before; in one file of up to 2 GiB."""
    import onnx
    from onnxruntime.quantization.shape_inference import quant_pre_process

    whole, settled = (path.with_name(f"{path.stem}.{kind}.onnx") for kind in ("whole", "settled"))
    onnx.save(onnx.load(str(source)), str(whole))
    quant_pre_process(whole, settled, skip_symbolic_shape=True)
    whole.unlink()
    return settled


def _nbits(_: str, source: Path, path: Path, __: _Arrays, ___: str) -> None:
    import onnx
    from onnxruntime.quantization.matmul_nbits_quantizer import MatMulNBitsQuantizer

    tool = MatMulNBitsQuantizer(
        onnx.load(str(_settled(source, path))), bits=4, block_size=32, is_symmetric=True, accuracy_level=4
    )
    tool.process()
    tool.model.save_model_to_file(str(path), use_external_data_format=True)


def _fused(_: str, source: Path, path: Path, __: _Arrays, kind: str) -> None:
    if kind:
        from onnxruntime.transformers import optimizer

        found = optimizer.optimize_model(str(source), model_type=kind, opt_level=0)
        found.save_model_to_file(str(path), use_external_data_format=True)
        return
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_EXTENDED
    options.optimized_model_filepath = str(path)
    options.log_severity_level = 3
    onnxruntime.InferenceSession(str(source), options, providers=["CPUExecutionProvider"])

"""OpenVINO from ONNX, for latency, in the precision of the case: on its own it computes f32 models in bf16 where it can."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import openvino
from openvino import properties
from openvino.properties import hint

from ..cases import Case
from . import Loaded, inputs_of

__all__ = ["load"]


def load(case: Case, folder: Path, threads: int) -> Loaded:
    name = "file.onnx" if case.file else "nbits.onnx" if case.weights in ("int8", "int4") else "model.onnx"
    settings = {
        hint.performance_mode: hint.PerformanceMode.LATENCY,
        hint.inference_precision: openvino.Type.bf16 if case.weights == "bf16" else openvino.Type.f32,
        properties.inference_num_threads: threads,
        properties.num_streams: 1,
    }
    compiled = openvino.Core().compile_model(folder / name, "CPU", settings)
    request = compiled.create_infer_request()
    inputs = inputs_of(folder)
    for port in compiled.inputs:
        name = next(n for n in port.get_names() if n in inputs)  # a port may have a name of an operation that was folded, too
        request.set_tensor(port, openvino.Tensor(inputs[name], shared_memory=True))

    def call() -> object:
        request.infer()
        return inputs  # held: the request has only their addresses

    return Loaded(call, lambda _: [np.array(request.get_tensor(port).data, np.float32) for port in compiled.outputs])

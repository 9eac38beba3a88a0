"""ONNX Runtime with bound inputs and outputs; ``MatMulNBits`` for int8 and int4."""

from __future__ import annotations

from pathlib import Path

import onnxruntime

from ..cases import Case
from . import Loaded, NotApplicableError, inputs_of

__all__ = ["load"]


def load(case: Case, folder: Path, threads: int) -> Loaded:
    if case.weights == "bf16":
        raise NotApplicableError("no bf16 matmul on CPUs")
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    options.log_severity_level = 3
    name = "file.onnx" if case.file else "model.onnx" if case.weights == "f32" else "nbits.onnx"
    error = folder / "nbits.error"
    if name == "nbits.onnx" and error.exists():
        raise RuntimeError(error.read_text())
    session = onnxruntime.InferenceSession(str(folder / name), options, providers=["CPUExecutionProvider"])
    binding = session.io_binding()
    inputs = inputs_of(folder)
    taken = {i.name for i in session.get_inputs()}
    for key, value in inputs.items():
        if key in taken:
            binding.bind_cpu_input(key, value)
    for output in session.get_outputs():
        binding.bind_output(output.name)

    def call() -> object:
        session.run_with_iobinding(binding)
        return inputs  # held: the binding has only their addresses

    note = "" if case.weights == "f32" or case.file else "int8 activations"
    return Loaded(call, lambda _: [value.numpy() for value in binding.get_outputs()], note)

"""TVM from ONNX through Relax and its default pipeline for this processor; no tuning, which takes hours."""

from __future__ import annotations

from pathlib import Path

import onnx
import tvm
from tvm import relax
from tvm.relax.frontend.onnx import from_onnx

from ..cases import Case
from . import Loaded, NotApplicableError, inputs_of

__all__ = ["load"]


def load(case: Case, folder: Path, threads: int) -> Loaded:
    if not case.layers and case.weights != "f32":
        raise NotApplicableError("from ONNX, where these weights are f32")
    model = onnx.load(folder / "model.onnx")
    inputs = inputs_of(folder)
    taken = [value.name for value in model.graph.input]
    shapes = {name: list(inputs[name].shape) for name in taken}
    dtypes = {name: str(inputs[name].dtype) for name in taken}
    module = from_onnx(model, shape_dict=shapes, dtype_dict=dtypes)
    cpu = tvm.get_global_func("target.llvm_get_system_cpu")()
    target = tvm.target.Target({"kind": "llvm", "mcpu": cpu, "num-cores": threads})
    machine = relax.VirtualMachine(tvm.compile(module, target), tvm.cpu())
    arrays = [tvm.runtime.tensor(inputs[name]) for name in taken]
    function = machine["main"]

    def results(value: object) -> list[object]:
        found = [value] if isinstance(value, tvm.runtime.Tensor) else list(value)
        return [v.numpy() for v in found]

    return Loaded(lambda: function(*arrays), results, "not tuned")

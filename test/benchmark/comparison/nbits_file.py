"""Models with int8 or int4 weights as ONNX Runtime's ``MatMulNBits``, its own operation for them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from .cases import Built, Case
from .networks import GROUP

__all__ = ["write"]

#: Inputs that share a scale where the case has one scale for all.
_BLOCK = 128


def write(case: Case, built: Built, folder: Path) -> None:
    """Writes ``nbits.onnx``. Raises ValueError for weights that the operation does not take."""
    import onnx
    from onnx import TensorProto, helper

    if case.weights not in ("int8", "int4"):
        raise ValueError(f"MatMulNBits takes int8 and int4 weights, got {case.weights}")
    if case.gguf:
        _quantize(case, folder)
        return
    module: Any = built.module
    nodes, constants, value = [], [], "x"
    for i in range(module.layers):
        result = "y" if i == module.layers - 1 else f"h{i}"
        arrays, attributes = _layer(case.weights, getattr(module, f"q{i}").numpy(), getattr(module, f"s{i}").numpy())
        names = [f"{name}{i}" for name in arrays]
        constants += [onnx.numpy_helper.from_array(a, n) for n, a in zip(names, arrays.values(), strict=True)]
        nodes.append(helper.make_node("MatMulNBits", [value, *names], [result], domain="com.microsoft", **attributes))
        value = result
    shape = list(built.inputs["x"].shape)
    ends = [helper.make_tensor_value_info(n, TensorProto.FLOAT, shape) for n in ("x", "y")]
    graph = helper.make_graph(nodes, "layers", ends[:1], ends[1:], constants)
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft", 1)]
    onnx.save(helper.make_model(graph, opset_imports=opsets, ir_version=8), str(folder / "nbits.onnx"))


def _quantize(case: Case, folder: Path) -> None:
    """The exported model, its products' weights quantized by ONNX Runtime's own tool."""
    import onnx
    from onnxruntime.quantization.matmul_nbits_quantizer import MatMulNBitsQuantizer

    bits, block = (4, GROUP) if case.weights == "int4" else (8, _BLOCK)
    model = onnx.load(str(folder / "model.onnx"))
    tool = MatMulNBitsQuantizer(model, bits=bits, block_size=block, is_symmetric=True, accuracy_level=4)
    tool.process()
    tool.model.save_model_to_file(str(folder / "nbits.onnx"), use_external_data_format=True)


def _layer(dtype: str, q: np.ndarray, s: np.ndarray) -> tuple[dict[str, np.ndarray], dict[str, int]]:
    """Weight ``[out, in]`` and its scales in blocks along ``in``; stored values are unsigned."""
    bits = 4 if dtype == "int4" else 8
    out, size = q.shape
    block = size // s.shape[1] if s.shape[1] > 1 else _BLOCK
    stored = (q.astype(np.int16) + (1 << (bits - 1))).astype(np.uint8).reshape(out, size // block, block)
    if bits == 4:
        stored = stored[..., 0::2] | stored[..., 1::2] << 4
    scales = np.broadcast_to(s, (out, size // block)) if s.shape[1] == 1 else s
    arrays = {"q": np.ascontiguousarray(stored), "s": np.ascontiguousarray(scales).reshape(-1)}
    # Level 4 lets it quantize activations to int8: without, 8 bits run at a hundredth of the speed where there is no AVX-512.
    return arrays, {"K": size, "N": out, "bits": bits, "block_size": block, "accuracy_level": 4}

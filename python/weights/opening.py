"""What people name as weights, a file or a folder, as a :class:`~.source.TensorSource`: the tables of formats are here.

``relaxir.weights`` imports none of the formats before a file asks for it.
"""

from __future__ import annotations

import importlib
import os
from typing import Any

from ..dialect.errors import RelaxError
from .files import inside, path_text
from .folder_files import files_of_folder
from .model_folder import quantization_of
from .remote.places import is_url
from .safetensors import Checkpoint
from .source import TensorSource

__all__ = ["container_end", "decoded", "open_tensors"]

#: Containers: the end of a file's name, and ``module:function`` below ``relaxir.weights`` that takes such a path.
_CONTAINERS: dict[str, str] = {
    ".gguf": "formats.gguf_split:open_gguf",
    ".npz": "npz_file:NpzFile",
    ".onnx": "onnx_file:OnnxFile",
    ".bin": "torch_file:TorchCheckpoint",
    ".bin.index.json": "torch_file:TorchCheckpoint",
    ".ckpt": "torch_file:TorchCheckpoint",
    ".pt": "torch_file:TorchCheckpoint",
    ".pth": "torch_file:TorchCheckpoint",
}

#: Encodings: ``quantization_config.quant_method``, and ``module:function`` that takes a source and gives the decoded one.
_ENCODINGS: dict[str, str] = {
    "awq": "formats.awq:decoded",
    "bitsandbytes": "formats.nf4:decoded",
    "compressed-tensors": "formats.compressed_tensors:decoded",
    "fbgemm_fp8": "formats.fp8:decoded",
    "fp8": "formats.fp8:decoded",
    "gguf": "formats.gguf:decoded",
    "gptq": "formats.gptq:decoded",
    "modelopt": "formats.fp8:modelopt_decoded",
    "auto-round": "formats.gptq:decoded",
    "intel/auto-round": "formats.gptq:decoded",
    "mxfp4": "formats.mxfp4:decoded",
    "torchao": "formats.torchao:decoded",
}


def open_tensors(path: str | os.PathLike[str]) -> TensorSource:
    """The tensors of a file or folder, as they are stored.

    Args:
        path: a safetensors file, a folder (:mod:`.folder_files`) or its index, or a file of another container. Or a URL, see
            :func:`.remote.tensors.open_remote`.

    Raises:
        RelaxError: it cannot be read or is malformed.
    """
    text = path_text(path)
    if is_url(text):
        return _function("remote.tensors:open_remote")(text)
    if not os.path.isdir(text):
        return _opened(text, text)
    found = files_of_folder(text)
    name = found.files[0] if found.index is None else found.index
    has_own_names = name.startswith("pytorch_model.bin") or container_end(name) is None  # then the container takes the folder
    return _opened(text if has_own_names else inside(text, name, f"'{text}'"), name)


def _opened(path: str, name: str) -> TensorSource:
    """The tensors of a path, which is a file of this name or has one."""
    end = container_end(name)
    return Checkpoint(path) if end is None else _function(_CONTAINERS[end])(path)


def container_end(name: str) -> str | None:
    """The end of a file's name by which it is read as another container than safetensors; None for safetensors."""
    return next((end for end in _CONTAINERS if name.endswith(end)), None)


def decoded(source: TensorSource) -> TensorSource:
    """The tensors under the model's own names where ``config.json`` says that they are encoded, or where there are eight-bit
    floats beside scales of a matrix or its rows; else the source itself.

    Raises:
        RelaxError: there is no decoder for what it says.
    """
    found = quantization_of(source.config, source.path)
    if found is None:
        has_scales = any(name.endswith((".weight_scale", ".scale_weight")) for name in source)
        return _function("formats.fp8:plain_decoded")(source) if has_scales else source
    method = found.get("quant_method")
    home = _ENCODINGS.get(method) if isinstance(method, str) else None
    if home is None:
        known = ", ".join(_ENCODINGS) or "nothing"
        what = f"'{source.path}': quantization_config.quant_method"
        raise RelaxError(f"{what}: expected one out of {known}, got {method!r}")
    return _function(home)(source)


def _function(home: str) -> Any:
    module, _, name = home.partition(":")
    return getattr(importlib.import_module(f".{module}", __package__), name)

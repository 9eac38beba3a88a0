"""What people name as weights, a file or a folder, as a :class:`~.source.TensorSource`: the tables of formats are here.

``relaxir.weights`` imports none of the formats before a file asks for it.
"""

from __future__ import annotations

import importlib
import os
from typing import Any

from ..dialect.errors import RelaxError
from .files import path_text
from .model_folder import INDEX, SINGLE, quantization_of
from .remote.places import is_url
from .safetensors import Checkpoint
from .source import TensorSource

__all__ = ["container_end", "decoded", "open_tensors"]

#: Containers: the end of a file's name, and ``module:function`` below ``relaxir.weights`` that takes such a path.
_CONTAINERS: dict[str, str] = {
    ".gguf": "formats.gguf_file:GgufFile",
    ".npz": "npz_file:NpzFile",
    ".onnx": "onnx_file:OnnxFile",
    ".bin": "torch_file:TorchCheckpoint",
    ".bin.index.json": "torch_file:TorchCheckpoint",
    ".pt": "torch_file:TorchCheckpoint",
    ".pth": "torch_file:TorchCheckpoint",
}

#: What a folder without safetensors may have instead.
_TORCH_NAMES = ("pytorch_model.bin", "pytorch_model.bin.index.json")

#: Encodings: ``quantization_config.quant_method``, and ``module:function`` that takes a source and gives the decoded one.
_ENCODINGS: dict[str, str] = {
    "awq": "formats.awq:decoded",
    "bitsandbytes": "formats.nf4:decoded",
    "compressed-tensors": "formats.compressed_tensors:decoded",
    "fbgemm_fp8": "formats.fp8:decoded",
    "fp8": "formats.fp8:decoded",
    "gguf": "formats.gguf:decoded",
    "gptq": "formats.gptq:decoded",
    "auto-round": "formats.gptq:decoded",
    "intel/auto-round": "formats.gptq:decoded",
    "mxfp4": "formats.mxfp4:decoded",
}
#: Methods without a decoder, with what does instead.
_INSTEAD = {"torchao": "load the model by transformers, export it by torch.export, and import the program"}


def open_tensors(path: str | os.PathLike[str]) -> TensorSource:
    """The tensors of a file or folder, as they are stored.

    Args:
        path: a safetensors file, a Hugging Face folder or its index, or a file of another container. Of a folder that has
            both, safetensors go before files of PyTorch. Or a URL, see :func:`.remote.tensors.open_remote`.

    Raises:
        RelaxError: it cannot be read or is malformed.
    """
    text = path_text(path)
    if is_url(text):
        return _function("remote.tensors:open_remote")(text)
    end = container_end(_torch_name(text) if os.path.isdir(text) else text)
    return Checkpoint(text) if end is None else _function(_CONTAINERS[end])(text)


def container_end(name: str) -> str | None:
    """The end of a file's name by which it is read as another container than safetensors; None for safetensors."""
    return next((end for end in _CONTAINERS if name.endswith(end)), None)


def _torch_name(folder: str) -> str:
    """What a folder without safetensors has of PyTorch; empty for nothing."""
    has_safetensors = any(os.path.lexists(os.path.join(folder, n)) for n in (SINGLE, INDEX))
    found = [n for n in _TORCH_NAMES if os.path.lexists(os.path.join(folder, n))]
    return found[0] if found and not has_safetensors else ""


def decoded(source: TensorSource) -> TensorSource:
    """The tensors under the model's own names where ``config.json`` says that they are encoded, else the source itself.

    Raises:
        RelaxError: there is no decoder for what it says.
    """
    found = quantization_of(source.config, source.path)
    if found is None:
        return source
    method = found.get("quant_method")
    home = _ENCODINGS.get(method) if isinstance(method, str) else None
    if home is None:
        known = ", ".join(_ENCODINGS) or "nothing"
        instead = f": {_INSTEAD[method]}" if isinstance(method, str) and method in _INSTEAD else ""
        what = f"'{source.path}': quantization_config.quant_method"
        raise RelaxError(f"{what}: expected one out of {known}, got {method!r}{instead}")
    return _function(home)(source)


def _function(home: str) -> Any:
    module, _, name = home.partition(":")
    return getattr(importlib.import_module(f".{module}", __package__), name)

"""Torch tensors to a safetensors file, one at a time: a tensor on a device is in host memory only while it is written."""

from __future__ import annotations

import os
from collections.abc import Mapping

import torch

from ..dialect.errors import RelaxError
from ..weights import ArraySpec, StreamWriter
from ..weights.arrays import to_numpy

__all__ = ["write_tensors"]


def write_tensors(tensors: Mapping[str, torch.Tensor], path: str | os.PathLike[str]) -> None:
    """Writes tensors under these names.

    Raises:
        RelaxError: a tensor has no contents (``meta`` device, fake tensor) or a dtype or layout that the file format lacks, or
            the file cannot be written.
    """
    specs = {name: _spec(name, tensor) for name, tensor in tensors.items()}
    with StreamWriter(path, specs) as writer:
        for name, tensor in tensors.items():
            writer.put(name, to_numpy(tensor.detach().cpu(), f"weight '{name}'"))


def _spec(name: str, tensor: torch.Tensor) -> ArraySpec:
    if tensor.device.type == "meta" or isinstance(tensor, torch._subclasses.FakeTensor):
        raise RelaxError(f"expected weights with contents, got '{name}' on the meta device")
    example = to_numpy(torch.empty(0, dtype=tensor.dtype), f"weight '{name}'")
    return ArraySpec(example.dtype, tuple(tensor.shape))

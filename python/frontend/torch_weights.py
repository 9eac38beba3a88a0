"""Torch tensors to a safetensors file, one at a time: a tensor on a device is in host memory only while it is written.
Those that are a state's first value become attributes.
"""

from __future__ import annotations

import os
from collections.abc import Mapping

import numpy as np
import torch

from ..dialect.bindings import ir
from ..dialect.dtypes import dtype_name
from ..dialect.elements import from_numpy
from ..dialect.errors import RelaxError
from ..dialect.functions import argument_names, functions
from ..weights import ArraySpec, StreamWriter
from ..weights.arrays import to_numpy
from .torch_stored import has_contents

__all__ = ["first_value", "known_values", "write_tensors"]

# Frequencies and tables of positions have less; a mask of 4096 by 4096 positions is better read from a file.
_CONSTANT_BYTES = 1 << 20


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
    if not has_contents(tensor):
        raise RelaxError(f"expected weights with contents, got '{name}' on the meta device")
    example = to_numpy(torch.empty(0, dtype=tensor.dtype), f"weight '{name}'")
    return ArraySpec(example.dtype, tuple(tensor.shape))


def known_values(module: ir.Operation, tensors: Mapping[str, torch.Tensor]) -> dict[str, ir.DenseElementsAttr]:
    """The values of those among these tensors that a function of the module reads, that have contents and are not too large."""
    read = {name for function in functions(module) for name in argument_names(function) if name is not None}
    return {
        name: first_value(tensor)
        for name, tensor in tensors.items()
        if name in read and has_contents(tensor) and tensor.nbytes <= _CONSTANT_BYTES
    }


def first_value(tensor: torch.Tensor) -> ir.DenseElementsAttr:
    """The tensor as a constant; without contents, on the ``meta`` device, it is zero. A cache, one number, takes no memory."""
    known = tensor.detach().cpu() if has_contents(tensor) else torch.zeros((), dtype=tensor.dtype).expand(tensor.shape)
    array = to_numpy(known, "state")
    shape = list(array.shape)
    type_ = ir.RankedTensorType.get(shape, ir.Type.parse(dtype_name(array.dtype)))
    if not array.size:
        return from_numpy(array, type_)
    data = np.ascontiguousarray(array).view(np.uint8).reshape(array.size, -1)
    if not (data == data[0]).all():
        return from_numpy(array, type_)
    scalar = from_numpy(array.reshape(-1)[:1].reshape(()), ir.RankedTensorType.get([], type_.element_type))
    return ir.DenseElementsAttr.get_splat(type_, scalar.get_splat_value())

"""Torch tensors at a call, without the detour over NumPy that costs several microseconds each; never imports torch itself."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from functools import cache
from typing import Any, cast

import numpy as np

from ..weights.arrays import TORCH_BITS, is_torch

__all__ = ["TorchTensors", "is_composed", "plain_tensors", "torch_tensors"]


class TorchTensors:
    """What of torch a call needs, looked up once.

    Attributes:
        type: ``torch.Tensor``. Subclasses, such as parameters and fake tensors, may be anything: they take the way over NumPy.
        strided: the layout of dense tensors.
        from_numpy: makes one of an array of a dtype that is NumPy's own.
    """

    def __init__(self, torch: Any):
        self._torch = torch
        self.type: type[Any] = torch.Tensor
        self.strided: Any = torch.strided
        self.from_numpy: Any = torch.from_numpy

    def dtype(self, dtype: np.dtype[Any]) -> Any:
        """Torch's own name of a dtype; None where its elements look different, or it has none."""
        known = dtype.isbuiltin == 1 or dtype.name in TORCH_BITS
        return getattr(self._torch, dtype.name, None) if known else None

    def writable_address(self, tensor: Any, dtype: Any, shape: tuple[int, ...], alignment: int) -> int | None:
        """Where a tensor lies that looks as most do: dense, contiguous, without gradient; None for any other."""
        if tensor.dtype is not dtype or tensor.requires_grad or tensor.layout is not self.strided or not tensor.is_cpu:
            return None
        try:
            if tensor.shape != shape or not tensor.is_contiguous() or tensor.is_neg():
                return None
            start = tensor.data_ptr()
        except RuntimeError:  # has no memory, as within transformations of functions, or several shapes
            return None
        return None if start == 0 or start % alignment else start


@cache
def _of(torch: Any) -> TorchTensors:
    return TorchTensors(torch)


def torch_tensors() -> TorchTensors | None:
    """None while torch was never imported, for then nobody holds one of its tensors."""
    torch = sys.modules.get("torch")
    return None if torch is None else _of(torch)


def plain_tensors(name: str, value: object) -> Iterator[tuple[str, object]]:
    """A tensor by its name; those of one that torch makes of several, as torchao's, by that of the attribute behind it.

    Imported programs have weights of these names (``a.weight.qdata`` and ``a.weight.scale`` of ``a.weight``).
    """
    if not is_composed(value):
        yield name, value
        return
    for attribute in cast(Any, value).__tensor_flatten__()[0]:
        yield from plain_tensors(f"{name}.{attribute}", getattr(value, attribute))


def is_composed(value: object) -> bool:
    """Whether this is a torch tensor that is made of several others."""
    return is_torch(value) and hasattr(type(value), "__tensor_flatten__")

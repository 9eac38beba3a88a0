"""Tensors by name in a folder, so that memory holds none of them: written once, and mapped when they are asked for."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from typing import Any

import numpy as np

__all__ = ["ValueStore"]

Array = np.ndarray[Any, Any]


@dataclass
class ValueStore:
    """Tensors in files of a folder that somebody else removes."""

    folder: str
    _written: int = 0
    _specs: dict[str, tuple[str, np.dtype[Any], tuple[int, ...]]] = field(
        default_factory=dict[str, tuple[str, np.dtype[Any], tuple[int, ...]]]
    )

    def write(self, name: str, array: Array) -> None:
        """Keeps a tensor. One of the same name takes the place of another."""
        path = os.path.join(self.folder, f"{self._written}.bin")
        self._written += 1
        np.ascontiguousarray(array).reshape(-1).view(np.uint8).tofile(path)
        self._specs[name] = (path, array.dtype, array.shape)

    def __contains__(self, name: str) -> bool:
        return name in self._specs

    def take(self, name: str) -> Array:
        """The tensor, mapped; its file is removed, and its room is free when nobody has the tensor any more."""
        path, dtype, shape = self._specs.pop(name)
        empty = 0 in shape
        array = np.zeros(shape, dtype) if empty else np.memmap(path, np.uint8, "r").view(dtype).reshape(shape)
        os.unlink(path)
        return array

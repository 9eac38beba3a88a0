"""Orders of an image's or a kernel's dimensions, by letters: ``NCHW`` is batch, channels, height, width."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

__all__ = ["DATA_LAYOUTS", "KERNEL_LAYOUTS", "permutation", "reordered"]

DATA_LAYOUTS = ("NCHW", "NHWC")
KERNEL_LAYOUTS = ("OIHW", "HWIO")

_T = TypeVar("_T")


def permutation(source: str, target: str) -> list[int]:
    """The ``axes`` of a permute_dims from one layout to another."""
    return [source.index(letter) for letter in target]


def reordered(items: Sequence[_T], source: str, target: str) -> list[_T]:
    """One item per dimension, in the order of another layout."""
    return [items[i] for i in permutation(source, target)]

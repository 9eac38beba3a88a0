"""What is read of files, by the system's calls."""

from __future__ import annotations

import os
from collections.abc import Sequence

import pytest

__all__ = ["recorded_reads"]


def recorded_reads(patch: pytest.MonkeyPatch) -> list[tuple[int, int]]:
    """Grows by the place of the first byte, and of that behind the last one, whenever the content of tensors is read."""
    read, original = list[tuple[int, int]](), os.preadv

    def preadv(descriptor: int, parts: Sequence[memoryview], begin: int, *flags: int) -> int:
        count = original(descriptor, parts, begin, *flags)
        read.append((begin, begin + count))
        return count

    patch.setattr(os, "preadv", preadv)
    return read

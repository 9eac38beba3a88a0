"""Scratch memory for compiled code: aligned buffers that grow on demand and are reused between calls."""

from __future__ import annotations

import ctypes
import mmap
from collections import deque
from typing import Any

import numpy as np

from ..dialect.errors import RelaxError
from ..weights.arrays import Array, address

__all__ = ["Scratch", "ScratchPool"]

# From here on huge pages pay off; NumPy asks for them from the same size.
_HUGE_BYTES = 4 << 20


class Scratch:
    """One buffer, used by one call at a time.

    It is mapped for itself, so that its memory goes back to the system at once: glibc keeps freed blocks of up to 32 MiB once a
    program has freed one, and then memory would exceed what a preparation predicts.

    Attributes:
        address: of its first byte, a multiple of the page size; None while it is empty.
        size: in bytes.
        pointer, extent: both as C has them: a call that would convert numbers takes 0.1 us longer.
    """

    __slots__ = ("_block", "address", "extent", "pointer", "size")

    def __init__(self) -> None:
        self._set(None, None, 0)

    def grow(self, size: int) -> None:
        """Makes it at least this large; its content is lost. Raises RelaxError when there is not that much memory.

        It grows by half at least, for sequences that grow with each call; pages that nobody touches take no memory.
        """
        if size <= self.size:
            return
        size = max(size, self.size + self.size // 2)
        self.free()  # first: old and new together would double the peak
        try:
            block = mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        except (OSError, OverflowError, ValueError):
            raise RelaxError(f"expected {size} bytes of scratch memory, got none") from None
        if size >= _HUGE_BYTES and hasattr(mmap, "MADV_HUGEPAGE"):
            block.madvise(mmap.MADV_HUGEPAGE)
        self._set(block, address(np.ndarray((1,), np.uint8, block)), size)

    def free(self) -> None:
        """Gives its memory back, as soon as no array looks at it any more."""
        self._set(None, None, 0)

    def view(self, offset: int, dtype: np.dtype[Any], shape: tuple[int, ...]) -> Array:
        """An array inside the buffer, which must be large enough."""
        return np.ndarray(shape, dtype, self._block, offset)

    def _set(self, block: mmap.mmap | None, where: int | None, size: int) -> None:
        self._block, self.address, self.size = block, where, size
        self.pointer, self.extent = ctypes.c_void_p(where), ctypes.c_int64(size)


class ScratchPool:
    """Buffers handed out to concurrent calls: as many exist as calls ever ran at once, whichever threads made them."""

    def __init__(self) -> None:
        self._free: deque[Scratch] = deque()

    def take(self) -> Scratch:
        """A buffer that nobody else uses until it is given back."""
        try:
            return self._free.pop()
        except IndexError:
            return Scratch()

    def give(self, scratch: Scratch) -> None:
        """Ends the use of a buffer."""
        self._free.append(scratch)

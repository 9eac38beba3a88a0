"""Scratch memory for compiled code: aligned buffers that grow on demand and are reused between calls."""

from __future__ import annotations

from collections import deque

import numpy as np

from ..weights.arrays import Array, address, aligned_empty

__all__ = ["Scratch", "ScratchPool"]

_BYTE = np.dtype(np.uint8)


class Scratch:
    """One buffer, used by one call at a time.

    Attributes:
        address: of its first byte, a multiple of 64; None while it is empty.
        size: in bytes.
    """

    __slots__ = ("_block", "address", "size")

    def __init__(self) -> None:
        self._block: Array | None = None
        self.address: int | None = None
        self.size = 0

    def grow(self, size: int) -> None:
        """Makes it at least this large; its content is lost. Raises RelaxError when there is not that much memory."""
        if size <= self.size:
            return
        self._block, self.address, self.size = None, None, 0  # freed first: old and new together would double the peak
        self._block = aligned_empty(_BYTE, (size,))
        self.address, self.size = address(self._block), size

    def view(self, offset: int, dtype: np.dtype, shape: tuple[int, ...]) -> Array:
        """An array inside the buffer, which must be large enough."""
        return np.ndarray(shape, dtype, self._block, offset)


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

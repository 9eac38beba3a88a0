"""Swizzles of shared memory: bits of the row go into the bits of the 16-byte chunk, so that columns do not share banks."""

from __future__ import annotations

from .arrays import Array

__all__ = ["swizzled"]

#: By mode (none, 32, 64, 128 bytes): address bits 7 and up are added without carry to these bits.
_BITS = (0, 0x10, 0x30, 0x70)


def swizzled(address: Array, mode: int) -> Array:
    """Addresses as a mode has them."""
    return address ^ ((address >> 3) & _BITS[mode]) if mode else address

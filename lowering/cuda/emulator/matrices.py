"""Matrices of warps: ldmatrix, stmatrix and mma.sync, with the fragments that registers hold.

Lane ``4g + t`` of a warp has, of an 8x8 matrix of 16-bit elements, elements ``2t`` and ``2t + 1`` of row ``g``.
Fragments of mma are such matrices (of 4-byte columns for other widths): A by rows of 8 and then by halves of K, B by
halves of K, C and D by rows of 8.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import ml_dtypes
import numpy as np

from .access import Access
from .arrays import Array, Lanes, f2, f4, f8, i1, i4, i8, indices, u1, u2, u4
from .clocks import Clocks
from .core import Core
from .floats import widen

__all__ = ["Matrices", "accumulated", "decoded"]

_F8 = {"e4m3": ml_dtypes.float8_e4m3fn, "e5m2": ml_dtypes.float8_e5m2}


def decoded(raw: Array, kind: str) -> Array:
    """Bytes (in the last axis) as what they are multiplied as: f32, and f64 for integers, whose sums are exact so."""
    if kind == "bf16":
        return widen(raw.view(u2))
    if kind == "f16":
        return raw.view(f2).astype(f4)
    if kind == "tf32":  # the processor does not look at the lower bits
        return (raw.view(u4) & u4(0xFFFFE000)).view(f4)
    if kind in ("s8", "u8"):
        return raw.view(i1 if kind == "s8" else u1).astype(f8)
    return raw.view(_F8[kind]).astype(f4)


def accumulated(product: Array, addend: Array | None, kind: str, saturates: bool) -> Array:
    """A product plus what was there, as the accumulator's type has it."""
    if kind != "s32":
        return product if addend is None else addend + product
    total = product.astype(i8) + (0 if addend is None else addend.astype(i8))
    return np.clip(total, -(2**31), 2**31 - 1).astype(i4) if saturates else total.astype(i4)


class Matrices:
    """Instructions of whole warps on matrices."""

    def __init__(self, core: Core, clocks: Clocks, access: Access):
        self.core, self.clocks, self.access = core, clocks, access

    def _whole(self, s: Lanes, at_: int) -> Array:
        lanes = indices(s)
        if len(lanes) % 32:
            raise self.core.finding("divergence", "a matrix instruction in an incomplete warp", at_, lanes)
        return lanes

    def _addressing(self, s: Lanes, address: Any, number: int, at_: int) -> tuple[Array, Array]:
        """The lanes whose addresses count, eight for each matrix, and their addresses."""
        lanes = self._whole(s, at_)
        chosen = np.broadcast_to(address, lanes.shape).reshape(-1, 32)[:, : 8 * number]
        return lanes.reshape(-1, 32)[:, : 8 * number].reshape(-1), chosen.reshape(-1)

    def load(self, s: Lanes, space: str, address: Any, number: int, is_transposed: bool, at_: int) -> list[Array]:
        """ldmatrix: a register for each matrix."""
        lanes, address = self._addressing(s, address, number, at_)
        space = "shared" if space == "generic" and int(address.min()) < 1 << 40 else space
        rows = self.access.load(space, lanes, address, 4, 4, at_).reshape(-1, number, 8, 4)
        if is_transposed:
            rows = np.ascontiguousarray(rows.view(u2).reshape(-1, number, 8, 8).swapaxes(2, 3)).view(u4)
        self.clocks.tick(self.core.rows(s))
        return [rows[:, i].reshape(-1) for i in range(number)]

    def store(self, s: Lanes, space: str, address: Any, registers: Sequence[Any], is_transposed: bool, at_: int) -> None:
        """stmatrix."""
        number = len(registers)
        lanes, address = self._addressing(s, address, number, at_)
        all_lanes = len(indices(s))
        rows = np.stack([np.broadcast_to(r, (all_lanes,)).reshape(-1, 8, 4) for r in registers], 1)
        if is_transposed:
            rows = np.ascontiguousarray(rows.view(u2).reshape(-1, number, 8, 8).swapaxes(2, 3)).view(u4)
        rows = rows.reshape(-1, 4)
        space = "shared" if space == "generic" and int(address.min()) < 1 << 40 else space
        self.access.store(space, lanes, address, 4, tuple(rows[:, k] for k in range(4)), at_)
        self.clocks.tick(self.core.rows(s))

    def multiply(
        self, s: Lanes, depth: int, types: Sequence[str], a: Any, b: Any, c: Any, saturates: bool, at_: int
    ) -> list[Array]:
        """mma.sync m16n8: the registers of D."""
        lanes = self._whole(s, at_)
        warps, shape = len(lanes) // 32, lanes.shape
        left, right, addend = (np.stack([np.broadcast_to(r, shape) for r in regs], 1) for regs in (a, b, c))
        rows = decoded(np.ascontiguousarray(left).view(u1).reshape(-1, 4 * len(a)), types[1])
        columns = decoded(np.ascontiguousarray(right).view(u1).reshape(-1, 4 * len(b)), types[2])
        halves, each = len(a) // 2, depth // (4 * (len(a) // 2))
        matrix = rows.reshape(warps, 8, 4, halves, 2, each).transpose(0, 4, 1, 3, 2, 5).reshape(warps, 16, depth)
        other = columns.reshape(warps, 8, 4, len(b), depth // (4 * len(b))).transpose(0, 3, 2, 4, 1).reshape(warps, depth, 8)
        total = accumulated(matrix @ other, self._accumulator(addend, types[3], warps), types[0], saturates)
        self.clocks.tick(self.core.rows(s))
        return self._registers(total, types[0], warps)

    def _accumulator(self, registers: Array, kind: str, warps: int) -> Array:
        if kind == "f16":
            values = np.ascontiguousarray(registers).view(f2).astype(f4)
        else:
            values = np.ascontiguousarray(registers).view(f4 if kind == "f32" else i4)
        return values.reshape(warps, 8, 4, 2, 2).transpose(0, 3, 1, 2, 4).reshape(warps, 16, 8)

    def _registers(self, total: Array, kind: str, warps: int) -> list[Array]:
        table = total.reshape(warps, 2, 8, 4, 2).transpose(0, 2, 3, 1, 4).reshape(warps * 32, 4)
        table = np.ascontiguousarray(table.astype(f2 if kind == "f16" else i4 if kind == "s32" else f4)).view(u4)
        return [table[:, i].copy() for i in range(table.shape[1])]

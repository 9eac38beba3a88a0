"""Tensor copies: boxes of tensors in global memory to and from shared memory, swizzled."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import ml_dtypes
import numpy as np

from .arrays import RAW, Array, Lanes, at, f2, f4, f8, i4, i8, indices, u1, u2, u4, u8
from .bulk import Bulk
from .core import Core
from .findings import Finding
from .memory import GLOBAL, PARAM, SHARED
from .swizzle import swizzled
from .tensor_map import TensorMap

__all__ = ["Tma"]

_DTYPES: dict[str, Any] = {"u8": u1, "u16": u2, "u32": u4, "s32": i4, "u64": u8, "s64": i8, "f16": f2, "f32": f4, "f64": f8,
                           "bf16": ml_dtypes.bfloat16, "f32.ftz": f4, "tf32": f4, "tf32.ftz": f4}  # fmt: skip
_REDUCTIONS: dict[str, Any] = {
    "add": np.add,
    "min": np.minimum,
    "max": np.maximum,
    "and": np.bitwise_and,
    "or": np.bitwise_or,
    "xor": np.bitwise_xor,
}


class Tma:
    """Tensor copies of a wave."""

    def __init__(self, core: Core, bulk: Bulk):
        self.core, self.bulk = core, bulk
        self.maps: dict[bytes, TensorMap] = {}

    def load(
        self, s: Lanes, target: Any, tensor: Any, where: Sequence[Any], barrier: Any, mask: Any, rank: int, at_: int
    ) -> None:
        """A box of each lane to shared memory; what is outside of the tensor is zero or NaN, and counts as bytes."""
        for index, lane in enumerate(indices(s).tolist()):
            found = self._map(at(tensor, index), rank, lane, at_)
            offset, inside, unit = self._box(found, [at(c, index) for c in where])
            data = np.zeros(len(offset), RAW[unit])
            if found.fills_nan and not inside.all():
                data[:] = np.full(unit // found.width, np.nan, _DTYPES[found.type_name]).view(RAW[unit])[0]
            data[inside] = self.bulk.fetch(lane, offset[inside], unit, at_)
            to = at(target, index)
            chunks = self._chunks(found, to, len(offset) * unit, lane, at_)
            whole = data.view(u1).view(RAW[16])
            self.bulk.deliver(lane, to, at(barrier, index), None if mask is None else at(mask, index), chunks, whole, at_)

    def store(self, s: Lanes, tensor: Any, where: Sequence[Any], source: Any, rank: int, operation: str, at_: int) -> None:
        """A box of each lane from shared memory, or a reduction with what is there."""
        for index, lane in enumerate(indices(s).tolist()):
            found = self._map(at(tensor, index), rank, lane, at_)
            offset, inside, unit = self._box(found, [at(c, index) for c in where])
            start = at(source, index)
            start = start - SHARED if start >= SHARED else start
            chunks = start + self._chunks(found, start, len(offset) * unit, lane, at_)
            if (chunks < 0).any() or (chunks > self.core.stride - 16).any():
                raise self.core.finding("bounds", f"tensor store of {self.core.shared_name(start)}", at_, [lane])
            chunks = int(self.core.block_of[lane]) * self.core.stride + chunks
            self.bulk.read_shared(lane, chunks, at_)
            data = self.core.shared.views[16][chunks >> 4].view(u1).view(RAW[unit])[inside]
            if operation:
                data = self._reduced(found, operation, self.bulk.fetch(lane, offset[inside], unit, at_), data)
            self.bulk.put(lane, offset[inside], data, unit, at_)
            self.bulk.started(lane, at_)

    def _reduced(self, tensor: TensorMap, operation: str, old: Array, new: Array) -> Array:
        kind = _DTYPES[tensor.type_name]
        result = _REDUCTIONS[operation](np.ascontiguousarray(old).view(kind), np.ascontiguousarray(new).view(kind))
        return result.astype(kind).view(old.dtype)

    def _map(self, address: int, rank: int, lane: int, at_: int) -> TensorMap:
        """The descriptor at a generic address."""
        core = self.core
        if address % 64:
            raise core.finding("tensor map", f"descriptor at {address:#x}, which is no multiple of 64", at_, [lane])
        if PARAM <= address < GLOBAL:
            data = core.params[address - PARAM : address - PARAM + 128].tobytes()
        else:
            data = core.memory.read(address, 128).tobytes()
        if data not in self.maps:
            try:
                self.maps[data] = TensorMap.unpacked(data.ljust(128, b"\0"))
            except Finding as error:
                raise core.finding("tensor map", str(error), at_, [lane]) from None
        found = self.maps[data]
        if len(found.sizes) != rank:
            raise core.finding("tensor map", f"expected a tensor of {rank} dimensions, got {len(found.sizes)}", at_, [lane])
        return found

    def _box(self, tensor: TensorMap, where: Sequence[int]) -> tuple[Array, Array, int]:
        """Offsets of the box's units in global memory, in their order in the box, which are inside, and the bytes of a unit."""
        width, inner, first = tensor.width, tensor.box[0] * tensor.width, where[0]
        is_inside = first >= 0 and first + tensor.box[0] <= tensor.sizes[0]
        unit = 16 if is_inside and (first * width) % 16 == 0 else width
        step = np.arange(inner // unit) * unit
        offset = tensor.address - GLOBAL + first * width + step
        element = first + step // width
        inside = (element >= 0) & (element < tensor.sizes[0])
        for start, size, stride, extent in zip(where[1:], tensor.sizes[1:], tensor.strides, tensor.box[1:], strict=True):
            place = start + np.arange(extent)
            offset = ((place * stride)[:, None] + offset[None]).reshape(-1)
            inside = (((place >= 0) & (place < size))[:, None] & inside[None]).reshape(-1)
        return offset, inside, unit

    def _chunks(self, tensor: TensorMap, to: int, size: int, lane: int, at_: int) -> Array:
        """Places of the box's chunks of 16 bytes behind ``to``; the swizzle is of addresses."""
        if to % 128:
            raise self.core.finding(
                "alignment", f"tensor copy at shared address {to & 0xFFFFFF}, no multiple of 128", at_, [lane]
            )
        low = to & 0xFFFFFF
        return swizzled(low + np.arange(0, size, 16), tensor.swizzle) - low

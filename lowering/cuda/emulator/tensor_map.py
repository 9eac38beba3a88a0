"""Tensor maps: what cuTensorMapEncodeTiled makes. The real layout of the 128 bytes is secret, so ours is another one."""

from __future__ import annotations

import struct
from dataclasses import dataclass

from .findings import Finding

__all__ = ["TensorMap"]

_LAYOUT = struct.Struct("<8sBBBBIQ5Q4Q5H")
_MAGIC = b"EMUL_MAP"
#: CUtensorMapDataType: names.
_TYPES = ("u8", "u16", "u32", "s32", "u64", "s64", "f16", "f32", "f64", "bf16", "f32.ftz", "tf32", "tf32.ftz")
_SIZES = (1, 2, 4, 4, 8, 8, 2, 4, 8, 2, 4, 4, 4)


@dataclass(frozen=True)
class TensorMap:
    """A tensor in global memory and the box that is copied of it, dimensions from the innermost one.

    Attributes:
        kind: index of CUtensorMapDataType.
        address: of the first element.
        sizes: elements of each dimension.
        strides: bytes from one element to the next, of the dimensions but the first.
        box: elements of a copy in each dimension.
        swizzle: 0 none, 1 32, 2 64, 3 128 bytes.
        fills_nan: whether what is outside of the tensor is NaN and not zero.
    """

    kind: int
    address: int
    sizes: tuple[int, ...]
    strides: tuple[int, ...]
    box: tuple[int, ...]
    swizzle: int = 3
    fills_nan: bool = False

    def __post_init__(self) -> None:
        problem = self._problem()
        if problem:
            raise Finding("tensor map", problem)

    @property
    def width(self) -> int:
        """Bytes of an element."""
        return _SIZES[self.kind]

    @property
    def type_name(self) -> str:
        return _TYPES[self.kind]

    def _problem(self) -> str:
        if not 0 <= self.kind < len(_TYPES):
            return f"expected a data type below {len(_TYPES)}, got {self.kind}"
        rank = len(self.sizes)
        if not 1 <= rank <= 5 or len(self.box) != rank or len(self.strides) != rank - 1:
            return f"expected 1 to 5 dimensions, got sizes {self.sizes}, strides {self.strides}, box {self.box}"
        if self.address % 16 or any(s % 16 or not 0 < s < 1 << 40 for s in self.strides):
            return f"expected an address and strides in steps of 16 bytes, got {self.address:#x} and {self.strides}"
        if any(not 1 <= b <= 256 for b in self.box) or any(not 1 <= s <= 1 << 32 for s in self.sizes):
            return f"expected boxes of 1 to 256 and sizes up to 2**32, got box {self.box} of {self.sizes}"
        inner = self.box[0] * self.width
        if inner % 16:
            return f"expected rows of the box in steps of 16 bytes, got {inner}"
        if self.swizzle not in (0, 1, 2, 3) or (self.swizzle and inner > 16 << self.swizzle):
            return f"expected rows of the box of at most {16 << self.swizzle} bytes for the swizzle, got {inner}"
        return ""

    def packed(self) -> bytes:
        """128 bytes."""
        rank = len(self.sizes)
        sizes, strides, box = ((*v, *(0,) * n)[:n] for v, n in ((self.sizes, 5), (self.strides, 4), (self.box, 5)))
        fields = (_MAGIC, self.kind, rank, self.swizzle, self.fills_nan, 0, self.address, *sizes, *strides, *box)
        return _LAYOUT.pack(*fields).ljust(128, b"\0")

    @classmethod
    def unpacked(cls, data: bytes) -> TensorMap:
        """Raises Finding for bytes that are no tensor map."""
        magic, kind, rank, swizzle, fills_nan, _, address, *rest = _LAYOUT.unpack(data[: _LAYOUT.size])
        if magic != _MAGIC:
            raise Finding("tensor map", "the descriptor is no encoded tensor map")
        sizes, strides, box = rest[:5], rest[5:9], rest[9:14]
        return cls(kind, address, tuple(sizes[:rank]), tuple(strides[: rank - 1]), tuple(box[:rank]), swizzle, bool(fills_nan))

"""Images in frames of one number take turns in one buffer: what is around them is filled once.

Before::

    %frame = linalg.fill ins(%zero) outs(%empty) : tensor<58x58xf32>
    %a = tensor.insert_slice %x into %frame[1, 1] [56, 56] [1, 1]
    ...
    %b = tensor.insert_slice %y into %frame[1, 1] [56, 56] [1, 1]   // a copy of the frame, as the first one wrote to it

after::

    %a = tensor.insert_slice %x into %frame[1, 1] [56, 56] [1, 1]
    ...
    %b = tensor.insert_slice %y into %a[1, 1] [56, 56] [1, 1]

Bufferization copies where something still reads ``%a``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from ...dialect.bindings import ir
from ...dialect.functions import functions
from ...dialect.traversal import operations
from ..fusion.linalg_queries import is_fill
from ..lowering_pass import LoweringPass
from ..marks import KERNEL

__all__ = ["ShareFrames", "share_frames"]

_RANGES = ("static_offsets", "static_sizes", "static_strides")


@dataclass(frozen=True)
class ShareFrames(LoweringPass):
    """Lets images in frames of one number take turns in one buffer."""

    name: ClassVar[str] = "relax-share-frames"

    def run(self, op: ir.Operation) -> None:
        share_frames(op)


def share_frames(module: ir.Operation) -> None:
    """Rewrites images of one place in one frame, in the bodies of entries; in place."""
    for function in functions(module):
        if KERNEL in function.attributes:
            continue
        for block in function.regions[0].blocks:
            _share(block)


def _share(block: ir.Block) -> None:
    last: dict[tuple[object, ...], ir.Value] = {}
    for op in operations(block):
        if op.name != "tensor.insert_slice" or not is_fill(op.operands[1]):
            continue
        frame = op.operands[1]
        place = (frame, *list(op.operands)[2:], *(str(op.attributes[name]) for name in _RANGES))
        op.operands[1] = last.get(place, frame)
        last[place] = op.results[0]

"""All operations of a kernel as sums over windows: what makes the frame of the image, the sums, and what is made of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from .....dialect.bindings import ir
from .....dialect.traversal import erase_with_users
from ....kernels.emit.buffers import Buffers
from ....kernels.structure.match import MatchedGroup, find_group
from .frame import MadeFrame, find_frame, without_frame
from .shape import Windows, match_windows

__all__ = ["WindowGroup", "find_windows"]


@dataclass(frozen=True)
class WindowGroup:
    """Operations that become one kernel.

    Attributes:
        group: the sums with their fill and their epilogue.
        frame: what makes the frame of the image.
        windows: the sums, of the image without a frame.
    """

    group: MatchedGroup
    frame: MadeFrame | None
    windows: Windows

    def windows_in(self, memory: Buffers) -> Windows:
        """The sums with buffers of other code."""
        windows = _windows(self.group.contraction, self.frame, memory)
        assert windows is not None
        return windows

    def erase(self) -> None:
        """Erases the operations, and the buffers between them."""
        made = [] if self.frame is None else [self.frame.copy, self.frame.fill]
        for operation in (self.group.epilogue, self.group.contraction, self.group.fill, *made):
            if operation is not None:
                operation.erase()
        for buffer in (self.group.temporary, None if self.frame is None else self.frame.buffer):
            if buffer is not None:
                erase_with_users(buffer.owner.operation)


def find_windows(found: Sequence[ir.Operation]) -> WindowGroup | None:
    """Sums over windows that are, with what belongs to them, all there is of some operations; None where there is more."""
    for operation in found if len(found) <= _MOST else ():
        memory = Buffers(operation.location)
        windows = match_windows(operation, memory)
        if windows is not None:
            return _group(operation, windows, found)
    return None


# A frame's fill, the copy of the image, the fill of sums, the sums, their epilogue.
_MOST = 5


def _group(operation: ir.Operation, windows: Windows, found: Sequence[ir.Operation]) -> WindowGroup | None:
    group = find_group(operation, [o.operation for o in operation.block.operations])
    members = [op for op in (group.fill, group.contraction, group.epilogue) if op is not None]
    others = [op for op in found if op not in members]
    frame = find_frame(windows.image.value, found) if others else None
    if others and (frame is None or others != [frame.fill, frame.copy]):
        return None
    plain = _windows(operation, frame, Buffers(operation.location))
    return None if plain is None else WindowGroup(group, frame, plain)


def _windows(operation: ir.Operation, frame: MadeFrame | None, memory: Buffers) -> Windows | None:
    windows = match_windows(operation, memory)
    return windows if windows is None or frame is None else without_frame(windows, frame, memory)

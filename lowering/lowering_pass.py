"""What the passes between relax and LLVM have in common."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from ..dialect.passes.base import Pass

__all__ = ["LoweringPass"]


@dataclass(frozen=True)
class LoweringPass(Pass):
    """A pass that lowers: reports compare no work of what it leaves."""

    keeps_work: ClassVar[bool] = False

"""How functions say that they are kernels, and which of their arguments may be written to: the one writer of these marks."""

from __future__ import annotations

from collections.abc import Sequence

from ..dialect.bindings import func, ir
from .marks import KERNEL, WRITABLE

__all__ = ["mark_kernel", "mark_writable"]


def mark_kernel(function: func.FuncOp) -> None:
    """A function as one kernel."""
    function.attributes[KERNEL] = ir.UnitAttr.get()


def mark_writable(function: func.FuncOp, flags: Sequence[bool | None]) -> None:
    """Whether bufferization may overwrite each argument; None: not said. Other attributes of arguments go."""
    given = [ir.DictAttr.get({} if flag is None else {WRITABLE: ir.BoolAttr.get(flag)}) for flag in flags]
    function.attributes["arg_attrs"] = ir.ArrayAttr.get(given)

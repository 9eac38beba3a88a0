"""A module in the LLVM dialect to the LLVM IR text of the code: its functions, their C entry points, the manifest's digest."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ...dialect.bindings import ir
from ...dialect.errors import RelaxError
from ..arena import arena_of
from ..entries import lowered_entries
from ..llvm_text import llvm_ir
from ..manifest_digest import llvm_constant
from .wrapper import entry_point

__all__ = ["translate"]


def translate(module: ir.Operation, manifest: Mapping[str, Any]) -> str:
    """The text, of which the functions that entries describe can be called from C.

    Raises:
        RelaxError: an operation is none of the LLVM dialect, with its location.
    """
    with module.context, ir.Location.unknown():
        _check_translatable(module)
        entries = "".join(entry_point(entry.spec, arena_of(function)) for function, entry in lowered_entries(module))
        return llvm_ir(module) + entries + llvm_constant(manifest)


def _check_translatable(module: ir.Operation) -> None:
    """Raises RelaxError at an op that is not in the LLVM dialect: translating it would crash the process."""

    def visit(op: ir.Operation) -> ir.WalkResult:
        if not op.name.startswith(("llvm.", "omp.", "builtin.module")):
            left.append((op.name, str(op.location)))
            return ir.WalkResult.INTERRUPT
        return ir.WalkResult.ADVANCE

    left: list[tuple[str, str]] = []
    module.walk(visit, ir.WalkOrder.PRE_ORDER)
    for name, location in left:
        raise RelaxError(f"'{name}' op cannot be lowered to LLVM", location)

"""A module in the LLVM dialect to the LLVM IR text of the code: its functions, their C entry points, the manifest's digest."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ...dialect.bindings import ir
from ..arena import arena_of
from ..entries import lowered_entries
from ..llvm_text import check_translatable, llvm_ir
from ..manifest_digest import llvm_constant
from .wrapper import entry_point

__all__ = ["translate"]


def translate(module: ir.Operation, manifest: Mapping[str, Any], with_driver: bool = False) -> str:
    """The text, of which the functions that entries describe can be called from C.

    Args:
        module: in the LLVM dialect.
        manifest: whose digest the code carries.
        with_driver: whether entries, not the preparation, take a pointer more.

    Raises:
        RelaxError: an operation is none of the LLVM dialect, with its location.
    """
    with module.context, ir.Location.unknown():
        check_translatable(module, ("llvm.", "omp.", "builtin.module"), "LLVM")
        found = lowered_entries(module)
        entries = "".join(entry_point(e.spec, arena_of(f), with_driver and not e.is_step) for f, e in found)
        return llvm_ir(module) + entries + llvm_constant(manifest)

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


def translate(module: ir.Operation, manifest: Mapping[str, Any]) -> str:
    """The text, of which the functions that entries describe can be called from C.

    Raises:
        RelaxError: an operation is none of the LLVM dialect, with its location.
    """
    with module.context, ir.Location.unknown():
        check_translatable(module, ("llvm.", "omp.", "builtin.module"), "LLVM")
        entries = "".join(entry_point(entry.spec, arena_of(function)) for function, entry in lowered_entries(module))
        return llvm_ir(module) + entries + llvm_constant(manifest)

"""A module in the LLVM dialect to the LLVM IR text of the code: its functions, their C entry points, the manifest's digest."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from typing import Any

from ...dialect.bindings import ir
from ...dialect.sharding import ranks_of
from ..arena import arena_of
from ..constant_bytes import constants_as_bytes
from ..entries import lowered_entries
from ..extern_calls import Externs
from ..llvm_text import check_translatable, llvm_ir
from ..manifest_digest import llvm_constant
from .call_collectives import CALL, DEFINITION
from .call_externs import definitions
from .wrapper import entry_point

__all__ = ["translate"]

_DECLARATION = re.compile(r"^declare .*@([\w.]+)\(.*\n", re.M)


def translate(module: ir.Operation, manifest: Mapping[str, Any], with_driver: bool = False) -> str:
    """The text, of which the functions that entries describe can be called from C.

    Args:
        module: in the LLVM dialect.
        manifest: whose digest the code carries.
        with_driver: whether entries, not the preparation, take that of a GPU's driver.

    Raises:
        RelaxError: an operation is none of the LLVM dialect, with its location.
    """
    with module.context, ir.Location.unknown():
        check_translatable(module, ("llvm.", "omp.", "builtin.module"), "LLVM")
        constants_as_bytes(module)
        found = lowered_entries(module)
        ranks, externs = ranks_of(module) > 1, Externs.of(module)
        of_entries = ["driver"] * with_driver + ["ranks"] * ranks
        of_all = ["externs"] * bool(externs.calls)
        entries = "".join(entry_point(e.spec, arena_of(f), [*of_entries * (not e.is_step), *of_all]) for f, e in found)
        made = DEFINITION * ranks + definitions(externs)
        defined = [*[CALL] * ranks, *(call.name for call in externs.calls)]
        return _without_declarations(llvm_ir(module), defined) + entries + made + llvm_constant(manifest)


def _without_declarations(text: str, names: Collection[str | None]) -> str:
    """Without those of functions whose definitions follow as text."""
    return _DECLARATION.sub(lambda m: "" if m[1] in names else m[0], text) if names else text

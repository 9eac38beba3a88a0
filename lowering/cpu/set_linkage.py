"""No name of ours but the entry points' is visible outside of the code, and kernels stay functions of their own.

Before::

    func.func @main(...) -> i64 attributes {relax.entry = {name = "main", symbol = "relaxir_main", ...}}
    func.func private @kernel_0(...) attributes {relax.kernel}

after::

    func.func @relaxir_main.body(...) -> i64 attributes {llvm.linkage = #llvm.linkage<internal>, relax.entry = {...}}
    func.func private @kernel_0(...) attributes {llvm.linkage = #llvm.linkage<internal>, llvm.no_inline}

``@relaxir_main`` is the C function, which :mod:`.wrapper` adds as LLVM IR. Kernels that are inlined cost compile time and code.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from ...dialect.bindings import ir
from ...dialect.functions import body_of, functions
from ..entries import entry_of
from ..lowering_pass import LoweringPass
from ..marks import KERNEL
from .wrapper import body_name

__all__ = ["SetLinkage"]


@dataclass(frozen=True)
class SetLinkage(LoweringPass):
    """Hides all functions but the entry points, and keeps kernels from being inlined."""

    name: ClassVar[str] = "relax-set-linkage"

    def run(self, op: ir.Operation) -> None:
        for function in functions(op):
            if body_of(function) is None:
                continue
            function.attributes["llvm.linkage"] = ir.Attribute.parse("#llvm.linkage<internal>")
            if KERNEL in function.attributes:
                function.attributes["llvm.no_inline"] = ir.UnitAttr.get()
                del function.attributes[KERNEL]
            entry = entry_of(function)
            if entry is not None:
                function.attributes["sym_name"] = ir.StringAttr.get(body_name(entry.spec))

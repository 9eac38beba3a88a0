"""Writes down which relax ops each function computes, for the messages of checked code: later steps forget.

Before, where operations are located at ops (``"relax.exp"("model.mlir":3:8)``)::

    func.func private @kernel_0(...) attributes {relax.kernel} {

after::

    func.func private @kernel_0(...) attributes {relax.kernel, relax.ops = ["relax.exp"]} {
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from ...dialect.bindings import ir
from ...dialect.functions import functions
from ..lowering_pass import LoweringPass
from ..marks import OPS
from ..plain_attributes import to_attribute
from .report_kernels import relax_ops

__all__ = ["NoteOps"]


@dataclass(frozen=True)
class NoteOps(LoweringPass):
    """Writes down which relax ops each function computes."""

    name: ClassVar[str] = "relax-note-ops"

    def run(self, op: ir.Operation) -> None:
        for function in functions(op):
            found = relax_ops(function)
            if found and OPS not in function.attributes:
                function.attributes[OPS] = to_attribute(found)

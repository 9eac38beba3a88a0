"""What torch-mlir's importer keeps while it imports a program: with the user's lines, and names for symbols."""

from __future__ import annotations

import os
import re
from typing import Any, cast

import sympy
import torch

from ..dialect.bindings import extras_module, ir

__all__ = ["ImportCache"]

_fx_importer = extras_module("extras.fx_importer")

_FRAME = re.compile(r'File "([^"]+)", line ([0-9]+)')
_TORCH_FOLDER = os.path.dirname(os.path.abspath(torch.__file__)) + os.sep


def _source_location(node: torch.fx.Node, context: ir.Context) -> ir.Location:
    """``"layers.0.mlp"("model.py":12:0)``: the module path around the innermost line that is not torch's own."""
    frames = [f for f in _FRAME.findall(node.meta.get("stack_trace") or "") if not f[0].startswith("<")]
    outside = [f for f in frames if not f[0].startswith(_TORCH_FOLDER)] or frames
    place = ir.Location.file(outside[-1][0], int(outside[-1][1]), 0, context) if outside else ir.Location.unknown(context)
    stack = node.meta.get("nn_module_stack") or {}
    path = list(stack.values())[-1][0].removeprefix("_export_root").removeprefix(".") if stack else ""  # strict mode's
    return ir.Location.name(path, place, context) if path else place


class ImportCache(_fx_importer.ContextCache):
    """torch-mlir's per-import cache, with our locations and the user's symbol names."""

    __slots__ = ["_names"]

    def __init__(self, context: ir.Context, names: dict[str, str]):
        super().__init__(context)
        self._names = names

    def get_node_location(self, node: torch.fx.Node) -> ir.Location:
        return _source_location(node, self._c)

    def value_info_to_type(self, val: Any, **options: Any) -> ir.Type:
        """As torch-mlir's, for lists of tensors from files of programs, too, where they are tuples."""
        return super().value_info_to_type(list(cast("Any", val)) if isinstance(val, tuple) else val, **options)

    def symbol_name(self, symbol: sympy.Symbol) -> str:
        return self._names.get(str(symbol), str(symbol))

    def set_symbolic_guards(self, program: Any) -> None:
        super().set_symbolic_guards(program)
        self._symbolic_guards = {self._names.get(k, k): v for k, v in self._symbolic_guards.items()}

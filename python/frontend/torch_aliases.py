"""Buffers that a model and its parts both hold, as a cache that layers write to: torch decomposes none that is there twice."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from torch.export import ExportedProgram
from torch.export.graph_signature import ExportGraphSignature, InputKind, InputSpec

from .torch_functional import copied_module
from .torch_stored import identity, tensor_of
from .torch_warnings import without_warnings

__all__ = ["united"]


def united(program: ExportedProgram) -> ExportedProgram:
    """A copy of a program in which each buffer has one name, the first one; itself where that is so."""
    first: dict[Any, InputSpec] = {}
    again: dict[str, InputSpec] = {}
    for spec in program.graph_signature.input_specs:
        if spec.kind is InputKind.BUFFER:
            one = first.setdefault(identity(tensor_of(program, spec)), spec)
            if one is not spec:
                again[spec.arg.name] = one
    if not again:
        return program
    module = copied_module(program)
    placeholders = {n.name: n for n in module.graph.nodes if n.op == "placeholder"}
    for name, one in again.items():
        placeholders[name].replace_all_uses_with(placeholders[one.arg.name])
        module.graph.erase_node(placeholders[name])
    module.recompile()
    old = program.graph_signature
    kept = [spec for spec in old.input_specs if spec.arg.name not in again]
    targets = {str(spec.target) for spec in old.input_specs if spec.arg.name in again}
    with without_warnings():
        return program._update(
            module,
            ExportGraphSignature(kept, old.output_specs),
            state_dict=_without(program.state_dict, targets),
            constants=_without(program.constants, targets),
        )


def _without(items: Mapping[str, Any], names: set[str]) -> dict[str, Any]:
    return {name: value for name, value in items.items() if name not in names}

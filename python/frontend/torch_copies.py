"""Copies into tensors of another dtype or shape, with what they convert written out.

torch's decompositions take such a tensor for what was copied, and forget that it was converted and broadcast (2.13)::

    aten.copy_.default(%buffer, %x)      # f32[4, 6] into bf16[8, 4, 6]
    %y = aten.to.dtype(%x, bfloat16)     ->  %z = aten.expand_as.default(%y, %buffer), aten.copy_.default(%buffer, %z)
"""

from __future__ import annotations

import torch
from torch.export import ExportedProgram

from .torch_functional import copied_module
from .torch_warnings import without_warnings

__all__ = ["exact_copies"]

_aten = torch.ops.aten


def exact_copies(program: ExportedProgram) -> ExportedProgram:
    """A copy of a program in which nothing is converted by a copy; itself where that is so."""
    if not any(map(_converts, program.graph.nodes)):
        return program
    module = copied_module(program)
    for node in [n for n in module.graph.nodes if _converts(n)]:
        _write_out(node)
    module.recompile()
    with without_warnings():
        return program._update(module, program.graph_signature)


def _tensors(node: torch.fx.Node) -> tuple[torch.Tensor, torch.Tensor] | None:
    """What is written, and what is read."""
    if node.target not in (_aten.copy_.default, _aten.copy.default):
        return None
    found = [a.meta.get("val") if isinstance(a, torch.fx.Node) else None for a in node.args[:2]]
    written, read = found
    return (written, read) if isinstance(written, torch.Tensor) and isinstance(read, torch.Tensor) else None


def _converts(node: torch.fx.Node) -> bool:
    found = _tensors(node)
    return found is not None and (found[0].dtype != found[1].dtype or found[0].shape != found[1].shape)


def _write_out(node: torch.fx.Node) -> None:
    found = _tensors(node)
    assert found is not None
    written, read = found
    target, source, *rest = node.args
    with node.graph.inserting_before(node):
        if written.dtype != read.dtype:
            source = _noted(node, _aten.to.dtype, (source, written.dtype), read.to(written.dtype))
        if written.shape != read.shape:
            source = _noted(node, _aten.expand_as.default, (source, target), read.to(written.dtype).expand_as(written))
    node.args = (target, source, *rest)


def _noted(node: torch.fx.Node, target: object, args: tuple[object, ...], value: torch.Tensor) -> torch.fx.Node:
    """A call where the insertion point is, known as a part of another one."""
    made = node.graph.call_function(target, args)  # type: ignore[arg-type]
    made.meta = {**node.meta, "val": value}
    return made

"""Operators that write into what a graph itself has just computed, as ones that compute it anew: without torch's own
decompositions, which trace the whole program twice (Mixtral, 30 layers: 75 s of the processor).

::

    %d = aten.sum.dim_IntList(%w, [-1], True)       # nothing reads %w before in parts
    %q = aten.div_.Tensor(%w, %d)                   ->  %q = aten.div.Tensor(%w, %d), which later uses of %w read, too
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import torch
from torch.export import ExportedProgram

from .torch_warnings import without_warnings

__all__ = ["functional"]

_aten = torch.ops.aten

#: Give memory of their own, beside what torch says of all elements one by one.
_FRESH = {
    _aten.addmm.default, _aten.bmm.default, _aten.cat.default, _aten.clone.default, _aten.conv1d.default, _aten.conv2d.default,
    _aten.cumsum.default, _aten.embedding.default, _aten.full.default, _aten.full_like.default, _aten.gather.default,
    _aten.index.Tensor, _aten.index_select.default, _aten.layer_norm.default, _aten.linear.default, _aten.matmul.default,
    _aten.mean.dim, _aten.mm.default, _aten.new_full.default, _aten.new_ones.default, _aten.new_zeros.default,
    _aten.ones.default, _aten.ones_like.default, _aten.softmax.int, _aten.stack.default, _aten.sum.dim_IntList,
    _aten.topk.default, _aten.zeros.default, _aten.zeros_like.default,
}  # fmt: skip

#: Look at a tensor and give none of its memory.
_LOOKS = {_aten._assert_tensor_metadata.default, _aten.sym_size.int}


def functional(program: ExportedProgram) -> ExportedProgram | None:
    """A copy of a program in which nothing writes into memory; None where that is more than to replace operators one by one."""
    if not any(map(_is_write, program.graph.nodes)):
        return None
    with without_warnings():
        module = copy.copy(program.graph_module)
        module.graph = copy.deepcopy(program.graph)
    places = {node: i for i, node in enumerate(module.graph.nodes)}
    for node in [n for n in module.graph.nodes if _is_write(n)]:
        if not _replace(node, places):
            return None
    module.recompile()
    with without_warnings():
        return program._update(module, program.graph_signature)


def _is_write(node: torch.fx.Node) -> bool:
    return isinstance(node.target, torch._ops.OpOverload) and node.target._schema.is_mutable


def _replace(node: torch.fx.Node, places: dict[torch.fx.Node, int]) -> bool:
    """Replaces a write into its first operand; False where something else may share that one's memory."""
    target, operand = _without_write(node.target), node.args[0] if node.args else None
    if target is None or not isinstance(operand, torch.fx.Node) or not _is_fresh(operand):
        return False
    now = places[node]
    before = [u for u in operand.users if places[u] < now]
    after = [u for u in operand.users if places[u] > now]
    if not all(map(_keeps_nothing, before)) or any(u.op == "output" for u in after):
        return False
    try:
        value = target(*torch.fx.map_arg(node.args, _value), **torch.fx.map_arg(node.kwargs, _value))
    except Exception:  # torch raises what it likes: the operator does not take this without its write
        return False
    if value.dtype != _value(operand).dtype:
        return False
    node.target = target
    for user in after:
        user.replace_input_with(operand, node)
    return True


def _without_write(target: Any) -> Callable[..., Any] | None:
    """``aten.div.Tensor`` of ``aten.div_.Tensor``, which writes into its first operand alone."""
    namespace, _, name = target._schema.name.partition("::")
    written = [i for i, a in enumerate(target._schema.arguments) if a.alias_info is not None]
    if namespace != "aten" or not name.endswith("_") or written != [0] or len(target._schema.returns) != 1:
        return None
    return getattr(getattr(_aten, name[:-1], None), target._overloadname, None)


def _is_fresh(node: torch.fx.Node) -> bool:
    """Whether a value is in memory of its own."""
    if getattr(node.target, "__name__", "") == "getitem" and isinstance(node.args[0], torch.fx.Node):
        return _is_fresh(node.args[0])
    if not isinstance(node.target, torch._ops.OpOverload):
        return False
    is_named = node.target in _FRESH or torch.Tag.pointwise in node.target.tags
    return is_named and not any(r.alias_info is not None for r in node.target._schema.returns)


def _keeps_nothing(node: torch.fx.Node) -> bool:
    return node.target in _LOOKS or _is_fresh(node)


def _value(node: torch.fx.Node) -> Any:
    return node.meta["val"]

"""Operators that write into what a graph itself has just computed, as ones that compute it anew: without torch's own
decompositions, which trace the whole program twice (Mixtral, 30 layers: 75 s of the processor).

::

    %d = aten.sum.dim_IntList(%w, [-1], True)       # nothing reads %w before in parts
    %q = aten.div_.Tensor(%w, %d)                   ->  %q = aten.div.Tensor(%w, %d), which later uses of %w read, too

    %k = aten.index_copy_.default(%b_keys, 2, %i, %x)
    return %y                                       ->  %k = aten.index_put.default(%b_keys, [None, None, %i], %x)
                                                        return %k, %y, of which %k is the new state of the buffer
"""

from __future__ import annotations

import copy
from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch.export import ExportedProgram
from torch.export.graph_signature import ExportGraphSignature, InputKind, OutputKind, OutputSpec, TensorArgument

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

#: Give their operand where it is what they make of it.
_CONVERSIONS = (_aten.to.device, _aten.to.dtype, _aten.to.dtype_layout, _aten.to.other)

#: Look at a tensor and give none of its memory.
_LOOKS = {_aten._assert_tensor_metadata.default, _aten.sym_size.int}


def functional(program: ExportedProgram) -> ExportedProgram | None:
    """A copy of a program in which nothing writes into memory; None where that is more than to replace operators one by one."""
    if not any(map(_is_write, program.graph.nodes)):
        return None
    with without_warnings():
        module = copy.copy(program.graph_module)
        module.graph = copy.deepcopy(program.graph)
    for node, original in zip(module.graph.nodes, program.graph.nodes, strict=True):
        node.name = original.name  # a copy calls an input 'input' otherwise, which the signature does not
    for node in [n for n in module.graph.nodes if _is_itself(n)]:
        node.replace_all_uses_with(node.args[0])
        module.graph.erase_node(node)
    places = {node: i for i, node in enumerate(module.graph.nodes)}
    buffers, last = _own_buffers(program), dict[torch.fx.Node, torch.fx.Node]()
    for node in [n for n in module.graph.nodes if _is_write(n)]:
        operand = node.args[0] if node.args else None
        of = next((b for b, written in last.items() if written is operand), operand)
        buffer = of if isinstance(of, torch.fx.Node) and of.name in buffers else None
        if not _replace(node, places, buffer is not None):
            return None
        if buffer is not None:
            last[buffer] = node
    ordered = dict(sorted(last.items(), key=lambda pair: places[pair[0]]))  # as torch has them
    signature = _returning(module.graph, program.graph_signature, ordered)
    module.recompile()
    with without_warnings():
        return program._update(module, signature)


def _is_itself(node: torch.fx.Node) -> bool:
    """Whether it is a conversion to what its operand is already, which is the operand and no copy of it, and no result."""
    if any(user.op == "output" for user in node.users):  # the signature has its name
        return False
    if not isinstance(node.target, torch._ops.OpOverload) or node.target not in _CONVERSIONS:
        return False
    if not isinstance(node.args[0], torch.fx.Node):
        return False
    given = dict(zip((a.name for a in node.target._schema.arguments), node.args, strict=False)) | node.kwargs
    if given.get("copy") or given.get("memory_format") not in (None, torch.preserve_format):
        return False
    value, operand = _value(node), _value(node.args[0])
    return (value.dtype, value.device, value.layout) == (operand.dtype, operand.device, operand.layout)


def _own_buffers(program: ExportedProgram) -> set[str]:
    """The placeholders of buffers that share no memory with other tensors of the program."""
    held = {**program.constants, **program.state_dict}
    tensors = {name: t for name, t in held.items() if isinstance(t, torch.Tensor)}
    users = Counter(t.untyped_storage()._cdata for t in tensors.values())
    return {
        s.arg.name
        for s in program.graph_signature.input_specs
        if s.kind is InputKind.BUFFER and s.target in tensors and users[tensors[s.target].untyped_storage()._cdata] == 1
    }


def _returning(
    graph: torch.fx.Graph, signature: ExportGraphSignature, last: Mapping[torch.fx.Node, torch.fx.Node]
) -> ExportGraphSignature:
    """The signature of a graph that returns new state in front of its results; ``last``: by placeholder what it becomes."""
    if not last:
        return signature
    targets = {s.arg.name: s.target for s in signature.input_specs}
    output = graph.output_node()
    results = output.args[0]
    assert isinstance(results, list | tuple)
    output.args = ((*last.values(), *results),)
    state = [OutputSpec(OutputKind.BUFFER_MUTATION, TensorArgument(n.name), targets[b.name]) for b, n in last.items()]
    return ExportGraphSignature(input_specs=list(signature.input_specs), output_specs=[*state, *signature.output_specs])


def _is_write(node: torch.fx.Node) -> bool:
    return isinstance(node.target, torch._ops.OpOverload) and node.target._schema.is_mutable


def _replace(node: torch.fx.Node, places: dict[torch.fx.Node, int], is_buffer: bool) -> bool:
    """Replaces a write into its first operand; False where something else may share that one's memory.

    Args:
        node: the write.
        places: of the graph's nodes.
        is_buffer: whether it is into a buffer that has memory of its own.
    """
    _as_put(node)
    target, operand = _without_write(node.target), node.args[0] if node.args else None
    if target is None or not isinstance(operand, torch.fx.Node) or not (is_buffer or _is_fresh(operand)):
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


def _as_put(node: torch.fx.Node) -> None:
    """``index_copy_`` as torch decomposes it, but for what has no dimensions."""
    if node.target is not _aten.index_copy_.default or node.kwargs or _value(node).dim() == 0:
        return
    operand, axis, places, source = node.args
    if isinstance(places, torch.fx.Node) and _value(places).dim() == 1 and isinstance(axis, int):
        node.target = _aten.index_put_.default
        node.args = (operand, [*[None] * (axis % _value(node).dim()), places], source)


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

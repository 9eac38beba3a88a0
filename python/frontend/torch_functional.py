"""Operators that write into what a graph itself has just computed, as ones that compute it anew: without torch's own
decompositions, which trace the whole program twice (Mixtral, 30 layers: 75 s of the processor).

::

    %d = aten.sum.dim_IntList(%w, [-1], True)       # nothing reads %w before in parts
    %q = aten.div_.Tensor(%w, %d)                   ->  %q = aten.div.Tensor(%w, %d), which later uses of %w read, too

    %a = aten.slice.Tensor(%q, 0, 1)
    aten.mul_.Tensor(%a, 2)                         ->  %w = aten.mul.Tensor(%a, 2)
                                                        %z = aten.slice_scatter.default(%q, %w, 0, 1), for later uses of %q
    %k = aten.index_copy_.default(%b_keys, 2, %i, %x)
    return %y                                       ->  %k = aten.index_copy.default(%b_keys, 2, %i, %x)
                                                        return %k, %y, of which %k is the new state of the buffer
"""

from __future__ import annotations

import copy
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import torch
from torch.export import ExportedProgram
from torch.export.graph_signature import ExportGraphSignature, InputKind, OutputKind, OutputSpec, TensorArgument

from .torch_views import base_and_views, copied_views, gives_memory, is_view, views_of, whole
from .torch_warnings import without_warnings

__all__ = ["copied_module", "functional"]

_aten = torch.ops.aten

#: Give memory of their own, beside what torch says of all elements one by one.
_FRESH = {
    _aten.addmm.default, _aten.bmm.default, _aten.cat.default, _aten.clone.default, _aten.conv1d.default,
    _aten.conv2d.default, _aten.copy.default, _aten.cumsum.default, _aten.embedding.default, _aten.full.default,
    _aten.full_like.default, _aten.gather.default, _aten.index.Tensor, _aten.index_select.default, _aten.layer_norm.default,
    _aten.linear.default, _aten.matmul.default, _aten.mean.dim, _aten.mm.default, _aten.new_full.default,
    _aten.new_ones.default, _aten.new_zeros.default, _aten.ones.default, _aten.ones_like.default, _aten.softmax.int,
    _aten.stack.default, _aten.sum.dim_IntList, _aten.topk.default, _aten.zeros.default, _aten.zeros_like.default,
}  # fmt: skip

#: Give their operand where it is what they make of it.
_CONVERSIONS = (_aten.to.device, _aten.to.dtype, _aten.to.dtype_layout, _aten.to.other)

#: Look at a tensor and give none of its memory.
_LOOKS = {_aten._assert_tensor_metadata.default, _aten.sym_size.int}


def copied_module(program: ExportedProgram) -> torch.fx.GraphModule:
    """A program's module with a graph of its own."""
    with without_warnings():
        module = copy.copy(program.graph_module)
        module.graph = copy.deepcopy(program.graph)
    for node, original in zip(module.graph.nodes, program.graph.nodes, strict=True):
        node.name = original.name  # a copy calls an input 'input' otherwise, which the signature does not
    return module


def functional(program: ExportedProgram) -> ExportedProgram | None:
    """A copy of a program in which nothing writes into memory; None where that is more than to replace operators one by one."""
    if not any(map(_is_write, program.graph.nodes)):
        return None
    module = copied_module(program)
    for node in module.graph.nodes:
        if node.target is _aten.lift_fresh_copy.default:  # of what torch.tensor makes, and detaches
            node.target = _aten.clone.default
    for node in [n for n in module.graph.nodes if _is_itself(n)]:
        node.replace_all_uses_with(node.args[0])
        module.graph.erase_node(node)
    buffers, last, places = _own_buffers(program), dict[torch.fx.Node, torch.fx.Node](), _places(module.graph)
    made = set[torch.fx.Node]()
    for node in [n for n in module.graph.nodes if _is_write(n)]:
        if not node.args or not isinstance(node.args[0], torch.fx.Node):
            return None
        base, views = base_and_views(node.args[0], made)
        buffer = next((b for b, written in last.items() if written is base), base)
        is_own = buffer.name in buffers
        written = _written(node, base, views, places) if is_own or base in made or _is_fresh(base) else None
        if written is None:
            return None
        made.add(written)
        if is_own:
            last[buffer] = written
        if len(places) < len(module.graph.nodes):
            places = _places(module.graph)
    ordered = dict(sorted(last.items(), key=lambda pair: places[pair[0]]))  # as torch has them
    signature = _returning(module.graph, program.graph_signature, ordered)
    module.recompile()
    with without_warnings():
        return program._update(module, signature)


def _is_itself(node: torch.fx.Node) -> bool:
    """Whether it is its operand and no copy of it: detached, or converted to what that is already."""
    if node.target is _aten.detach_.default:
        return True
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
    """The signature of a graph whose results have other names now, and that returns new state in front of them.

    Args:
        graph: gets the new results.
        signature: of the graph that it is made of.
        last: by placeholder what it becomes.
    """
    targets = {s.arg.name: s.target for s in signature.input_specs}
    output = graph.output_node()
    results = output.args[0]
    assert isinstance(results, list | tuple)
    specs = [_named(spec, result) for spec, result in zip(signature.output_specs, results, strict=True)]
    output.args = ((*last.values(), *results),)
    state = [OutputSpec(OutputKind.BUFFER_MUTATION, TensorArgument(n.name), targets[b.name]) for b, n in last.items()]
    return ExportGraphSignature(input_specs=list(signature.input_specs), output_specs=[*state, *specs])


def _named(spec: OutputSpec, result: Any) -> OutputSpec:
    is_tensor = isinstance(spec.arg, TensorArgument) and isinstance(result, torch.fx.Node)
    return replace(spec, arg=TensorArgument(result.name)) if is_tensor else spec


def _is_write(node: torch.fx.Node) -> bool:
    return isinstance(node.target, torch._ops.OpOverload) and node.target._schema.is_mutable


def _places(graph: torch.fx.Graph) -> dict[torch.fx.Node, int]:
    return {node: i for i, node in enumerate(graph.nodes)}


def _written(
    node: torch.fx.Node, base: torch.fx.Node, views: Sequence[torch.fx.Node], places: Mapping[torch.fx.Node, int]
) -> torch.fx.Node | None:
    """What a write makes of a value; None where something else may share that one's memory.

    Args:
        node: the write, which becomes an operator that computes what it would write.
        base: the value, which has memory of its own.
        views: on the way from the write's first operand to it, that first.
        places: of the graph's nodes.
    """
    if views:
        node.replace_all_uses_with(views[0])
    now = places[node]
    shared = views_of(base, lambda n: places[n] < now and not _is_fresh(n))
    before = [u for m in (base, *shared) for u in m.users if places[u] < now and u not in shared]
    after = {m: [u for u in m.users if places[u] > now] for m in (base, *shared)}
    stale = set[torch.fx.Node]()
    for view in reversed(shared):
        if after[view] or not stale.isdisjoint(view.users):
            stale.add(view)
    if not all(map(_keeps_nothing, before)) or not all(map(is_view, stale)):
        return None
    if not _computes(node):
        return None
    with node.graph.inserting_before(node.next):
        new = whole(views, node)
        copies = copied_views([v for v in shared if v in stale], base, new)
    for member, users in after.items():
        for user in users:
            user.replace_input_with(member, copies[member])
    return new


def _computes(node: torch.fx.Node) -> bool:
    """Makes of a write an operator that computes what its first operand would be; False where torch has none for it."""
    target, operand = _without_write(node.target), node.args[0]
    if target is None or not isinstance(operand, torch.fx.Node) or gives_memory(target):
        return False  # the latter is a write of sizes
    try:
        value = target(*torch.fx.map_arg(node.args, _value), **torch.fx.map_arg(node.kwargs, _value))
    except Exception:  # torch raises what it likes: the operator does not take this without its write
        return False
    if value.dtype != _value(operand).dtype:
        return False
    node.target = target
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
    if node.target in _CONVERSIONS:
        operand = node.args[0]
        return isinstance(operand, torch.fx.Node) and _value(node).dtype != _value(operand).dtype
    is_named = node.target in _FRESH or torch.Tag.pointwise in node.target.tags
    return is_named and not gives_memory(node.target)


def _keeps_nothing(node: torch.fx.Node) -> bool:
    return node.target in _LOOKS or _is_fresh(node)


def _value(node: torch.fx.Node) -> Any:
    return node.meta["val"]

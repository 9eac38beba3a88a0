"""Graphs inside of a program that are called once: written out where they are called; tensors that graphs of control flow hold
become constants of the program.

::

    %y = wrap_with_set_grad_enabled(False, @submod_1, %x)        ->  %sin = aten.sin(%x)      # what @submod_1 has

    %c = cond(%p, @true_graph, @false_graph, (%x,))              ->  %c = cond(%p, @true_graph, @false_graph, (%x, %lifted_0))
    # @true_graph: %t = get_attr _tensor_constant0                   # @true_graph: another placeholder, so in @false_graph

torch's own decompositions lose the lines of what is in the former, and fail at the latter. What ``autocast`` does to operators
torch alone knows: its beginning and its end stay.
"""

from __future__ import annotations

import copy
import operator
from collections.abc import Callable, Iterable, Sequence
from typing import Any, cast

import torch
from torch.export import ExportedProgram
from torch.export.graph_signature import ExportGraphSignature, InputKind, InputSpec, TensorArgument

from .torch_numbers import carries_numbers, carry_tensors
from .torch_warnings import without_warnings

__all__ = ["without_regions"]

_Arguments = Sequence[Any]

_AUTOCAST = "wrap_with_autocast"

#: Where in the arguments of an operator its graph is, and where the graph's operands begin.
_REGIONS = {"wrap_with_set_grad_enabled": (1, 2), _AUTOCAST: (4, 5), "invoke_subgraph": (0, 2), "strict_mode": (0, 1)}

#: Their last argument is what all of their graphs read.
_READERS = ("cond", "map_impl", "scan", "while_loop")


def without_regions(program: ExportedProgram) -> ExportedProgram:
    """The program without such graphs and tensors: itself, where it has none."""
    modules = [m for m in program.graph_module.modules() if isinstance(m, torch.fx.GraphModule)]
    inner = modules[1:]
    nodes = [n for m in modules for n in m.graph.nodes]
    if not any(_is_region(n) or carries_numbers(n) for n in nodes) and not any(_tensors_of(m) for m in inner):
        return program
    with without_warnings():
        return _Rewriter(program).rewritten()


class _Rewriter:
    """Rewrites a copy of a program.

    Attributes:
        lifted: by the name of a new placeholder, the tensor.
    """

    def __init__(self, program: ExportedProgram):
        self.program = program
        self.lifted: dict[str, torch.Tensor] = {}
        self._returned = {o.arg.name for o in program.graph_signature.output_specs}

    def rewritten(self) -> ExportedProgram:
        root = self._copied(self.program.graph_module)
        self._rewrite(root, self._returned)
        self._lift_to_inputs(root)
        root.recompile()
        signature = self.program.graph_signature
        specs = list(signature.input_specs)
        at = next((i for i, s in enumerate(specs) if s.kind is InputKind.USER_INPUT), len(specs))
        constant = InputKind.CONSTANT_TENSOR
        specs[at:at] = [InputSpec(constant, TensorArgument(name), name) for name in self.lifted]
        signature = ExportGraphSignature(specs, list(signature.output_specs))
        return self.program._update(root, signature, constants={**self.program.constants, **self.lifted})

    def _copied(self, module: torch.fx.GraphModule) -> torch.fx.GraphModule:
        """A module with a graph of its own, whose nodes have the same names."""
        found = copy.copy(module)
        found.graph = copy.deepcopy(module.graph)
        for node, original in zip(found.graph.nodes, module.graph.nodes, strict=True):
            node.name = original.name  # a copy calls an input 'input' otherwise, which the signature does not
        return found

    def _rewrite(self, owner: torch.fx.GraphModule, named: Iterable[str] = ()) -> None:
        """Rewrites a module's graph, those inside first.

        Args:
            owner: the module.
            named: names of nodes that stay.
        """
        for node in [n for n in owner.graph.nodes if n.op == "get_attr"]:
            inner = getattr(owner, str(node.target))
            if isinstance(inner, torch.fx.GraphModule):
                inner = self._copied(inner)
                self._rewrite(inner)
                setattr(owner, str(node.target), inner)
        for node in list(owner.graph.nodes):
            if _is_region(node):
                _write_out(owner, node, set(named))
            elif _name_of(node) in _READERS:
                _pass_tensors(owner, node)
                if _name_of(node) == "while_loop":
                    carry_tensors(owner, node)
        owner.recompile()

    def _lift_to_inputs(self, root: torch.fx.GraphModule) -> None:
        """Tensors that the outermost graph holds become placeholders in front of the user's."""
        users = {s.arg.name for s in self.program.graph_signature.input_specs if s.kind is InputKind.USER_INPUT}
        nodes = list(root.graph.nodes)
        first = next((n for n in nodes if n.op != "placeholder" or n.name in users), nodes[-1])
        for node in _tensors_of(root):
            with root.graph.inserting_before(first):
                new = root.graph.placeholder(str(node.target))
            new.meta = dict(node.meta)
            self.lifted[new.name] = getattr(root, str(node.target)).detach()
            node.replace_all_uses_with(new)
            root.graph.erase_node(node)
            delattr(root, str(node.target))


def _name_of(node: torch.fx.Node) -> str:
    return node.target.name() if isinstance(node.target, torch._ops.HigherOrderOperator) else ""


def _is_region(node: torch.fx.Node) -> bool:
    return node.op == "call_function" and _name_of(node) in _REGIONS


def _tensors_of(module: torch.fx.GraphModule) -> list[torch.fx.Node]:
    """The nodes that read tensors which the module holds."""
    nodes = [n for n in module.graph.nodes if n.op == "get_attr"]
    return [n for n in nodes if isinstance(getattr(module, str(n.target), None), torch.Tensor)]


def _write_out(owner: torch.fx.GraphModule, node: torch.fx.Node, named: set[str]) -> None:
    """Puts what a graph has in the place of its call."""
    graph_at, first = _REGIONS[_name_of(node)]
    arguments = cast("Sequence[Any]", node.args)
    inner = getattr(owner, arguments[graph_at].target)
    operands = arguments[first] if _name_of(node) == "strict_mode" else arguments[first:]
    graph = owner.graph
    with graph.inserting_before(node):
        mode = _mode(graph, torch.amp.autocast_mode._enter_autocast, arguments[:4]) if _name_of(node) == _AUTOCAST else None
        found = _copied_nodes(owner, inner, operands)
        if mode is not None:
            _mode(graph, torch.amp.autocast_mode._exit_autocast, (mode,))
    for user in list(node.users):
        if isinstance(found, list | tuple) and user.target is operator.getitem:
            _take_over(graph, user, found[cast("int", user.args[1])], named)
    if node.users:
        _take_over(graph, node, found, named)
    else:
        graph.erase_node(node)


def _mode(graph: torch.fx.Graph, function: Callable[..., Any], arguments: _Arguments) -> torch.fx.Node:
    found = graph.call_function(function, tuple(arguments))
    found.meta["val"] = None  # as the verifier of programs wants it
    return found


def _copied_nodes(owner: torch.fx.GraphModule, inner: torch.fx.GraphModule, operands: _Arguments) -> Any:
    """Copies a graph's nodes to where nodes are inserted; what it returns."""
    given = iter(operands)
    known: dict[torch.fx.Node, Any] = {}
    for node in inner.graph.nodes:
        if node.op == "placeholder":
            known[node] = next(given)
        elif node.op == "output":
            return torch.fx.map_arg(node.args[0], lambda n: known[n])
        elif node.op == "get_attr":
            known[node] = _held(owner, getattr(inner, str(node.target)), node.meta)
        else:
            known[node] = owner.graph.node_copy(node, lambda n: known[n])
    return ()


def _held(owner: torch.fx.GraphModule, value: Any, meta: dict[str, Any]) -> torch.fx.Node:
    """A node that reads something of which the module gets hold."""
    name = next(n for n in (f"lifted_{i}" for i in range(10**9)) if not hasattr(owner, n))
    setattr(owner, name, value)
    found = owner.graph.create_node("get_attr", name)
    found.meta = dict(meta)
    return found


def _take_over(graph: torch.fx.Graph, old: torch.fx.Node, new: Any, named: set[str]) -> None:
    """A value in the place of another one, under its name where that is one of a result."""
    name = old.name
    if name in named and (new.op == "placeholder" or new.name in named):
        with graph.inserting_before(old):
            new = graph.call_function(torch.ops.aten.clone.default, (new,))
            new.meta = dict(old.meta)
    old.replace_all_uses_with(new)
    graph.erase_node(old)
    if name in named:
        new.name = name


def _pass_tensors(owner: torch.fx.GraphModule, node: torch.fx.Node) -> None:
    """Passes what the graphs of an operator hold as further operands, which each of its graphs takes."""
    arguments: list[Any] = list(node.args)
    targets = [str(a.target) for a in arguments if isinstance(a, torch.fx.Node) and a.op == "get_attr"]
    graphs = [g for g in (getattr(owner, t) for t in targets) if isinstance(g, torch.fx.GraphModule)]
    for holder in graphs:
        for held in _tensors_of(holder):
            with owner.graph.inserting_before(node):
                arguments[-1] = (*arguments[-1], _held(owner, getattr(holder, str(held.target)), held.meta))
            for graph in graphs:
                new = _placeholder(graph.graph, held)
                if graph is holder:
                    held.replace_all_uses_with(new)
            holder.graph.erase_node(held)
            delattr(holder, str(held.target))
    node.args = tuple(arguments)
    for graph in graphs:
        graph.recompile()


def _placeholder(graph: torch.fx.Graph, held: torch.fx.Node) -> torch.fx.Node:
    """Another placeholder behind those that there are."""
    after = next(n for n in graph.nodes if n.op != "placeholder")
    with graph.inserting_before(after):
        found = graph.placeholder("lifted")
    found.target = found.name  # a second one would have the same
    found.meta = dict(held.meta)
    return found

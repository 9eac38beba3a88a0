"""A graph that ``torch.compile`` traced, as a relax module: which of its inputs become arguments, weights, or sizes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import sympy
import torch
from torch.export.graph_signature import ExportGraphSignature

from ..dialect.context import new_context
from ..dialect.errors import RelaxError
from ..module import Module
from .torch_complex import split_complex
from .torch_graph import import_graph
from .torch_program import Argument, Program, Returned
from .torch_to_relax import convert_modules

__all__ = ["Traced", "traced_module"]


@dataclass(frozen=True)
class Traced:
    """A traced graph as a module, and how calls of one become calls of the other.

    Attributes:
        module: one function ``main``: the tensors that are no weights, then a carrier per size, then weights.
        inputs: positions of these tensors among the graph's inputs.
        carriers: positions of integers that are the length of no tensor: each is that of a tensor ``[n, 0]`` that carries it.
        weights: positions of weights by name.
        constants: weights that are part of the graph, by name.
        results: what the graph returns: its fake value, a number, or None, in order.
        operators: how many operators it has.
        symbols: of each symbol in shapes an input that says it: its position, and an axis of a tensor, or None of an integer.
    """

    module: Module
    inputs: Sequence[int]
    carriers: Sequence[int]
    weights: Mapping[str, int]
    constants: Mapping[str, torch.Tensor]
    results: Sequence[Any]
    operators: int
    symbols: Mapping[str, tuple[int, int | None]]


@dataclass(frozen=True)
class _Graph:
    """What the importer reads of a program."""

    graph: torch.fx.Graph
    graph_signature: ExportGraphSignature
    range_constraints: Mapping[Any, Any]


def traced_module(traced: torch.fx.GraphModule, weights: Mapping[int, str]) -> Traced:
    """Imports a functional graph of ATen operators.

    Args:
        traced: the graph, with fake values; constants in it become placeholders.
        weights: names of the inputs that are weights, by position.

    Raises:
        UnsupportedError: operators have no relax form.
        RelaxError: an input or output is neither a tensor nor an integer.
    """
    placeholders = [node for node in traced.graph.nodes if node.op == "placeholder"]
    for node in placeholders:
        _check_input(node)
    constants = _lift_constants(traced)
    split_complex(traced.graph, ())
    carriers = _carriers(traced.graph, placeholders)
    tensors = [i for i, node in enumerate(placeholders) if isinstance(node.meta["val"], torch.Tensor)]
    inputs = [i for i in tensors if i not in weights]
    arguments = [Argument("input", placeholders[i].name, placeholders[i].name) for i in inputs]
    arguments += [Argument("input", node.name, node.name) for node in carriers.values()]
    arguments += [Argument("param", weights[i], placeholders[i].name) for i in tensors if i in weights]
    arguments += [Argument("constant", name, name) for name in constants]
    returned = _returned(traced.graph)
    results = [
        Returned("output", f"output{i}", value.name) for i, value in enumerate(returned) if isinstance(value, torch.fx.Node)
    ]
    program = Program(arguments, {}, {}, results, {})
    graph = _Graph(traced.graph, ExportGraphSignature([], []), _ranges(traced.graph))
    module = Module(convert_modules([import_graph(graph, program, {}, new_context())]))
    return Traced(
        module,
        inputs,
        list(carriers),
        {weights[i]: i for i in tensors if i in weights},
        constants,
        [value.meta["val"] if isinstance(value, torch.fx.Node) else value for value in returned],
        sum(node.op == "call_function" for node in traced.graph.nodes),
        _symbols(placeholders),
    )


def _symbols(placeholders: Sequence[torch.fx.Node]) -> dict[str, tuple[int, int | None]]:
    found: dict[str, tuple[int, int | None]] = {}
    for i, node in enumerate(placeholders):
        value = node.meta["val"]
        sizes: list[tuple[Any, int | None]] = [(value, None)]
        if isinstance(value, torch.Tensor):
            sizes = [(size, axis) for axis, size in enumerate(value.shape)]
        for size, axis in sizes:
            if isinstance(size, torch.SymInt) and isinstance(size.node.expr, sympy.Symbol):
                found.setdefault(size.node.expr.name, (i, axis))
    return found


def _check_input(node: torch.fx.Node) -> None:
    value = node.meta.get("val")
    if isinstance(value, torch.SymInt) and isinstance(value.node.expr, sympy.Symbol | sympy.Integer):
        return
    if not isinstance(value, torch.Tensor):
        what = f"the size {value}" if isinstance(value, torch.SymInt) else type(value).__name__
        raise RelaxError(f"expected inputs that are tensors and symbolic integers, got {what} for '{node.name}'")


def _lift_constants(traced: torch.fx.GraphModule) -> dict[str, torch.Tensor]:
    """Makes placeholders of the tensors that are attributes of the graph; they come last."""
    constants: dict[str, torch.Tensor] = {}
    place = next(node for node in traced.graph.nodes if node.op != "placeholder")
    for node in [n for n in traced.graph.nodes if n.op == "get_attr"]:
        value = getattr(traced, str(node.target))
        if not isinstance(value, torch.Tensor):
            continue  # the graph of a branch or a loop
        with traced.graph.inserting_before(place):
            new = traced.graph.placeholder(node.name)
        new.meta["val"] = node.meta.get("val", value)
        node.replace_all_uses_with(new)
        traced.graph.erase_node(node)
        constants[new.name] = value
    return constants


def _carriers(graph: torch.fx.Graph, placeholders: Sequence[torch.fx.Node]) -> dict[int, torch.fx.Node]:
    """New placeholders for integers that are the length of no tensor: by position, tensors ``[n, 0]``."""
    values = [node.meta["val"] for node in placeholders]
    lengths = [d for v in values if isinstance(v, torch.Tensor) for d in v.shape if isinstance(d, torch.SymInt)]
    known = {d.node.expr for d in lengths if isinstance(d.node.expr, sympy.Symbol)}
    place = next(node for node in graph.nodes if node.op != "placeholder")
    found: dict[int, torch.fx.Node] = {}
    for i, value in enumerate(values):
        if isinstance(value, torch.SymInt) and isinstance(value.node.expr, sympy.Symbol) and value.node.expr not in known:
            if (value.node.hint or 0) < 0:
                raise RelaxError(f"expected symbolic integers from 0 on, got {value.node.hint} for '{placeholders[i].name}'")
            with graph.inserting_before(place):
                node = graph.placeholder(f"{placeholders[i].name}_carrier")
            with _fake_mode(values):
                node.meta["val"] = torch.empty((value, 0))
            found[i] = node
    return found


def _fake_mode(values: Sequence[Any]) -> Any:
    found = next((v.fake_mode for v in values if isinstance(v, torch._subclasses.FakeTensor)), None)
    if found is None:
        raise RelaxError("expected a tensor among the inputs, got integers alone")
    return found


def _returned(graph: torch.fx.Graph) -> list[Any]:
    (output,) = [node for node in graph.nodes if node.op == "output"]
    for value in output.args[0]:
        found = value.meta["val"] if isinstance(value, torch.fx.Node) else value
        if found is not None and not isinstance(found, torch.Tensor | torch.SymInt | bool | int | float):
            raise RelaxError(f"expected outputs that are tensors or numbers, got {type(found).__name__}")
    return list(output.args[0])


def _ranges(graph: torch.fx.Graph) -> Mapping[Any, Any]:
    """The ranges of the graph's symbols, as far as torch knows them."""
    modes = (getattr(node.meta.get("val"), "fake_mode", None) for node in graph.nodes)
    env = next((mode.shape_env for mode in modes if mode is not None), None)
    return {} if env is None else dict(env.var_to_range)

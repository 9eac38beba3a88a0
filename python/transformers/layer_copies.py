"""Copies of layers in an exported program: the same nodes with weights of their own, each layer behind the one before."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import fx, nn
from torch.export import ExportedProgram
from torch.export.graph_signature import ExportGraphSignature, InputKind, OutputSpec, TensorArgument

__all__ = ["OtherLayersError", "RepeatedLayers", "with_copies"]

_WEIGHTS = (InputKind.PARAMETER, InputKind.BUFFER)


@dataclass(frozen=True)
class RepeatedLayers:
    """A list of layers of a module.

    Attributes:
        path: its name in the module.
        count: how many there are.
        period: after how many a layer does the same.
        kept: how many are exported: those that do not repeat, and two periods, the last of which ends as the last layer does.
    """

    path: str
    count: int
    period: int
    kept: int


class OtherLayersError(Exception):
    """Layers are not as alike as they look."""


def with_copies(program: ExportedProgram, module: nn.Module, layers: RepeatedLayers) -> ExportedProgram:
    """The program of all layers; the given one, of those that are kept, is changed.

    A copy takes its own weights where the layer took its own, what the layer before it made where the layer took what its
    predecessor made, and constants and what stands in front of all of them as they are. Of buffers with the layer's number at
    the end of their names (``keys_7``) it takes those of its own number, of inputs those as far behind as from one period to
    the next.

    Args:
        program: of the module without the other layers.
        module: with all of them.
        layers: which there are.

    Raises:
        OtherLayersError, LookupError, ValueError: nodes of layers do not correspond.
    """
    return _Copying(program, module, layers).program()


class _Copying:
    """Copies the nodes of layers of a program."""

    def __init__(self, program: ExportedProgram, module: nn.Module, layers: RepeatedLayers):
        self._program, self._module, self._layers = program, module, layers
        self._graph = program.graph_module.graph
        self._pairs = list(zip(program.graph_signature.input_specs, self._graph.find_nodes(op="placeholder"), strict=True))
        self._inputs = [node for spec, node in self._pairs if spec.kind is InputKind.USER_INPUT]
        self._constants = {node for spec, node in self._pairs if spec.kind is InputKind.CONSTANT_TENSOR}
        self._by_target = {spec.target: node for spec, node in self._pairs if spec.target is not None}
        self._targets = {node: target for target, node in self._by_target.items()}
        self._nodes = self._of_layers()
        self._at = {node: (layer, i) for layer, nodes in enumerate(self._nodes) for i, node in enumerate(nodes)}

    def _of_layers(self) -> list[list[fx.Node]]:
        """The nodes of each layer, with those between it and the one before.

        Without numbers, as sizes and what is computed of them: these are the same in all layers, and stand where the first
        layer that needs them is.
        """
        pattern = re.compile(re.escape(self._layers.path) + r"\.(\d+)")
        nodes = [node for node in self._graph.nodes if node.op not in ("placeholder", "output")]
        last, begin = dict[int, int](), len(nodes)
        for i, node in enumerate(nodes):
            for path, _ in node.meta.get("nn_module_stack", {}).values():
                found = pattern.fullmatch(path)
                if found:
                    last[int(found[1])] = i
                    begin = min(begin, i)
        if list(last) != list(range(self._layers.kept)):
            raise OtherLayersError("nodes that are of no layer, or of none alone")
        begins = [begin, *(last[i] + 1 for i in range(self._layers.kept - 1))]
        return [[n for n in nodes[b : last[i] + 1] if not _is_number(n)] for i, b in enumerate(begins)]

    def program(self) -> ExportedProgram:
        """The program with all layers."""
        period, kept, count = self._layers.period, self._layers.kept, self._layers.count
        behind = self._nodes[-1][-1].next
        state, constants = dict(self._program.state_dict), dict(self._program.constants)
        for layer in range(kept, count):
            pattern = kept - period + (layer - kept) % period
            self._add_weights(pattern, layer, state, constants)
            self._copy(pattern, layer, behind)
        while behind.op != "root":
            if not _is_number(behind):
                behind.args, behind.kwargs = fx.map_arg((behind.args, behind.kwargs), self._from_the_end)
            behind = behind.next
        self._program.graph_module.recompile()
        inputs = [spec for spec, _ in self._pairs]
        signature = ExportGraphSignature(input_specs=inputs, output_specs=self._output_specs())
        state = {spec.target: state[spec.target] for spec in inputs if spec.target in state}
        return self._program._update(self._program.graph_module, signature, state_dict=state, constants=constants)

    def _output_specs(self) -> list[OutputSpec]:
        """Those of the program with the names that results have now."""
        results: Any = self._graph.output_node().args[0]
        return [
            replace(spec, arg=TensorArgument(node.name)) if isinstance(spec.arg, TensorArgument) else spec
            for spec, node in zip(self._program.graph_signature.output_specs, results, strict=True)
        ]

    def _add_weights(self, pattern: int, layer: int, state: dict[str, Any], constants: dict[str, Any]) -> None:
        """The parameters and buffers of a layer become inputs of the graph, behind those of the layer before."""
        path = self._layers.path
        own = [(s, n) for s, n in self._pairs if s.kind in _WEIGHTS and str(s.target).startswith(f"{path}.{pattern}.")]
        for spec, node in own:
            target = f"{path}.{layer}." + str(spec.target).removeprefix(f"{path}.{pattern}.")
            before = (f"{path}.{layer - 1}.", f"{path}.{layer}.")
            at = max(i for i, (s, _) in enumerate(self._pairs) if s.kind is spec.kind and str(s.target).startswith(before))
            with self._graph.inserting_after(self._pairs[at][1]):
                new = self._graph.placeholder(node.name.replace(f"{_flat(path)}_{pattern}_", f"{_flat(path)}_{layer}_"))
            new.meta = dict(node.meta)
            self._pairs.insert(at + 1, (replace(spec, arg=TensorArgument(new.name), target=target), new))
            self._by_target[target], self._targets[new] = new, target
            tensor = self._module.get_parameter(target) if spec.kind is InputKind.PARAMETER else self._module.get_buffer(target)
            if tensor.shape != node.meta["val"].shape or tensor.dtype != node.meta["val"].dtype:
                raise OtherLayersError("weights of other shapes")
            (state if spec.target in state else constants)[target] = tensor

    def _copy(self, pattern: int, layer: int, behind: fx.Node) -> None:
        """The nodes of a layer once more, as those of another one."""
        before = self._nodes[pattern - self._layers.period]
        if [n.target for n in before] != [n.target for n in self._nodes[pattern]]:
            raise OtherLayersError("other operators")
        copies = list[fx.Node]()
        self._nodes.append(copies)
        for node, earlier in zip(self._nodes[pattern], before, strict=True):
            taken = dict(zip(_operands(node), _operands(earlier), strict=True))
            args, kwargs = fx.map_arg((node.args, node.kwargs), lambda n, t=taken: self._taken(n, t[n], pattern, layer))
            with self._graph.inserting_before(behind):
                copy = self._graph.create_node(node.op, node.target, args, kwargs)
            copy.meta = dict(node.meta)
            if "nn_module_stack" in node.meta:
                copy.meta["nn_module_stack"] = self._stack(node.meta["nn_module_stack"], pattern, layer)
            copies.append(copy)

    def _taken(self, node: fx.Node, earlier: fx.Node, pattern: int, layer: int) -> fx.Node:
        """What a layer takes where another one takes a node.

        Args:
            node: of the layer ``pattern``, or from outside of it.
            earlier: what the layer one period before takes there.
        """
        if node.op == "placeholder":
            is_one = node is earlier or node in self._constants
            return node if is_one else self._other_input(node, earlier, pattern, layer)
        place = self._at.get(node)
        first = self._layers.kept - 2 * self._layers.period
        if place is None or place[0] < first or node is earlier:
            return node
        return self._nodes[layer - pattern + place[0]][place[1]]

    def _other_input(self, node: fx.Node, earlier: fx.Node, pattern: int, layer: int) -> fx.Node:
        """The parameter, buffer or input of a layer that is as one of another layer."""
        if node in self._inputs and earlier in self._inputs:
            at, step = self._inputs.index(node), self._inputs.index(node) - self._inputs.index(earlier)
            return self._inputs[at + step * ((layer - pattern) // self._layers.period)]
        path, target = self._layers.path, self._targets[node]
        if target.startswith(f"{path}.{pattern}."):
            return self._by_target[f"{path}.{layer}." + target.removeprefix(f"{path}.{pattern}.")]
        name, _, number = target.rpartition("_")
        if number != str(pattern):
            raise OtherLayersError("an input that is of no layer")
        return self._by_target[f"{name}_{layer}"]

    def _from_the_end(self, node: fx.Node) -> fx.Node:
        """What is taken behind the layers: as far from the last one as before."""
        place = self._at.get(node)
        if place is None or place[0] < self._layers.kept - self._layers.period:
            return node
        return self._nodes[place[0] - self._layers.kept][place[1]]

    def _stack(self, stack: Mapping[str, Any], pattern: int, layer: int) -> dict[str, Any]:
        """The modules that a node is of."""
        path = self._layers.path
        old, new = re.compile(re.escape(f"{path}.{pattern}") + r"(?=\.|$)"), f"{path}.{layer}"
        return {old.sub(new, key): (old.sub(new, name), kind) for key, (name, kind) in stack.items()}


def _is_number(node: fx.Node) -> bool:
    return isinstance(node.meta.get("val"), bool | int | float | torch.SymBool | torch.SymInt | torch.SymFloat)


def _operands(node: fx.Node) -> list[fx.Node]:
    found = list[fx.Node]()
    fx.map_arg((node.args, node.kwargs), found.append)
    return found


def _flat(path: str) -> str:
    return path.replace(".", "_")

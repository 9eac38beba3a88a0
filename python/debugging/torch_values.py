"""A program of torch beside its import: its results, and the values of its graph, one after the other."""

from __future__ import annotations

import os
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from typing import Any

import ml_dtypes
import numpy as np
import torch
from torch.export.graph_signature import ExportGraphSignature, OutputKind, OutputSpec, TensorArgument
from torch.utils import _pytree as pytree

from ..frontend.saved_program import load_exported_program
from ..frontend.torch_graph import decomposed, is_plain
from ..frontend.torch_import import from_torch, save_weights
from ..frontend.torch_warnings import without_warnings
from ..module import Module

__all__ = ["TorchModel"]

Array = np.ndarray[Any, Any]


class TorchModel:
    """A .pt2 file."""

    kind = "torch"

    def __init__(self, path: str):
        self._program = load_exported_program(path)
        self._plain = self._program if is_plain(self._program) else decomposed(self._program)

    def module(self) -> Module:
        """Its import."""
        return from_torch(self._program)

    def weights(self, folder: str) -> str:
        """A file with its weights, which may be written into a folder."""
        path = os.path.join(folder, "weights.safetensors")
        save_weights(self._program, path)
        return path

    def results(self, inputs: Sequence[Array]) -> list[Array]:
        """What it returns, in order."""
        with _unchanged(self._program.module()) as model:
            found: Any = model(*[_tensor(x) for x in inputs])
        flat: list[Any] = pytree.tree_leaves(found)
        return [_array(torch.as_tensor(x)) for x in flat if x is not None]

    def values(self) -> list[tuple[str, str]]:
        """Name and place of the tensors that the graph computes, in order."""
        return [(n.name, _place(n)) for n in self._nodes()]

    def stream(self, inputs: Sequence[Array], sink: Callable[[str, Array], None]) -> None:
        """Runs the graph; each of its values goes to a sink when it is computed, and forgotten when none reads it any more."""
        wanted = {n.name for n in self._nodes()}

        class Interpreter(torch.fx.Interpreter):
            def run_node(self, n: torch.fx.Node) -> Any:
                result: Any = super().run_node(n)
                if n.name in wanted and isinstance(result, torch.Tensor):
                    sink(n.name, _array(result))
                return result

        with _unchanged(self._plain.module()) as model:
            Interpreter(model).run(*[_tensor(x) for x in inputs])

    def exposed(self) -> tuple[Module, int]:
        """The import of a program that also returns the values; how many results are in front of them, state being behind."""
        nodes, graph = self._nodes(), self._plain.graph
        copies: dict[torch.fx.Node, torch.fx.Node] = {}
        wider = torch.fx.Graph()
        returned = wider.graph_copy(graph, copies)
        assert isinstance(returned, tuple | list)
        wider.output((*returned, *(copies[n] for n in nodes)))
        changed = torch.fx.GraphModule(self._plain.graph_module, wider)
        signature = self._plain.graph_signature
        specs = [OutputSpec(OutputKind.USER_OUTPUT, TensorArgument(n.name), None) for n in nodes]
        exposed = ExportGraphSignature(signature.input_specs, [*signature.output_specs, *specs])
        with without_warnings():
            program: Any = self._plain._update(changed, exposed)  # pyright: ignore[reportPrivateUsage]
            module = from_torch(program)
        own = sum(spec.kind is OutputKind.USER_OUTPUT for spec in signature.output_specs)
        names = [o.name for o in module.functions["main"].outputs]
        return module, names.index(f"output{own}")  # as results are called whose paths the program does not say

    def _nodes(self) -> list[torch.fx.Node]:
        """What computes a tensor of a dtype that modules have; dropped are values that nothing reads."""
        return [n for n in self._plain.graph.nodes if n.op == "call_function" and n.users and _is_tensor(n.meta.get("val"))]


@contextmanager
def _unchanged(model: Any) -> Generator[Any]:
    """The model, whose buffers have at the end the values that they had."""
    before = {name: buffer.clone() for name, buffer in model.named_buffers()}
    with torch.no_grad():
        yield model
        for name, buffer in model.named_buffers():
            buffer.copy_(before[name])


def _is_tensor(value: Any) -> bool:
    return isinstance(value, torch.Tensor) and not value.is_complex()


def _place(node: torch.fx.Node) -> str:
    """The model's own module, as a path."""
    stack: dict[str, tuple[str, Any]] = node.meta.get("nn_module_stack") or {}
    return next(reversed([path for path, _ in stack.values()]), "")


def _tensor(array: Array) -> torch.Tensor:
    if array.dtype == ml_dtypes.bfloat16:
        return torch.from_numpy(array.view(np.uint16).copy()).view(torch.bfloat16)
    return torch.from_numpy(np.array(array))


def _array(tensor: torch.Tensor) -> Array:
    tensor = tensor.detach().cpu().contiguous()
    if tensor.dtype == torch.bfloat16:
        return tensor.view(torch.uint16).numpy().view(ml_dtypes.bfloat16)
    return tensor.numpy()

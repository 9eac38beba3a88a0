"""``torch.compile(model, backend="relaxir")``: graphs that Dynamo traced run as compiled code, on the module's own weights."""

from __future__ import annotations

import os
import re
import threading
import warnings
import weakref
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import torch
from torch._dynamo.backends.common import aot_autograd
from torch._dynamo.exc import RestartAnalysis
from torch._guards import CompileContext, TracingContext

from ..compiler import check_options
from ..compiler import compile as compile_module
from ..dialect.errors import RelaxError, RelaxWarning
from ..lowering.manifest import Manifest
from ..runtime.executable import Executable, PreparedWeights
from ..weights.arrays import Array
from .compiled_graphs import TorchGraph, note, torch_graphs
from .torch_decomposing import without_tokens
from .torch_graph import can_decompose, decompositions
from .torch_report import UnsupportedError
from .torch_results import Return
from .torch_traced import Traced, traced_module

__all__ = ["CompiledGraph", "backend"]

_Call = Callable[..., Any]

_OPTIONS = ("activations", "convolutions", "device", "fallback", "target", "weights")

_TRAINING = "it computes gradients: call the model under torch.no_grad() or torch.inference_mode()"

_SUBMODULE = re.compile(r"_(?:modules|parameters|buffers)\['([^']*)'\]")
_FRAME = re.compile(r'File "([^"]+)", line ([0-9]+)')
_TORCH_FOLDER = os.path.dirname(os.path.abspath(torch.__file__)) + os.sep


def backend(graph: torch.fx.GraphModule, inputs: Sequence[Any], *, options: Mapping[str, Any] | None = None, **_: Any) -> _Call:
    """Compiles a graph of Dynamo's; the backend ``"relaxir"`` of ``torch.compile``.

    Parameters and buffers that the graph only reads are weights, prepared when it is first called: those that inference reads
    as they are lie where the module has them, others are in the kernels' layouts, once for all graphs that read the same ones.
    They are prepared again when torch's version counters say that they have changed. No counter tells what is written through
    ``.data``.

    A graph that cannot be imported or compiled, or that computes gradients, runs in eager PyTorch, and a RelaxWarning says
    which one and why; :func:`torch_graphs` lists all.

    Args:
        graph: what Dynamo traced.
        inputs: examples of its inputs.
        options: ``torch.compile(..., options={...})``: ``weights``, ``activations``, ``convolutions``, ``target`` and
            ``device`` of :func:`relaxir.compile`; ``fallback``: False makes an error of what would run in eager PyTorch.

    Raises:
        RelaxError: there is no such option, or value of one; or ``fallback`` is off and the graph cannot run compiled.
    """
    given = dict(options or {})
    unknown = [name for name in given if name not in _OPTIONS]
    if unknown:
        raise RelaxError(f"expected options out of {', '.join(_OPTIONS)}, got '{unknown[0]}'")
    check_options(**{name: value for name, value in given.items() if name != "fallback"})
    may_fall_back = bool(given.pop("fallback", True))
    name, place = str(CompileContext.current_compile_id() or len(torch_graphs())), _place(graph)
    try:
        call, traced = _compiled(graph, inputs, given)
    except RelaxError as error:
        told = TorchGraph(name, place, "eager", str(error))
        if not may_fall_back:
            raise RelaxError(f"expected a graph that runs compiled, got {told}") from error
        note(told)
        warnings.warn(RelaxWarning(str(told)), stacklevel=2)
        return graph.forward
    note(TorchGraph(name, place, "relaxir", "", traced.operators, traced.module.functions["main"].symbols))
    return call


def _compiled(graph: torch.fx.GraphModule, inputs: Sequence[Any], options: Mapping[str, Any]) -> tuple[_Call, Traced]:
    """The graph as a function of its inputs. Raises RelaxError where it cannot be compiled."""
    names = _names(graph, inputs)
    also: frozenset[str] = frozenset()
    first: UnsupportedError | None = None
    while True:  # each round decomposes more operators than the last
        compiler = _Compiler(names, options)
        trace = aot_autograd(
            fw_compiler=_refuse_training,
            bw_compiler=_refuse_training,
            inference_compiler=compiler,
            decompositions=decompositions(also),
        )
        try:
            with without_tokens():
                call = trace(graph, inputs)
        except UnsupportedError as error:
            first = first or error
            more = can_decompose(error.report.operators) - also
            if not more:
                raise first.where_also(error) from None
            also |= more
            continue
        except (RelaxError, RestartAnalysis):
            raise
        except Exception as error:  # torch raises what it likes here
            raise RelaxError(f"torch cannot trace it: {(str(error) or type(error).__name__).splitlines()[0]}") from error
        assert compiler.traced is not None
        return call, compiler.traced


def _refuse_training(*_: Any) -> _Call:
    raise RelaxError(_TRAINING)


class _Compiler:
    """Compiles the graph that AOTAutograd made functional.

    Attributes:
        traced: the graph as a module, once it was compiled.
    """

    def __init__(self, names: Sequence[str], options: Mapping[str, Any]):
        """Takes names of the inputs that are parameters and buffers, empty for others, and options of :func:`compile`."""
        self._names = names
        self._options = options
        self.traced: Traced | None = None

    def __call__(self, graph: torch.fx.GraphModule, inputs: Sequence[Any]) -> _Call:
        _check_devices(inputs, str(self._options.get("target", "cpu")))
        traced = traced_module(graph, self._weights(len(inputs)))
        self.traced = traced
        return CompiledGraph(traced, compile_module(traced.module, **self._options))

    def _weights(self, count: int) -> dict[int, str]:
        """Names of parameters and buffers that the graph does not change, by position."""
        context = TracingContext.try_get()
        metadata = context.fw_metadata if context is not None else None
        if metadata is None or len(self._names) != count:
            return {}
        fixed = set(metadata.static_input_indices) - set(metadata.mutated_inp_runtime_indices)
        return {i: self._names[i] for i in sorted(fixed) if self._names[i]}


def _check_devices(inputs: Sequence[Any], target: str) -> None:
    wanted = "cpu" if target.partition(":")[0] == "cpu" else "cuda"
    others = [t.device for t in inputs if isinstance(t, torch.Tensor) and t.device.type != wanted]
    if others:
        raise RelaxError(f"expected tensors on device '{wanted}' for target '{target}', got one on '{others[0]}'")


#: Weights in the kernels' layouts by name, dtype and shape: graphs of one model share those that are equal.
_prepared: weakref.WeakValueDictionary[tuple[str, str, tuple[int, ...]], Array] = weakref.WeakValueDictionary()
_sharing = threading.Lock()


def _shared(weights: PreparedWeights, manifest: Manifest) -> None:
    """Puts equal arrays that another graph holds in the place of computed ones; raw ones are in the module's memory anyway."""
    with _sharing:
        for name in (n for step in manifest.steps if step.symbol is not None for n in step.sets):
            made = weights[name]
            key = name, str(made.dtype), made.shape
            known = _prepared.get(key)
            if known is not None and np.array_equal(known.view(np.uint8), made.view(np.uint8)):
                weights[name] = known
            else:
                _prepared[key] = made


class CompiledGraph:
    """A compiled graph as AOTAutograd calls it: with a list of tensors and integers, which it empties."""

    _boxed_call = True

    def __init__(self, traced: Traced, executable: Executable):
        self.executable = executable
        self._inputs, self._carriers = traced.inputs, traced.carriers
        self._constants = traced.constants
        raw = executable.manifest.raw_weights
        self._weights = {name: i for name, i in traced.weights.items() if name in raw}
        self._returns = [Return.of(value) for value in traced.results]
        self._symbols = traced.symbols if any(r.strides is not None for r in self._returns) else {}
        self._bound: tuple[Any, ...] | None = None
        self._binding = threading.Lock()

    def __call__(self, arguments: list[Any]) -> list[Any]:
        given = list(arguments)
        arguments.clear()
        if self._weights or self._constants:
            self._bind({name: given[i] for name, i in self._weights.items()})
        tensors = [given[i] for i in self._inputs] + [torch.empty((given[i], 0)) for i in self._carriers]
        tensors = [t.detach() if t.requires_grad else t for t in tensors]
        found = self.executable(*tensors, out=None if tensors else self._empty())
        outputs = iter(found if isinstance(found, tuple) else (found,))
        sizes = {name: given[i] if axis is None else given[i].shape[axis] for name, (i, axis) in self._symbols.items()}
        return [r.value if r.is_constant else r.made(next(outputs), sizes) for r in self._returns]

    def _empty(self) -> tuple[torch.Tensor, ...]:
        """Memory for the results of a graph of weights alone: without tensors as inputs, NumPy arrays would be returned."""
        shapes = self.executable.entries["main"].outputs
        fakes = [r.value for r in self._returns if not r.is_constant]
        return tuple(torch.empty(tuple(f.shape), dtype=f.dtype) for f, _ in zip(fakes, shapes, strict=True))

    def _bind(self, weights: Mapping[str, torch.Tensor]) -> None:
        """Binds weights that are others than last time, or have changed."""
        now = tuple(_identity(t) for t in weights.values())
        if now == self._bound:
            return
        with self._binding:
            source = {name: t.detach() for name, t in (*weights.items(), *self._constants.items())}
            prepared = self.executable.prepare(source, share=True)
            _shared(prepared, self.executable.manifest)
            self.executable.bind(prepared)
            self._bound = now


def _identity(tensor: torch.Tensor) -> tuple[int, object]:
    """Another one when a tensor lies elsewhere or was written to; always another one where torch does not count."""
    return tensor.data_ptr(), object() if tensor.is_inference() else tensor._version


def _names(graph: torch.fx.GraphModule, inputs: Sequence[Any]) -> list[str]:
    """For each input that is a parameter or a buffer its name in the model, else nothing."""
    own = [name for name, _ in (*graph.named_parameters(remove_duplicate=False), *graph.named_buffers(remove_duplicate=False))]
    placeholders = [node for node in graph.graph.nodes if node.op == "placeholder"]
    names = [_name(node, value) for node, value in zip(placeholders, inputs, strict=True)]
    repeated = {name for name, count in Counter(names).items() if count > 1}
    return own + [node.name if name in repeated and name else name for node, name in zip(placeholders, names, strict=True)]


def _name(placeholder: torch.fx.Node, value: Any) -> str:
    argument = placeholder.meta.get("grapharg")
    source = getattr(argument, "source", None)
    if source is None or not isinstance(value, torch.Tensor) or value.is_inference():
        return ""
    text = str(source.name() if callable(source.name) else source.name)
    path = _SUBMODULE.findall(text)
    is_stored = "_parameters['" in text or "_buffers['" in text
    return ".".join(path) if is_stored else ""


def _place(graph: torch.fx.GraphModule) -> str:
    """``file:line`` of the first operator that is not torch's own."""
    traces = (node.meta.get("stack_trace") or "" for node in graph.graph.nodes if node.op not in ("placeholder", "output"))
    for trace in traces:
        outside = [f for f in _FRAME.findall(trace) if not f[0].startswith((_TORCH_FOLDER, "<"))]
        if outside:
            return f"{outside[-1][0]}:{outside[-1][1]}"
    return ""

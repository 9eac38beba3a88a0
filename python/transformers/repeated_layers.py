"""Exports a model with fewer layers where many do the same, and repeats what was exported of them.

::

    layers:  0 | 1 2 3 4 | 5 6 7 8 | 9 10 11 12 | 13 ... 36      four kinds in turn behind a first one
    export:  0 | 1 2 3 4 | 5 6 7 8                               a period, and one that says what it has of the one before
    graph:   0 | 1 2 3 4 | 5 6 7 8 | 9 10 11 12 | 13 ... 36      copies of the nodes of 5 to 8, with weights of their own

Which layers do the same shows a call of the whole model without memory (:mod:`.operator_trace`), and another one with the
largest sizes. Whether the graph with the copies is the model says a call of both: they run the same operators on the same
weights, in the same order, with the same numbers. If they do not, the whole model is exported.
"""

from __future__ import annotations

import contextlib
import inspect
from collections.abc import Callable, Generator, Hashable, Mapping, Sequence
from logging import getLogger
from typing import Any

import torch
from torch import nn
from torch.export import Dim, ExportedProgram
from torch.utils._sympy.numbers import int_oo

from .layer_copies import OtherLayersError, RepeatedLayers, with_copies
from .operator_trace import OperatorTrace, module_trace, program_trace

__all__ = ["exported_by_layers"]

_LOG = getLogger("relaxir.compile")

#: Layers that must be left to copy, or it is not worth the calls that check it: of a layer one takes 20 ms, its export 150 to
#: 700 (one core of Emerald Rapids, Llama and Qwen3.5).
_LEAST = 6

#: How many more there are in the second call of what has no limit.
_MORE = 1000


def exported_by_layers(
    module: nn.Module, example: tuple[Any, ...], dynamic: Any, export: Callable[[], ExportedProgram]
) -> ExportedProgram | None:
    """The program of a module; None where its layers do not repeat.

    Args:
        module: in the mode that is meant, without gradients.
        example: positional inputs.
        dynamic: as ``dynamic_shapes`` of torch.export.
        export: exports the module as it is then.
    """
    lists = _lists(module)
    if not lists:
        return None
    try:
        return _exported_by_layers(module, lists, example, dynamic, export)
    except Exception as error:  # what runs without contents, and what exports, nobody knows beforehand
        _LOG.debug("layers are exported one by one: %s", error or type(error).__name__)
        return None


def _exported_by_layers(
    module: nn.Module, lists: dict[str, nn.ModuleList], example: tuple[Any, ...], dynamic: Any,
    export: Callable[[], ExportedProgram],
) -> ExportedProgram | None:  # fmt: skip
    layers = [layer for one in lists.values() for layer in one]
    whole = module_trace(module, example, layers)
    repeated = _all_repeated(lists, whole)
    if not repeated:
        return None
    if dynamic is not None:
        other = module_trace(module, _largest(module, example, dynamic), layers)
        if _all_repeated(lists, other) != repeated:
            raise OtherLayersError("layers that do the same do not for other sizes")
    with _without(module, repeated):
        program = export()
    for one in repeated:
        program = with_copies(program, module, one)
    if program_trace(program, module, example).read() != whole.read():
        raise OtherLayersError("a graph with copies of layers is not the model")
    return program


def _lists(module: nn.Module) -> dict[str, nn.ModuleList]:
    """Lists of many modules that are in no other one, by name."""
    found = dict[str, nn.ModuleList]()
    for path, one in module.named_modules():
        if not isinstance(one, nn.ModuleList) or len(one) < _LEAST + 2:
            continue
        if not any(path.startswith(f"{outer}.") for outer in found):
            found[path] = one
    return found


def _largest(module: nn.Module, example: tuple[Any, ...], dynamic: Any) -> tuple[Any, ...]:
    """Inputs of the largest sizes; of the least where an example has the largest.

    Raises:
        OtherLayersError: sizes are open in a way that is not followed.
    """
    bound = inspect.signature(module.forward).bind(*example)
    values = _resized(tuple(bound.arguments.values()), dynamic)
    for name, value in zip(bound.arguments, values, strict=True):
        bound.arguments[name] = value
    return bound.args


def _resized(value: Any, dynamic: Any) -> Any:
    if dynamic is None or not dynamic:
        return value
    if isinstance(value, tuple) and isinstance(dynamic, tuple) and len(value) == len(dynamic):
        return tuple(map(_resized, value, dynamic))
    if not isinstance(value, torch.Tensor) or not isinstance(dynamic, Mapping):
        raise OtherLayersError("sizes that are no dimensions of tensors")
    shape = list(value.shape)
    for axis, dim in dynamic.items():
        if type(dim) is not Dim:
            raise OtherLayersError("sizes that are computed of others")
        most = shape[axis] + _MORE if dim.max == int_oo else dim.max
        shape[axis] = dim.min if shape[axis] == most else most
    return value.new_empty(shape)


def _all_repeated(lists: Mapping[str, nn.ModuleList], whole: OperatorTrace) -> list[RepeatedLayers]:
    return [r for path, one in lists.items() if (r := _repeated(path, one, whole)) is not None]


def _repeated(path: str, layers: nn.ModuleList, whole: OperatorTrace) -> RepeatedLayers | None:
    """How layers repeat; None where they do not, or are not called one after another."""
    calls = [call for call in whole.layers if any(call[0] is one for one in layers)]
    if [layer for layer, _, _ in calls] != list(layers):
        return None
    ends = [end for _, _, end in calls]
    begins = [calls[0][1], *ends[:-1]]

    def kind(number: int, front: int | None) -> Hashable:
        return _kind(whole, f"{path}.{number}.", front, begins[number], ends[number])

    kinds, rough = [kind(i, begins[0]) for i in range(len(ends))], [kind(i, None) for i in range(len(ends))]
    count, found = len(kinds), list[RepeatedLayers]()
    for period in range(1, count // 2):
        alike = [rough[0] == rough[period], *(kinds[i] == kinds[i + period] for i in range(1, count - period))]
        first = next((i + 1 for i in range(len(alike) - 1, -1, -1) if not alike[i]), 0)
        kept = first + 2 * period + (count - first) % period
        if kept + _LEAST <= count:
            found.append(RepeatedLayers(path, count, period, kept))
    return min(found, key=lambda one: one.kept, default=None)


def _kind(whole: OperatorTrace, prefix: str, front: int | None, begin: int, end: int) -> Hashable:
    """What a layer runs, but for which weights it takes, and which values of other layers.

    Args:
        whole: with the operators ``begin`` to ``end`` of the layer.
        prefix: of the names of the layer's weights.
        front: how many operators are in front of all layers. None to tell no values from outside of the layer apart: the first
            takes one from there where others take what the layer before gave.
    """

    def outside(value: tuple[Any, ...]) -> Any:
        if front is None:
            return "outside"
        if value[0] == "given":
            return ("given", *value[2:])
        return value if value[1] < front else "layer"

    def kind(value: Any) -> Any:
        if not isinstance(value, tuple):
            return value
        if len(value) == 3 and value[0] == "result":
            return ("own", value[1] - begin, value[2]) if value[1] >= begin else outside(value)
        if len(value) == 4 and value[0] == "given":
            return (value[1].removeprefix(prefix), *value[2:]) if value[1].startswith(prefix) else outside(value)
        return tuple(map(kind, value))

    return tuple((operator.target, kind(operator.args)) for operator in whole.operators[begin:end])


@contextlib.contextmanager
def _without(module: nn.Module, repeated: Sequence[RepeatedLayers]) -> Generator[None]:
    """The module has only the layers that are exported meanwhile."""
    owners = [(module.get_submodule(one.path.rpartition(".")[0]), one.path.rpartition(".")[2], one) for one in repeated]
    kept: list[Any] = [owner._modules[name] for owner, name, _ in owners]
    try:
        for (owner, name, one), layers in zip(owners, kept, strict=True):
            owner._modules[name] = nn.ModuleList(list(layers)[: one.kept])
        yield
    finally:
        for (owner, name, _), layers in zip(owners, kept, strict=True):
            owner._modules[name] = layers

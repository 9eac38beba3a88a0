"""``compare`` with torch and ONNX Runtime: what they compute is expected of an import, a module or an artifact."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from ..dialect.functions import find_function, initial_state
from ..module import Module
from ..weights.opening import open_tensors
from .comparison import ComparedValue, Comparison, Settings
from .differences import Difference, difference
from .exposing import stream_results
from .runs import compiled_results, reference_results
from .value_store import ValueStore

if TYPE_CHECKING:
    from ..runtime.executable import Executable

__all__ = ["compare_framework"]

Array = np.ndarray[Any, Any]
_ENTRY = "main"


def compare_framework(path: str, found: Module | Executable | None, settings: Settings) -> Comparison:
    """What torch or ONNX Runtime computes, against an import of the model, by its reference semantics, or something else.

    Args:
        path: a .pt2 or .onnx file, whose weights both sides get.
        found: a module or executable with the same inputs and results, in the same order; None is the import.
        settings: what is run; values inside are compared where ``found`` is None and results differ, or all are wanted.
    """
    model = _opened(path)
    with tempfile.TemporaryDirectory(prefix="relaxir-compare-") as folder:
        weights = model.weights(folder)
        imported = model.module()
        settings = replace(settings, weights=_tensors(weights, imported))
        inputs, state = settings.arguments(imported, _ENTRY), _state_count(imported)
        wanted = model.results(inputs[: len(inputs) - state])
        given = imported if found is None else found
        got = _results_of(given, weights, inputs, settings)
        told = tuple(ComparedValue(_ENTRY, n, "", d) for n, d in _pairs(wanted, got, settings.tolerance))
        side = "its import" if found is None else "the module" if isinstance(found, Module) else "the artifact"
        comparison = Comparison(f"{model.kind} on {path}", side, told)
        if found is not None or (comparison.equal and not settings.values):
            return comparison
        return replace(comparison, values=tuple(_values(model, inputs, state, settings, folder)))


class _Framework(Protocol):
    """A model as another framework runs it."""

    @property
    def kind(self) -> str:
        """What runs it."""
        ...

    def module(self) -> Module:
        """Its import."""
        ...

    def weights(self, folder: str) -> str:
        """A file with its weights, which may be written into a folder."""
        ...

    def results(self, inputs: Sequence[Array]) -> list[Array]:
        """What it returns, in order."""
        ...

    def values(self) -> list[tuple[str, str]]:
        """Name and place of the tensors that it computes, in order."""
        ...

    def stream(self, inputs: Sequence[Array], sink: Callable[[str, Array], None]) -> None:
        """Hands them to a sink."""
        ...

    def exposed(self) -> tuple[Module, int]:
        """An import that returns them, one after the other, behind so many results."""
        ...


def _opened(path: str) -> _Framework:
    if path.endswith(".pt2"):
        from .torch_values import TorchModel

        return TorchModel(path)
    from .onnx_values import OnnxRuntimeModel

    return OnnxRuntimeModel(path)


def _tensors(path: str, module: Module) -> dict[str, Array]:
    source = open_tensors(path)
    return {w.name: source.get(w.name) for w in module.functions[_ENTRY].weights if w.name in source}


def _state_count(module: Module) -> int:
    with module.context:
        return len(initial_state(find_function(module.ir, _ENTRY)))


def _results_of(found: Module | Executable, weights: str, inputs: Sequence[Array], settings: Settings) -> dict[str, Array]:
    if isinstance(found, Module):
        return reference_results(found.ir.operation, _ENTRY, inputs, settings.raw(found, _ENTRY))
    if found.manifest.raw_weights:
        found.bind(found.prepare(weights))
    return compiled_results(found, _ENTRY, inputs)


def _pairs(wanted: Sequence[Array], got: dict[str, Array], tolerance: float | None) -> list[tuple[str, Difference]]:
    """In order; state comes behind the framework's results, which have none."""
    missing = Difference(False, reason="there is no such result")
    names = list(got)
    return [
        (names[i], difference(array, got[names[i]], tolerance)) if i < len(names) else (f"result {i}", missing)
        for i, array in enumerate(wanted)
    ]


def _values(model: _Framework, inputs: Sequence[Array], state: int, settings: Settings, folder: str) -> list[ComparedValue]:
    store, compared = ValueStore(folder), list[ComparedValue]()
    model.stream(inputs[: len(inputs) - state], store.write)
    (module, own), values = model.exposed(), model.values()

    def check(index: int, array: Array) -> None:
        if not own <= index < own + len(values):
            return
        name, where = values[index - own]
        if name in store:
            told = difference(store.take(name), array, settings.tolerance)
            compared.append(ComparedValue(_ENTRY, name, where, told))

    stream_results(module, _ENTRY, inputs, settings.raw(module, _ENTRY), check)
    return compared

"""An ONNX model run by ONNX Runtime beside its import: its results, and the values of its graph, a group after the other."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..dialect.errors import RelaxError
from ..frontend.onnx.importer import from_onnx
from ..module import Module

__all__ = ["OnnxRuntimeModel"]

Array = np.ndarray[Any, Any]

#: Values that one run computes: ONNX Runtime hands over all of them at its end.
_GROUP = 32
_PROVIDERS = ["CPUExecutionProvider"]


class OnnxRuntimeModel:
    """An .onnx file, by ONNX Runtime without its graph optimizations."""

    kind = "onnxruntime"

    def __init__(self, path: str):
        try:
            import onnx
            import onnxruntime
        except ImportError as error:
            raise RelaxError(f"expected onnx and onnxruntime to be installed, got no {error.name}") from None
        self._path, self._onnx, self._runtime = path, onnx, onnxruntime
        self._model: Any = onnx.load(path, load_external_data=False)

    def module(self) -> Module:
        """Its import."""
        return from_onnx(self._path)

    def weights(self, folder: str) -> str:
        """A file with its weights: itself."""
        return self._path

    def results(self, inputs: Sequence[Array]) -> list[Array]:
        """What it returns, in order."""
        return self._run(self._session(self._model), inputs, None)

    def values(self) -> list[tuple[str, str]]:
        """Name and node of the tensors that the graph computes, in order, where their types are known."""
        inferred: Any = self._onnx.shape_inference.infer_shapes(self._model)
        known = {i.name for i in inferred.graph.value_info if i.type.HasField("tensor_type")}
        made = [(name, f"{node.op_type} {node.name}".strip()) for node in self._model.graph.node for name in node.output]
        return [(name, node) for name, node in made if name in known]

    def stream(self, inputs: Sequence[Array], sink: Callable[[str, Array], None]) -> None:
        """Runs the graph once for each group of values; each value goes to a sink."""
        names = [name for name, _ in self.values()]
        session = self._session(self._with_outputs(names))
        for start in range(0, len(names), _GROUP):
            group = names[start : start + _GROUP]
            for name, array in zip(group, self._run(session, inputs, group), strict=True):
                sink(name, array)

    def exposed(self) -> tuple[Module, int]:
        """The import of a model that also returns the values; how many results are in front of them."""
        return from_onnx(self._with_outputs([name for name, _ in self.values()])), len(self._model.graph.output)

    def _with_outputs(self, names: Sequence[str]) -> Any:
        inferred: Any = self._onnx.shape_inference.infer_shapes(self._model)
        infos = {i.name: i for i in inferred.graph.value_info}
        model: Any = self._onnx.ModelProto()
        model.CopyFrom(self._model)
        model.graph.output.extend(infos[name] for name in names)
        return model

    def _session(self, model: Any) -> Any:
        options: Any = self._runtime.SessionOptions()
        options.graph_optimization_level = self._runtime.GraphOptimizationLevel.ORT_DISABLE_ALL
        options.log_severity_level = 3
        folder = os.path.dirname(os.path.abspath(self._path))
        options.add_session_config_entry("session.model_external_initializers_file_folder_path", folder)
        return _told(lambda: self._runtime.InferenceSession(model.SerializeToString(), options, providers=_PROVIDERS))

    def _run(self, session: Any, inputs: Sequence[Array], names: Sequence[str] | None) -> list[Array]:
        given = {i.name: x for i, x in zip(session.get_inputs(), inputs, strict=True)}
        return [np.asarray(x) for x in _told(lambda: session.run(names, given))]


def _told(work: Callable[[], Any]) -> Any:
    """What ONNX Runtime raises has no base of its own."""
    try:
        return work()
    except Exception as error:
        raise RelaxError(f"onnxruntime: {str(error).splitlines()[0]}") from error

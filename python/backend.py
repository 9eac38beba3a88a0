"""ONNX's backend interface, by which ``onnx.backend.test`` and others run models: ``relaxir.backend.run_model(model, inputs)``.

Source: https://github.com/onnx/onnx/blob/main/docs/ImplementingAnOnnxBackend.md.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from typing import Any

import numpy as np

from .compiler import compile as compile_module
from .dialect.errors import RelaxError
from .frontend.onnx.importer import Imported, UnsupportedNodesError, import_model

__all__ = ["PreparedModel", "is_compatible", "prepare", "run_model", "run_node", "supports_device"]

_Array = np.ndarray[Any, Any]


class PreparedModel:
    """A model that runs: compiled once for all inputs, or again where operators want elements of inputs at import.

    Those are shapes, axes and the like; code for the last values of such inputs is kept.
    """

    def __init__(self, model: Any, **options: Any):
        self._model, self._options = model, options
        self._codes: dict[Any, tuple[Imported, Any]] = {}
        self._wanted: tuple[str, ...] = ()
        self._names, self._defaults = _input_names(model)

    def run(self, inputs: Any, **_: Any) -> tuple[_Array, ...]:
        """The results in the model's order.

        Args:
            inputs: arrays in the model's order, or by name.

        Raises:
            RelaxError: operators have no relax form; inputs do not fit.
        """
        given = self._named(inputs)
        while True:
            values = {name: given[name] for name in self._wanted}
            try:
                imported, executable = self._code(values, self._defaults & set(given))
            except UnsupportedNodesError as error:
                more = sorted(error.wanted - set(self._wanted))
                if not more:
                    raise
                self._wanted = (*self._wanted, *more)
                continue
            found = executable(*(given[n] for n in imported.inputs))
            return tuple(found) if isinstance(found, tuple) else (found,)

    def _named(self, inputs: Any) -> dict[str, _Array]:
        if isinstance(inputs, Mapping):
            return {str(k): _array(v) for k, v in inputs.items()}  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]
        listed: Sequence[Any] = list(inputs) if isinstance(inputs, list | tuple) else [inputs]
        if len(listed) > len(self._names):
            raise RelaxError(f"expected at most {len(self._names)} inputs, got {len(listed)}")
        return {name: _array(v) for name, v in zip(self._names, listed, strict=False)}

    def _code(self, values: Mapping[str, _Array], given: Set[str]) -> tuple[Imported, Any]:
        key = (frozenset(given), *((n, v.dtype.str, v.shape, v.tobytes()) for n, v in sorted(values.items())))
        if key not in self._codes:
            imported = import_model(self._model, values, given=given)
            executable = compile_module(imported.module, **self._options)
            if imported.weights:
                executable.bind(executable.prepare({n: read() for n, read in imported.weights.items()}))
            self._codes = {key: (imported, executable)}
        return self._codes[key]


def _array(value: Any) -> _Array:
    """An input as an array; ONNX's own tests also have tensors as protos."""
    if hasattr(value, "data_type") and hasattr(value, "dims"):
        from .weights.onnx_tensors import tensor_array

        return tensor_array(value)
    try:
        return np.asarray(value)
    except ValueError:
        raise RelaxError("expected tensors as inputs, got a sequence of tensors of several shapes") from None


def _input_names(model: Any) -> tuple[list[str], frozenset[str]]:
    """Of what has to be given, and of what has a default."""
    from .frontend.onnx.model import read_model

    proto = read_model(model).proto
    defaults = {t.name for t in proto.graph.initializer}
    names = [i.name for i in proto.graph.input]
    return [n for n in names if n not in defaults], frozenset(n for n in names if n in defaults)


def prepare(model: Any, device: str = "CPU", **options: Any) -> PreparedModel:
    """A model to run; options are those of :func:`relaxir.compile`. Raises RelaxError for a device that is not there."""
    if not supports_device(device):
        raise RelaxError(f"expected device CPU, got '{device}'")
    return PreparedModel(model, **options)


def run_model(model: Any, inputs: Any, device: str = "CPU", **options: Any) -> tuple[_Array, ...]:
    """The results of a model."""
    return prepare(model, device, **options).run(inputs)


def run_node(node: Any, inputs: Any, device: str = "CPU", outputs_info: Any = None, **options: Any) -> tuple[_Array, ...]:
    """The results of one node for these arrays."""
    import onnx

    arrays = [np.asarray(i) for i in inputs]
    types = [onnx.helper.make_tensor_value_info(n, onnx.helper.np_dtype_to_tensor_dtype(a.dtype), a.shape)
             for n, a in zip(node.input, arrays, strict=True)]  # fmt: skip
    results = [onnx.helper.make_empty_tensor_value_info(n) for n in node.output]
    graph = onnx.helper.make_graph([node], "node", types, results)
    return run_model(onnx.helper.make_model(graph), arrays, device, **options)


def supports_device(device: str) -> bool:
    """Whether models run there."""
    return device.split(":")[0].upper() == "CPU"


def is_compatible(model: Any, device: str = "CPU", **_: Any) -> bool:
    """Whether a model can be prepared; inputs that are wanted at import are no hindrance."""
    try:
        import_model(model)
    except UnsupportedNodesError as error:
        return bool(error.wanted)
    except RelaxError:
        return False
    return supports_device(device)

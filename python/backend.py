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
    """A model that runs: compiled once for all inputs, or again where operators want elements of inputs, or sizes, at import.

    Those are shapes, axes and the like; code for the last values of such inputs is kept. Sequences are lists of arrays.
    """

    def __init__(self, model: Any, **options: Any):
        self._model, self._options = model, options
        self._codes: dict[Any, tuple[Imported, Any]] = {}
        self._wanted: tuple[str, ...] = ()
        self._names, self._defaults, self._lists = _input_names(model)
        self._has_fixed_sizes = bool(self._lists)

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
                imported, executable = self._code(values, self._defaults & set(given), self._examples(given))
            except UnsupportedNodesError as error:
                more = sorted(error.wanted - set(self._wanted))
                if not more and self._has_fixed_sizes:
                    raise
                self._has_fixed_sizes = self._has_fixed_sizes or not more
                self._wanted = (*self._wanted, *more)
                continue
            return _results(imported, executable, given)

    def _named(self, inputs: Any) -> dict[str, _Array]:
        if isinstance(inputs, Mapping):
            return {str(k): self._given(str(k), v) for k, v in inputs.items()}  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]
        listed: Sequence[Any] = list(inputs) if isinstance(inputs, list | tuple) else [inputs]
        if len(listed) > len(self._names):
            raise RelaxError(f"expected at most {len(self._names)} inputs, got {len(listed)}")
        return {name: self._given(name, v) for name, v in zip(self._names, listed, strict=False)}

    def _given(self, name: str, value: Any) -> Any:
        """An array; a list of arrays or None for an input that may be one."""
        if name in self._lists:
            return value if value is None else [_array(v) for v in value] if isinstance(value, list | tuple) else _array(value)  # pyright: ignore[reportUnknownVariableType]
        return _array(value)

    def _examples(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """The inputs, where code is for their sizes alone: of models with sequences, or of nodes that want sizes as numbers."""
        if not self._has_fixed_sizes:
            return {}
        return dict.fromkeys(self._lists) | {n: v for n, v in given.items() if n not in self._wanted}

    def _code(self, values: Mapping[str, _Array], given: Set[str], lists: Mapping[str, Any]) -> tuple[Imported, Any]:
        """Compiled for these values, and for the shapes of these examples, lists among them."""
        forms = [(n, None if v is None else [(a.dtype.str, a.shape) for a in _tensors(v)]) for n, v in lists.items()]
        key = (frozenset(given), repr(forms), *((n, v.dtype.str, v.shape, v.tobytes()) for n, v in sorted(values.items())))
        if key not in self._codes:
            imported = import_model(self._model, values, given=given, lists=lists)
            executable = compile_module(imported.module, **self._options)
            if imported.weights:
                executable.bind(executable.prepare({n: read() for n, read in imported.weights.items()}))
            self._codes = {key: (imported, executable)}
        return self._codes[key]


def _results(imported: Imported, executable: Any, given: Mapping[str, Any]) -> tuple[Any, ...]:
    """What a call gives, sequences as lists of arrays."""
    from .frontend.onnx.lists import laid_out

    arrays = {n: a for name, value in given.items() if value is not None for n, a in _named_tensors(name, value)}
    found = executable(*(arrays[n] for n in imported.inputs))
    tensors = iter(found if isinstance(found, tuple) else (found,))
    return tuple(laid_out(layout, tensors) for layout in imported.layouts)


def _tensors(value: Any) -> list[_Array]:
    return value if isinstance(value, list) else [value]  # pyright: ignore[reportUnknownVariableType]


def _named_tensors(name: str, value: Any) -> list[tuple[str, _Array]]:
    """What the function calls the tensors of an input."""
    return [(f"{name}.{i}", v) for i, v in enumerate(value)] if isinstance(value, list) else [(name, value)]  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]


def _array(value: Any) -> _Array:
    """An input as an array; ONNX's own tests also have tensors as protos."""
    if hasattr(value, "data_type") and hasattr(value, "dims"):
        from .weights.onnx_tensors import tensor_array

        return tensor_array(value)
    from .weights.onnx_codes import as_codes

    try:
        return as_codes(np.asarray(value))
    except ValueError:
        raise RelaxError("expected tensors as inputs, got a sequence of tensors of several shapes") from None


def _input_names(model: Any) -> tuple[list[str], frozenset[str], frozenset[str]]:
    """Of what has to be given, of what has a default, and of what is a sequence or an optional."""
    from .frontend.onnx.model import read_model

    proto = read_model(model).proto
    defaults = {t.name for t in proto.graph.initializer}
    names = [i.name for i in proto.graph.input]
    lists = frozenset(i.name for i in proto.graph.input if i.type.WhichOneof("value") in ("sequence_type", "optional_type"))
    return [n for n in names if n not in defaults], frozenset(n for n in names if n in defaults), lists


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

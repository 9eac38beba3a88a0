"""``from_onnx``: an ONNX model as a relax module, its initializers as named weights."""

from __future__ import annotations

import importlib.util
import itertools
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ...collector import collector_paused
from ...dialect.bindings import func, ir
from ...dialect.checks import expect, expect_count, expect_text
from ...dialect.context import new_context
from ...dialect.errors import RelaxError, interruptible
from ...dialect.fixed_weights import add_fixed_weights
from ...dialect.functions import set_names, set_num_input
from ...dialect.struct_info import TensorInfo
from ...dialect.symbolic import Dim, Expr
from ...module import Module
from ..torch_report import ImportReport, UnsupportedError

if TYPE_CHECKING:
    from .lists import Layout
    from .model import OnnxModel

__all__ = ["Imported", "UnsupportedNodesError", "from_onnx", "import_model"]

_Array = np.ndarray[Any, Any]

_ENTRIES = "{'prefill': {}, 'decode': {'sequence_length': 1}}"


class UnsupportedNodesError(UnsupportedError):
    """Nodes have no relax form, or want numbers that are not known.

    Attributes:
        wanted: the inputs whose elements they want.
    """

    remedies = ()

    def __init__(self, report: ImportReport, wanted: frozenset[str]):
        super().__init__(report)
        self.wanted = wanted


@dataclass
class Imported:
    """A module, and what its function takes and gives.

    Attributes:
        module: with one function, ``main``.
        weights: the arrays of its weights by name.
        inputs: the names of those inputs of the model that are arguments.
        outputs: what the model calls its results.
        layouts: what each of them consists of.
    """

    module: Module
    weights: Mapping[str, Any]
    inputs: Sequence[str]
    outputs: Sequence[str]
    layouts: Sequence[Layout]


@collector_paused()
@interruptible()
def from_onnx(
    model: Any,
    *,
    dims: Mapping[str, int | str] | None = None,
    cache_length: int | None = None,
    entries: Mapping[str, Mapping[str, int | str]] | None = None,
) -> Module:
    """Imports an ONNX model.

    Args:
        model: the path of an ``.onnx`` file, a ``ModelProto``, or the ``bytes`` of one. Operator sets 7 and later; older ones
            are converted.
        dims: sizes of dimensions that the model names (``{"batch_size": 1}``), or what they are in terms of others
            (``{"past": "total - length"}``).
        cache_length: makes state of caches of keys and values: what the model takes as ``past...`` and gives, longer by new
            tokens, as ``present...``, is a buffer with room for so many tokens, which calls write into.
        entries: functions of the model by name, each for more sizes that are given, such as
            ``{"prefill": {}, "decode": {"sequence_length": 1}}``. They share weights and state.

    The module has one function ``main`` with the model's inputs and results under their names. Dimensions with a ``dim_param``
    are symbols of that name, those without are symbols of their own. Initializers are weights under their names, except up to
    1,024 integers and single numbers that are no scale or zero point, which are constants; external data is not read. Functions
    of the model, and operators that their schema defines by others, are taken apart; attention and RMS norms that several nodes
    write out are one op.

    Raises:
        RelaxError: onnx is not installed; it is no valid model; operators have no relax form (one error for all of them); a
            tensor holds strings or complex numbers; dims names what the model does not; it has no caches, or their sizes are
            not known; entries are none.
    """
    from .inputs import expect_dims

    sizes = {} if dims is None else expect_dims(dims)
    length = None if cache_length is None else expect_count(cache_length, "a cache_length of 1 token or more")
    if entries is None:
        return import_model(model, dims=sizes, cache_length=length).module
    expect(entries, Mapping, f"entries as a mapping, as {_ENTRIES}")
    if not entries:
        raise RelaxError(f"expected entries, as {_ENTRIES}, got none")
    for name in entries:
        expect_text(name, "names of entries")
    of_entries = {name: sizes | expect_dims(more, f"sizes of entry '{name}'") for name, more in entries.items()}
    read, found = _read(model), Module.parse("")
    with found.ir.context, ir.Location.file(read.path, 0, 0):
        for name, known in of_entries.items():
            _Import(read, {}, frozenset(), known, length, None, (found.ir, name)).run()
    return found


def import_model(
    model: Any,
    values: Mapping[str, _Array] | None = None,
    given: Set[str] = frozenset(),
    dims: Mapping[str, int | str] | None = None,
    cache_length: int | None = None,
    lists: Mapping[str, Any] | None = None,
) -> Imported:
    """The same, where inputs of some names are constants of these values, and no arguments, and some are not their defaults.

    Inputs and results may be sequences and optionals where ``lists`` has an example of each such input.
    """
    read = _read(model)
    with new_context(), ir.Location.file(read.path, 0, 0):
        return _Import(read, dict(values or {}), given, dims or {}, cache_length, lists).run()


def _distinct(names: Sequence[str]) -> list[str]:
    """Names of results: one that is there already, as of a value that is two results, is followed by a number."""
    found: dict[str, None] = {}
    for name in names:
        numbered = (f"{name}.{i}" for i in itertools.count(1))
        found[name if name not in found else next(n for n in numbered if n not in found and n not in names)] = None
    return list(found)


def _read(model: Any) -> OnnxModel:
    if importlib.util.find_spec("onnx") is None:
        raise RelaxError("expected onnx to be installed; pip install relaxir[onnx]")
    from .model import read_model

    return read_model(model)


class _Import:
    """One import. See :func:`import_model`."""

    def __init__(
        self,
        model: OnnxModel,
        values: dict[str, _Array],
        given: Set[str],
        dims: Mapping[str, int | str],
        cache_length: int | None,
        lists: Mapping[str, Any] | None,
        into: tuple[ir.Module, str] | None = None,
    ):
        """``into``: the module that the function is added to, and the function's name."""
        from ...weights.onnx_tensors import ExternalData
        from .graph import Conversion, GraphScope
        from .operators import load_operators
        from .weights import Weights

        load_operators()
        self.proto, self.values, self.given, self.dims = model.proto, values, given, dims
        self.cache_length, self.lists = cache_length, lists
        self.module, name = into or (ir.Module.create(), "main")
        self.function = func.FuncOp(name, ([], []), ip=ir.InsertionPoint(self.module.body))
        self.block = self.function.add_entry_block()
        weights = Weights(ExternalData(model.folder), self._argument)
        functions = {(f.domain, f.name, f.overload): f for f in model.proto.functions}
        self.conversion = Conversion(model.path, weights, functions, opset=model.opset)
        opsets = {"" if o.domain == "ai.onnx" else o.domain: o.version for o in model.proto.opset_import}
        self.scope = GraphScope(self.conversion, opsets)
        self.arguments: list[str] = []

    def run(self) -> Imported:
        from .lists import flat, layout_of
        from .values import TensorSequence

        graph = self.proto.graph
        with ir.InsertionPoint(self.block):
            self.scope.initialize(graph)
            self._inputs()
            inputs = list(self.arguments)
            self.scope.convert(graph)
            self._raise_if_any()
            outputs = [self.scope.find(o.name) for o in graph.output]
            layouts = [layout_of(v) for v in outputs]
            wrong = next((o.name for o, v in zip(graph.output, outputs, strict=True) if isinstance(v, TensorSequence)), None)
            if wrong is not None and self.lists is None:
                raise RelaxError(f"expected tensors as results, got the sequence '{wrong}'")
            names: list[str] = []
            results: list[ir.Value] = []
            for output, value in zip(graph.output, outputs, strict=True):
                parts = flat(value)
                name = self.caches.names.get(output.name, output.name)
                names += [name if part is value else f"{name}.{i}" for i, part in enumerate(parts)]
                results += [self.caches.result(output.name, part.value) for part in parts]
            func.ReturnOp(results)
        weights = self.conversion.weights
        add_fixed_weights(self.module.operation, weights.fixed(self.conversion.read))
        self._finish(inputs, _distinct(names), results)
        arrays = {name: (lambda t=tensor: weights.read(t)) for name, tensor in weights.used.items()}
        return Imported(Module(self.module), arrays, inputs, [o.name for o in graph.output], layouts)

    def _raise_if_any(self) -> None:
        report = self.conversion.report
        if not report.found:
            return
        raise UnsupportedNodesError(report, frozenset(self.conversion.wanted))

    def _inputs(self) -> None:
        from .caches import Caches
        from .head_sizes import head_sizes
        from .inputs import input_shapes
        from .lists import given_list, kind_of
        from .values import known_value

        defaults = self.scope.names.keys() - self.given  # of initializers that are inputs, too
        inputs = [i for i in self.proto.graph.input if i.name not in defaults]
        lists = {i.name: kind_of(i) == "optional_type" for i in inputs if i.name in (self.lists or {})}
        free = [i for i in inputs if i.name not in self.values and i.name not in lists]
        self.caches = Caches(self.proto.graph, self.cache_length)
        shapes = input_shapes(free, head_sizes(self.proto.graph, free) | dict(self.dims), self.caches.pairs)
        self.conversion.symbols |= {n for shape in shapes.values() for d in shape if isinstance(d, Expr) for n in d.names}
        for given in inputs:
            if given.name in self.values:
                self.scope.names[given.name] = known_value(given.name, self.values[given.name])
            elif given.name in lists:
                example = (self.lists or {})[given.name]
                self.scope.names[given.name] = given_list(given.name, example, lists[given.name], self._argument)
            else:
                self.scope.names[given.name] = self._input(given, shapes)

    def _input(self, given: Any, shapes: Mapping[str, tuple[Dim, ...]]) -> Any:
        from ...weights.onnx_codes import is_coded
        from .tensors import stored_dtype
        from .values import GraphValue

        element = given.type.tensor_type.elem_type
        dtype = stored_dtype(element)
        shape = shapes[given.name]
        if given.name in self.caches.pairs:
            return self.caches.operand(given.name, shapes, dtype, self._argument)
        value = self._argument(given.name, TensorInfo(shape, dtype))
        coded = element if is_coded(element) else 0
        return GraphValue(given.name, dtype, shape, None, lambda: value, frozenset([given.name]), coded=coded)

    def _argument(self, name: str, info: TensorInfo) -> ir.Value:
        self.arguments.append(name)
        return self.block.add_argument(info.type, ir.Location.name(name, ir.Location.current))

    def _finish(self, inputs: Sequence[str], outputs: Sequence[str], results: Sequence[ir.Value]) -> None:
        types = [a.type for a in self.block.arguments], [r.type for r in results]
        self.function.attributes["function_type"] = ir.TypeAttr.get(ir.FunctionType.get(*types))
        set_names(self.function, self.arguments, outputs)
        set_num_input(self.function, len(inputs))
        self.caches.declare(self.function)
        Module(self.module).verify()

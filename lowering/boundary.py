"""The callable side of a relax function: its tensors by name, its state and its symbolic dimensions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from ..dialect import symbolic
from ..dialect.analysis.known_sizes import Shape, argument_shapes, known_sizes
from ..dialect.analysis.size_bounds import symbol_ranges
from ..dialect.array_spec import ArraySpec
from ..dialect.bindings import func, ir
from ..dialect.dtypes import numpy_dtype
from ..dialect.elements import to_numpy
from ..dialect.errors import RelaxError
from ..dialect.functions import (
    argument_names,
    body_of,
    full_argument_names,
    initial_state,
    keyword_inputs,
    name_of,
    num_input,
    result_names,
    returned_values,
)
from ..dialect.struct_info import TensorInfo, is_tensor
from ..dialect.symbolic import Expr, InnerSize
from ..dialect.weights import full_result_names
from .c_names import symbol_name
from .manifest_specs import EntrySpec, StateSpec, SymbolSpec, TensorSpec, WeightSpec

__all__ = ["Boundary", "Update", "argument_symbols", "static_array", "weights_of"]


@dataclass(frozen=True)
class Update:
    """A tensor that a function reads and updates in place.

    Attributes:
        name: its name; functions of a module share state of one name.
        argument, result: positions in the relax function.
        first: bytes of the first value, or of its one element where all are equal.
    """

    name: str
    argument: int
    result: int
    first: bytes


@dataclass
class Boundary:
    """What a caller passes and gets, in order.

    Attributes:
        name: the function's name in the module.
        symbol: its name in C.
        inputs, weights, outputs: the tensors. State is among the inputs, and not among the outputs.
        state: which inputs are state.
        symbols: symbolic dimensions with their least and greatest value (None: no limit), in manifest order.
        keyword: names of the inputs that calls have to name.
    """

    name: str
    symbol: str
    inputs: list[TensorSpec]
    weights: list[TensorSpec]
    outputs: list[TensorSpec]
    state: list[Update] = field(default_factory=list)
    symbols: dict[str, tuple[int, int | None]] = field(default_factory=dict)
    keyword: tuple[str, ...] = ()

    @staticmethod
    def of(function: func.FuncOp) -> Boundary:
        """Reads a relax function. Unknown dimensions of arguments get symbols of their own.

        Raises:
            RelaxError: a result has a dimension that the arguments do not determine, or an argument is no tensor.
        """
        name = name_of(function)
        block = body_of(function)
        if block is None:
            raise RelaxError(f"expected a function with a body, got the declaration @{name}", function.location)
        specs, inputs = _arguments(function, block), num_input(function)
        split = len(specs) if inputs is None else inputs
        symbols = dict.fromkeys(n for s in specs for d in s.shape if isinstance(d, Expr) for n in sorted(d.names))
        results = full_result_names(function)
        state = _state(function)
        shapes = _result_shapes(function, set(symbols))
        outputs = [
            _spec(value, results[i], function, shapes.get(value), set(symbols))
            for i, value in enumerate(returned_values(function))
            if all(s.result != i for s in state)
        ]
        ranges = symbol_ranges(function)
        limits = {n: ranges.get(n, (0, None)) for n in symbols}
        return Boundary(
            name, symbol_name(function), specs[:split], specs[split:], outputs, state, limits, keyword_inputs(function)
        )

    def spec(self, sizes: Sequence[InnerSize] = (), memory: Sequence[InnerSize] = ()) -> EntrySpec:
        """What the manifest says of it, but for what later steps find out. Raises RelaxError for a weight without sizes."""
        state = {s.argument for s in self.state}
        return EntrySpec(
            self.name,
            self.symbol,
            tuple(SymbolSpec(n, low, high) for n, (low, high) in self.symbols.items()),
            tuple(s for i, s in enumerate(self.inputs) if i not in state),
            tuple(WeightSpec(s.name, static_array(s)) for s in self.weights),
            tuple(self.outputs),
            (),
            tuple(StateSpec(s.name, static_array(self.inputs[s.argument]), s.argument, s.first) for s in self.state),
            tuple(sizes),
            tuple(memory),
            keyword=self.keyword,
        )


def weights_of(function: func.FuncOp) -> list[TensorSpec]:
    """The weights of a function with a body."""
    inputs, block = num_input(function), body_of(function)
    return [] if inputs is None or block is None else _arguments(function, block)[inputs:]


def _arguments(function: func.FuncOp, block: ir.Block) -> list[TensorSpec]:
    shapes = argument_shapes(function)
    named = zip(block.arguments, full_argument_names(function), strict=True)
    return [_spec(value, name, function, shapes.get(value)) for value, name in named]


def argument_symbols(function: func.FuncOp) -> set[str]:
    """The names of sizes that the arguments determine, those of unknown dimensions among them."""
    dims = [d for shape in argument_shapes(function).values() for d in shape]
    return {n for d in dims if isinstance(d, Expr) for n in d.names}


def static_array(spec: TensorSpec) -> ArraySpec:
    """A tensor of known sizes. Raises RelaxError where one is symbolic."""
    static = tuple(d for d in spec.shape if isinstance(d, int))
    if len(static) != len(spec.shape):
        text = ", ".join(map(str, spec.shape))
        raise RelaxError(f"expected a weight of static shape, got '{spec.name}' of shape [{text}]")
    return ArraySpec(spec.dtype, static)


def _state(function: func.FuncOp) -> list[Update]:
    arguments, results = argument_names(function), result_names(function)
    found = [
        Update(name, arguments.index(name), results.index(name), _first_bytes(value))
        for name, value in initial_state(function).items()
    ]
    return sorted(found, key=lambda s: s.argument)


def _first_bytes(value: ir.DenseElementsAttr) -> bytes:
    if value.is_splat:
        value = ir.DenseElementsAttr.get_splat(ir.RankedTensorType.get([], value.type.element_type), value.get_splat_value())
    return to_numpy(value).tobytes()


def _result_shapes(function: func.FuncOp, symbols: set[str]) -> dict[ir.Value, Shape]:
    """What is returned, with what inference says of sizes that types leave open or give a name of their own."""
    values = [v for v in returned_values(function) if is_tensor(v)]
    dims = {d for v in values for d in TensorInfo.of(v).shape if not isinstance(d, int)}
    if all(d is not None and d.names <= symbols for d in dims):
        return {v: _known(TensorInfo.of(v)) for v in values}
    sizes = known_sizes(function)
    return {v: sizes.by_arguments(v) for v in values}


def _known(info: TensorInfo) -> Shape:
    return tuple(d for d in info.shape if d is not None)


def _spec(
    value: ir.Value, name: str, function: func.FuncOp, shape: Shape | None, bound: set[str] | None = None
) -> TensorSpec:  # fmt: skip
    if shape is None:
        raise RelaxError(f"expected tensors at the boundary of @{name_of(function)}, got '{name}' of type {value.type}",
                         function.location)  # fmt: skip
    info = TensorInfo.of(value)
    for dim in shape:
        if bound is not None and isinstance(dim, Expr) and not dim.names <= bound:
            raise RelaxError(
                f"expected dimensions of '{name}' of @{name_of(function)} that its inputs determine, "
                f"got '{symbolic.dim_text(dim)}' in tensor<{info}>",
                function.location,
            )
    return TensorSpec(name, numpy_dtype(info.dtype), shape)

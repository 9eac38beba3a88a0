"""The callable side of a compiled function: its tensors by name, its state and its symbolic dimensions."""

from __future__ import annotations

from base64 import b64encode
from dataclasses import dataclass, field

from ..dialect import symbolic
from ..dialect.analysis.known_sizes import Shape, argument_shapes, known_sizes
from ..dialect.bindings import func, ir
from ..dialect.conventions import SYMBOL_RANGES
from ..dialect.elements import to_numpy
from ..dialect.errors import RelaxError
from ..dialect.functions import (
    argument_names,
    body_of,
    full_argument_names,
    initial_state,
    name_of,
    num_input,
    result_names,
    returned_values,
)
from ..dialect.struct_info import TensorInfo, is_tensor
from ..dialect.symbolic import Expr
from ..dialect.weights import full_result_names

__all__ = ["Signature", "StateSpec", "TensorSpec"]


@dataclass(frozen=True)
class TensorSpec:
    """One tensor at the boundary: name, shape (ints and symbolic expressions) and MLIR dtype name."""

    name: str
    shape: tuple[int | Expr, ...]
    dtype: str

    def as_json(self) -> dict[str, object]:
        return {"name": self.name, "shape": [d if isinstance(d, int) else str(d) for d in self.shape], "dtype": self.dtype}


@dataclass(frozen=True)
class StateSpec:
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

    def as_json(self) -> dict[str, object]:
        return {"argument": self.argument, "first": b64encode(self.first).decode()}


@dataclass
class Signature:
    """What a caller passes and gets, in order.

    Attributes:
        name: the function's name in the module.
        inputs, weights, outputs: the tensors. State is among the inputs, and not among the outputs.
        state: which inputs are state.
        symbols: symbolic dimensions with their least and greatest value (None: no limit), in manifest order.
    """

    name: str
    inputs: list[TensorSpec]
    weights: list[TensorSpec]
    outputs: list[TensorSpec]
    state: list[StateSpec] = field(default_factory=list)
    symbols: dict[str, tuple[int, int | None]] = field(default_factory=dict)

    @property
    def symbol_name(self) -> str:
        """The name of the compiled function in the object code."""
        return "relaxir_" + "".join(c if c.isalnum() else "_" for c in self.name)

    @property
    def tensors(self) -> list[TensorSpec]:
        """Inputs, weights and outputs: the order of the ABI."""
        return [*self.inputs, *self.weights, *self.outputs]

    @staticmethod
    def of(function: func.FuncOp) -> Signature:
        """Reads a relax function. Unknown dimensions of arguments get symbols of their own.

        Raises:
            RelaxError: a result has a dimension that the arguments do not determine, or an argument is no tensor.
        """
        name = name_of(function)
        block = body_of(function)
        if block is None:
            raise RelaxError(f"expected a function with a body, got the declaration @{name}", function.location)
        inputs, shapes = num_input(function), argument_shapes(function)
        specs = [
            _spec(value, given, function, shapes.get(value))
            for value, given in zip(block.arguments, full_argument_names(function), strict=True)
        ]
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
        ranges = _symbol_ranges(function)
        return Signature(name, specs[:split], specs[split:], outputs, state, {n: ranges.get(n, (0, None)) for n in symbols})


def _state(function: func.FuncOp) -> list[StateSpec]:
    arguments, results = argument_names(function), result_names(function)
    found = [
        StateSpec(name, arguments.index(name), results.index(name), _first_bytes(value))
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
    return TensorSpec(name, shape, str(info.dtype))


def _symbol_ranges(function: func.FuncOp) -> dict[str, tuple[int, int | None]]:
    """``relax.symbol_ranges = {n = [1, 512], m = [0]}``; without an upper end there is no limit."""
    if SYMBOL_RANGES not in function.attributes:
        return {}
    found: dict[str, tuple[int, int | None]] = {}
    for item in ir.DictAttr(function.attributes[SYMBOL_RANGES]):
        low, *high = (ir.IntegerAttr(v).value for v in ir.ArrayAttr(item.attr))
        found[item.name] = (low, high[0] if high and high[0] >= 0 else None)
    return found

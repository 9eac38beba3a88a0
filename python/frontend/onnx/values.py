"""Values of an ONNX graph while it is converted: numbers that are known at import, weights, and relax values."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from ...dialect import ops
from ...dialect.bindings import ir
from ...dialect.dtypes import dtype_name, numpy_dtype
from ...dialect.elements import from_numpy
from ...dialect.errors import RelaxError
from ...dialect.struct_info import TensorInfo
from ...dialect.symbolic import Dim, Expr
from ..emit import concat, emit, expand, full, info_of, reshape
from .cache_buffer import Cache
from .size_expressions import is_expression, written

__all__ = [
    "Array",
    "GraphValue",
    "NumbersWantedError",
    "TensorSequence",
    "array_dtype",
    "coded_value",
    "expression_value",
    "known_value",
    "numbers_array",
    "relax_dtype",
    "require_places",
    "tensor_value",
]

Array = np.ndarray[Any, Any]


class NumbersWantedError(RelaxError):
    """An operator wants numbers at import that are computed from inputs.

    Attributes:
        inputs: the names of these inputs.
    """

    def __init__(self, message: str, inputs: frozenset[str]):
        super().__init__(message)
        self.inputs = inputs


#: A table of that many places takes 128 MiB.
_MOST_PLACES = 1 << 24


@dataclass
class GraphValue:
    """One value of the graph.

    Attributes:
        name: what the graph calls it.
        dtype: the element type.
        shape: its dimensions.
        known: its elements, where they are known at import; of dtype object where some are symbolic.
        make: gives the relax value, at the current insertion point.
        inputs: the graph's inputs whose elements it is computed from.
        load: reads the elements of a weight.
        argument: gives a known number of the model's file as a weight.
        cache: what holds it, where it is state.
        coded: ONNX's element type, where the elements are codes of it (:mod:`.codes`).
        expressions: its elements, where some are expressions of sizes that are no integers (:mod:`.size_expressions`).
    """

    name: str
    dtype: ir.Type
    shape: tuple[Dim, ...]
    known: Array | None
    make: Callable[[], ir.Value]
    inputs: frozenset[str] = frozenset()
    load: Callable[[], Array] | None = None
    argument: Callable[[], ir.Value] | None = None
    cache: Cache | None = None
    coded: int = 0
    expressions: Array | None = None

    @property
    def folds(self) -> Array | None:
        """What is known of the elements when nodes are folded."""
        return self.expressions if self.known is None else self.known

    @property
    def rank(self) -> int:
        return len(self.shape)

    @property
    def value(self) -> ir.Value:
        return self.make()

    def numbers(self) -> Array:
        """The elements. Raises NumbersWantedError where they are not known at import."""
        if self.known is None and self.load is not None:
            return self.load()
        if self.known is None:
            source = ", ".join(f"'{i}'" for i in sorted(self.inputs))
            raise NumbersWantedError(
                f"expected numbers known at import, got '{self.name}', computed from {source}", self.inputs
            )
        return self.known


@dataclass
class TensorSequence:
    """A sequence of tensors, known at import but for its elements; or an optional, a sequence of one or none.

    Attributes:
        items: the elements; that of an optional may be a sequence.
        optional: whether it is an optional.
    """

    items: list[Any] = field(default_factory=list[Any])
    optional: bool = False


def tensor_value(name: str, value: ir.Value, inputs: frozenset[str] = frozenset()) -> GraphValue:
    """What a relax value is."""
    info = info_of(value)
    return GraphValue(name, info.dtype, info.shape, None, lambda: value, inputs)


def coded_value(name: str, codes: ir.Value, element: int) -> GraphValue:
    """Codes of an element type that relax has not."""
    return replace(tensor_value(name, codes), coded=element)


def known_value(name: str, array: Array, dtype: ir.Type | None = None) -> GraphValue:
    """Numbers known at import; the relax value is written into the IR where one is asked for."""
    element = relax_dtype(array.dtype) if dtype is None else dtype
    return GraphValue(name, element, array.shape, array, lambda: _written(array, element))


def expression_value(name: str, array: Array, dtype: ir.Type) -> GraphValue:
    """Expressions of sizes, for nodes that are folded; the relax value is written where another one asks."""
    return GraphValue(name, dtype, array.shape, None, lambda: written(array, dtype), expressions=array)


def relax_dtype(dtype: np.dtype[Any]) -> ir.Type:
    """The element type of arrays. Raises RelaxError where relax does not compute with it."""
    return ir.Type.parse(dtype_name(dtype))


def numbers_array(items: Sequence[Any], shape: Sequence[int] | None = None) -> Array:
    """Integers as an array: of i64, or of objects where some are symbolic, or expressions."""
    wide = any(isinstance(i, Expr) or is_expression(i) for i in items)
    array = np.empty(len(items), object if wide else np.int64)
    array[:] = items
    return array if shape is None else array.reshape(shape)


def _written(array: Array, dtype: ir.Type) -> ir.Value:
    if array.dtype == object:
        return _symbolic(array, dtype)
    first: Any = array.reshape(-1)[0] if array.size else 0
    if array.size and array.dtype.kind in "fiub" and array.ndim and (array == first).all() and np.isfinite(first):
        return full(first.item(), dtype, array.shape)
    return emit(ops.Constant, value=from_numpy(array, ir.RankedTensorType.get(list(array.shape), dtype)))


def _symbolic(array: Array, dtype: ir.Type) -> ir.Value:
    """Numbers of which some are symbolic: scalars side by side."""
    scalars = [full(n, dtype) for n in array.reshape(-1)]
    if not array.ndim:
        return scalars[0]
    if len({str(n) for n in array.reshape(-1)}) == 1:
        return expand(scalars[0], array.shape)
    return reshape(concat([reshape(s, (1,)) for s in scalars], 0), array.shape)


def require_places(count: int) -> None:
    """Raises RelaxError for a table of places, written into the module, that is longer than memory should be spent on."""
    if count > _MOST_PLACES:
        raise RelaxError(f"expected at most {_MOST_PLACES} places of windows, or of elements to read, got {count}")


def array_dtype(dtype: ir.Type) -> np.dtype[Any]:
    """The NumPy dtype of an element type."""
    return numpy_dtype(dtype)


def info(operand: GraphValue) -> TensorInfo:
    """Shape and dtype."""
    return TensorInfo(operand.shape, operand.dtype)

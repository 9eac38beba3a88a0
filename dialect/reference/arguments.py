"""What a caller hands to a function: inputs in order and weights by name, checked against the argument types."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from ..bindings import func, ir
from ..checks import expect_no_mask
from ..dtypes import dtype_name, numpy_dtype
from ..errors import RelaxError
from ..functions import body_of, full_argument_names, name_of, num_input
from ..relax import Object, OutputSink, ParamProvider
from ..struct_info import TensorInfo, is_tensor
from ..symbolic import dim_text
from ..tuples import element_types
from ..weights import argument_leaf_names
from .numeric import Array
from .scalars import scalar, scalar_dtype
from .tuples import nested

__all__ = ["check_array", "entry_arguments"]

#: How many names a message lists.
_LISTED = 5


def entry_arguments(
    function: func.FuncOp,
    inputs: Sequence[Any],
    weights: Mapping[str, Any],
    provider: Callable[..., Any] | None,
    sink: Callable[..., Any] | None,
) -> list[Any]:
    """The values of all arguments in order.

    Raises:
        RelaxError: too few or too many inputs, a weight missing or unknown, no provider or sink where one is needed, or an
            array of another rank or dtype than the argument's type. Sizes are checked when symbols are bound.
    """
    block = body_of(function)
    if block is None:
        raise RelaxError(f"expected a function with a body, got the declaration @{name_of(function)}", function.location)
    callables = {ParamProvider: ("provider", provider), OutputSink: ("sink", sink)}
    names = full_argument_names(function)
    split = num_input(function)
    arguments = list(block.arguments)
    leaves = argument_leaf_names(function)
    tensors = [i for i, a in enumerate(arguments) if not isinstance(a.type, tuple(callables))]
    weight_indices = [i for i in tensors if split is not None and i >= split]
    input_indices = tensors[: len(tensors) - len(weight_indices)]
    if len(inputs) != len(input_indices):
        raise RelaxError(f"expected {len(input_indices)} inputs for @{name_of(function)}, got {len(inputs)}")
    _check_weight_names(function, [n for i in weight_indices for n in leaves[i]], weights)
    given = dict(zip(input_indices, inputs, strict=True))
    given |= {i: nested(arguments[i].type, iter([weights[n] for n in leaves[i]])) for i in weight_indices}
    values: list[Any] = []
    for i, argument in enumerate(arguments):
        if i not in given:
            values.append(_callable(argument.type, callables, names[i]))
            continue
        kind = "weight" if i in weight_indices else "input"
        values.append(_argument(given[i], argument.type, iter([f"{kind} '{n}'" for n in leaves[i]])))
    return values


def _check_weight_names(function: func.FuncOp, expected: Sequence[str], weights: Mapping[str, Any]) -> None:
    where = f"@{name_of(function)}"
    missing = [n for n in expected if n not in weights]
    if missing:
        raise RelaxError(f"expected weights {_listing(missing)} of {where}, got {'others' if weights else 'none'}")
    unknown = sorted(set(weights) - set(expected))
    if unknown:
        known = f"only weights {_listing(expected)}" if expected else "no weights"
        raise RelaxError(f"expected {known} for {where}, got {_listing(unknown)}")


def _listing(names: Iterable[str]) -> str:
    quoted = [f"'{n}'" for n in names]
    more = f" and {len(quoted) - _LISTED} more" if len(quoted) > _LISTED else ""
    return ", ".join(quoted[:_LISTED]) + more


def _callable(type_: ir.Type, callables: Mapping[type, tuple[str, Any]], name: str) -> Any:
    what, value = next(v for k, v in callables.items() if isinstance(type_, k))
    if value is None:
        raise RelaxError(f"expected a {what} for argument '{name}', got none")
    return value


def _argument(value: Any, type_: ir.Type, names: Iterator[str]) -> Any:
    """A value as its type wants it; ``names`` has what messages call it, one for each leaf of a tuple."""
    if isinstance(type_, ir.TupleType):
        types = element_types(type_)
        if not isinstance(value, list | tuple) or len(value) != len(types):
            got = f"{len(value)}" if isinstance(value, list | tuple) else type(value).__name__
            raise RelaxError(f"expected a tuple of {len(types)} values for {next(names, 'an empty tuple')}, got {got}")
        return tuple(_argument(v, t, names) for v, t in zip(value, types, strict=True))
    what = next(names)
    if isinstance(type_, Object):
        return value
    expect_no_mask(value, what)
    array = np.asarray(value)
    if is_tensor(type_):
        check_array(array, TensorInfo.of(type_), what)
        return array
    if array.ndim or array.dtype.kind not in "bif":
        raise RelaxError(f"expected {what} to be a number of type {type_}, got {array.dtype} {list(array.shape)}")
    scalar_dtype(type_)
    return scalar(array[()], type_)


def check_array(array: Array, info: TensorInfo, what: str) -> None:
    """Raises RelaxError when an array has another dtype, rank or constant size than a tensor type."""
    if array.dtype != numpy_dtype(info.dtype):
        raise RelaxError(f"expected {what} of dtype {info.dtype}, got {_dtype_text(array)}")
    if array.ndim != info.rank or any(isinstance(d, int) and d != s for d, s in zip(info.shape, array.shape, strict=True)):
        shape = ", ".join(dim_text(d) for d in info.shape)
        raise RelaxError(f"expected {what} of shape [{shape}], got {list(array.shape)}")


def _dtype_text(array: Array) -> str:
    try:
        return dtype_name(array.dtype)
    except RelaxError:
        return str(array.dtype)

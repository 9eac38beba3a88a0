"""Runs a module the way a user would, raw weights in and results out, whatever passes have made of it.

Where a transform function exists its results are the weights; where a function is lazy its weights come from a provider and
its results go to a sink.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from ..dialect.bindings import func, ir
from ..dialect.constants import constant_arrays
from ..dialect.dtypes import numpy_dtype
from ..dialect.errors import RelaxError
from ..dialect.functions import body_of, functions, is_private, name_of, num_input, transform_targets
from ..dialect.lazy_calls import LazyCalls
from ..dialect.reference.interpreter import evaluate
from ..dialect.reference.tuples import leaves, nested
from ..dialect.struct_info import TensorInfo, is_tensor
from ..dialect.symbolic import Dim, Expr
from ..dialect.symbolic import evaluate as evaluate_dim
from ..dialect.traversal import nested_operations
from ..dialect.tuples import element_types
from ..dialect.weights import full_result_names, result_leaf_names, weight_types
from ..random_weights import random_weight

__all__ = [
    "SIZES", "Values", "arguments_for", "entry_functions", "normal_numbers", "prepare", "raw_weights", "run_entry",
    "small_integers", "weight_numbers",
]  # fmt: skip

Array = np.ndarray[Any, Any]
Arrays = Mapping[str, Array]
#: Makes a tensor of an element type and a shape.
Values = Callable[[ir.Type, tuple[int, ...], np.random.Generator], Array]

#: Sizes that symbols get; another one is 4. A weight has one size, also where one function calls it ``m`` and another ``s``.
SIZES = {"n": 5, "m": 3, "s": 3, "k": 2}


def entry_functions(module: ir.Operation) -> list[func.FuncOp]:
    """Public functions with a body that are no transform functions."""
    found = functions(module)
    return [f for f in found if not is_private(f) and body_of(f) is not None and not transform_targets(f)]


def small_integers(dtype: ir.Type, shape: tuple[int, ...], rng: np.random.Generator) -> Array:
    """Integers from -3 to 3, as whatever dtype: sums and products of them are exact."""
    name = str(dtype)
    values = rng.integers(0 if name.startswith(("i1", "ui")) else -3, 4, math.prod(shape)).reshape(shape)
    return (values > 0 if name == "i1" else values).astype(numpy_dtype(dtype))


def normal_numbers(dtype: ir.Type, shape: tuple[int, ...], rng: np.random.Generator) -> Array:
    """Floats of the normal distribution; integers of 0 and 1, which are valid as indices, ids and masks alike."""
    if "f" in str(dtype):
        return rng.standard_normal(shape, np.float32).astype(numpy_dtype(dtype))
    return rng.integers(0, 2, shape).astype(numpy_dtype(dtype))


def weight_numbers(dtype: ir.Type, shape: tuple[int, ...], rng: np.random.Generator) -> Array:
    """The same for weights: vectors are positive, as variances are."""
    return random_weight(numpy_dtype(dtype), shape, rng) if "f" in str(dtype) else normal_numbers(dtype, shape, rng)


def raw_weights(
    module: ir.Operation,
    name: str,
    rng: np.random.Generator,
    values: Values = small_integers,
    sizes: Mapping[str, int] = SIZES,
) -> dict[str, Array]:
    """Random raw weights, by name: those of all functions, because a shared transform function wants all; own ones win.

    What functions read by themselves is among them, too. What the module has values of (``relax.constants``) is these.
    """
    lazy = LazyCalls(module)
    reads = [lazy.describe(op) for op in nested_operations(module) if lazy.is_read(op)]
    found = {r.name or f"weight{r.index}": _random(r.value.type, rng, values, sizes) for r in reads}
    for function in sorted(entry_functions(module), key=lambda f: name_of(f) == name):
        source = _transform_of(module, name_of(function)) or function
        found |= {n: _random(t, rng, values, sizes) for n, t in weight_types(source).items()}
    return found | {name: value for name, value in constant_arrays(module).items() if name in found}


def arguments_for(
    module: ir.Operation,
    name: str,
    rng: np.random.Generator,
    values: Values = small_integers,
    sizes: Mapping[str, int] = SIZES,
) -> list[Array]:
    """Random run-time inputs of a function."""
    function = _function(module, name)
    arguments = _arguments(function)
    taken = [a for a in arguments[: num_input(function)] if is_tensor(a) or not _is_callable(a)]
    return [_random(a.type, rng, values, sizes) for a in taken]


def run_entry(module: ir.Operation, name: str, inputs: Sequence[Array], raw: Arrays) -> tuple[Array, ...]:
    """The results of an entry function for inputs and raw weights. More weights than it needs may be given."""
    # A lazy function reads raw weights by their names, also when others of its weights are prepared.
    prepared = dict(raw) | prepare(module, name, raw)
    return _run(module, _function(module, name), inputs, prepared)


def prepare(module: ir.Operation, name: str, raw: Arrays) -> dict[str, Array]:
    """The weights that a function takes: what its transform function makes of the raw ones, else those."""
    transform = _transform_of(module, name)
    if transform is None:
        return dict(raw)
    names = _output_names(module, transform)
    results = _results(module, transform, [], raw)
    assert len(names) == len(results)
    # Weights that stay in a tuple go by the names that they had, or that the tuple says.
    kept = dict(raw) if any(isinstance(r, tuple) for r in results) else {}
    for own, result in zip(result_leaf_names(transform), results, strict=False):
        kept |= dict(zip(own, leaves(result), strict=True)) if isinstance(result, tuple) else {}
    return kept | {n: r for n, r in zip(names, results, strict=True) if not isinstance(r, tuple)}


def _run(module: ir.Operation, function: func.FuncOp, inputs: Sequence[Any], weights: Arrays) -> tuple[Array, ...]:
    return tuple(leaf for r in _results(module, function, inputs, weights) for leaf in leaves(r))


def _results(module: ir.Operation, function: func.FuncOp, inputs: Sequence[Any], weights: Arrays) -> tuple[Any, ...]:
    """What a function hands over, and behind that what it returns."""
    handed: dict[int, Array] = {}

    def provider(index: int | None, name: str | None, **bound: Any) -> np.ndarray:
        return weights[name if name is not None else f"weight{index}"]

    def sink(index: int, name: str | None, value: Array, **bound: Any) -> None:
        assert index not in handed
        handed[index] = np.array(value)

    names = weight_types(function)
    missing = next((n for n in names if n not in weights), None)
    if missing is not None:
        where = name_of(function)
        raise RelaxError(f"expected weights of the same names in both modules, got '{missing}' in @{where} of one alone")
    wanted = {n: weights[n] for n in names}
    results = evaluate(module, name_of(function), _inputs(function, inputs), wanted, provider, sink)
    return (*(handed[i] for i in sorted(handed)), *results)


def _inputs(function: func.FuncOp, inputs: Sequence[Any]) -> list[Any]:
    """Inputs as the function takes them: passes may make several of a tuple, or one of several."""
    flat = iter([leaf for i in inputs for leaf in leaves(i)])
    arguments = _arguments(function)[: num_input(function)]
    given: list[Any] = []
    for type_ in (a.type for a in arguments if not _is_callable(a)):
        try:
            given.append(nested(type_, flat))
        except StopIteration:
            break
    return [*given, *_added_inputs(function, len(given))]


def _added_inputs(function: func.FuncOp, given: int) -> list[Any]:
    """Values of the inputs that the lazy passes add behind others, to pass on to callbacks."""
    inputs = [a for a in _arguments(function)[: num_input(function)] if not _is_callable(a)]
    return [_random(a.type, np.random.default_rng(0)) for a in inputs[given:]]


def _output_names(module: ir.Operation, function: func.FuncOp) -> list[str]:
    """Names of a function's results, or of what it hands over, by index."""
    names = full_result_names(function)
    if names:
        return names
    lazy = LazyCalls(module)
    writes = [lazy.describe(op) for op in nested_operations(function.operation) if lazy.is_write(op)]
    by_index = {w.index: w.name or f"weight{w.index}" for w in writes if w.index is not None}
    return [by_index[i] for i in sorted(by_index)]


def _transform_of(module: ir.Operation, name: str) -> func.FuncOp | None:
    return next((f for f in functions(module) if name in transform_targets(f)), None)


def _function(module: ir.Operation, name: str) -> func.FuncOp:
    return next(f for f in functions(module) if name_of(f) == name)


def _arguments(function: func.FuncOp) -> list[ir.Value]:
    block = body_of(function)
    return [] if block is None else list(block.arguments)


def _is_callable(value: ir.Value) -> bool:
    return str(value.type).startswith("!relax.")


def _random(
    type_: ir.Type,
    rng: np.random.Generator,
    values: Values = small_integers,
    sizes: Mapping[str, int] = SIZES,
) -> Any:
    if isinstance(type_, ir.TupleType):
        return tuple(_random(t, rng, values, sizes) for t in element_types(type_))
    if not is_tensor(type_):
        return rng.integers(0, 2) if "i" in str(type_) else float(rng.integers(0, 3))
    info = TensorInfo.of(type_)
    return values(info.dtype, tuple(_size(d, sizes) for d in info.shape), rng)


def _size(dim: Dim, sizes: Mapping[str, int]) -> int:
    if isinstance(dim, Expr):
        return evaluate_dim(dim, {n: sizes.get(n, 4) for n in dim.names})
    return 4 if dim is None else dim

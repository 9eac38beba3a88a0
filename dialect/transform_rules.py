"""What holds of transform functions: whose weights they prepare, and that they return these weights, by name and type."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from .bindings import func, ir
from .errors import RelaxError
from .functions import NUM_INPUT, TRANSFORM_FOR, body_of, is_private, name_of, num_input, transform_targets
from .lazy_calls import READ, WRITE, callback_of
from .relax import OutputSink, ParamProvider
from .struct_info import TensorInfo, is_tensor
from .weights import result_types, weight_types

__all__ = ["TRANSFORM_SUFFIX", "may_read_lazily", "transform_problems", "unmarked_transforms"]

#: How lifting names the transform function of ``@main``: ``@main_transform_params``. A name alone means nothing.
TRANSFORM_SUFFIX = "_transform_params"

_Table = Mapping[str, func.FuncOp]


def unmarked_transforms(table: _Table) -> list[func.FuncOp]:
    """Public functions that are named like transform functions and do not say whose weights they prepare."""
    found = [f for name, f in table.items() if _is_named_like_one(name) and TRANSFORM_FOR not in f.attributes]
    return [f for f in found if not is_private(f) and _takes_weights(f)]


def transform_problems(table: _Table) -> Iterator[tuple[func.FuncOp, str]]:
    """What is wrong with the transform functions of a module, given its functions by name; each with the function."""
    for function in unmarked_transforms(table):
        target = name_of(function).removesuffix(TRANSFORM_SUFFIX)
        if target in table:
            yield function, f"expected {TRANSFORM_FOR} = @{target}, whose transform function it is by name, got none"
    prepared_by: dict[str, str] = {}
    for name, function in table.items():
        targets = _targets(function)
        if targets:
            problems = [*_target_problems(name, targets, table), *_own_problems(function)]
            problems = problems or _shared_targets(name, targets, prepared_by)
            problems = problems or list(_result_problems(function, [table[t] for t in targets], table))
            yield from ((function, text) for text in problems)


def _shared_targets(name: str, targets: Sequence[str], prepared_by: dict[str, str]) -> list[str]:
    """Says which targets another function prepares weights for; enters the others."""
    others = [(t, o) for t in targets if (o := prepared_by.setdefault(t, name)) != name]
    return [f"expected one transform function for @{t}, got @{other} and @{name}" for t, other in others]


def _takes_weights(function: func.FuncOp) -> bool:
    block = body_of(function)
    return block is not None and len(block.arguments) > (num_input(function) or 0)


def _is_named_like_one(name: str) -> bool:
    return name.endswith(TRANSFORM_SUFFIX) or name == TRANSFORM_SUFFIX[1:]


def _targets(function: func.FuncOp) -> list[str]:
    try:
        return transform_targets(function)
    except RelaxError:  # told with the function's other attributes
        return []


def _target_problems(name: str, targets: Sequence[str], table: _Table) -> Iterator[str]:
    if len(set(targets)) < len(targets):
        yield f"expected distinct functions for {TRANSFORM_FOR}, got @{next(t for t in targets if targets.count(t) > 1)} twice"
    for target in targets:
        found = table.get(target)
        if found is None:
            yield f"expected a function of the module for {TRANSFORM_FOR}, got @{target}"
        elif target == name:
            yield f"expected another function for {TRANSFORM_FOR}, got @{target} itself"
        elif _targets(found):
            yield f"expected a function that prepares no weights for {TRANSFORM_FOR}, got the transform function @{target}"
        elif body_of(found) is None:
            yield f"expected a function with a body for {TRANSFORM_FOR}, got the declaration @{target}"
        elif is_private(found):
            yield f"expected a public function for {TRANSFORM_FOR}, got the private @{target}"
        elif NUM_INPUT not in found.attributes:
            yield f"expected a function with {NUM_INPUT} for {TRANSFORM_FOR}, got @{target}"


def _own_problems(function: func.FuncOp) -> Iterator[str]:
    if body_of(function) is None:
        yield f"expected a body of a function with {TRANSFORM_FOR}, got a declaration"
    if is_private(function):
        yield f"expected a public function with {TRANSFORM_FOR}, got a private one"


def _result_problems(transform: func.FuncOp, targets: Sequence[func.FuncOp], table: _Table) -> Iterator[str]:
    """What a transform function returns too much, too little or of another type; what is lazy hands over elsewhere."""
    try:
        returned = result_types(transform)
        taken = {name_of(f): weight_types(f) for f in targets if num_input(f) is not None}
    except (RelaxError, TypeError, ValueError):  # told with the functions' other attributes
        return
    if not returned and _is_lazy(transform, OutputSink, WRITE, table):
        return
    for name, weights in taken.items():
        missing = next((w for w in weights if w not in returned), None)
        if missing is not None:
            yield f"expected a result for every weight of @{name}, got none named '{missing}'"
        for weight, type_ in weights.items():
            if weight in returned and not _agree(returned[weight], type_):
                yield f"expected result '{weight}' of type {type_}, as @{name} takes it, got {returned[weight]}"
    extra = [r for r in returned if not any(r in weights for weights in taken.values())]
    if extra and not any(may_read_lazily(f, table) for f in targets):
        yield f"expected only weights of {', '.join('@' + n for n in taken)} as results, got '{extra[0]}'"


def may_read_lazily(function: func.FuncOp, table: _Table) -> bool:
    """Whether a function may read weights that are none of its arguments, so that these do not say what it needs."""
    return _is_lazy(function, ParamProvider, READ, table)


def _is_lazy(function: func.FuncOp, callback: type, kind: str, table: _Table) -> bool:
    """Whether a function may read weights, or write results, by a callback: an argument, or a declared function."""
    inputs = ir.FunctionType(ir.TypeAttr(function.attributes["function_type"]).value).inputs
    return any(isinstance(t, callback) for t in inputs) or any(callback_of(f) == kind for f in table.values())


def _agree(given: ir.Type, taken: ir.Type) -> bool:
    """Whether a prepared weight can be the one that is taken; symbols may have other names in the other function."""
    if given == taken or not is_tensor(given) or not is_tensor(taken):
        return given == taken
    one, other = TensorInfo.of(given), TensorInfo.of(taken)
    if one.dtype != other.dtype or one.rank != other.rank:
        return False
    return all(a == b or not (isinstance(a, int) and isinstance(b, int)) for a, b in zip(one.shape, other.shape, strict=True))

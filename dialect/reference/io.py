"""Lazy weight IO: the provider and the sink are Python callables.

A provider is called with index and name of a weight and returns its array; a sink is called with index and name of a result
and the array. Index or name is None where the IR leaves it out. What the IR binds to them comes as keywords.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from ..bindings import func, ir
from ..errors import RelaxError
from ..functions import NAME, full_argument_names, name_of
from ..lazy_calls import INDEX, READ, VALUE, callback_of
from ..struct_info import TensorInfo
from .arguments import check_array
from .numeric import Array
from .registry import reference

__all__ = ["OnceSink", "call_declared", "weight_text"]

Provider = Callable[..., Any]
Sink = Callable[..., None]


@reference
def get_param(provider: Provider, *, index: int | None, name: str | None) -> Array:
    what = weight_text(index, name)
    weight = _called(provider, "reading", what, index, name)
    try:
        return np.asarray(weight)
    except (TypeError, ValueError) as error:
        raise RelaxError(f"expected an array for {what}, got {type(weight).__name__}: {error}") from error


@reference
def set_output(sink: Sink, value: Array, *, index: int | None, name: str | None) -> tuple[()]:
    _called(sink, "handing over", _result_text(index, name), index, name, value)
    return ()


@reference
def bind_argument(callback: Callable[..., Any], value: Any, *, name: str) -> Callable[..., Any]:
    return functools.partial(callback, **{name: value})


class OnceSink:
    """A sink that refuses a result it has been handed already."""

    def __init__(self, sink: Sink):
        self._sink = sink
        self._seen: set[tuple[Any, ...]] = set()

    def __call__(self, index: int | None, name: str | None, value: Array, **bound: Any) -> None:
        # The same result for another rank is another result; arrays are not told apart.
        key = (index, name, *(v for v in bound.values() if not isinstance(v, np.ndarray)))
        if key in self._seen:
            raise RelaxError(f"expected {_result_text(index, name)} once, got it twice")
        self._seen.add(key)
        self._sink(index, name, value, **bound)


def call_declared(op: ir.OpView, callee: func.FuncOp, operands: list[Any], callbacks: Mapping[str, Any]) -> list[Any]:
    """Runs a call of a function that is declared as a callback; empties the list of operands.

    Raises:
        RelaxError: there is no such callback, or it returned no array of the declared type. Located at the call.
    """
    kind = callback_of(callee) or ""
    given = dict(zip(full_argument_names(callee), operands, strict=True))
    operands.clear()
    index = given.pop(INDEX, None)
    index, name = None if index is None else int(index), _name(op)
    try:
        if callbacks.get(kind) is None:
            raise RelaxError(f"expected a {'provider' if kind == READ else 'sink'} for @{name_of(callee)}, got none")
        value = given.pop(VALUE, None)
        bound = functools.partial(callbacks[kind], **given)
        if kind != READ:
            return list(set_output(bound, value, index=index, name=name))
        weight = get_param(bound, index=index, name=name)
        check_array(weight, TensorInfo.of(op.results[0]), weight_text(index, name))
        return [weight]
    except RelaxError as error:
        raise RelaxError(f"'func.call' op {error.args[0]}", op.location) from None


def weight_text(index: int | None, name: str | None) -> str:
    """What messages call a weight: by its name, if it has one, and its index."""
    return _text("weight", index, name)


def _result_text(index: int | None, name: str | None) -> str:
    return _text("result", index, name)


def _text(kind: str, index: int | None, name: str | None) -> str:
    if name is None:
        return f"{kind} {index}"
    return f"{kind} '{name}'" + ("" if index is None else f" (index {index})")


def _name(op: ir.OpView) -> str | None:
    return ir.StringAttr(op.attributes[NAME]).value if NAME in op.attributes else None


def _called(callback: Callable[..., Any], doing: str, what: str, *arguments: Any) -> Any:
    """Calls back. An exception of the user's stays what it is, and says what it was about."""
    try:
        return callback(*arguments)
    except RelaxError as error:
        if what in str(error):
            raise
        raise RelaxError(f"expected no error {doing} {what}, got: {error}") from error
    except Exception as error:
        error.add_note(f"{doing} {what}")
        raise

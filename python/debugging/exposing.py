"""The values inside of a function, one after the other: the function returns them, and hands each to a sink when it is made."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..dialect.bindings import func, ir
from ..dialect.errors import location_text
from ..dialect.function_types import result_attributes
from ..dialect.functions import body_of, find_function, num_input, returned_values, set_num_input
from ..dialect.passes.pipeline_text import list_text
from ..dialect.reference import interpreter
from ..dialect.struct_info import TensorInfo, is_tensor
from ..dialect.symbolic import dim_text
from ..dialect.traversal import operations
from ..dialect.weights import weight_types
from ..module import Module
from .meaning import prepare
from .signatures import set_results

__all__ = ["InnerValue", "inner_values", "stream_results", "with_values"]

Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class InnerValue:
    """A value that an op of a function's block makes.

    Attributes:
        name: what it is the same by in another module: op, type, place, and how many equal ones are before it.
        op: that makes it.
        type: such as ``f32[n, 4]``.
        where: its place in the source; empty where none is known.
    """

    name: str
    op: str
    type: str
    where: str

    def __str__(self) -> str:
        return f"{self.op} {self.type}" + (f" at {self.where}" if self.where else "")


def inner_values(module: Module, function: str, placed: bool = True) -> list[InnerValue]:
    """The tensors that a function's ops make, in order, without those inside of branches, loops and what it calls.

    Args:
        module: the module.
        function: name of the function.
        placed: whether places are part of names.
    """
    seen = Counter[str]()
    with module.context:
        found = [_inner(op, r, seen, placed) for op, r in _made(find_function(module.ir, function))]
    return found


def _made(function: func.FuncOp) -> list[tuple[ir.Operation, ir.Value]]:
    block = body_of(function)
    ops = [] if block is None else operations(block)
    return [(op, r) for op in ops for r in op.results if is_tensor(r)]


def _inner(op: ir.Operation, value: ir.Value, seen: Counter[str], placed: bool) -> InnerValue:
    info = TensorInfo.of(value)
    type_, where = f"{info.dtype}[{', '.join(map(dim_text, info.shape))}]", location_text(op.location)
    key = f"{op.name} {type_} {where if placed else ''}"
    seen[key] += 1
    return InnerValue(f"{key} #{seen[key]}", op.name, type_, where)


def with_values(module: Module, function: str, chosen: range | None = None) -> Module:
    """A module in which a function returns, behind its results, the values of these positions in :func:`inner_values`.

    Raises:
        RelaxError: other functions call it.
    """

    def expose(op: ir.Operation) -> None:
        target = find_function(op, function)
        made = [value for _, value in _made(target)]
        values = made if chosen is None else made[chosen.start : chosen.stop]
        attributes = [*result_attributes(target), *[ir.DictAttr.get({})] * len(values)]
        set_results(target, [*returned_values(target), *values], attributes)

    exposed = module.rewritten(expose)
    exposed.verify()
    return exposed


def stream_results(
    module: Module,
    function: str,
    inputs: Sequence[Array],
    raw: Mapping[str, Array],
    sink: Callable[[int, Array], None],
) -> None:
    """Runs a function by its reference semantics; each result goes to a sink, with its position, as soon as it is computed.

    Memory holds the weights, what is still to be read, and no result.

    Raises:
        RelaxError: as evaluation does.
    """

    def mark(op: ir.Operation) -> None:
        target = find_function(op, function)
        if num_input(target) is None:
            set_num_input(target, len(inputs))

    streaming = module.rewritten(mark).run(f"relax-lazy-set-output{{functions={list_text([function])}}}")
    target = find_function(streaming.ir, function)
    operation = streaming.ir.operation
    with streaming.context:
        prepared = dict(raw) | prepare(operation, function, raw)
        weights = {name: prepared[name] for name in weight_types(target)}
    interpreter.evaluate(operation, function, inputs, weights, sink=lambda index, name, value: sink(index, value))

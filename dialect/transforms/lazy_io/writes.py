"""Makes functions hand each result over right after its definition: a pattern on what makes one, and one on the return."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from ...analysis.entries import separate_called
from ...bindings import func, ir
from ...errors import RelaxError
from ...function_types import result_attributes, set_result_attributes, tensor_name
from ...functions import STATE, name_of, returned_values, transform_targets, update_type
from ...passes.rewriting import Patterns, Rewriter, walk
from ...traversal import operations
from ..cleanup.expand_tuple_arguments import expand_results
from .emit import Declarations, WeightCalls
from .options import CallStyle
from .targets import LazyIO, check_tensors, entry_block, name_results

__all__ = ["write_results_lazily"]


def write_results_lazily(module: ir.Operation, targets: Iterable[func.FuncOp], style: CallStyle) -> None:
    """Replaces the results of functions by writes: at the start for arguments, else right after the definition.

    What calls such a function then calls a private copy of it as it was.
    """
    changing = [f for f in targets if len(result_attributes(f))]
    separate_called(module, changing)
    io = LazyIO(Declarations(module), style)
    for function in changing:
        names = _result_names(function, style)
        _insert(function, names, io.writer(function))


def _result_names(function: func.FuncOp, style: CallStyle) -> list[str | None]:
    """The names of all results, tuples taken apart.

    Raises:
        RelaxError: a result is no tensor, nor a tuple of tensors, or has no name where nothing else tells it from others.
    """
    entry_block(function)
    check_tensors(function, "results", returned_values(function))
    if transform_targets(function):
        name_results(function)
    expand_results(function)
    names = [tensor_name(a) for a in result_attributes(function)]
    if not style.index:
        _check_names(function, names)
    return names


def _check_names(function: func.FuncOp, names: Sequence[str | None]) -> None:
    where = f"'func.func' op expected a name of its own for every result of @{name_of(function)}"
    if None in names:
        raise RelaxError(f"{where}, got none for result {names.index(None)}", function.location)


def _insert(function: func.FuncOp, names: Sequence[str | None], emitter: WeightCalls) -> None:
    block = entry_block(function)
    wanted: dict[ir.Value, list[int]] = {}
    for index, value in enumerate(returned_values(function)):
        wanted.setdefault(value, []).append(index)
    writes = _Writes(wanted, names, emitter)
    writes.write(block.arguments, _start(block))
    walk(function, writes.patterns())
    update_type(function)
    set_result_attributes(function, [])
    if STATE in function.attributes:  # there is no result any more that would be its next value
        del function.attributes[STATE]


def _start(block: ir.Block) -> ir.InsertionPoint:
    """Behind what binds arguments to the callback."""
    first = next(op for op in operations(block) if op.name != "relax.bind_argument")
    return ir.InsertionPoint(first)


class _Writes:
    """Hands over the results of one function; ``wanted`` has their positions by value."""

    def __init__(self, wanted: Mapping[ir.Value, Sequence[int]], names: Sequence[str | None], emitter: WeightCalls):
        self._wanted, self._names, self._emitter = wanted, names, emitter

    def patterns(self) -> Patterns:
        made = dict.fromkeys(v.owner.operation.name for v in self._wanted if not isinstance(v, ir.BlockArgument))
        return [*((name, self._write_behind) for name in made), ("func.return", self._return_nothing)]

    def write(self, values: Iterable[ir.Value], where: ir.InsertionPoint) -> bool:
        """Hands over those of some values that are wanted; whether there were any."""
        wanted = [(value, index) for value in values for index in self._wanted.get(value, ())]
        for value, index in wanted:
            with value.location if isinstance(value, ir.BlockArgument) else value.owner.location, where:
                self._emitter.write(value, index, self._names[index])
        return bool(wanted)

    def _write_behind(self, op: ir.OpView, rewriter: Rewriter) -> bool:
        return self.write(op.results, ir.InsertionPoint.after(op))

    def _return_nothing(self, op: func.ReturnOp, rewriter: Rewriter) -> bool:
        with rewriter.before(op):
            func.ReturnOp([])
        return rewriter.replace(op, [])

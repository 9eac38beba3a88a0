"""Makes functions read each weight once, where it is first needed.

That is before the first op that uses the weight, or a symbol that only this weight defines. A weight that one branch of an
``scf.if`` alone needs is read in that branch; one that a loop needs is read before the loop, once. What nothing needs is never
read. An analysis says on each op which weights are read before it, and a pattern reads them there; that the arguments go is
a move of the whole function.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TypeAlias

from ...analysis.entries import separate_called, transforms_by_target
from ...analysis.symbol_uses import SymbolUses
from ...analysis.weight_flow import FlowRules, WeightFlow
from ...bindings import func, ir
from ...function_types import erase_arguments
from ...functions import full_argument_names, name_of, num_input
from ...passes.rewriting import Patterns, Rewriter, walk
from ...traversal import free_values, operations
from ..cleanup.expand_tuple_arguments import expand_weights
from .emit import Declarations, WeightCalls
from .options import CallStyle
from .targets import LazyIO, entry_block, name_results, weights_of

__all__ = ["read_weights_lazily"]

#: The way to an op: the branches it is in, outermost first, as the block and the op in it; the op itself last.
_Path: TypeAlias = "list[tuple[ir.Block, ir.Operation]]"

_BRANCH = "scf.if"

#: Marks an op while the pass runs: the positions, among the weights, of those that are read before it.
_READ = "relax.read_before"


def read_weights_lazily(module: ir.Operation, targets: Iterable[func.FuncOp], style: CallStyle) -> None:
    """Replaces the weights of functions by reads. What calls such a function then calls a private copy of it as it was."""
    changing = [f for f in targets if weights_of(f)]
    separate_called(module, changing)
    transforms = transforms_by_target(module)
    for function in changing:
        if name_of(function) in transforms:
            name_results(transforms[name_of(function)])
        expand_weights(function)
    io, rules = LazyIO(Declarations(module), style), FlowRules.of(module)
    for function in changing:
        _insert(function, io, rules)


def _insert(function: func.FuncOp, io: LazyIO, rules: FlowRules) -> None:
    names = full_argument_names(function)[num_input(function) or 0 :]
    emitter = io.reader(function)
    weights = weights_of(function)
    marked = _mark(weights, _Needs(function, weights, rules))
    walk(function, _Reads(weights, names, emitter).patterns(marked))
    inputs = len(list(entry_block(function).arguments)) - len(weights)
    erase_arguments(function, range(inputs, inputs + len(weights)))


def _mark(weights: Sequence[ir.Value], needs: _Needs) -> list[str]:
    """Says on ops which weights are read before them; returns the names of these ops."""
    found: dict[str, None] = {}
    for position, weight in enumerate(weights):
        if weight in needs.paths:
            op = needs.paths[weight][-1][1]
            known = list(ir.DenseI64ArrayAttr(op.attributes[_READ])) if _READ in op.attributes else []
            op.attributes[_READ] = ir.DenseI64ArrayAttr.get([*known, position])
            found[op.name] = None
    return list(found)


class _Reads:
    """Reads where the marks say."""

    def __init__(self, weights: Sequence[ir.Value], names: Sequence[str], emitter: WeightCalls):
        self._weights, self._names, self._emitter = weights, names, emitter

    def patterns(self, marked: Iterable[str]) -> Patterns:
        return [(name, self._read_before) for name in marked]

    def _read_before(self, op: ir.OpView, rewriter: Rewriter) -> bool:
        if _READ not in op.attributes:
            return False
        for position in ir.DenseI64ArrayAttr(op.attributes[_READ]):
            weight = self._weights[position]
            with weight.location, ir.InsertionPoint(op):
                weight.replace_all_uses_with(self._emitter.read(weight.type, position, self._names[position]))
        del op.attributes[_READ]
        return True


class _Needs:
    """Where the weights of a function are needed.

    Attributes:
        paths: for each weight that is needed the way to the op before which it is to be read.
    """

    def __init__(self, function: func.FuncOp, weights: list[ir.Value], rules: FlowRules):
        self.paths: dict[ir.Value, _Path] = {}
        self._order = {w: i for i, w in enumerate(weights)}
        self._uses = SymbolUses()
        inputs = list[ir.Value](entry_block(function).arguments)[: num_input(function) or 0]
        self._definers = WeightFlow(rules, inputs, weights).definers()
        for path in _paths(entry_block(function)):
            for weight in self._wanted(path[-1][1]):
                self._note(weight, path)

    def _wanted(self, op: ir.Operation) -> list[ir.Value]:
        """The weights that an op needs; the ops in its branches are asked on their own."""
        is_branch = op.name == _BRANCH
        wanted = [v for v in (op.operands if is_branch else free_values(op)) if v in self._order]
        if self._definers:
            symbols = set().union(*(self._uses.of_type(r.type) for r in op.results)) if is_branch else self._uses.of_op(op)
            wanted += [w for s in symbols for w in self._definers.get(s, ())]
        return wanted

    def _note(self, weight: ir.Value, path: _Path) -> None:
        known = self.paths.get(weight)
        self.paths[weight] = path if known is None else _common(known, path)


def _paths(block: ir.Block) -> Iterator[_Path]:
    """The ops of a block and of the branches in it, in program order."""
    pending: list[_Path] = [[(block, op)] for op in operations(block)][::-1]
    while pending:
        path = pending.pop()
        yield path
        op = path[-1][1]
        if op.name == _BRANCH:
            branches = [b for region in op.regions for b in region.blocks]
            pending += [[*path, (b, inner)] for b in branches for inner in operations(b)][::-1]


def _common(first: _Path, second: _Path) -> _Path:
    """The way to what comes first in the innermost block that both lead to."""
    for i, ((block, op), (other_block, other)) in enumerate(zip(first, second, strict=False)):
        if block != other_block:
            return first[:i]
        if op != other:
            return first[: i + 1]
    return min(first, second, key=len)

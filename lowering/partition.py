"""Splits a transform function into independent steps, so that each can run, be skipped, or be repeated alone.

Before::

    func.func @main_transform_params(%a {relax.name = "a"}, %b {relax.name = "b"}, %s {relax.name = "scale"})
        -> (tensor<..> {relax.name = "a.multiply"}, tensor<..> {relax.name = "b.multiply"}, tensor<..> {relax.name = "a"})

after::

    func.func @main_transform_params.step0(%a {relax.name = "a"}, %s ...) -> (tensor<..> {relax.name = "a.multiply"})
    func.func @main_transform_params.step1(%b {relax.name = "b"}, %s ...) -> (tensor<..> {relax.name = "b.multiply"})

A step holds all its weights, results and intermediate values at once, so steps are as small as sharing allows:

- a raw weight joins nothing, every step that needs it reads it again;
- a computed value joins the steps that need it, unless it is cheap to compute in each of them: a few ops that read and make
  little. Where the steps are small themselves, they are joined all the same: there are fewer functions to compile;
- what comes from constants alone is repeated in every step that needs it;
- a weight that is a result as it is takes no step: whoever prepares copies it.

Ops within a step are in the order that holds the fewest bytes. Steps are in the order of their first result.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from ..dialect.analysis.op_dependencies import OpOrder, rearrange
from ..dialect.analysis.peak_memory import PeakMemory
from ..dialect.analysis.purity import Purity
from ..dialect.analysis.task_order import Graph, schedule
from ..dialect.bindings import func, ir
from ..dialect.call_graph import CallGraph
from ..dialect.functions import (
    body_of,
    full_argument_names,
    name_of,
    returned_values,
    set_names,
    set_num_input,
)
from ..dialect.lazy_calls import LazyCalls
from ..dialect.traversal import clone_with, free_values, operations
from ..dialect.weights import full_result_names

__all__ = ["CHEAP_BYTES", "CHEAP_OPS", "partition_transform"]

#: What may be computed once per step: so many bytes read and made, by so many ops. Reading 1 MiB takes 0.1 ms.
CHEAP_BYTES, CHEAP_OPS = 1 << 20, 16
#: Two ops and the return: one reads the other, or both make results. Most steps of a model are that, a transpose and a pack.
_ORDERED = 3


def partition_transform(function: func.FuncOp) -> list[func.FuncOp]:
    """Builds the steps after the transform function, which stays; linear in the number of ops."""
    block = body_of(function)
    assert block is not None
    module = function.operation.parent
    values, names, results = returned_values(function), full_argument_names(function), full_result_names(function)
    order = OpOrder(Purity(CallGraph(module)), LazyCalls(module))
    dependencies = _Dependencies(block, values, order)
    made: list[func.FuncOp] = []
    known: dict[Graph, list[int]] = {}
    for positions in _steps(dependencies, values):
        outputs = [values[i] for i in positions]
        ops, inputs = dependencies.of(outputs)
        build = _Builder(function, [block.arguments[i] for i in inputs], outputs)
        made.append(build.function(len(made), ops))
        set_names(made[-1], [names[i] for i in inputs], [results[i] for i in positions])
        _schedule(made[-1], order, known)
    return made


def _steps(dependencies: _Dependencies, values: Sequence[ir.Value]) -> list[list[int]]:
    """The positions of the results of each step."""
    groups = _Groups(dependencies)
    steps: dict[int, list[int]] = {}
    for position, value in enumerate(values):
        if value in dependencies.producer:
            steps.setdefault(groups.find(dependencies.producer[value]), []).append(position)
    return list(steps.values())


def _schedule(step: func.FuncOp, order: OpOrder, known: dict[Graph, list[int]]) -> None:
    """Orders the ops of a step; results are the caller's memory, whenever they are made.

    Args:
        step: changed in place.
        order: what must come before what.
        known: the orders that were found for steps before, by their graphs: those of layers are alike.
    """
    block = body_of(step)
    assert block is not None
    if len(block.operations) <= _ORDERED:
        return
    graph = PeakMemory().graph(block, order.edges(block))
    sizes = [0 if v in graph.kept else s for v, s in enumerate(graph.sizes)]
    graph = replace(graph, sizes=tuple(sizes))
    if graph not in known:
        known[graph] = schedule(graph)
    rearrange(block, known[graph])


class _Dependencies:
    """The ops of a block that some values need, by position, and what each reads.

    Attributes:
        ops: all ops but the terminator.
        producer: the op that makes a value.
        reads: the ops that each needed op needs, and the block's arguments that it reads; None for one that is not needed.
        sizes: bytes of the results of each op, and of each argument.
    """

    def __init__(self, block: ir.Block, values: Iterable[ir.Value], order: OpOrder):
        self.ops = operations(block)[:-1]
        self._before = order.edges(block)
        self.producer = {r: i for i, op in enumerate(self.ops) for r in op.results}
        self._argument: dict[ir.Value, int] = {a: i for i, a in enumerate(block.arguments)}
        self.reads: list[tuple[list[int], list[int]] | None] = [None] * len(self.ops)
        for i in self._closure(values):
            self.reads[i] = self._read(i)
        peaks = PeakMemory()
        self.sizes = [sum(map(peaks.size_of, op.results)) for op in self.ops]
        self.argument_sizes = [peaks.size_of(a) for a in block.arguments]

    def of(self, values: Iterable[ir.Value]) -> tuple[list[ir.Operation], list[int]]:
        """The ops that values need, in order, and the positions of the arguments."""
        found = self._closure(values)
        arguments = {a for i in found for a in self._read(i)[1]}
        return [self.ops[i] for i in found], sorted(arguments)

    def _closure(self, values: Iterable[ir.Value]) -> list[int]:
        pending = [self.producer[v] for v in values if v in self.producer]
        found = set(pending)
        while pending:
            new = set(self._read(pending.pop())[0]) - found
            found |= new
            pending += new
        return sorted(found)

    def _read(self, i: int) -> tuple[list[int], list[int]]:
        known = self.reads[i]
        if known is not None:
            return known
        values = dict.fromkeys(free_values(self.ops[i]))
        makers = dict.fromkeys(self.producer[v] for v in values if v in self.producer)
        makers |= dict.fromkeys(self._before.get(i, ()))  # such as what defines a symbol that an op mentions
        return list(makers), [self._argument[v] for v in values if v in self._argument]


@dataclass(frozen=True)
class _Cone:
    """What a value takes to compute: ops, by position, and arguments."""

    ops: frozenset[int]
    arguments: frozenset[int]


class _Groups:
    """Union-find over the needed ops: those that one step computes."""

    def __init__(self, dependencies: _Dependencies):
        self._dependencies = dependencies
        self._parent = list(range(len(dependencies.ops)))
        needed = [(i, r) for i, r in enumerate(dependencies.reads) if r is not None]
        self._bytes = [s + sum(dependencies.argument_sizes[a] for a in r[1]) if r is not None else 0
                       for s, r in zip(dependencies.sizes, dependencies.reads, strict=True)]  # fmt: skip
        cones = self._cones(needed)
        for i, (makers, _) in needed:
            for maker in makers:
                if cones[maker] is None:
                    self._join(maker, i)
        for i, (makers, _) in needed:
            for maker in makers:
                cone = cones[maker]
                small = self._bytes[self.find(maker)] + self._bytes[self.find(i)] <= CHEAP_BYTES
                if cone is not None and cone.arguments and small:
                    self._join(maker, i)

    def find(self, i: int) -> int:
        """The group of an op."""
        while self._parent[i] != i:
            self._parent[i] = self._parent[self._parent[i]]
            i = self._parent[i]
        return i

    def _join(self, left: int, right: int) -> None:
        left, right = self.find(left), self.find(right)
        if left != right:
            self._parent[right] = left
            self._bytes[left] += self._bytes[right]

    def _cones(self, needed: Sequence[tuple[int, tuple[list[int], list[int]]]]) -> dict[int, _Cone | None]:
        """The cones of ops whose results may be computed several times; None for the others."""
        found: dict[int, _Cone | None] = {}
        for i, (makers, arguments) in needed:
            below = [found[m] for m in makers]
            known = [c for c in below if c is not None]
            read = frozenset(arguments).union(*(c.arguments for c in known))
            # What comes from constants alone may be long, and is never counted.
            cone = _Cone(frozenset({i}).union(*(c.ops for c in known)) if read else frozenset(), read)
            found[i] = cone if len(known) == len(below) and self._is_cheap(cone, i) else None
        return found

    def _is_cheap(self, cone: _Cone, i: int) -> bool:
        if not cone.arguments:
            return True
        op = self._dependencies.ops[i]
        if len(cone.ops) > CHEAP_OPS or len(op.regions) or op.name == "func.call":
            return False
        read = sum(self._dependencies.argument_sizes[a] for a in cone.arguments)
        return read + sum(self._dependencies.sizes[o] for o in cone.ops) <= CHEAP_BYTES


@dataclass
class _Builder:
    """One step function in the making: what it takes and returns, as values of the transform function."""

    transform: func.FuncOp
    inputs: list[ir.Value]
    outputs: list[ir.Value]

    def function(self, number: int, ops: list[ir.Operation]) -> func.FuncOp:
        types = ([v.type for v in self.inputs], [v.type for v in self.outputs])
        with ir.InsertionPoint(self.transform), self.transform.location:
            made = func.FuncOp(f"{name_of(self.transform)}.step{number}", types)
        entry = made.add_entry_block(arg_locs=[v.location for v in self.inputs])
        mapping = dict(zip(self.inputs, entry.arguments, strict=True))
        with ir.InsertionPoint(entry), self.transform.location:
            for op in ops:
                clone_with(op, mapping, ir.InsertionPoint(entry))
            func.ReturnOp([mapping[v] for v in self.outputs])
        set_num_input(made, 0)
        return made

"""Splits a transform function into steps that share no weight, so that each can run, be skipped, or be repeated alone.

Before::

    func.func @main_transform_params(%a {relax.name = "a"}, %b {relax.name = "b"}, %c {relax.name = "c"})
        -> (tensor<..> {relax.name = "a.permute_dims"}, tensor<..> {relax.name = "b+c.concat"}, tensor<..> {relax.name = "a"})

after::

    func.func @main_transform_params.step0(%a {relax.name = "a"}) -> (tensor<..> {relax.name = "a.permute_dims"})
    func.func @main_transform_params.step1(%b ..., %c ...) -> (tensor<..> {relax.name = "b+c.concat"})

A weight that is a result as it is takes no step: whoever prepares copies it. What comes from constants alone is repeated in
every step that needs it. Steps are in the order of their first result, and independent, so their order costs no memory.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from ..dialect.bindings import func, ir
from ..dialect.functions import (
    argument_names,
    body_of,
    name_of,
    result_names,
    returned_values,
    set_names,
    set_num_input,
)  # fmt: skip
from ..dialect.traversal import clone_with, free_values, operations

__all__ = ["partition_transform"]


@dataclass
class _Step:
    """Positions of the arguments and results of one step, and its ops in order."""

    arguments: list[int] = field(default_factory=list)
    results: list[int] = field(default_factory=list)
    ops: list[ir.Operation] = field(default_factory=list)


def partition_transform(function: func.FuncOp) -> list[func.FuncOp]:
    """Builds the steps after the transform function, which stays; linear in the number of ops."""
    block = body_of(function)
    assert block is not None
    arguments = list(block.arguments)
    values, names, results = returned_values(function), argument_names(function), result_names(function)
    made: list[func.FuncOp] = []
    for step in _assign(block, values):
        build = _Builder(function, [arguments[i] for i in step.arguments], [values[i] for i in step.results])
        made.append(build.function(len(made), step.ops))
        set_names(made[-1], [names[i] for i in step.arguments], [results[i] for i in step.results])
    return made


def _assign(block: ir.Block, values: Sequence[ir.Value]) -> list[_Step]:
    groups = _Groups(block)
    by_group: dict[int | None, _Step] = {}
    constants = _Step()
    for position, argument in enumerate(block.arguments):
        by_group.setdefault(groups.find(argument), _Step()).arguments.append(position)
    for op in operations(block)[:-1]:
        group = next((g for v in op.results if (g := groups.find(v)) is not None), None)
        (constants if group is None else by_group[group]).ops.append(op)
    steps: list[_Step] = []
    for position, value in enumerate(values):
        if isinstance(value, ir.BlockArgument):
            continue
        group = groups.find(value)
        step = _Step() if group is None else by_group[group]
        if not step.results:
            steps.append(step)
        step.results.append(position)
    for step in steps:
        wanted = [v for op in step.ops for v in free_values(op)] + [values[i] for i in step.results]
        step.ops = [*_constants_for(wanted, constants.ops), *step.ops]
    return steps


def _constants_for(values: Iterable[ir.Value], constants: Sequence[ir.Operation]) -> list[ir.Operation]:
    """The constant ops that values come from, in order."""
    if not constants:
        return []
    owner = {r: i for i, op in enumerate(constants) for r in op.results}
    found: set[int] = set()
    pending = [v for v in values if v in owner]
    while pending:
        position = owner[pending.pop()]
        if position not in found:
            found.add(position)
            pending += [v for v in free_values(constants[position]) if v in owner]
    return [constants[i] for i in sorted(found)]


class _Groups:
    """Union-find over a block's weights: an op joins all the weights that its operands come from."""

    def __init__(self, block: ir.Block):
        self._parent = list(range(len(list(block.arguments))))
        self._group: dict[ir.Value, int] = {a: i for i, a in enumerate(block.arguments)}
        for op in operations(block)[:-1]:
            roots = [g for v in free_values(op) if (g := self.find(v)) is not None]
            for other in roots[1:]:
                self._parent[self._root(other)] = self._root(roots[0])
            if roots:
                self._group.update(dict.fromkeys(op.results, roots[0]))

    def find(self, value: ir.Value) -> int | None:
        """The group of a value, None when it comes from constants alone."""
        return self._root(self._group[value]) if value in self._group else None

    def _root(self, group: int) -> int:
        while self._parent[group] != group:
            self._parent[group] = self._parent[self._parent[group]]
            group = self._parent[group]
        return group


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

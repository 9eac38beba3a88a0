"""For each block the order of its ops, and which values have their last use at each: what an interpreter may drop."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Any

from ..bindings import ir
from ..op import EffectOp
from ..op_sizes import OpSizes, op_sizes
from ..traversal import Nested, run_nested

__all__ = ["BlockPlan", "Step", "plan_of"]

_TERMINATORS = frozenset({"func.return", "scf.yield", "scf.condition"})


@dataclass(frozen=True)
class Step:
    """One op of a block.

    Attributes:
        name: the op's name.
        operands: its operands.
        results: its results, None for one that nothing uses.
        dead: values of the same block that nothing uses after it.
        terminator: whether the block ends with it.
    """

    op: ir.OpView
    name: str
    operands: list[ir.Value]
    results: list[ir.Value | None]
    dead: list[ir.Value]
    terminator: bool

    @functools.cached_property
    def sizes(self) -> OpSizes | None:
        """What an op of the dialect needs of sizes, and its types do not prove."""
        return op_sizes(self.op) if isinstance(self.op, EffectOp) else None

    def take(self, values: dict[ir.Value, Any]) -> list[Any]:
        """The operands' values; those that are not used again leave the mapping."""
        found = [values[o] for o in self.operands]
        self.drop(values)
        return found

    def drop(self, values: dict[ir.Value, Any]) -> None:
        """Removes what is not used after this op."""
        for value in self.dead:
            values.pop(value, None)


@dataclass(frozen=True)
class BlockPlan:
    """A block: its arguments (None for one that nothing uses), its steps, and the outer values that it reads."""

    arguments: list[ir.Value | None]
    steps: list[Step]
    captured: set[ir.Value]


def plan_of(block: ir.Block, cache: dict[ir.Block, BlockPlan]) -> BlockPlan:
    """The plan of a block and, in the cache, of every block inside. Time is linear in the ops times their nesting."""
    return cache[block] if block in cache else run_nested(_plan(block, cache))


def _plan(block: ir.Block, cache: dict[ir.Block, BlockPlan]) -> Nested:
    ops = list(block.operations)
    last_use: dict[ir.Value, int] = {}
    for i, op in enumerate(ops):
        last_use.update(dict.fromkeys(op.operands, i))
        for region in op.operation.regions:
            for inner in region.blocks:
                plan = cache.get(inner) or (yield _plan(inner, cache))
                last_use.update(dict.fromkeys(plan.captured, i))
    owned = [*block.arguments, *(r for op in ops for r in op.results)]
    dead: list[list[ir.Value]] = [[] for _ in ops]
    for value in owned:
        if value in last_use:
            dead[last_use[value]].append(value)
    steps = [_step(op, d, last_use) for op, d in zip(ops, dead, strict=True)]
    arguments = [_if_used(a, last_use) for a in block.arguments]
    cache[block] = BlockPlan(arguments, steps, set(last_use) - set(owned))
    return cache[block]


def _step(op: ir.OpView, dead: list[ir.Value], last_use: dict[ir.Value, int]) -> Step:
    name = op.operation.name
    return Step(op, name, list(op.operands), [_if_used(r, last_use) for r in op.results], dead, name in _TERMINATORS)


def _if_used(value: ir.Value, last_use: dict[ir.Value, int]) -> ir.Value | None:
    return value if value in last_use else None

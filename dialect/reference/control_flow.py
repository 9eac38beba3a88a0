"""``scf.if``, ``scf.for`` and ``scf.while``: generators that ask the interpreter to run a region, and go on with its answer."""

from __future__ import annotations

from collections.abc import Callable, Generator
from dataclasses import dataclass
from typing import Any

from ..bindings import ir
from ..errors import RelaxError
from .scalars import scalar, unsigned

__all__ = ["CONTROL_FLOW", "Frame", "Invoke", "RunRegion"]


@dataclass(frozen=True)
class Invoke:
    """Asks for a call of a function; answered by its results."""

    op: ir.OpView
    callee: str
    arguments: list[Any]


@dataclass(frozen=True)
class RunRegion:
    """Asks for one run of a region's block; answered by its terminator's operands."""

    op: ir.OpView
    block: ir.Block
    arguments: list[Any]


Frame = Generator["Invoke | RunRegion", Any, list[Any]]


def _if(op: ir.OpView, operands: list[Any]) -> Frame:
    region = op.operation.regions[0 if operands[0] else 1]
    if not len(region.blocks):
        return []
    return (yield RunRegion(op, region.blocks[0], []))


def _for(op: ir.OpView, operands: list[Any]) -> Frame:
    low, high, step, *carried = operands
    operands.clear()
    if "unsignedCmp" in op.attributes:
        low, high, step = (unsigned(v) for v in (low, high, step))
    if step <= 0:
        raise RelaxError(f"'scf.for' op expected a positive step, got {step}", op.location)
    body = op.operation.regions[0].blocks[0]
    type_ = body.arguments[0].type
    for i in range(int(low), int(high), int(step)):
        carried.insert(0, scalar(i, type_))
        # The body takes its arguments out of the list, so this frame keeps nothing of the last round alive.
        carried = yield RunRegion(op, body, carried)
    return carried


def _while(op: ir.OpView, operands: list[Any]) -> Frame:
    before, after = (r.blocks[0] for r in op.operation.regions)
    carried = list(operands)
    operands.clear()
    while True:
        carried = yield RunRegion(op, before, carried)
        if not carried.pop(0):
            return carried
        carried = yield RunRegion(op, after, carried)


#: Generators by op name.
CONTROL_FLOW: dict[str, Callable[[ir.OpView, list[Any]], Frame]] = {"scf.if": _if, "scf.for": _for, "scf.while": _while}

"""Reductions without a turn keep what they start from: upstream fusion gives one whose body does not read it a new tensor.

So every body that may have no turn reads it while upstream fuses: what others bring in, such as a factor of 0, may take away
the body's own reads. With ``undo=true``, behind that, those go that read it by themselves.

Before, where ``m`` may be 0::

    %y = linalg.generic {(i, j) -> (i, j), (i, j) -> (i)} ins(%x : tensor<?x?xf32>) outs(%start : tensor<?xf32>) {
    ^bb0(%a: f32, %o: f32):
      linalg.yield %a : f32
    }

after, with a condition that holds in every turn, and that nothing folds::

    ^bb0(%a: f32, %o: f32):
      %j = linalg.index 1
      %turn = arith.cmpi sge, %j, %zero
      %v = arith.select %turn, %a, %o
      linalg.yield %v : f32

Such bodies are written by hand, or are left of a run-time check whose answer is known.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from ...dialect.bindings import arith, ir
from ...dialect.functions import body_of, functions
from ..lowering_pass import LoweringPass
from .linalg_queries import destinations, generics_in, index_maps, is_empty

__all__ = ["KeepInitialValues", "keep_initial_values"]


@dataclass(frozen=True)
class KeepInitialValues(LoweringPass):
    """Has bodies of reductions read what these start from.

    Attributes:
        undo: takes the reads away again where bodies have others.
    """

    name: ClassVar[str] = "relax-keep-initial-values"
    undo: bool = False

    def run(self, op: ir.Operation) -> None:
        keep_initial_values(op, self.undo)


def keep_initial_values(module: ir.Operation, undo: bool = False) -> None:
    """Rewrites the reductions of a module in place; linear in the number of ops."""
    for function in functions(module):
        if body_of(function) is None:
            continue
        for op in generics_in(function.operation):
            (_undo if undo else _keep)(op)


def _keep(op: ir.Operation) -> None:
    """Rewrites the body of one operation, for results that may have no turn and start from something."""
    body, maps = op.regions[0].blocks[0], index_maps(op)
    first = len(op.operands) - len(op.results)
    end = list(body.operations)[-1]
    for i, start in enumerate(destinations(op)):
        loop = _loop_without_turns(op, maps, maps[first + i])
        argument = body.arguments[first + i]
        if loop is None or is_empty(start) or _kept(end.operands[i], argument) is not None:
            continue
        with ir.InsertionPoint(end), op.location:
            index, dim = ir.IndexType.get(), ir.IntegerAttr.get(ir.IntegerType.get_signless(64), loop)
            place = ir.Operation.create("linalg.index", [index], attributes={"dim": dim}).result
            turn = arith.cmpi(arith.CmpIPredicate.sge, place, arith.constant(index, 0))
            end.operands[i] = arith.select(turn, end.operands[i], argument)


def _undo(op: ir.Operation) -> None:
    """Takes the reads of one operation's body away that are not needed."""
    body = op.regions[0].blocks[0]
    first = len(op.operands) - len(op.results)
    end = list(body.operations)[-1]
    for i in range(len(op.results)):
        argument, read = body.arguments[first + i], end.operands[i]
        value = _kept(read, argument)
        if value is not None and len(list(argument.uses)) > 1:
            end.operands[i] = value
            if next(iter(read.uses), None) is None:
                read.owner.erase()


def _kept(read: ir.Value, argument: ir.Value) -> ir.Value | None:
    """The value of turns, where another value is that or, where no turn is, the argument; None of values that are none."""
    if isinstance(read, ir.BlockArgument) or read.owner.name != "arith.select":
        return None
    turn, value, start = read.owner.operands
    if start != argument or isinstance(turn, ir.BlockArgument) or turn.owner.name != "arith.cmpi":
        return None
    place, zero = turn.owner.operands
    is_index = not isinstance(place, ir.BlockArgument) and place.owner.name == "linalg.index"
    is_at_least = ir.IntegerAttr(turn.owner.attributes["predicate"]).value == arith.CmpIPredicate.sge
    return value if is_index and is_at_least and _is_zero(zero) else None


def _is_zero(value: ir.Value) -> bool:
    if isinstance(value, ir.BlockArgument) or value.owner.name != "arith.constant":
        return False
    return ir.IntegerAttr(value.owner.attributes["value"]).value == 0


def _loop_without_turns(op: ir.Operation, maps: list[ir.AffineMap], written: ir.AffineMap) -> int | None:
    """A loop that the written element does not depend on, and that types let have no turn."""
    inside = {e.position for e in written.results if isinstance(e, ir.AffineDimExpr)}
    return next((d for d in range(written.n_dims) if d not in inside and not _has_turns(op, maps, d)), None)


def _has_turns(op: ir.Operation, maps: list[ir.AffineMap], loop: int) -> bool:
    """Whether types say that a loop has a turn."""
    for value, map_ in zip(op.operands, maps, strict=True):
        if not isinstance(value.type, ir.RankedTensorType):
            continue
        for expr, size in zip(map_.results, list(value.type.shape), strict=True):
            if isinstance(expr, ir.AffineDimExpr) and expr.position == loop and size > 0:
                return True
    return False

"""What the processes of one program tell each other; each is a *rank*, from 0 on. A module says how many there are by the
attribute ``relax.ranks`` (:mod:`relaxir.dialect.sharding`), 1 without it.

All ranks run the same ops in the same order: one waits for the others at each of these.
"""

from __future__ import annotations

from .. import attributes, op_costs
from ..bindings import ir
from ..errors import RelaxError
from ..inference import require_number
from ..op import Attrs, EffectOp, Operand, Result, Tensor
from ..struct_info import TensorInfo

__all__ = ["AllGather", "AllReduce", "Rank"]


class AllReduce(EffectOp, name="all_reduce"):
    """The sum of the operands of all ranks, the same on each; the order of addition is that of the collective library."""

    x: Operand[Tensor]
    result: Result[Tensor]
    cost = op_costs.MOVES

    @staticmethod
    def infer(operands: list[TensorInfo], attrs: Attrs) -> TensorInfo:
        (x,) = operands
        require_number(x)
        return x


class AllGather(EffectOp, name="all_gather"):
    """The operands of all ranks, one behind the other in a new first dimension: ``[ranks, ...]``."""

    x: Operand[Tensor]
    result: Result[Tensor]
    attrs = {"ranks": attributes.integer()}
    cost = op_costs.MOVES

    @staticmethod
    def infer(operands: list[TensorInfo], attrs: Attrs) -> TensorInfo:
        (x,) = operands
        if attrs["ranks"] < 1:
            raise RelaxError(f"expected 1 rank or more, got {attrs['ranks']}")
        return x.with_(shape=[attrs["ranks"], *x.shape])


class Rank(EffectOp, name="rank"):
    """Which rank this one is, a scalar."""

    result: Result[Tensor]
    cost = op_costs.FREE

    @staticmethod
    def infer(operands: list[TensorInfo], attrs: Attrs) -> TensorInfo:
        return TensorInfo((), ir.IntegerType.get_signless(64))

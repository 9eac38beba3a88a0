"""Lazy weight IO: read a weight when it is needed, write a result when it is ready."""

from __future__ import annotations

from typing import Any

from .. import attributes
from ..errors import RelaxError
from ..op import EffectOp, Op, Operand, Result, Tensor
from ..relax import OutputSink, ParamProvider

__all__ = ["GetParam", "SetOutput"]


def _check_index(operands: list[Any], results: list[Any], attrs: Any) -> None:
    if attrs["index"] < 0:
        raise RelaxError(f"expected an index of 0 or more, got {attrs['index']}")


class GetParam(Op, name="get_param"):
    """Reads the weight number ``index``, called ``name``, from a provider. Pure: the same weight is the same value."""

    provider: Operand[ParamProvider]
    result: Result[Tensor]
    attrs = {"index": attributes.integer(), "name": attributes.string(default=None)}
    check = staticmethod(_check_index)


class SetOutput(EffectOp, name="set_output"):
    """Hands the result number ``index``, called ``name``, to a sink, which is done with it when the op is."""

    sink: Operand[OutputSink]
    value: Operand[Tensor]
    attrs = {"index": attributes.integer(), "name": attributes.string(default=None)}
    check = staticmethod(_check_index)

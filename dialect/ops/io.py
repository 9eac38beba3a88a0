"""Lazy weight IO: read a weight when it is needed, write a result when it is ready."""

from __future__ import annotations

from typing import Any, TypeVar

from .. import attributes
from ..errors import RelaxError
from ..op import DefiningOp, EffectOp, Op, Operand, Result, Tensor
from ..relax import OutputSink, ParamProvider

__all__ = ["BindArgument", "GetParam", "SetOutput"]

# To IRDL one variable means one type; to Python's type checkers one in a class that is not generic means nothing.
_Callback = TypeVar("_Callback", bound=ParamProvider | OutputSink)


def _check_address(operands: list[Any], results: list[Any], attrs: Any) -> None:
    if attrs["index"] is None and attrs["name"] is None:
        raise RelaxError("expected attribute 'index' or 'name'")
    if attrs["index"] is not None and attrs["index"] < 0:
        raise RelaxError(f"expected an index of 0 or more, got {attrs['index']}")


class GetParam(DefiningOp, name="get_param"):
    """Reads the weight number ``index``, called ``name``, from a provider. Pure: the same weight is the same value.

    One of the two is enough.
    """

    provider: Operand[ParamProvider]
    result: Result[Tensor]
    attrs = {"index": attributes.integer(default=None), "name": attributes.string(default=None)}
    check = staticmethod(_check_address)


class SetOutput(EffectOp, name="set_output"):
    """Hands the result number ``index``, called ``name``, to a sink, which is done with it when the op is.

    One of the two is enough.
    """

    sink: Operand[OutputSink]
    value: Operand[Tensor]
    attrs = {"index": attributes.integer(default=None), "name": attributes.string(default=None)}
    check = staticmethod(_check_address)


class BindArgument(Op, name="bind_argument"):
    """A provider or sink that passes a value on, as the keyword ``name``, each time it is called: a rank, a device, a handle.

    Variadic operands of an IRDL op are of one type, so what a callback gets besides index and name is bound one by one.
    """

    callback: Operand[_Callback]  # pyright: ignore[reportGeneralTypeIssues]
    value: Operand[Any]
    result: Result[_Callback]  # pyright: ignore[reportGeneralTypeIssues]
    attrs = {"name": attributes.string()}

    @staticmethod
    def check(operands: list[Any], results: list[Any], attrs: Any) -> None:
        name = attrs["name"]
        if not name.isidentifier() or name in ("index", "name", "value"):
            raise RelaxError(f"expected an identifier other than index, name and value for attribute 'name', got '{name}'")

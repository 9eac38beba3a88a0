"""Placement on virtual devices: ``"cpu:0"``, ``"cuda:1"``, a kind and a number."""

from __future__ import annotations

import re

from .. import attributes, op_costs
from ..bindings import ir
from ..errors import RelaxError
from ..op import Attrs, Narrow, Op, Operand, Result, Tensor
from ..struct_info import TensorInfo, same_info

__all__ = ["HintOnDevice", "ToVDevice"]

_DEVICE = re.compile(r"[A-Za-z]\w*:\d+", re.ASCII)


def check_device(name: str, at: ir.Location | None = None) -> None:
    """Raises RelaxError for a text that is no device."""
    if not _DEVICE.fullmatch(name):
        raise RelaxError(f"expected a device such as 'cuda:0', got '{name}'", at)


class HintOnDevice(Op, name="hint_on_device"):
    """The operand, wanted on a device. Realizing devices turns it into a copy or into nothing."""

    x: Operand[Tensor]
    result: Result[Tensor]
    attrs = {"vdevice": attributes.string()}
    same_vdevice = False
    cost = op_costs.FREE

    @staticmethod
    def infer(operands: list[TensorInfo], attrs: Attrs) -> TensorInfo:
        return _on(operands, attrs)

    @staticmethod
    def check(operands: list[TensorInfo], results: list[TensorInfo], attrs: Attrs) -> None:
        (result,) = results
        if result.vdevice not in (None, attrs["vdevice"]):
            raise RelaxError(f"expected a result on '{attrs['vdevice']}', got {result.vdevice}")


class ToVDevice(Op, name="to_vdevice"):
    """A copy of the operand on a device; its type says which."""

    x: Operand[Tensor]
    result: Result[Tensor]
    attrs = {"vdevice": attributes.string()}
    same_vdevice = False
    cost = op_costs.MOVES
    narrow = Narrow.FOLLOWS

    @staticmethod
    def infer(operands: list[TensorInfo], attrs: Attrs) -> TensorInfo:
        return _on(operands, attrs)

    @staticmethod
    def check(operands: list[TensorInfo], results: list[TensorInfo], attrs: Attrs) -> None:
        (result,) = results
        if not same_info(operands[0], result) or result.vdevice != attrs["vdevice"]:
            raise RelaxError(f"expected a result on '{attrs['vdevice']}', got {result.vdevice or 'no device'}")


def _on(operands: list[TensorInfo], attrs: Attrs) -> TensorInfo:
    (x,) = operands
    check_device(attrs["vdevice"])
    return TensorInfo(x.shape, x.dtype, attrs["vdevice"])

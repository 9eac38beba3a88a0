"""Placement on virtual devices: ``"cpu:0"``, ``"cuda:1"``."""

from __future__ import annotations

from .. import attributes
from ..errors import RelaxError
from ..op import Attrs, Op, Operand, Result, Tensor
from ..struct_info import TensorInfo, same_info

__all__ = ["HintOnDevice", "ToVDevice"]


class HintOnDevice(Op, name="hint_on_device"):
    """The operand, wanted on a device. Realizing devices turns it into a copy or into nothing."""

    x: Operand[Tensor]
    result: Result[Tensor]
    attrs = {"vdevice": attributes.string()}
    same_vdevice = False

    @staticmethod
    def infer(operands: list[TensorInfo], attrs: Attrs) -> TensorInfo:
        (x,) = operands
        return TensorInfo(x.shape, x.dtype, attrs["vdevice"])


class ToVDevice(Op, name="to_vdevice"):
    """A copy of the operand on a device; its type says which."""

    x: Operand[Tensor]
    result: Result[Tensor]
    attrs = {"vdevice": attributes.string()}
    same_vdevice = False

    @staticmethod
    def infer(operands: list[TensorInfo], attrs: Attrs) -> TensorInfo:
        (x,) = operands
        return TensorInfo(x.shape, x.dtype, attrs["vdevice"])

    @staticmethod
    def check(operands: list[TensorInfo], results: list[TensorInfo], attrs: Attrs) -> None:
        (result,) = results
        if not same_info(operands[0], result) or result.vdevice != attrs["vdevice"]:
            raise RelaxError(f"expected a result on '{attrs['vdevice']}', got {result.vdevice or 'no device'}")

"""Convolutions by Winograd's minimal filtering, which takes fewer products (:mod:`relaxir.dialect.winograd`)."""

from __future__ import annotations

from .. import attributes, op_costs
from ..errors import RelaxError
from ..inference import require_float
from ..op import Attrs, Narrow, Op, Operand, Result, Tensor
from ..packed_weights import require_elements, require_panels
from ..size_relations import shape_text
from ..struct_info import TensorInfo
from ..winograd import PLACES, TAPS
from .nn import Conv2D

__all__ = ["WinogradConv2D"]


class WinogradConv2D(Op, name="winograd_conv2d"):
    """A convolution of ``x[n, h, w, c]`` with 3x3 filters that were transformed for it: ``[n, h', w', channels]``.

    Filters are ``G g G^T`` of all channels, the matrix ``[16 * c, channels]``, packed. A tile of 2x2 results is computed of 4x4
    elements, and rounding is relative to the largest element of a window. Where an element of a tile is infinite or NaN,
    results are the sums of their windows, infinite as those of ``conv2d``; code for GPUs, and for other dtypes than f32, may
    have NaN for an infinity. ``padding`` is top, left, bottom, right. Sums are taken in f32 (f64 for f64 operands) and rounded
    once.
    """

    x: Operand[Tensor]
    weight: Operand[Tensor]
    result: Result[Tensor]
    attrs = {
        "layout": attributes.packed_layout(),
        "channels": attributes.integer(),
        "padding": attributes.integers(default=(0, 0, 0, 0), length=4),
    }
    cost = op_costs.WINOGRAD
    narrow = Narrow.ALWAYS
    packed = "weight"

    @staticmethod
    def infer(operands: list[TensorInfo], attrs: Attrs) -> TensorInfo:
        x, weight = operands
        require_float(x)
        require_panels(weight, require_elements(attrs["layout"], one_row=True), attrs["channels"], "channels")
        rows = weight.shape[1]
        if not isinstance(rows, int) or rows % PLACES:
            raise RelaxError(f"expected filters of {PLACES} elements, got {shape_text(weight.shape)}")
        filters = weight.with_(shape=[TAPS, TAPS, rows // PLACES, attrs["channels"]])
        direct = {"strides": (1, 1), "dilation": (1, 1), "groups": 1, "out_dtype": None}
        layouts = {"data_layout": "NHWC", "kernel_layout": "HWIO"}
        return Conv2D.infer([x, filters], {"padding": attrs["padding"], **direct, **layouts})

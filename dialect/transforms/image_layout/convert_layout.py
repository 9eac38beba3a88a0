"""Rewrites convolutions for another order of dimensions, and what follows them, so that images are reordered at the edges only.

Before::

    %0 = "relax.conv2d"(%x, %w)                                  // [n, c, h, w] and [o, c, kh, kw]
    %1 = "relax.relu"(%0)
    %2 = "relax.max_pool2d"(%1) {pool_size = array<i64: 2, 2>}

after::

    %x1 = "relax.permute_dims"(%x) {axes = array<i64: 0, 2, 3, 1>}
    %w1 = "relax.permute_dims"(%w) {axes = array<i64: 2, 3, 1, 0>}                        // lifting moves it to preparation
    %0 = "relax.conv2d"(%x1, %w1) {data_layout = "NHWC", kernel_layout = "HWIO"}
    %1 = "relax.relu"(%0)
    %2 = "relax.max_pool2d"(%1) {layout = "NHWC", pool_size = array<i64: 2, 2>}
    %3 = "relax.permute_dims"(%2) {axes = array<i64: 0, 3, 1, 2>}

Every convolution in the other layout is converted. The new order goes along with its result through elementwise ops (biases and
other operands are reordered to fit), pooling, batch norm, softmax, concatenation, splitting, slicing, padding and reductions,
and to images of three dimensions whose lines are one after another; a value that any other op reads, or that a function, branch
or loop hands out, is put back in order once. Where only dimensions of size one change places, that is a reshape. What is
reordered twice in a row ``relax-canonicalize`` merges. With ``gainful`` convolutions stay where this would not pay.

It is one walk in program order and no set of patterns: a value may be in both orders at once, its readers choose, and which
convolutions move is decided by what all copies of the function cost. Patterns would insert copies that others then merge.

Convolutions and pools compute the same bit for bit; a sum or mean may add in another order.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import ClassVar

from ...analysis.weight_flow import FlowRules
from ...bindings import func, ir
from ...errors import RelaxError
from ...functions import functions
from ...image_rules import Change
from ...layouts import DATA_LAYOUTS
from ...passes.base import Pass
from ...traversal import nested_operations
from .gains import gaining_convolutions
from .rules import follows, is_convolution, moved_attributes
from .values import Reordering

__all__ = ["ConvertLayout"]


@dataclass(frozen=True)
class ConvertLayout(Pass):
    """Rewrites convolutions, and what follows them, for another order of dimensions.

    Attributes:
        layout: the order that images are to have, ``NHWC`` or ``NCHW``.
        gainful: only where that saves more than reordering costs, see :mod:`.gains`.
    """

    name: ClassVar[str] = "relax-convert-layout"
    layout: str = "NHWC"
    gainful: bool = False

    def run(self, op: ir.Operation) -> None:
        if self.layout not in DATA_LAYOUTS:
            raise RelaxError(f"expected layout {' or '.join(DATA_LAYOUTS)}, got '{self.layout}'")
        (source,) = (known for known in DATA_LAYOUTS if known != self.layout)
        rules = FlowRules.of(op)
        for function in functions(op):
            change = Change(source, self.layout)
            gaining = gaining_convolutions(function, change, rules.flow(function)) if self.gainful else None
            _convert_in(function, change, gaining)


def _convert_in(function: func.FuncOp, change: Change, gaining: Collection[ir.Value] | None) -> None:
    """Goes through the ops once, in program order; those that have been replaced are erased in the end."""
    values, replaced = Reordering(change), list[ir.Operation]()
    for op in list(nested_operations(function.operation)):
        starts = is_convolution(op, change.source)
        starts = starts and (gaining is None or op.results[0] in gaining)
        if not starts and not any(v in values.reordered for v in op.operands):
            continue
        attributes = moved_attributes(op.opview, change) if starts or follows(op, values.reordered) else None
        if attributes is None:
            values.restore_operands(op)
            continue
        values.rebuild(op, attributes)
        replaced.append(op)
    for op in reversed(replaced):
        op.erase()

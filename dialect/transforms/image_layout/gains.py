"""Where another order of an image's dimensions saves more than reordering costs: a function in, convolutions out.

What follows convolutions to the new order forms regions. Converting a region costs the elements that are reordered at its
edges, of values that do not come from weights alone. It saves what a convolution in the order NCHW does on each call, moving
its windows, or the image of a pointwise one, to where its product reads them; and transpositions at its edges, where the
reordering undoes them. One that stays is merged with the reordering.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from ...analysis.weight_flow import WeightFlow
from ...bindings import func, ir
from ...image_rules import Change
from ...inference import normalize_axis
from ...layouts import reordered
from ...ops import Conv2D, PermuteDims, QuantizedConv2D
from ...struct_info import TensorInfo, is_tensor
from ...symbolic import Dim
from ...traversal import nested_operations
from .rules import follows, gives_image, is_convolution, moved_attributes

__all__ = ["gaining_convolutions"]

# What a size that is not known counts as.
_NOMINAL = 32


def gaining_convolutions(function: func.FuncOp, change: Change, flow: WeightFlow) -> set[ir.Value]:
    """The results of the convolutions in regions that save more than they cost."""
    regions = _Regions(change, flow)
    for op in nested_operations(function.operation):
        regions.enter(op)
    return {result for result in regions.convolutions if regions.balance[regions.root(result)] > 0}


class _Regions:
    """The regions of a function, as far as its ops have been entered.

    Attributes:
        convolutions: results of those that a region could start with.
        balance: what a region saves, less what it costs, in elements moved; by one of its values.
    """

    def __init__(self, change: Change, flow: WeightFlow):
        self._change, self._flow = change, flow
        self._parents: dict[ir.Value, ir.Value] = {}
        self._moved: set[tuple[ir.Value, ir.Value | None]] = set()
        self.convolutions: list[ir.Value] = []
        self.balance: dict[ir.Value, int] = {}

    def root(self, value: ir.Value) -> ir.Value:
        """The value that stands for the region of one."""
        while self._parents[value] != value:
            self._parents[value] = self._parents[self._parents[value]]
            value = self._parents[value]
        return value

    def enter(self, op: ir.Operation) -> None:
        starts = is_convolution(op, self._change.source)
        if not starts and not any(v in self._parents for v in op.operands):
            return
        if not (starts or follows(op, self._parents)) or moved_attributes(op.opview, self._change) is None:
            for value in dict.fromkeys(op.operands):
                if value in self._parents:
                    self._pay(value, op)
            return
        region = self._joined(op)
        for position, value in enumerate(op.operands):
            if value not in self._parents and not (starts and position == 1):
                self._pay_operand(value, self.root(region))
        if starts:
            self.convolutions.append(op.results[0])
            self.balance[self.root(region)] += _saved(op.opview)

    def _joined(self, op: ir.Operation) -> ir.Value:
        """A value of the region that an op is in, of those that it reads and gives."""
        members = [v for v in op.operands if v in self._parents]
        if gives_image(op):
            for result in op.results:
                self._parents[result], self.balance[result] = result, 0
                members.append(result)
        first = members[0]
        for other in members[1:]:
            a, b = self.root(first), self.root(other)
            if a != b:
                self._parents[b] = a
                self.balance[a] += self.balance.pop(b)
        return first

    def _pay(self, value: ir.Value, reader: ir.Operation) -> None:
        """For a value that is put back in order, once for all that read it so."""
        region = self.root(value)
        if isinstance(reader.opview, PermuteDims):
            undone = _undoes(reader, self._change.order(TensorInfo.of(value).rank))
            self.balance[region] += _elements(value) if undone else 0
        elif (value, None) not in self._moved:
            self._moved.add((value, None))
            self.balance[region] -= _elements(value)

    def _pay_operand(self, value: ir.Value, region: ir.Value) -> None:
        """For a value that is put in the new order, once; a transposition that did the opposite is saved instead."""
        if self._flow.is_known(value) or not is_tensor(value) or (value, region) in self._moved:
            return
        self._moved.add((value, region))
        owner, rank = value.owner, TensorInfo.of(value).rank
        order = self._change.order(rank) if self._change.moves(rank) else []
        opposite = not isinstance(owner, ir.Block) and _undoes(owner.operation, [order.index(i) for i in range(len(order))])
        self.balance[region] += _elements(value) if opposite else -_elements(value)


def _undoes(op: ir.Operation, order: list[int]) -> bool:
    """Whether an op is the transposition by that order."""
    if not isinstance(op.opview, PermuteDims) or not order or op.opview.axes is None:
        return False
    return [normalize_axis(a, len(order)) for a in op.opview.axes] == order


def _saved(conv: Conv2D | QuantizedConv2D) -> int:
    """Elements that a convolution in the order NCHW moves before its product; of a depthwise one there is no product."""
    if conv.groups != 1:
        return 0
    kernel = reordered(TensorInfo.of(conv.weight).shape, conv.kernel_layout, "OIHW")
    taps = _product(kernel[1:])
    result = reordered(TensorInfo.of(conv.results[0]).shape, conv.data_layout, "NCHW")
    return taps * _product([result[0], *result[2:]])


def _elements(value: ir.Value) -> int:
    return _product(TensorInfo.of(value).shape)


def _product(shape: Sequence[Dim]) -> int:
    return prod(d if isinstance(d, int) else _NOMINAL for d in shape)

"""The values of a function under a change of layout: which have been reordered, and copies made where the order must differ."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ...bindings import ir
from ...image_rules import Change
from ...layouts import permutation
from ...op import is_elementwise, op_class
from ...ops import Conv2D, ExpandDims, PermuteDims, QuantizedConv2D, Reshape
from ...struct_info import TensorInfo, is_tensor
from .rules import gives_image, is_convolution

__all__ = ["Reordering"]

_KERNELS = {"NCHW": "OIHW", "NHWC": "HWIO"}


class Reordering:
    """What has become of the values of one function.

    Attributes:
        reordered: new values, in the target's order, by the ones they stand for.
    """

    def __init__(self, change: Change):
        self._change = change
        self.reordered: dict[ir.Value, ir.Value] = {}
        self._copies: dict[tuple[ir.Value, int], ir.Value] = {}
        self._restored: dict[ir.Value, ir.Value] = {}

    def rebuild(self, op: ir.Operation, attributes: Mapping[str, Any]) -> None:
        """Puts an op that reads and gives reordered images in front of one, which nothing needs any more in the end."""
        operands = [self._fitting(op, i, value) for i, value in enumerate(op.operands)]
        new, cls = op.clone(ip=ir.InsertionPoint(op)).operation, op_class(op)
        assert cls is not None
        for position, value in enumerate(operands):
            new.operands[position] = value
        for key, value in attributes.items():
            new.attributes[key] = cls.attrs[key].write(key, value)
        for old, result in zip(op.results, new.results, strict=True):
            info = TensorInfo.of(old)
            if gives_image(op):
                result.set_type(_moved_info(info, self._change.order(info.rank)).type)
                self.reordered[old] = result
            else:
                old.replace_all_uses_with(result)

    def restore_operands(self, op: ir.Operation) -> None:
        """Makes an op read values in the order that they had."""
        for position, value in enumerate(op.operands):
            if value in self.reordered:
                op.operands[position] = self._original(value)

    def _original(self, value: ir.Value) -> ir.Value:
        if value not in self._restored:
            order = permutation(*reversed(self._change.letters(TensorInfo.of(value).rank)))
            self._restored[value] = _moved(self.reordered[value], order, value.type)
        return self._restored[value]

    def _fitting(self, op: ir.Operation, position: int, value: ir.Value) -> ir.Value:
        """An operand as the op wants it when its images are reordered."""
        view = op.opview
        if position == 1 and is_convolution(view, self._change.source):
            return self._kernel(view)
        if not is_tensor(value):
            return value
        rank, wanted = TensorInfo.of(value).rank, TensorInfo.of(op.results[0] if is_elementwise(op) else op.operands[0]).rank
        if value in self.reordered:
            if rank == wanted:
                return self.reordered[value]
            value = self._original(value)
        if rank != wanted and not (is_elementwise(op) and rank):
            return value
        if (value, wanted) not in self._copies:
            self._copies[value, wanted] = self._aligned(value, wanted)
        return self._copies[value, wanted]

    def _kernel(self, op: Conv2D | QuantizedConv2D) -> ir.Value:
        source, target = op.kernel_layout, _KERNELS[self._change.target]
        if source == target:
            return op.weight
        info, order = TensorInfo.of(op.weight), permutation(source, target)
        return _moved(op.weight, order, _moved_info(info, order).type)

    def _aligned(self, value: ir.Value, rank: int) -> ir.Value:
        """A value that broadcasts to an image of that rank in the source's order, made to broadcast to it in the target's.

        It has the image's last dimensions. Of those of the target that come after the first of them, the others are inserted
        with size one: a bias ``[c]`` of NHWC is ``[c, 1, 1]`` in NCHW.
        """
        info = TensorInfo.of(value)
        source, target = self._change.letters(rank)
        letters = source[rank - info.rank :]
        kept = [letter for letter in target if letter in letters]
        order = [letters.index(letter) for letter in kept]
        moved = _moved(value, order, _moved_info(info, order).type)
        last = target[target.index(kept[0]) :]
        inserted = [i for i, letter in enumerate(last) if letter not in letters]
        if not inserted:
            return moved
        with _after(moved), _location(moved):
            return ExpandDims.create(moved, axis=inserted).results[0]


def _moved_info(info: TensorInfo, order: list[int]) -> TensorInfo:
    return info.with_(shape=[info.shape[i] for i in order])


def _moved(value: ir.Value, order: list[int], type_: ir.Type) -> ir.Value:
    """The value with its dimensions in another order, right behind where it is made."""
    if order == sorted(order):
        return value
    shape = TensorInfo.of(value).shape
    long = [i for i in order if shape[i] != 1]
    free = long == sorted(long) and None not in shape and None not in TensorInfo.of(type_).shape
    with _after(value), _location(value):
        op = (
            Reshape.create(value, result_types=[type_]) if free else PermuteDims.create(value, result_types=[type_], axes=order)
        )
    return op.results[0]


def _after(value: ir.Value) -> ir.InsertionPoint:
    owner = value.owner
    return ir.InsertionPoint.at_block_begin(owner) if isinstance(owner, ir.Block) else ir.InsertionPoint.after(owner)


def _location(value: ir.Value) -> ir.Location:
    owner = value.owner
    return value.location if isinstance(owner, ir.Block) else owner.location

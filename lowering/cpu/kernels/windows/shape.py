"""Recognises sums over windows of bytes or floats, one filter per channel, and what each of its dimensions does."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from .....dialect.bindings import ir
from ....kernels.emit.buffers import Buffers
from ....kernels.emit.linear_index import Size
from ....kernels.structure.nest import Nest, Operand, read_nest
from ....marks import CONTRACTION

__all__ = ["Along", "Frame", "Windows", "factor_signs", "match_windows"]

_EXTENSIONS = {"arith.extui": True, "arith.extsi": False}


@dataclass(frozen=True)
class Along:
    """One direction of an image in a frame.

    Attributes:
        stride, dilation: how many elements of it one window, and one tap of a window, are behind the other.
        before: how many of the frame are before it.
        size: how many it has.
        step: where the next one is in memory.
        axis: the dimension.
    """

    stride: int
    dilation: int
    before: int
    size: int
    step: Size
    axis: int

    def at(self, window: int, tap: int) -> int:
        """Which element a tap of a window reads, outside of the image in the frame."""
        return window * self.stride + tap * self.dilation - self.before


@dataclass(frozen=True)
class Frame:
    """What is around an image, in both directions: a number."""

    number: ir.Value
    rows: Along
    columns: Along


@dataclass(frozen=True)
class Windows:
    """``out[batch, y, x, n] += image[batch, y, x, down, across, n] * filter[down, across, n]``, bytes in i32, or in f32.

    Attributes:
        nest: the loops.
        batch: loops outside of those over the result's rows.
        y, x: the loops over rows of the result and over places in a row, None where there is one.
        n: the loop over channels, which are neighbours everywhere.
        down, across: the loops over a window's rows and columns.
        image, filter: the factors.
        unsigned: whether bytes of the image, and those of filters, have no sign; empty of floats.
        frame: what is around the image, where indices may be outside of it.
    """

    nest: Nest
    batch: tuple[int, ...]
    y: int | None
    x: int | None
    n: int
    down: int
    across: int
    image: Operand
    filter: Operand
    unsigned: tuple[bool, ...]
    frame: Frame | None = None

    @property
    def window(self) -> tuple[int, int]:
        """Its rows and columns."""
        height, width = (self.nest.extents[d].static for d in (self.down, self.across))
        assert height is not None
        assert width is not None
        return height, width

    @property
    def channels(self) -> int:
        """How many there are."""
        count = self.nest.extents[self.n].static
        assert count is not None
        return count

    @property
    def row_step(self) -> int | None:
        """By how many rows of a window the windows of two rows lie apart, None where by no whole number of them."""
        return None if self.y is None else self._steps(self.y, self.down)

    @property
    def column_step(self) -> int | None:
        """By how many columns of a window two windows of a row lie apart, None where by no whole number of them."""
        return None if self.x is None else self._steps(self.x, self.across)

    def _steps(self, along: int, tap: int) -> int | None:
        apart, unit = (self.image.offset.factor(d) for d in (along, tap))
        steps = range(1, max(self.window) + 1)
        return next((n for n in steps if unit.scaled(n) == apart), None)


def match_windows(operation: ir.Operation, memory: Buffers) -> Windows | None:
    """The roles of the dimensions of sums over windows, None when it is something else."""
    if operation.name != "linalg.generic" or len(operation.results) or len(operation.operands) != 3:
        return None
    if CONTRACTION in operation.attributes:
        return None
    kinds = str(operation.attributes["iterator_types"])
    if kinds.count("<reduction>") != 2:
        return None
    nest = read_nest(operation, memory)
    parallel = [d for d in nest.extents if d not in nest.reductions]
    if len(nest.outputs) != 1 or len(nest.inputs) != 2 or len(nest.reductions) != 2 or not parallel:
        return None
    down, across = sorted(nest.reductions)
    return _roles(nest, parallel, down, across)


def _roles(nest: Nest, parallel: Sequence[int], down: int, across: int) -> Windows | None:
    signs = factor_signs(nest.operation)
    *others, n = parallel
    if signs is None or any(nest.extents[d].static is None for d in (n, down, across)):
        return None
    if any(o.buffer is None or o.offset.floors() or o.offset.factor(n).static != 1 for o in nest.operands):
        return None
    image, filter_ = range(2) if not set(others) & nest.inputs[1].offset.dims() else (1, 0)
    if set(others) & nest.inputs[filter_].offset.dims() or nest.outputs[0].offset.dims() & nest.reductions:
        return None
    *batch, y, x = [None, None, *others][-max(2, len(others)) :]
    return Windows(
        nest, tuple(d for d in batch if d is not None), y, x, n, down, across,
        nest.inputs[image], nest.inputs[filter_], (signs[image], signs[filter_]) if signs else (),
    )  # fmt: skip


def factor_signs(operation: ir.Operation) -> tuple[bool, ...] | None:
    """Of a body that yields ``total + extended(a) * extended(b)`` whether bytes a and b have no sign; empty where they are f32,
    multiplied and added at once; None for another body."""
    return () if _is_fma(operation) else _byte_signs(operation)


def _is_fma(operation: ir.Operation) -> bool:
    block = operation.regions[0].blocks[0]
    *operations, end = (op.operation for op in block.operations)
    if (
        len(block.arguments) != 3
        or [op.name for op in operations] != ["math.fma"]
        or list(end.operands) != [operations[0].result]
    ):
        return False
    *factors, total = operations[0].operands
    *inputs, last = block.arguments
    return total == last and set(factors) == set(inputs) and all(isinstance(a.type, ir.F32Type) for a in block.arguments)


def _byte_signs(operation: ir.Operation) -> tuple[bool, bool] | None:
    block = operation.regions[0].blocks[0]
    *operations, end = (op.operation for op in block.operations)
    if len(block.arguments) != 3 or len(operations) != 4 or len(end.operands) != 1:
        return None
    (*inputs, total), result = block.arguments, end.operands[0]
    by_result = {op.results[0]: op for op in operations if len(op.results) == 1}
    add = by_result.get(result)
    if add is None or add.name != "arith.addi" or total not in list(add.operands) or not _is_integer(result, 32):
        return None
    product = by_result.get(next((v for v in add.operands if v != total), total))
    if product is None or product.name != "arith.muli":
        return None
    signs = dict[ir.Value, bool]()
    for factor in product.operands:
        extension = by_result.get(factor)
        if extension is None or extension.name not in _EXTENSIONS or not _is_integer(extension.operands[0], 8):
            return None
        signs[extension.operands[0]] = _EXTENSIONS[extension.name]
    if set(signs) != set(inputs):
        return None
    return signs[inputs[0]], signs[inputs[1]]


def _is_integer(value: ir.Value, bits: int) -> bool:
    return isinstance(value.type, ir.IntegerType) and value.type.width == bits

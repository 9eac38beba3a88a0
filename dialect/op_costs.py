"""What an op costs, as its class declares it: arithmetic operations and bytes moved, for all sizes of its symbols.

Operations are additions, multiplications and function values (an exponential is one), of any dtype. Bytes are what an op reads
and writes when it runs on its own.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from .bindings import ir
from .layouts import reordered
from .struct_info import TensorInfo
from .symbolic import Dim, Expr
from .winograd import RESULTS

__all__ = [
    "ATTENTION",
    "CONVOLUTION",
    "FREE",
    "GATHERS",
    "MOVES",
    "PACKED_CONVOLUTION",
    "POOLS",
    "PRODUCT",
    "REDUCES",
    "SLICES",
    "WINOGRAD",
    "Cost",
    "Size",
    "UnknownSizeError",
    "data_bytes",
    "per_element",
    "product",
]  # fmt: skip

#: A number that may depend on symbols.
Size = int | Expr

#: Of tensors that an op reads, tensors that it makes, and the op itself.
Rule = Callable[[Sequence[TensorInfo], Sequence[TensorInfo], Any], Size]

_SOFTMAX = 5


class UnknownSizeError(Exception):
    """A dimension is unknown."""


def product(shape: Sequence[Dim]) -> Size:
    """The number of elements. Raises UnknownSizeError when a dimension is unknown."""
    total: Size = 1
    for dim in shape:
        total = total * _known(dim)
    return total


def _known(dim: Dim) -> Size:
    if dim is None:
        raise UnknownSizeError
    return dim


def data_bytes(info: TensorInfo) -> Size:
    """Bytes of a tensor in memory; a truth value takes one, narrower integers are packed.

    Raises:
        UnknownSizeError: a dimension is not known, or how long an element is.
    """
    bits = 8 if info.dtype == ir.IntegerType.get_signless(1, info.dtype.context) else _bits(info.dtype)
    count = product(info.shape)
    return count * (bits // 8) if bits % 8 == 0 else (count * bits + 7) // 8


def _bits(dtype: ir.Type) -> int:
    """Of an element, those of other dialects among them."""
    if isinstance(dtype, ir.IntegerType | ir.FloatType):
        return dtype.width
    if isinstance(dtype, ir.IndexType):
        return 64
    if isinstance(dtype, ir.ComplexType):
        return 2 * _bits(dtype.element_type)
    if isinstance(dtype, ir.VectorType):
        return math.prod(dtype.shape) * _bits(dtype.element_type)
    raise UnknownSizeError


def _all_data(inputs: Sequence[TensorInfo], results: Sequence[TensorInfo], op: Any) -> Size:
    return sum(data_bytes(r) for r in results) + sum(data_bytes(i) for i in inputs)


def _nothing(inputs: Sequence[TensorInfo], results: Sequence[TensorInfo], op: Any) -> Size:
    return 0


@dataclass(frozen=True)
class Cost:
    """What one run of an op costs.

    Attributes:
        flops: arithmetic operations.
        bytes: read and written; by default all of what it reads and makes.
    """

    flops: Rule
    bytes: Rule = _all_data


def per_element(count: int) -> Cost:
    """So many operations for each element of the result."""
    return Cost(lambda inputs, results, op: product(results[0].shape) * count if results else 0)


def _picked(inputs: Sequence[TensorInfo], results: Sequence[TensorInfo], op: Any) -> Size:
    return 2 * sum(data_bytes(r) for r in results) + data_bytes(inputs[1])


def _reduced(inputs: Sequence[TensorInfo], results: Sequence[TensorInfo], op: Any) -> Size:
    return product(inputs[0].shape)


def _sliced(inputs: Sequence[TensorInfo], results: Sequence[TensorInfo], op: Any) -> Size:
    return 0 if all(s == 1 for s in op.strides or ()) else _all_data(inputs, results, op)


def _pooled(inputs: Sequence[TensorInfo], results: Sequence[TensorInfo], op: Any) -> Size:
    return product(results[0].shape) * math.prod(op.pool_size)


def _multiplied(inputs: Sequence[TensorInfo], results: Sequence[TensorInfo], op: Any) -> Size:
    parts = _known(inputs[0].shape[0]) if getattr(op, "parts", False) else 1
    return 2 * product(results[0].shape) * _known(inputs[0].shape[-1]) * parts


def _convolved(inputs: Sequence[TensorInfo], results: Sequence[TensorInfo], op: Any) -> Size:
    return 2 * product(results[0].shape) * product(reordered(inputs[1].shape, op.kernel_layout, "OIHW")[1:])


def _packed_convolved(inputs: Sequence[TensorInfo], results: Sequence[TensorInfo], op: Any) -> Size:
    return 2 * product(results[0].shape) * _known(inputs[1].shape[1]) * op.layout.rows


def _filtered(inputs: Sequence[TensorInfo], results: Sequence[TensorInfo], op: Any) -> Size:
    n, height, width, channels = map(_known, results[0].shape)
    tiles = n * ((height + 1) // RESULTS) * ((width + 1) // RESULTS)
    return 2 * tiles * channels * _known(inputs[1].shape[1])


def _attended(inputs: Sequence[TensorInfo], results: Sequence[TensorInfo], op: Any) -> Size:
    scores = product([*results[0].shape[:-1], inputs[1].shape[-2]])
    return scores * (2 * _known(inputs[0].shape[-1]) + 2 * _known(inputs[2].shape[-1]) + _SOFTMAX)


#: Lowering gives the result a view of the operand's buffer, or none at all.
FREE = Cost(_nothing, _nothing)
#: Moves elements and computes nothing.
MOVES = Cost(_nothing)
#: Reads what it picks, and the indices, its second operand.
GATHERS = Cost(_nothing, _picked)
#: A view where strides are 1.
SLICES = Cost(_nothing, _sliced)
#: One operation for each element of the operand.
REDUCES = Cost(_reduced)
#: One operation for each element of a window.
POOLS = Cost(_pooled)
#: Of matrices, the sum along the last dimension of the first operand.
PRODUCT = Cost(_multiplied)
CONVOLUTION = Cost(_convolved)
PACKED_CONVOLUTION = Cost(_packed_convolved)
#: Products alone, of which there are 16 for each 2x2 results.
WINOGRAD = Cost(_filtered)
ATTENTION = Cost(_attended)

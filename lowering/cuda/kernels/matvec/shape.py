"""What the plan of a product of few rows is made from: sizes and widths as plain data, without IR."""

from __future__ import annotations

from dataclasses import dataclass
from math import gcd

from .....dialect.bindings import ir
from ....kernels.structure.factor import Factor
from ....kernels.structure.match import Contraction
from ....kernels.structure.row_groups import GroupedContraction
from ..device_memory import element_bytes_of, known_product
from ..products.tensor_maps import dims_of_rows
from .stream import Stream, find_stream

__all__ = ["MatvecShape", "describe"]

# Rows whose sums a thread has; for more of them tensor cores pay.
_ROWS = 4
# Rows in groups, each of which reads the matrix of its group: those of one group do so one after the other, from the cache.
_ROWS_IN_GROUPS = 16
# Bytes of the widest load.
_WIDEST = 16
# Bytes of a row of the left factor that a lane reads at a time: lanes are so far from each other.
_LEFT = 64
# Steps of k below which most lanes would have none.
_SHORTEST = 64
_LANES = 32
# Operations on the left factor that every warp does again.
_CHEAP = ("arith.extf", "arith.truncf", "arith.constant", "arith.mulf", "arith.addf", "arith.sitofp")
_MOST_OPERATIONS = 4


@dataclass(frozen=True)
class MatvecShape:
    """Sizes are None where they are known at run time only.

    Attributes:
        rows: of the result, all of them.
        columns: of the result.
        depth: steps of k.
        batch: how many products there are.
        steps: of k, that are read by one load of a lane, at most.
        unit: what their number is a multiple of.
        step_bits: bits of memory of a step of a column.
        group: steps of k whose integers have one scale, 0: all have; None: numbers have none.
        groups: of rows, each with a matrix of its own; ``batch`` are the rows then. 0: all rows have the same one.
    """

    rows: int
    columns: int | None
    depth: int
    batch: int | None
    steps: int
    unit: int
    step_bits: int
    group: int | None
    groups: int = 0


def describe(contraction: Contraction) -> tuple[MatvecShape, Stream] | None:
    """The shape of a product that is one of few rows and a stream, and this; None for others."""
    extents = {d: size.static for d, size in contraction.nest.extents.items()}
    rows, depth = known_product(extents[d] for d in dims_of_rows(contraction)), extents[contraction.k]
    batch = known_product(extents[d] for d in contraction.batch)
    if isinstance(contraction, GroupedContraction) and (batch is None or batch > _ROWS_IN_GROUPS):
        return None
    if rows is None or not 0 < rows <= _ROWS or depth is None or depth < _SHORTEST or contraction.outer:
        return None
    f32 = ir.F32Type.get(contraction.nest.operation.context)
    types = [contraction.nest.outputs[0].argument.type, contraction.left.value.type, contraction.right.value.type]
    if any(t != f32 for t in types) or not _is_cheap(contraction.left):
        return None
    stream = find_stream(contraction)
    if stream is None or (stream.integers is None and not all(map(_is_number, contraction.right.operations))):
        return None
    unit = 1 if stream.integers is None else stream.integers.per_word
    steps = _steps(stream, contraction.left, depth, unit)
    group = None if stream.integers is None else stream.integers.group
    groups = contraction.groups.count if isinstance(contraction, GroupedContraction) else 0
    return MatvecShape(rows, extents[contraction.n], depth, batch, steps, unit, stream.step_bits, group, groups), stream


def _steps(stream: Stream, left: Factor, depth: int, unit: int) -> int:
    """As many as the widest load has, if there are enough for all lanes, and all of them have one scale."""
    left_bytes = max((element_bytes_of(o.buffer.element) for o in left.operands if o.buffer is not None), default=1)
    steps = gcd(depth, min(8 * _WIDEST // stream.step_bits, _LEFT // left_bytes))
    if stream.integers is not None:
        steps = gcd(steps, stream.integers.group)
    while steps > unit and steps % 2 == 0 and depth < steps * _LANES:
        steps //= 2
    return steps


def _is_cheap(factor: Factor) -> bool:
    return len(factor.operations) <= _MOST_OPERATIONS and all(op.name in _CHEAP for op in factor.operations)


def _is_number(op: ir.Operation) -> bool:
    return op.name.startswith(("arith.", "math.")) and len(op.results) == 1 and not len(op.regions)

"""Rows of a table of which each rank has some, as an embedding by a part of the vocabulary.

Before, with a table of 64 rows::

    %e = "relax.take"(%table, %tokens) {axis = 0} : (tensor<64x8xf32>, tensor<?xi64>) -> tensor<?x8xf32>

after, on rank r of 2, which has 32 rows::

    %owner = take([0, 1], %tokens floor_divide 32)          // refuses what is no row of the whole table
    %own = %owner == rank
    %rows = where(%own, %tokens - %owner * 32, 0)
    %e = all_reduce(where(expand_dims(%own), take(%table, %rows), 0))

A negative index counts from the end there, and so here: what is taken from ``[0, 1]`` at -1 is 1.
"""

from __future__ import annotations

from ...bindings import ir
from ...ops import AllReduce, Arange, AsType, Equal, ExpandDims, FloorDivide, Full, Multiply, Rank, Subtract, Take, Where
from ...struct_info import TensorInfo
from ..emit import given_attr

__all__ = ["look_up"]


def look_up(op: Take, rows: int, ranks: int) -> ir.Value:
    """What takes the op's place, before it: ``rows`` of the table are this rank's."""
    i64 = ir.IntegerType.get_signless(64)
    indices = op.indices if TensorInfo.of(op.indices).dtype == i64 else AsType.create(op.indices, dtype=i64).result
    block = FloorDivide.create(indices, _number(rows, i64)).result
    owners = Arange.create(start=[0], end=[ranks], step=[1], result_types=[TensorInfo((ranks,), i64).type]).result
    owner = Take.create(owners, block, axis=0, wrap_negative_indices=given_attr(op, "wrap_negative_indices")).result
    own = Equal.create(owner, Rank.create().result).result
    inside = Subtract.create(indices, Multiply.create(block, _number(rows, i64)).result).result
    local = Where.create(own, inside, _number(0, i64)).result
    taken = Take.create(op.x, local, axis=0).result
    info = TensorInfo.of(taken)
    mask = ExpandDims.create(own, axis=[info.rank - 1]).result
    return AllReduce.create(Where.create(mask, taken, _number(0, info.dtype)).result).result


def _number(value: int, dtype: ir.Type) -> ir.Value:
    return Full.create(
        value=float(value) if not isinstance(dtype, ir.IntegerType) else value, result_types=[TensorInfo((), dtype).type]
    ).result

"""Products with all experts of a weight at once become one with each expert's matrix, of which a file may have each narrow.

Before, of rows that are grouped by expert (``relax.grouped_matmul``), as transformers has them by default::

    %0 = "relax.reshape"(%w) : (tensor<4x128x64xf32>) -> tensor<512x64xf32>
    %1 = "relax.permute_dims"(%0)
    %y = "relax.grouped_matmul"(%x, %1, %ends) : (tensor<?x64xf32>, tensor<64x512xf32>, tensor<4xi32>) -> tensor<?x128xf32>

after, for each expert::

    %m = "relax.squeeze"("relax.strided_slice"(%w) {axes = array<i64: 0>, begin = [0], end = [1]})
    %p = "relax.matmul"(%x, "relax.permute_dims"(%m))
    %y1 = "relax.where"(%mine, %p, %y0)                             // rows of this expert; the last one is %y

Rows whose matrices are looked up by number (``batched_mm`` of transformers) are taken likewise, and batched products in the
order of the experts. An expert without rows computes nothing where code branches (``relax-skip-masked-products``).
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from .dialect.bindings import ir
from .dialect.inference import normalize_axis
from .dialect.ops import (
    Arange,
    Concat,
    Equal,
    ExpandDims,
    Full,
    GreaterEqual,
    GroupedMatMul,
    Less,
    LogicalAnd,
    MatMul,
    PermuteDims,
    Reshape,
    Squeeze,
    StridedSlice,
    Take,
    Where,
)
from .dialect.struct_info import TensorInfo
from .dialect.symbolic import Dim
from .dialect.transforms.emit import cast
from .dialect.transforms.packing.block_movement import reshaped
from .runtime.joined_experts import JoinedWeight

__all__ = ["is_for_grouped_rows", "read_one_by_one", "side_by_side"]

_MOVES = (PermuteDims, Reshape, Concat)


def read_one_by_one(weight: ir.Value, *, alike: bool) -> bool:
    """Makes products read matrices of a weight ``[experts, ...]`` one by one.

    Args:
        weight: the weight.
        alike: whether all are one narrow matrix, which products of grouped rows read as it is.

    Returns:
        whether that is so; nothing is changed where anything but a product with all of them reads the weight.
    """
    readers = list(_readers(weight, _Turns()))
    found = [reader for reader in readers if reader is not None]
    if not found or len(found) < len(readers) or (alike and is_for_grouped_rows(weight)):
        return False
    for reader in found:
        reader.rewrite(weight)
    return True


def is_for_grouped_rows(weight: ir.Value) -> bool:
    """Whether nothing but products of grouped rows reads a weight, or what is laid out of it: to passes one matrix."""
    owners = [(use.owner, use.operand_number) for use in weight.uses]
    return bool(owners) and all(
        (isinstance(op, GroupedMatMul) and number == 1) or (isinstance(op, _MOVES) and is_for_grouped_rows(op.results[0]))
        for op, number in owners
    )


def side_by_side(weight: ir.Value, joined: JoinedWeight, part: Callable[[str, ir.Type], ir.Value]) -> None:
    """Makes a weight of all experts ``[experts, out, in]`` of a file's single tensors, which ``part`` adds to the function."""
    info = TensorInfo.of(weight)
    count, rows, columns = info.shape
    assert isinstance(rows, int)  # a weight's
    kind = info.with_(shape=[rows // len(joined.parts[0]), columns]).type
    parts = [part(name, kind) for name in joined.names]
    with ir.InsertionPoint.at_block_begin(weight.owner), ir.Location.unknown():
        whole = functools.reduce(lambda left, right: Concat.create(left, right, axis=0).result, parts)
        made = reshaped(whole, [count, rows, columns])
    weight.replace_all_uses_with(made)


@dataclass(frozen=True)
class _Turns:
    """What was done to a weight before a product reads it.

    Attributes:
        turned: whether its matrices are transposed.
        rows: whether they lie below one another in a matrix.
        columns: whether this is transposed, too.
        chosen: the look-up that takes some of them.
    """

    turned: bool = False
    rows: bool = False
    columns: bool = False
    chosen: Take | None = None

    def behind(self, op: ir.OpView) -> _Turns | None:
        """With an op that moves data; None where that does something else."""
        if isinstance(op, PermuteDims) and not self.columns:
            axes = list(op.axes or range(TensorInfo.of(op.x).rank)[::-1])
            if axes == [0, 2, 1] and not self.rows:
                return _Turns(not self.turned, chosen=self.chosen)
            return _Turns(self.turned, True, True) if axes == [1, 0] and self.rows else None
        if isinstance(op, Reshape) and not self.rows and self.chosen is None:
            first, *inner = TensorInfo.of(op.x).shape
            count, *rest = TensorInfo.of(op.result).shape
            is_merged = len(rest) == 1 and isinstance(first, int) and isinstance(inner[0], int) and count == first * inner[0]
            return _Turns(self.turned, rows=True) if is_merged else None
        if isinstance(op, Take) and not self.rows and self.chosen is None:
            ids = TensorInfo.of(op.indices)
            is_chosen = normalize_axis(op.axis, 3) == 0 and ids.rank == 1 and ids.shape[0] is not None
            return _Turns(self.turned, chosen=op) if is_chosen else None
        return None


@dataclass(frozen=True)
class _Reader:
    """A product with all experts.

    Attributes:
        product: the product.
        number: which of its operands the weight is, or what was made of it.
        is_out_in: whether it multiplies with the weight's own matrices transposed, as a linear layer does.
        chosen: the look-up of matrices that it multiplies with.
    """

    product: MatMul | GroupedMatMul
    number: int
    is_out_in: bool
    chosen: Take | None

    def rewrite(self, weight: ir.Value) -> None:
        """Makes it products with single matrices."""
        with ir.InsertionPoint(self.product), self.product.location:
            made = self._made(weight)
        self.product.result.replace_all_uses_with(made)
        moved = self.product.operands[self.number]
        self.product.operation.erase()
        while moved != weight and not list(moved.uses):  # what moved the weight goes, too
            op = moved.owner.opview
            moved = op.operands[0]
            op.operation.erase()

    def _made(self, weight: ir.Value) -> ir.Value:
        x, shape = self.product.operands[1 - self.number], TensorInfo.of(self.product.result).shape
        groups = TensorInfo.of(weight).shape[0]
        assert isinstance(groups, int)  # a weight's
        if isinstance(self.product, GroupedMatMul):
            return self._masked(weight, x, _group_members(self.product.ends, shape[0], groups))
        if self.chosen is not None:
            info = TensorInfo.of(x)
            rows = reshaped(x, [info.shape[0], info.shape[1 + self.number]])
            return reshaped(self._masked(weight, rows, _members(self.chosen.indices, groups)), shape)
        parts = [reshaped(self._product(weight, e, _rows_of(x, e)), [1, *shape[1:]]) for e in range(groups)]
        return functools.reduce(lambda whole, part: Concat.create(whole, part, axis=0).result, parts)

    def _masked(self, weight: ir.Value, rows: ir.Value, members: ir.Value) -> ir.Value:
        """Rows times the matrices that flags ``[rows, experts]`` say; zeros where none does."""
        made: ir.Value | None = None
        count, row_count = TensorInfo.of(weight).shape[0], TensorInfo.of(members).shape[0]
        assert isinstance(count, int)  # a weight's
        flags = PermuteDims.create(
            members, axes=[1, 0]
        ).result  # each expert's are a view; a column would be a kernel of its own
        for e in range(count):
            mine = reshaped(StridedSlice.create(flags, axes=[0], begin=[e], end=[e + 1]).result, [row_count, 1])
            product = self._product(weight, e, rows)
            before = Full.create(value=0, result_types=[product.type]).result if made is None else made
            made = Where.create(mine, product, before).result
        assert made is not None
        return made

    def _product(self, weight: ir.Value, index: int, rows: ir.Value) -> ir.Value:
        matrix = _at(weight, index)
        turned = PermuteDims.create(matrix, axes=[1, 0]).result if self.is_out_in else matrix
        return MatMul.create(rows, turned, out_dtype=self.product.out_dtype).result


def _readers(value: ir.Value, turns: _Turns) -> Iterator[_Reader | None]:
    """The products that read a weight, or what it became; None for anything else that does."""
    for use in value.uses:
        op, number = use.owner, use.operand_number
        behind = turns.behind(op) if number == 0 else None
        if behind is None:
            yield _reader(op, number, turns)
        else:
            yield from _readers(op.results[0], behind)


def _reader(op: ir.OpView, number: int, turns: _Turns) -> _Reader | None:
    if isinstance(op, GroupedMatMul):
        is_grouped = number == 1 and turns.columns and TensorInfo.of(op.lhs).shape[0] is not None
        return _Reader(op, number, not turns.turned, None) if is_grouped else None
    if not isinstance(op, MatMul) or turns.rows:
        return None
    x, matrices = TensorInfo.of(op.operands[1 - number]), TensorInfo.of(op.operands[number])
    is_out_in = turns.turned == (number == 1)
    if turns.chosen is not None:  # a row for each
        is_one = x.rank == 3 and x.shape[2 - number] == 1 and x.shape[0] == matrices.shape[0]
        return _Reader(op, number, is_out_in, turns.chosen) if is_one else None
    is_batched = number == 1 and (x.rank == 2 or (x.rank == 3 and x.shape[0] in (1, matrices.shape[0])))
    return _Reader(op, number, is_out_in, None) if is_batched else None


def _at(tensor: ir.Value, index: int) -> ir.Value:
    """One index of the first dimension, without it."""
    piece = StridedSlice.create(tensor, axes=[0], begin=[index], end=[index + 1]).result
    return Squeeze.create(piece, axis=[0]).result


def _rows_of(x: ir.Value, expert: int) -> ir.Value:
    """What a batched product multiplies with one expert's matrix."""
    info = TensorInfo.of(x)
    return x if info.rank == 2 else _at(x, 0 if info.shape[0] == 1 else expert)


def _members(indices: ir.Value, count: int) -> ir.Value:
    """Whether a row has an expert's number, ``[rows, experts]``; numbers are looked up: others are refused as before."""
    i64 = ir.IntegerType.get_signless(64)
    info = TensorInfo.of(indices)
    numbers = Arange.create(start=[0], end=[count], step=[1], result_types=[info.with_(shape=[count], dtype=i64).type]).result
    found = ExpandDims.create(Take.create(numbers, indices, axis=0).result, axis=[1]).result
    return Equal.create(found, ExpandDims.create(numbers, axis=[0]).result).result


def _group_members(ends: ir.Value, rows: Dim, groups: int) -> ir.Value:
    """Whether a row is of a group, ``[rows, groups]``, by the groups' ends."""
    i64 = ir.IntegerType.get_signless(64)
    ends = cast(ends, i64)
    info = TensorInfo.of(ends)
    begins = Full.create(value=0, result_types=[info.with_(shape=[1]).type]).result
    if groups > 1:
        rest = StridedSlice.create(ends, axes=[0], begin=[0], end=[groups - 1], strides=[1]).result
        begins = Concat.create(begins, rest, axis=0).result
    type_ = info.with_(shape=[rows]).type
    number = Arange.create(start=[0], end=[rows], step=[1], result_types=[type_]).result
    number = ExpandDims.create(number, axis=[1]).result
    return LogicalAnd.create(GreaterEqual.create(number, begins).result, Less.create(number, ends).result).result

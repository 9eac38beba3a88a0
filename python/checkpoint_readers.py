"""What reads a weight of a function, by what it needs: products, look-ups of rows, others; and how these read another one."""

from __future__ import annotations

from dataclasses import dataclass

from .checkpoint_math import StoredWeightOps, is_four_bits
from .dialect.bindings import ir
from .dialect.op import attrs_of
from .dialect.ops import AsType, MatMul, PermuteDims, Reshape, Squeeze, StridedSlice, Take
from .dialect.struct_info import TensorInfo
from .weights.formats.weight_math import MathValue

__all__ = ["Selection", "WeightReaders", "selections"]


@dataclass(frozen=True)
class WeightReaders:
    """The readers of a weight.

    Attributes:
        weight: what they read.
        products: those whose right-hand side it is, or its transpose: these take words apart.
        transposed: whether all of these read it transposed, as a linear layer does: along its rows.
        rows: look-ups of rows.
        others: whether there are any more.
    """

    weight: ir.Value
    products: tuple[MatMul, ...]
    transposed: bool
    rows: tuple[Take, ...]
    others: bool

    @staticmethod
    def of(weight: ir.Value) -> WeightReaders:
        """Those of an argument."""
        owners = [(use.owner, use.operand_number) for use in weight.uses]
        direct = [op for op, number in owners if isinstance(op, MatMul) and number == 1]
        rows = [op for op, number in owners if isinstance(op, Take) and number == 0 and op.axis == 0]
        turned, others = list[MatMul](), len(direct) + len(rows) < len(owners)
        if TensorInfo.of(weight).rank == 2:
            inner = [
                WeightReaders.of(op.result)
                for op, _ in owners
                if isinstance(op, PermuteDims) and list(op.axes or (1, 0)) == [1, 0]
            ]
            others = len(direct) + len(rows) + len(inner) < len(owners)
            others |= any(i.others or i.rows or i.transposed for i in inner)
            turned = [op for i in inner for op in i.products]
        products = (*direct, *turned)
        return WeightReaders(weight, products, bool(turned) and not direct, tuple(rows), others)

    def refusal(self, value: MathValue, has_order: bool) -> str:
        """Why they cannot read a weight as it is in a file; empty when they can."""
        is_matrix = len(value.shape) == 2
        if has_order and (self.others or self.rows or not self.transposed):
            return "its groups are no blocks of inputs (act-order), and not only linear layers read it"
        if is_four_bits(value) and (self.others or (self.rows and not is_matrix)):
            return "not only products and look-ups read it"
        return ""

    def read_rows(self, value: MathValue, ops: StoredWeightOps) -> None:
        """Makes look-ups read four-bit integers in words."""
        for op in self.rows if is_four_bits(value) else ():
            with ir.InsertionPoint(op), op.location:
                op.result.replace_all_uses_with(ops.rows(value, op.indices))
            op.operation.erase()

    def read(self, made: ir.Value, order: ir.Value | None) -> None:
        """Makes the others read another value, in f32 where it is not of the weight's dtype: results are rounded to that then.

        Args:
            made: what they read.
            order: of its inputs, if they are in one of their own.
        """
        if order is None and made.type == self.weight.type:
            self.weight.replace_all_uses_with(made)
            return
        _multiply(self.weight, made, order)


@dataclass(frozen=True)
class Selection:
    """A matrix that is taken out of several: which one, and the value that it is."""

    index: int
    matrix: ir.Value

    def erase(self) -> None:
        """Erases what takes it out, which nothing reads any more."""
        op = self.matrix.owner.operation
        piece = op.operands[0].owner
        op.erase()
        piece.operation.erase()


def selections(weight: ir.Value) -> list[Selection] | None:
    """The matrices that are taken out of several one by one, as experts are; None where anything else reads these."""
    found: list[Selection] = []
    for use in weight.uses:
        index, piece = _one_index(use.owner), use.owner
        readers = [] if index is None else [u.owner for u in piece.results[0].uses]
        if index is None or len(readers) != 1 or not _drops_first(readers[0]):
            return None
        found.append(Selection(index, readers[0].results[0]))
    return found or None


def _one_index(op: ir.OpView) -> int | None:
    """The only index of the first dimension that a slice has; None of other ops and slices."""
    if not isinstance(op, StridedSlice):
        return None
    attrs = attrs_of(op)
    begin, end = attrs["begin"], attrs["end"]
    is_one = list(attrs["axes"]) == [0] and isinstance(begin[0], int) and begin[0] >= 0 and end[0] == begin[0] + 1
    return begin[0] if is_one else None


def _drops_first(op: ir.OpView) -> bool:
    """Whether the result is the operand without its first dimension."""
    shape = TensorInfo.of(op.operands[0]).shape
    return isinstance(op, Squeeze | Reshape) and list(TensorInfo.of(op.results[0]).shape) == list(shape[1:])


def _multiply(weight: ir.Value, made: ir.Value, order: ir.Value | None) -> None:
    for op in [use.owner for use in weight.uses]:
        with ir.InsertionPoint(op), op.location:
            if isinstance(op, PermuteDims):
                _multiply(op.result, PermuteDims.create(made, axes=op.axes).result, order)
            else:
                _replace_product(op, made, order)
        op.operation.erase()


def _replace_product(op: MatMul, weight: ir.Value, order: ir.Value | None) -> None:
    dtype = TensorInfo.of(weight).dtype
    left = _cast(op.lhs, dtype)
    if order is not None:
        left = Take.create(left, order, axis=-1).result
    is_same = dtype == TensorInfo.of(op.rhs).dtype
    product = MatMul.create(left, weight, out_dtype=op.out_dtype if is_same else None).result
    op.result.replace_all_uses_with(_cast(product, TensorInfo.of(op.result).dtype))


def _cast(value: ir.Value, dtype: ir.Type) -> ir.Value:
    return value if TensorInfo.of(value).dtype == dtype else AsType.create(value, dtype=dtype).result

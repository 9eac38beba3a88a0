"""Selection by condition, and positions of extreme values."""

from __future__ import annotations

from ...dialect.bindings import ir
from ...dialect.inference import normalize_axis
from . import sorting as sorting
from .builder import LinalgBuilder, Size, Tensor, index
from .reduction import accumulated, extreme, reduce
from .registry import Source, lowering
from .reshaping import restore_axes
from .scalar import Scalar, emit, minimum, select

__all__ = ["sorting"]

_LAST = 2**63 - 1


@lowering("relax.where")
def _lower_where(b: LinalgBuilder, source: Source) -> ir.Value:
    return b.elementwise(source.operands, source.result, select)


@lowering("relax.argmax", "relax.argmin")
def _lower_arg(b: LinalgBuilder, source: Source) -> ir.Value:
    """The extreme value of each row, then the least index that has it: two reductions with vector forms."""
    (x,) = source.operands
    axis = normalize_axis(source.attrs["axis"], x.rank)
    kind = extreme(x.dtype, "max" if source.op.operation.name == "relax.argmax" else "min")
    best = reduce(b, x, [axis], kind)
    found = _first_index(b, x, best, axis)
    size = b.size(x, axis)
    if not isinstance(size, int) or not size:
        found = _or_zero(b, found)
    return restore_axes(b, found, [axis]) if source.attrs["keepdims"] else found


def _first_index(b: LinalgBuilder, x: Tensor, best: ir.Value, axis: int) -> ir.Value:
    i64 = ir.IntegerType.get_signless(64)
    kept = [i for i in range(x.rank) if i != axis]
    sizes: list[Size] = [b.size(x, i) for i in kept]

    def body(element: ir.Value, extreme_: ir.Value, least: ir.Value) -> ir.Value:
        position = Scalar(emit("arith.index_cast", i64, index(axis).value))
        same = _same(accumulated(element, x.dtype), Scalar(extreme_))
        return minimum(Scalar(least), select(same, position, _LAST)).value

    kinds = "".join("r" if i == axis else "p" for i in range(x.rank))
    inputs = [(x.value, range(x.rank)), (best, kept)]
    return b.generic(kinds, inputs, b.filled(sizes, i64, _LAST), body, kept)


def _same(x: Scalar, best: Scalar) -> Scalar:
    """Whether an element is the extreme one. A NaN among the elements is."""
    equal = x.compare("eq", best)
    return equal | x.compare("ne", x) if x.is_float else equal


def _or_zero(b: LinalgBuilder, found: ir.Value) -> ir.Value:
    """The index found, 0 where a row has no element."""
    sizes = b.value_sizes(found)

    def body(least: ir.Value, _: ir.Value) -> ir.Value:
        scalar = Scalar(least)
        return select(scalar.compare("eq", _LAST), 0, scalar).value

    out = b.empty(sizes, ir.IntegerType.get_signless(64))
    return b.generic("p" * len(sizes), [(found, range(len(sizes)))], out, body)

"""Where the elements of a moved tensor are in the one that they come from: what reads by parts need not wait for a copy.

Before::

    %r = tensor.expand_shape %x [[0], [1], [2, 3]] output_shape [1, 128, 12, 64] : tensor<1x128x2304xf32> into ...
    %q = linalg.generic {(b, h, s, d) -> (b, s, h, d), (b, h, s, d) -> (b, h, s, d)} ins(%r) outs(%e) { yield %in }

after: ``%q[b, h, s, d]`` is ``%x[b, s, 64 * h + d]``, so that rows ``s`` and columns ``d`` of a head are a slice of ``%x``.
Permutations, slices and splits of dimensions are seen through, as far as the parts that the reader takes remain slices.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import prod

from ...dialect.bindings import ir
from .builder import DYNAMIC, ZERO, LinalgBuilder, Size, value_type
from .slicing import extract_slice

__all__ = ["View", "permuted_from", "plain_view", "view_of"]


@dataclass(frozen=True)
class LinearPlace:
    """An index as ``constant + sum(factor * index of dimension)``."""

    constant: int
    terms: tuple[tuple[int, int], ...] = ()

    @property
    def plain(self) -> int | None:
        """The dimension that the index is, if it is just that."""
        return self.terms[0][0] if self.constant == 0 and len(self.terms) == 1 and self.terms[0][1] == 1 else None

    def times(self, factor: int) -> LinearPlace:
        return LinearPlace(self.constant * factor, tuple((d, f * factor) for d, f in self.terms))

    def plus(self, other: LinearPlace) -> LinearPlace:
        factors = dict(self.terms)
        for dim, factor in other.terms:
            factors[dim] = factors.get(dim, 0) + factor
        return LinearPlace(self.constant + other.constant, tuple(sorted((d, f) for d, f in factors.items() if f)))


_NOWHERE = LinearPlace(0)


@dataclass(frozen=True)
class View:
    """A tensor as part of another one, the source.

    Attributes:
        sizes: the tensor's own sizes; None: that of the source's dimension at which it is the only index.
        places: for each dimension of the source, the index there.
    """

    sizes: tuple[int | None, ...]
    places: tuple[LinearPlace, ...]

    @property
    def rank(self) -> int:
        return len(self.sizes)

    def size(self, b: LinalgBuilder, source: ir.Value, axis: int) -> Size:
        """The size of a dimension of the tensor, given the source or what stands for it in a function."""
        axis %= self.rank
        known = self.sizes[axis]
        return b.dim(source, self.axis(axis)) if known is None else known

    def axis(self, axis: int) -> int:
        """The last dimension of the source that an index of the tensor moves in."""
        axis %= self.rank
        return max(i for i, p in enumerate(self.places) if any(d == axis for d, _ in p.terms))

    def part(
        self, b: LinalgBuilder, source: ir.Value, offsets: Sequence[Size], sizes: Sequence[Size], kept: Sequence[int]
    ) -> ir.Value:
        """The part of those offsets and sizes, all 1 but for the ``kept`` dimensions, as a slice of the source."""
        extents: list[Size] = []
        for place in self.places:
            moving = [d for d, _ in place.terms if d in kept]
            extents.append(sizes[moving[0]] if moving else 1)
        axes = [self.axis(axis) for axis in kept]
        return extract_slice(source, [_index(b, p, offsets) for p in self.places], extents, axes)

    def map(self, loops: int, exprs: Sequence[int]) -> ir.Attribute:
        """The index map to the source from loops, of which ``exprs`` are the tensor's own indices; ZERO is the constant 0."""
        results = [_expr(place, exprs) for place in self.places]
        return ir.AffineMapAttr.get(ir.AffineMap.get(loops, 0, results))

    def has_parts(self, kept: Iterable[int]) -> bool:
        """Whether parts that are these dimensions, in this order, are slices with neighbours along the last one."""
        kept = [axis % self.rank for axis in kept]
        found = [(axis, f) for place in self.places for axis, f in place.terms if axis in kept]
        alone = all(sum(d in kept for d, _ in p.terms) <= 1 for p in self.places)
        return alone and found == [(axis, 1) for axis in kept] and self.axis(kept[-1]) == len(self.places) - 1


def plain_view(value: ir.Value) -> View:
    """A tensor as itself."""
    type_ = value_type(value)
    sizes = tuple(None if d == DYNAMIC else d for d in type_.shape)
    return View(sizes, tuple(LinearPlace(0, ((i, 1),)) for i in range(type_.rank)))


def view_of(value: ir.Value, *parts: Sequence[int], widened: bool = False) -> tuple[ir.Value, View]:
    """The tensor that a value was moved from, as far back as each of ``parts`` is one (:meth:`View.has_parts`), and how.

    Where ``widened`` is true, its elements may be floats of fewer bits than the value's.
    """
    view = plain_view(value)
    best = value, view
    while (step := _step(value, widened)) is not None:
        value, places = step
        view = View(view.sizes, tuple(_composed(p, view.places) for p in places))
        if not all(s is not None or any(p.plain == i for p in view.places) for i, s in enumerate(view.sizes)):
            break
        if all(view.has_parts(kept) for kept in parts):
            best = value, view
    return best


def permuted_from(value: ir.Value) -> tuple[ir.Value, list[int]] | None:
    """The tensor whose dimensions a value has in another order, and which of the value's each is; None where there is none.

    What is the first part of a longer dimension is none such: loops would be as long as that.
    """
    if isinstance(value, ir.BlockArgument) or value.owner.name != "linalg.generic":
        return None
    moved = _moved(value.owner.operation)
    if moved is None or len(moved[1]) != value_type(value).rank:
        return None
    axes = [p.plain for p in moved[1] if p.plain is not None]
    if sorted(axes) != list(range(len(moved[1]))):
        return None
    shape = value_type(value).shape
    return (moved[0], axes) if value_type(moved[0]).shape == [shape[axis] for axis in axes] else None


def _index(b: LinalgBuilder, place: LinearPlace, offsets: Sequence[Size]) -> Size:
    total: Size = place.constant
    for axis, factor in place.terms:
        total = b.arith("addi", total, b.arith("muli", offsets[axis], factor))
    return total


def _expr(place: LinearPlace, exprs: Sequence[int]) -> ir.AffineExpr:
    total = ir.AffineExpr.get_constant(place.constant)
    for axis, factor in place.terms:
        if exprs[axis] != ZERO:
            total = total + ir.AffineExpr.get_dim(exprs[axis]) * factor
    return total


def _composed(outer: LinearPlace, inner: Sequence[LinearPlace]) -> LinearPlace:
    total = LinearPlace(outer.constant)
    for axis, factor in outer.terms:
        total = total.plus(inner[axis].times(factor))
    return total


# -- one op that moves elements ----------------------------------------------------------------------------------------


def _step(value: ir.Value, widened: bool) -> tuple[ir.Value, tuple[LinearPlace, ...]] | None:
    """What the op that makes a value takes its elements from, and where; None when it computes, or there is no op."""
    if isinstance(value, ir.BlockArgument):
        return None
    op = value.owner.operation
    if op.name == "tensor.cast":
        return op.operands[0], tuple(LinearPlace(0, ((i, 1),)) for i in range(value_type(value).rank))
    if op.name == "tensor.expand_shape":
        return _expanded(op)
    if op.name == "tensor.collapse_shape":
        return _collapsed(op)
    return _moved(op, widened) if op.name == "linalg.generic" and len(op.results) == 1 else None


def _groups(op: ir.Operation) -> list[list[int]]:
    return [[ir.IntegerAttr(d).value for d in ir.ArrayAttr(g)] for g in ir.ArrayAttr(op.attributes["reassociation"])]


def _expanded(op: ir.Operation) -> tuple[ir.Value, tuple[LinearPlace, ...]] | None:
    shape, places = value_type(op.results[0]).shape, list[LinearPlace]()
    for group in _groups(op):
        if any(shape[d] == DYNAMIC for d in group[1:]):
            return None
        terms = [(d, prod(shape[group[i + 1] : group[-1] + 1])) for i, d in enumerate(group[:-1])] + [(group[-1], 1)]
        places.append(LinearPlace(0, tuple(term for term in terms if shape[term[0]] != 1 or len(group) == 1)))
    return op.operands[0], tuple(places)


def _collapsed(op: ir.Operation) -> tuple[ir.Value, tuple[LinearPlace, ...]] | None:
    """Where but one dimension of each group is of size one."""
    shape, places = value_type(op.operands[0]).shape, list[LinearPlace]()
    for i, group in enumerate(_groups(op)):
        long = [d for d in group if shape[d] != 1]
        if len(long) > 1:
            return None
        places += [LinearPlace(0, ((i, 1),)) if d == (long or group[-1:])[0] else _NOWHERE for d in group]
    return op.operands[0], tuple(places)


def _moved(op: ir.Operation, widened: bool = False) -> tuple[ir.Value, tuple[LinearPlace, ...]] | None:
    """A generic whose body gives an element of an operand as it is, or ``widened``."""
    maps = [ir.AffineMapAttr(m).value for m in ir.ArrayAttr(op.attributes["indexing_maps"])]
    *body, last = (o.operation for o in op.regions[0].blocks[0].operations)
    if maps[-1] != ir.AffineMap.get_identity(maps[-1].n_dims) or value_type(op.results[0]).rank != maps[-1].n_dims:
        return None
    result, block = last.operands[0], op.regions[0].blocks[0]
    if widened and len(body) == 1 and body[0].name == "arith.extf":
        result = body.pop().operands[0]
    if body or not isinstance(result, ir.BlockArgument) or result.owner != block or result.arg_number == len(maps) - 1:
        return None
    shape = value_type(op.results[0]).shape
    found = [_place(e, shape) for e in maps[result.arg_number].results]
    return None if None in found else (op.operands[result.arg_number], tuple(p for p in found if p is not None))


def _place(expr: ir.AffineExpr, shape: Sequence[int]) -> LinearPlace | None:
    """A linear index expression of loops of these sizes; None for any other."""
    if isinstance(expr, ir.AffineDimExpr):
        return LinearPlace(0, ((expr.position, 1),))
    if isinstance(expr, ir.AffineConstantExpr):
        return LinearPlace(expr.value)
    if not isinstance(expr, ir.AffineAddExpr | ir.AffineMulExpr | ir.AffineModExpr):
        return None
    left, right = _place(expr.lhs, shape), _place(expr.rhs, shape)
    if left is None or right is None:
        return None
    if isinstance(expr, ir.AffineAddExpr):
        return left.plus(right)
    if isinstance(expr, ir.AffineModExpr):
        return left if left.plain is not None and 0 <= shape[left.plain] <= right.constant else None
    return None if right.terms else left.times(right.constant)

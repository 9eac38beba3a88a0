"""Other shapes for the same elements: ``tensor.collapse_shape`` and ``tensor.expand_shape``, which are views of a buffer."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ...dialect.bindings import ir
from ...dialect.errors import RelaxError
from ...dialect.symbolic import Dim
from .builder import DYNAMIC, LinalgBuilder, Size, Tensor, tensor_type, value_type
from .scalar import emit

__all__ = ["collapse", "drop_axes", "expand", "reshape", "restore_axes", "view"]

_Groups = Sequence[Sequence[int]]


def collapse(b: LinalgBuilder, value: ir.Value, groups: _Groups) -> ir.Value:
    """Merges each group of neighbouring dimensions into one. No groups at all: dimensions of size one become a scalar."""
    type_ = value_type(value)
    shape = [_product(type_.shape[i] for i in group) for group in groups]
    result = ir.RankedTensorType.get(shape, type_.element_type)
    return emit("tensor.collapse_shape", result, value, reassociation=_reassociation(groups))


def expand(b: LinalgBuilder, value: ir.Value, groups: _Groups, sizes: Sequence[Size]) -> ir.Value:
    """Splits dimension ``i`` into the dimensions of group ``i``; ``sizes`` are all dimensions of the result."""
    type_ = tensor_type(sizes, value_type(value).element_type)
    # A dimension is static here exactly when all dimensions it splits into are.
    value = b.cast(value, ir.RankedTensorType.get([_product(type_.shape[i] for i in g) for g in groups], type_.element_type))
    dynamic = [s for s in sizes if not isinstance(s, int)]
    static = ir.DenseI64ArrayAttr.get(list(type_.shape))
    reassociation = _reassociation(groups)
    return emit("tensor.expand_shape", type_, value, *dynamic, reassociation=reassociation, static_output_shape=static)


def _product(sizes: Iterable[int]) -> int:
    total = 1
    for size in sizes:
        if size == DYNAMIC:
            return DYNAMIC
        total *= size
    return total


def _reassociation(groups: _Groups) -> ir.Attribute:
    i64 = ir.IntegerType.get_signless(64)
    return ir.ArrayAttr.get([ir.ArrayAttr.get([ir.IntegerAttr.get(i64, i) for i in group]) for group in groups])


def restore_axes(b: LinalgBuilder, value: ir.Value, axes: Sequence[int]) -> ir.Value:
    """Inserts dimensions of size one; ``axes`` count in the result."""
    sizes = iter(b.value_sizes(value))
    rank = value_type(value).rank + len(axes)
    shape: list[Size] = [1 if i in axes else next(sizes) for i in range(rank)]
    return expand(b, value, _unit_groups(axes, rank), shape) if axes else value


def drop_axes(b: LinalgBuilder, value: ir.Value, axes: Sequence[int]) -> ir.Value:
    """Removes dimensions of size one."""
    type_ = value_type(value)
    shape = [1 if i in axes else d for i, d in enumerate(type_.shape)]
    value = b.cast(value, ir.RankedTensorType.get(shape, type_.element_type))
    return collapse(b, value, _unit_groups(axes, type_.rank)) if axes else value


def _unit_groups(axes: Sequence[int], rank: int) -> list[list[int]]:
    """Each kept dimension with the ones of size one before it; those at the end join the last."""
    groups: list[list[int]] = []
    pending: list[int] = []
    for i in range(rank):
        pending.append(i)
        if i not in axes:
            groups.append(pending)
            pending = []
    if groups:
        groups[-1] += pending
    return groups


def view(b: LinalgBuilder, value: ir.Value, sizes: Sequence[Size]) -> ir.Value:
    """Any other shape of as many elements, by way of one dimension where nothing better is known."""
    before = [s if isinstance(s, int) else None for s in b.value_sizes(value)]
    return _regroup(b, value, before, [s if isinstance(s, int) else None for s in sizes], sizes)


def reshape(b: LinalgBuilder, x: Tensor, shape: Sequence[Dim]) -> ir.Value:
    """The elements of ``x`` under a symbolic shape.

    Raises:
        RelaxError: more than one dimension of the shape has no value.
    """
    return _regroup(b, x.value, x.shape, shape, _target_sizes(b, x, shape))


def _target_sizes(b: LinalgBuilder, x: Tensor, shape: Sequence[Dim]) -> list[Size]:
    unknown = [i for i, d in enumerate(shape) if not isinstance(d, int) and not b.symbols.knows(d)]
    if len(unknown) > 1:
        raise RelaxError("expected a shape with at most one dimension that nothing defines")
    known = [0 if i in unknown else b.evaluate(d) for i, d in enumerate(shape)]
    if not unknown:
        return known
    (axis,) = unknown
    others = b.arith("maxsi", b.product([*known[:axis], *known[axis + 1 :]]), 1)
    known[axis] = b.arith("divsi", b.product(b.sizes(x)), others)
    return known


def _regroup(b: LinalgBuilder, value: ir.Value, before: Sequence[Dim], after: Sequence[Dim], sizes: Sequence[Size]) -> ir.Value:
    if 0 in before or 0 in sizes:  # of no elements; of an open dimension and 0, dimensions that are one are of unknown size
        return b.empty(sizes, value_type(value).element_type)
    pairs = _pairs(before, after)
    if pairs is None:
        pairs = [(list(range(len(before))), list(range(len(after))))]
    sources, targets = [s for s, _ in pairs], [t for _, t in pairs]
    if not after or not before:
        # Only elements of size one are left out; a scalar has no dimension to group them with.
        pairs, sources, targets = [], [], []
    if any(len(s) != 1 for s in sources) or (not sources and before):
        shape = [1] * len(before) if not sources else list(value_type(value).shape)
        value = collapse(b, b.cast(value, ir.RankedTensorType.get(shape, value_type(value).element_type)), sources)
    if any(len(t) != 1 for t in targets) or (not targets and after):
        value = expand(b, value, targets, sizes)
    return b.cast(value, tensor_type(sizes, value_type(value).element_type))


def _pairs(before: Sequence[Dim], after: Sequence[Dim]) -> list[tuple[list[int], list[int]]] | None:
    """The finest groups of neighbouring dimensions with equal numbers of elements; None when they cannot be told."""
    if not before or not after or any(d is None or d == 0 for d in (*before, *after)):
        return None
    pairs: list[tuple[list[int], list[int]]] = []
    i = j = 0
    while i < len(before) and j < len(after):
        source, target = [i], [j]
        left, right = before[i], after[j]
        i, j = i + 1, j + 1
        while left != right:
            if _divides(left, right) and i < len(before):
                left, source, i = _times(left, before[i]), [*source, i], i + 1
            elif _divides(right, left) and j < len(after):
                right, target, j = _times(right, after[j]), [*target, j], j + 1
            else:
                return None
        pairs.append((source, target))
    if any(d != 1 for d in (*before[i:], *after[j:])):
        return None
    pairs[-1][0].extend(range(i, len(before)))
    pairs[-1][1].extend(range(j, len(after)))
    return pairs


def _divides(part: Dim, whole: Dim) -> bool:
    if part is None or whole is None:
        return False
    return (whole // part) * part == whole


def _times(left: Dim, right: Dim) -> Dim:
    return None if left is None or right is None else left * right

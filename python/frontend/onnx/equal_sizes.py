"""Sizes that an operator wants to be equal and of which nothing says so: one of them for both, which each call checks."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence

from ...dialect.bindings import ir
from ...dialect.inference import broadcast_shapes
from ...dialect.symbolic import Dim, Expr
from ..emit import agreed, common_size, expand, info_of, match

__all__ = ["agreed_factors", "agreed_operands", "expanded_to", "with_one", "with_size", "with_sizes"]

#: Before the message of a check that failed, as the place of what is checked.
_ASSUMED = "{name}, which takes sizes to be equal unless dims= of the import says what they are"


def agreed_operands(*values: ir.Value) -> list[ir.Value]:
    """Tensors that are broadcast, with one size where two are not known to be equal.

    A size that no call has told yet could be 1, too, and be broadcast, of which no type knows: such calls are refused, with the
    way to say so at import.
    """
    columns = _columns(values)
    if any(len({d for d in column if isinstance(d, int) and d != 1}) > 1 for column in columns):
        return list(values)  # the operator says what is wrong with them
    if not any(_is_assumed(column) for column in columns):
        return agreed(*values)
    with _place_of_check():
        return agreed(*values)


def _columns(values: Sequence[ir.Value]) -> list[tuple[Dim, ...]]:
    """The sizes that meet, from the last dimension on."""
    return list(itertools.zip_longest(*(info_of(v).shape[::-1] for v in values), fillvalue=1))


def _is_assumed(column: Sequence[Dim]) -> bool:
    """Whether sizes differ that are not computed from the same ones, as that of an image and twice that of its half."""
    sizes = {*column} - {1, None}
    names = {s.names if isinstance(s, Expr) else frozenset[str]() for s in sizes}
    return len(sizes) > 1 and len(names) > 1


def _place_of_check(text: str = _ASSUMED) -> ir.Location:
    here = ir.Location.current
    assert here is not None
    return ir.Location.name(text.format(name=here.name_str), here.child_loc) if isinstance(here, ir.NameLoc) else here


def with_size(x: ir.Value, axis: int, size: Dim) -> ir.Value:
    """The tensor, where a dimension whose size a call tells is taken to be of another one, which is checked."""
    return with_sizes(x, {axis: size})


def with_sizes(x: ir.Value, sizes: Mapping[int, Dim]) -> ir.Value:
    """The same of sizes by axis."""
    with _place_of_check():
        return _matched(x, sizes)


def with_one(x: ir.Value, *axes: int) -> ir.Value:
    """The tensor, where dimensions whose sizes a call tells are taken to be of size 1, which is checked."""
    with _place_of_check(f"{{name}}, which takes one element of {', '.join(f'dimension {a}' for a in axes)}"):
        return _matched(x, dict.fromkeys(axes, 1))


def _matched(x: ir.Value, sizes: Mapping[int, Dim]) -> ir.Value:
    info = info_of(x)
    shape = tuple(s if isinstance(d, Expr) and (s := sizes.get(i)) is not None else d for i, d in enumerate(info.shape))
    return x if shape == tuple(info.shape) else match(x, info.with_(shape=shape))


def agreed_factors(a: ir.Value, b: ir.Value) -> list[ir.Value]:
    """Factors of a product of matrices, with one size for what is summed up, and for each dimension before the matrices."""
    ranks = info_of(a).rank, info_of(b).rank
    if not all(ranks):
        return [a, b]
    summed = ranks[0] - 1, max(ranks[1] - 2, 0)
    batches = [(ranks[0] - i, ranks[1] - i) for i in range(3, min(ranks) + 1)]
    for axes in (summed, *batches):
        sizes = [info_of(v).shape[axis] for v, axis in zip((a, b), axes, strict=True)]
        if axes == summed or 1 not in sizes:
            a, b = (with_size(v, axis, common_size(sizes)) for v, axis in zip((a, b), axes, strict=True))
    return [a, b]


def expanded_to(x: ir.Value, shape: Sequence[Dim]) -> ir.Value:
    """The tensor broadcast with a shape."""
    for axis in range(-min(info_of(x).rank, len(shape)), 0):
        if 1 not in (info_of(x).shape[axis], shape[axis]):
            x = with_size(x, axis + info_of(x).rank, shape[axis])
    return expand(x, broadcast_shapes(info_of(x).shape, tuple(shape)))

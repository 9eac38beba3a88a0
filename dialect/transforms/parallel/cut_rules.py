"""How ops work on parts of tensors: from the cuts of operands to those of results, a function per kind of op.

A rule says what each rank gets that runs the op on its own parts, or that parts are not enough (None): then they are put
together before. An op that has no rule works on whole tensors.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from ...bindings import ir
from ...cut import Cut
from ...errors import RelaxError
from ...inference import normalize_axes, normalize_axis
from ...op import attrs_of, is_elementwise
from ...packed_layout import NIBBLES
from ...struct_info import TensorInfo

__all__ = ["Applied", "Cuts", "Refine", "apply_rule", "is_one", "nibbles_per_word", "parameter_cut", "reshaped"]

Cuts = Sequence[Cut | None]


@dataclass(frozen=True)
class Applied:
    """What an op on parts gives.

    Attributes:
        cuts: of the results.
        partial: whether results are terms of a sum over all ranks.
        attributes: those of the op that change.
    """

    cuts: Cuts
    partial: bool = False
    attributes: Mapping[str, ir.Attribute] = field(default_factory=dict[str, ir.Attribute])


@dataclass(frozen=True)
class Refine:
    """The op would work on parts if the cut of its operand had borders between pieces at these places, too."""

    borders: tuple[int, ...]


Outcome = Applied | Refine | None
Rule = Callable[[ir.OpView, Cuts, int], Outcome]


def apply_rule(op: ir.Operation, cuts: Cuts, ranks: int) -> Outcome:
    """What an op gives on operands that are cut so, at least one of them.

    Raises:
        RelaxError: a dimension would have to be cut that so many ranks cannot share.
    """
    if is_elementwise(op):
        return _elementwise(op.opview, cuts)
    rule = _RULES.get(op.name.removeprefix("relax."))
    return None if rule is None else rule(op.opview, cuts, ranks)


def _elementwise(op: ir.OpView, cuts: Cuts) -> Outcome:
    rank = TensorInfo.of(op.results[0]).rank
    aligned = {Cut(c.axis + rank - TensorInfo.of(v).rank, c.pieces) for v, c in zip(op.operands, cuts, strict=True) if c}
    if len(aligned) != 1:
        return None
    (cut,) = aligned
    fits = all(c is not None or is_one(v, cut.axis - rank) for v, c in zip(op.operands, cuts, strict=True))
    return Applied([cut]) if fits else None


def is_one(value: ir.Value, axis: int) -> bool:
    """Whether a dimension, counted from the end, has size 1 or is not there."""
    shape = TensorInfo.of(value).shape
    return -axis > len(shape) or shape[axis] == 1


def _first(cuts: Cuts) -> Cut | None:
    """The cut of the first operand where no other one is cut."""
    return cuts[0] if all(c is None for c in cuts[1:]) else None


def _permute_dims(op: ir.OpView, cuts: Cuts, ranks: int) -> Outcome:
    cut, rank = cuts[0], TensorInfo.of(op.operands[0]).rank
    assert cut is not None
    axes = attrs_of(op)["axes"]
    order = list(range(rank))[::-1] if axes is None else [normalize_axis(a, rank) for a in axes]
    return Applied([Cut(order.index(cut.axis), cut.pieces)])


def _expand_dims(op: ir.OpView, cuts: Cuts, ranks: int) -> Outcome:
    cut, rank = cuts[0], TensorInfo.of(op.results[0]).rank
    assert cut is not None
    new = normalize_axes(attrs_of(op)["axis"], rank)
    return Applied([Cut([i for i in range(rank) if i not in new][cut.axis], cut.pieces)])


def _squeeze(op: ir.OpView, cuts: Cuts, ranks: int) -> Outcome:
    cut, info = cuts[0], TensorInfo.of(op.operands[0])
    assert cut is not None
    given = attrs_of(op)["axis"]
    gone = [i for i, d in enumerate(info.shape) if d == 1] if given is None else normalize_axes(given, info.rank)
    return None if cut.axis in gone else Applied([Cut(cut.axis - sum(a < cut.axis for a in gone), cut.pieces)])


def _broadcast_to(op: ir.OpView, cuts: Cuts, ranks: int) -> Outcome:
    cut, before, after = cuts[0], TensorInfo.of(op.operands[0]), TensorInfo.of(op.results[0])
    assert cut is not None
    return Applied([Cut(cut.axis + after.rank - before.rank, cut.pieces)])


def _reshape(op: ir.OpView, cuts: Cuts, ranks: int) -> Outcome:
    """The cut dimension may be taken apart, or merged with what follows: the first part is what is cut."""
    cut = cuts[0]
    assert cut is not None
    found = reshaped(TensorInfo.of(op.operands[0]).shape, TensorInfo.of(op.results[0]).shape, cut, ranks)
    return None if found is None else Applied([found])


def reshaped(before: Sequence[object], after: Sequence[object], cut: Cut, ranks: int) -> Cut | None:
    """The cut of a tensor under another shape; None where what is cut is not together there.

    Raises:
        RelaxError: it is cut along a dimension that so many ranks cannot share.
    """
    start = _common(before, after)
    if cut.axis < start:
        return cut
    end = _common(before[start:][::-1], after[start:][::-1])
    if cut.axis >= len(before) - end:
        return Cut(cut.axis + len(after) - len(before), cut.pieces)
    inner, outer = before[start : len(before) - end], after[start : len(after) - end]
    place = cut.axis - start
    target = next((i for i, d in enumerate(outer) if d != 1), None)
    if target is None or any(d != 1 for d in inner[:place]):
        return None
    behind, rest = _product(inner[place + 1 :]), _product(outer[target + 1 :])
    if not behind or not rest:
        return None
    if any(p * behind % (rest * ranks) for p in cut.pieces):
        raise RelaxError(f"expected a dimension that {ranks} ranks can share, as heads of attention, got {outer[target]}")
    return Cut(start + target, tuple(p * behind // rest for p in cut.pieces))


def _common(left: Sequence[object], right: Sequence[object]) -> int:
    """How many first dimensions are equal and known."""
    pairs = zip(left, right, strict=False)
    return next((i for i, (a, b) in enumerate(pairs) if a is None or a != b), min(len(left), len(right)))


def _product(sizes: Sequence[object]) -> int | None:
    return math.prod(d for d in sizes if isinstance(d, int)) if all(isinstance(d, int) for d in sizes) else None


def _concat(op: ir.OpView, cuts: Cuts, ranks: int) -> Outcome:
    left, right = cuts
    if left is None or right is None or left.axis != right.axis:
        return None
    axis = normalize_axis(attrs_of(op)["axis"], TensorInfo.of(op.results[0]).rank)
    if axis == left.axis:
        return Applied([Cut(axis, left.pieces + right.pieces)])
    return Applied([left]) if left == right else None


def _split(op: ir.OpView, cuts: Cuts, ranks: int) -> Outcome:
    cut, attrs, info = cuts[0], attrs_of(op), TensorInfo.of(op.operands[0])
    assert cut is not None
    count, size = attrs["sections"], info.shape[cut.axis]
    if normalize_axis(attrs["axis"], info.rank) != cut.axis:
        return Applied([cut] * count)
    assert isinstance(size, int)
    parts = [_pieces_between(cut, i * size // count, (i + 1) * size // count) for i in range(count)]
    if any(p is None or sum(p) % ranks for p in parts):
        return Refine(tuple(i * size // count for i in range(1, count)))
    return Applied([Cut(cut.axis, p) for p in parts if p])


def _strided_slice(op: ir.OpView, cuts: Cuts, ranks: int) -> Outcome:
    cut, attrs, info = cuts[0], attrs_of(op), TensorInfo.of(op.operands[0])
    assert cut is not None
    axes = [normalize_axis(a, info.rank) for a in attrs["axes"]]
    if cut.axis not in axes:
        return Applied([cut])
    place, size = axes.index(cut.axis), sum(cut.pieces)
    begin, end, stride = attrs["begin"][place], attrs["end"][place], (attrs["strides"] or [1] * len(axes))[place]
    if stride != 1 or not isinstance(begin, int) or not isinstance(end, int):
        return None
    begin, end, _ = slice(begin, end).indices(size)
    pieces = _pieces_between(cut, begin, end)
    if pieces is None:
        return Refine((begin, end)) if begin < end else None
    new = {key: list(attrs[key]) for key in ("begin", "end")}
    new["begin"][place], new["end"][place] = begin // ranks, end // ranks
    spec = type(op).attrs
    return Applied([Cut(cut.axis, pieces)], attributes={key: spec[key].write(key, value) for key, value in new.items()})


def _pieces_between(cut: Cut, begin: int, end: int) -> tuple[int, ...] | None:
    """The pieces from one place to another, None where these are no borders."""
    borders = [0]
    for piece in cut.pieces:
        borders.append(borders[-1] + piece)
    if begin not in borders or end not in borders or begin >= end:
        return None
    return cut.pieces[borders.index(begin) : borders.index(end)]


def _take(op: ir.OpView, cuts: Cuts, ranks: int) -> Outcome:
    """Of parts of each row; parts of the rows themselves are another matter (:mod:`.vocabulary`)."""
    cut, x, indices = _first(cuts), *(TensorInfo.of(v) for v in op.operands)
    axis = normalize_axis(attrs_of(op)["axis"], x.rank)
    if cut is None or cut.axis == axis:
        return None
    return Applied([Cut(cut.axis if cut.axis < axis else cut.axis + indices.rank - 1, cut.pieces)])


def _index_copy(op: ir.OpView, cuts: Cuts, ranks: int) -> Outcome:
    x, indices, values = cuts
    axis = normalize_axis(attrs_of(op)["axis"], TensorInfo.of(op.results[0]).rank)
    return Applied([x]) if x is not None and x == values and indices is None and x.axis != axis else None


def _along_axis(op: ir.OpView, cuts: Cuts, ranks: int) -> Outcome:
    """What computes along some axes, each line on its own."""
    cut, attrs, rank = _first(cuts), attrs_of(op), TensorInfo.of(op.operands[0]).rank
    axes = attrs["axes"] if "axes" in attrs else [attrs["axis"]]
    return None if cut is None or cut.axis in normalize_axes(axes, rank) else Applied([cut])


def _reduction(op: ir.OpView, cuts: Cuts, ranks: int) -> Outcome:
    cut, attrs, rank = cuts[0], attrs_of(op), TensorInfo.of(op.operands[0]).rank
    assert cut is not None
    axes = list(range(rank)) if attrs["axis"] is None else normalize_axes(attrs["axis"], rank)
    if cut.axis in axes:
        return None
    return Applied([cut if attrs["keepdims"] else Cut(cut.axis - sum(a < cut.axis for a in axes), cut.pieces)])


def _repeat(op: ir.OpView, cuts: Cuts, ranks: int) -> Outcome:
    cut, attrs = cuts[0], attrs_of(op)
    assert cut is not None
    is_cut = normalize_axis(attrs["axis"], TensorInfo.of(op.operands[0]).rank) == cut.axis
    return Applied([Cut(cut.axis, tuple(p * attrs["repeats"] for p in cut.pieces)) if is_cut else cut])


def _dequantize(op: ir.OpView, cuts: Cuts, ranks: int) -> Outcome:
    """Blocks that share a scale stay together."""
    cut = cuts[0]
    if cut is None:
        return None
    wanted = [parameter_cut(op, v, cut, ranks) for v in list(op.operands)[1:]]
    return Applied([cut]) if [c or False for c in cuts[1:]] == wanted else None


def parameter_cut(op: ir.OpView, parameter: ir.Value, cut: Cut, ranks: int) -> Cut | bool | None:
    """How a scale or zero point is cut where what it is of is cut so: not at all (False), or None where blocks would be."""
    x, own = TensorInfo.of(op.operands[0]), TensorInfo.of(parameter)
    if own.rank < x.rank:
        is_along = own.rank == 1 and normalize_axis(attrs_of(op)["axis"], x.rank) == cut.axis
        return Cut(0, cut.pieces) if is_along else False
    size, count = x.shape[cut.axis], own.shape[cut.axis]
    if count == 1:
        return False
    if not isinstance(size, int) or not isinstance(count, int):
        return None
    block = size // count
    return None if any(p % (block * ranks) for p in cut.pieces) else Cut(cut.axis, tuple(p // block for p in cut.pieces))


def _look_up(op: ir.OpView, cuts: Cuts, ranks: int) -> Outcome:
    cut = _first(cuts)
    return None if cut is None else Applied([cut])


def _unpack_nibbles(op: ir.OpView, cuts: Cuts, ranks: int) -> Outcome:
    """Words hold neighbours along an axis, all of which one rank has."""
    cut, attrs, info = cuts[0], attrs_of(op), TensorInfo.of(op.operands[0])
    assert cut is not None
    if normalize_axis(attrs["axis"], info.rank) != cut.axis:
        return Applied([cut])
    per, size = nibbles_per_word(info), attrs["size"]
    if attrs["layout"] is not None or size != sum(cut.pieces) * per:
        return None
    part = type(op).attrs["size"].write("size", size // ranks)
    return Applied([Cut(cut.axis, tuple(p * per for p in cut.pieces))], attributes={"size": part})


def nibbles_per_word(words: TensorInfo) -> int:
    """How many four-bit integers an element has."""
    return ir.IntegerType(words.dtype).width // NIBBLES.bits


def _attention(op: ir.OpView, cuts: Cuts, ranks: int) -> Outcome:
    """Heads: those of keys and values are cut as those of queries are, but for a single one, which all ranks need."""
    query, key, value = cuts[:3]
    heads = TensorInfo.of(op.operands[0]).rank - 3
    one = is_one(op.operands[1], -3) and key is None and value is None
    counts = [TensorInfo.of(v).shape[heads] for v in op.operands[:2]]
    if not one and any(isinstance(n, int) and n % ranks for n in counts):
        raise RelaxError(f"expected heads of queries and keys that {ranks} ranks can share, got {counts[0]} and {counts[1]}")
    for cut in (query, *(() if one else (key, value))):
        if cut is None or cut.axis != heads or len(cut.pieces) > 1:
            return None
    mask = cuts[3] if len(cuts) > 3 else None
    if len(cuts) > 3 and mask is None and not is_one(op.operands[3], -3):
        return None
    if mask is not None and mask.axis - TensorInfo.of(op.operands[3]).rank != -3:
        return None
    return Applied([Cut(TensorInfo.of(op.results[0]).rank - 3, query.pieces)]) if query is not None else None


def _matmul(op: ir.OpView, cuts: Cuts, ranks: int) -> Outcome:
    left, right = cuts
    (a, b), rank = (TensorInfo.of(v).rank for v in op.operands), TensorInfo.of(op.results[0]).rank
    if a < 2 or b < 2:
        return None
    if left is not None and right is not None and left.axis == a - 1 and right.axis == b - 2:
        return Applied([None], partial=True) if left.pieces == right.pieces else None
    if left is None and right is not None and right.axis == b - 1:
        return Applied([Cut(rank - 1, right.pieces)])
    if right is None and left is not None and left.axis == a - 2:
        return Applied([Cut(rank - 2, left.pieces)])
    return _batched(op, cuts)


def _batched(op: ir.OpView, cuts: Cuts) -> Outcome:
    """A product whose batch is cut, on both sides or on the only one that has it."""
    rank = TensorInfo.of(op.results[0]).rank
    ranks_of_operands = [TensorInfo.of(v).rank for v in op.operands]
    places = {Cut(c.axis + rank - r, c.pieces) for c, r in zip(cuts, ranks_of_operands, strict=True) if c}
    if len(places) != 1 or (cut := next(iter(places))).axis >= rank - 2:
        return None
    fits = all(c is not None or is_one(v, cut.axis - rank) for v, c in zip(op.operands, cuts, strict=True))
    return Applied([cut]) if fits else None


_RULES: dict[str, Rule] = {
    "attention": _attention, "broadcast_to": _broadcast_to, "concat": _concat, "cummax": _along_axis,
    "cummin": _along_axis, "cumprod": _along_axis, "cumsum": _along_axis,
    "dequantize": _dequantize, "expand_dims": _expand_dims, "look_up": _look_up,
    "flip": _along_axis, "index_copy": _index_copy, "layer_norm": _along_axis, "log_softmax": _along_axis, "matmul": _matmul,
    "max": _reduction, "mean": _reduction, "min": _reduction, "permute_dims": _permute_dims, "prod": _reduction,
    "repeat": _repeat, "reshape": _reshape, "rms_norm": _along_axis, "softmax": _along_axis, "split": _split,
    "squeeze": _squeeze, "strided_slice": _strided_slice, "sum": _reduction, "take": _take,
    "unpack_nibbles": _unpack_nibbles, "variance": _reduction,
}  # fmt: skip

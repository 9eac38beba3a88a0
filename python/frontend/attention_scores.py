"""Scores as graphs write them out before a softmax: a product of queries and keys, scaled, masked and reshaped on the way.

::

    s = matmul(q * a, k' * b) * c
    s = where(m, s, -inf)                  ->      queries q, keys k', scale a * b * c,
    s = reshape(s, [x, y, ...]) + n                mask where(m, n, -inf), leading dimensions [x, y]

Leading dimensions that are joined at one place and apart at another (a batch of windows of one image, heads of a batch) are
apart in what is found: a mask that is added at any of those places then fits.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from ..dialect import ops
from ..dialect.bindings import ir
from ..dialect.inference import boolean, is_float
from ..dialect.symbolic import Dim
from .emit import cast, emit, full, info_of, multiply_all, reshape
from .written_out import made_by, number_of

__all__ = ["Scores", "Shape", "hides_no_row", "keeps_rows", "leading_of", "scores_of"]

#: What is added to a score so that nothing is left of it, and of what is added beside it: f32 has seven digits. Rows that
#: see nothing then weigh all keys alike, as where each of their scores was overwritten by one number.
_OVERWRITTEN = -1e30
#: Numbers from here down are written over scores to hide them: larger ones may be scores. f16 has none lower than the second.
_HIDING, _HIDING_F16 = -1e9, -65504.0

#: Leading dimensions: all but a matrix's two.
Shape = tuple[Dim, ...]


@dataclass
class Scores:
    """``query * scale`` times ``turned``, plus a mask.

    Attributes:
        product: what is first made of these, without the scale.
        query: queries, ``[..., s, d]``.
        turned: keys that are transposed, ``[..., d, t]``.
        leading: the dimensions before the last two, apart where some place has them apart.
        mask: truth values, or numbers that are added; it broadcasts to ``[*leading, s, t]``.
        factors: of the queries' rows, each broadcasts to ``[*leading, s, 1]``.
    """

    product: ir.Value
    query: ir.Value
    turned: ir.Value
    scale: float
    leading: Shape
    mask: ir.Value | None
    factors: list[ir.Value]


@dataclass(frozen=True)
class _Step:
    """An operation on the way from the product to the softmax, and which of its operands are the scores."""

    op: ir.Operation
    place: int

    @property
    def leading(self) -> Shape:
        return leading_of(self.op.results[0])


def scores_of(x: ir.Value, others: Sequence[Shape]) -> Scores | None:
    """What ``x`` holds, if it holds scores; ``others`` are leading dimensions under which they are seen later."""
    way = _way_to_product(x)
    if way is None:
        return None
    product, steps = way
    (query, of_query), (turned, of_key) = (_without_factor(v) for v in product.operands)
    shapes = [leading_of(product.results[0]), *(s.leading for s in steps), *others]
    leading = max(shapes, key=len)
    if any(None in shape or _parts(shape, leading) is None for shape in shapes):
        return None
    found = Scores(product.results[0], query, turned, of_query * of_key, leading, None, [])
    wide = ir.F64Type.get() if isinstance(info_of(x).dtype, ir.F64Type) else ir.F32Type.get()
    overwritten = False
    for step in steps:
        if isinstance(step.op.opview, ops.Multiply | ops.Divide):
            if found.mask is not None or not _take_factor(found, step):
                return None
        elif isinstance(step.op.opview, ops.Add | ops.Where):
            change = None if overwritten else _Change.of(step)
            if change is None:
                return None
            overwritten = change.hidden not in (None, -math.inf)
            found.mask = change.applied(found.mask, leading, step.leading, wide)
    return found if math.isfinite(found.scale) else None


def _take_factor(scores: Scores, step: _Step) -> bool:
    """Takes what a step multiplies with, if it is one number for all keys; narrow floats are not rounded once more for it."""
    rest, number = _without_factor(step.op.results[0])
    if rest == step.op.operands[step.place]:
        scores.scale *= number
        return True
    factor = step.op.operands[1 - step.place]
    shape, dtype = info_of(factor).shape, info_of(factor).dtype
    fits = dtype == info_of(scores.query).dtype and dtype.width >= 32 and shape and shape[-1] == 1
    if isinstance(step.op.opview, ops.Divide) or not fits:
        return False
    scores.factors.append(_apart(factor, step.leading, scores.leading))
    return True


def leading_of(x: ir.Value) -> Shape:
    """The dimensions before the last two."""
    return tuple(info_of(x).shape[:-2])


def _way_to_product(x: ir.Value) -> tuple[ir.Operation, list[_Step]] | None:
    """The nearest product of queries and keys that ``x`` is made of, and the steps from it to ``x``."""
    ways: list[tuple[ir.Value, list[_Step]]] = [(x, [])]
    seen = {x}
    for value, steps in ways:
        product = made_by(value, ops.MatMul)
        if product is not None:
            return product, steps[::-1]
        for step in _steps_before(value):
            source = step.op.operands[step.place]
            if source not in seen:
                seen.add(source)
                ways.append((source, [*steps, step]))
    return None


def _steps_before(x: ir.Value) -> list[_Step]:
    """The operation that makes ``x``, by each of its operands that may be scores."""
    owner = x.owner
    if isinstance(owner, ops.Reshape | ops.AsType):
        return [_Step(owner.operation, 0)] if keeps_rows(owner.operation) else []
    if isinstance(owner, ops.Where):
        places = [1, 2]
    else:
        places = [0] if isinstance(owner, ops.Divide) else [0, 1] if isinstance(owner, ops.Add | ops.Multiply) else []
    shape = info_of(x).shape
    return [_Step(owner.operation, i) for i in places if info_of(owner.operation.operands[i]).shape == shape]


def keeps_rows(op: ir.Operation) -> bool:
    """Whether a reshape or cast leaves the last two dimensions as they are, and floats floats."""
    before, after = info_of(op.operands[0]), info_of(op.results[0])
    return min(before.rank, after.rank) > 2 and before.shape[-2:] == after.shape[-2:] and is_float(before.dtype)


def _without_factor(x: ir.Value) -> tuple[ir.Value, float]:
    """``y`` and ``c`` of ``y * c``, ``c * y`` or ``y / c``."""
    product, quotient = made_by(x, ops.Multiply), made_by(x, ops.Divide)
    found = product or quotient
    if found is None:
        return x, 1.0
    a, b = found.operands
    if product is not None and number_of(a) is not None:
        a, b = b, a
    number = number_of(b)
    if number is None or info_of(a).shape != info_of(x).shape or (quotient is not None and not number):
        return x, 1.0
    return a, number if product is not None else 1 / number


@dataclass(frozen=True)
class _Change:
    """What a step does to scores: it adds numbers, or writes ``hidden`` where truth values do not hold.

    Attributes:
        value: numbers or truth values.
        hidden: None where numbers are added.
        negated: whether scores stay where the truth values do not hold.
    """

    value: ir.Value
    hidden: float | None = -math.inf
    negated: bool = False

    @staticmethod
    def of(step: _Step) -> _Change | None:
        operands = list(step.op.operands)
        if isinstance(step.op.opview, ops.Add):
            added = operands[1 - step.place]
            kept = _kept(added)
            change = _Change(added, None) if kept is None else _Change(kept)
        else:
            hidden = number_of(operands[3 - step.place])
            limit = _HIDING_F16 if isinstance(info_of(step.op.results[0]).dtype, ir.F16Type) else _HIDING
            if hidden is None or hidden > limit:
                return None
            change = _Change(operands[0], hidden, step.place == 2)
        value = _before_broadcast(change.value)
        return replace(change, value=value) if info_of(value).rank else None

    def applied(self, mask: ir.Value | None, leading: Shape, own: Shape, wide: ir.Type) -> ir.Value:
        """The mask of this change after another; that one, and the result, broadcast to scores of ``leading``.

        Numbers that are not given are in the dtype ``wide``.
        """
        value = _apart(self.value, own, leading)
        value = emit(ops.LogicalNot, value) if self.negated else value
        if self.hidden is None:
            return _sum(mask, value)
        if self.hidden == -math.inf and (mask is None or info_of(mask).dtype == boolean()):
            return value if mask is None else emit(ops.LogicalAnd, mask, value)
        numbers = _as_numbers(mask, wide)
        hidden = -math.inf if self.hidden == -math.inf else _OVERWRITTEN
        return emit(ops.Where, value, numbers, full(hidden, info_of(numbers).dtype))


def _sum(mask: ir.Value | None, added: ir.Value) -> ir.Value:
    if mask is None:
        return added
    if info_of(mask).dtype == boolean():
        return emit(ops.Where, mask, added, full(-math.inf, info_of(added).dtype))
    wide = max((info_of(mask).dtype, info_of(added).dtype), key=lambda t: t.width)
    return emit(ops.Add, cast(mask, wide), cast(added, wide))


def _as_numbers(mask: ir.Value | None, wide: ir.Type) -> ir.Value:
    if mask is None:
        return full(0, wide)
    if info_of(mask).dtype != boolean():
        return cast(mask, wide)
    return emit(ops.Where, mask, full(0, wide), full(-math.inf, wide))


def _kept(mask: ir.Value) -> ir.Value | None:
    """``m`` of ``where(m, 0, -inf)``."""
    where = made_by(mask, ops.Where)
    if where is None:
        return None
    condition, kept, hidden = where.operands
    says_so = number_of(kept) == 0 and number_of(hidden) == -math.inf
    return condition if says_so and info_of(condition).shape == info_of(mask).shape else None


def _before_broadcast(mask: ir.Value) -> ir.Value:
    while True:
        made = made_by(mask, ops.BroadcastTo)
        if made is None or not info_of(made.operands[0]).rank:
            return mask
        mask = made.operands[0]


def hides_no_row(mask: ir.Value) -> bool:
    """Whether it is one of two finite numbers: where all keys have the smaller one, each is seen as much as another."""
    where = made_by(mask, ops.Where)
    numbers = [None] if where is None else [number_of(n) for n in where.operands][1:]
    return all(n is not None and math.isfinite(n) for n in numbers)


def _apart(mask: ir.Value, own: Shape, leading: Shape) -> ir.Value:
    """A mask of scores whose leading dimensions are ``own``, for those that have them apart."""
    if own == leading:
        return mask
    shape = info_of(mask).shape
    sizes = (*(1 for _ in range(len(own) + 2 - len(shape))), *shape)
    parts = _parts(own, leading)
    assert parts is not None
    wanted = [
        d for size, whole, part in zip(sizes, own, parts, strict=False) for d in (part if size == whole else [1] * len(part))
    ]
    return reshape(mask, [*wanted, *sizes[-2:]])


def _parts(joined: Shape, apart: Shape) -> list[Shape] | None:
    """For each of the joined sizes, which sizes that are apart it is the product of; None where they are not its parts."""
    if joined == apart:
        return [(size,) for size in apart]
    found: list[Shape] = []
    rest = list(apart)
    for size in joined:
        taken: list[Dim] = []
        while multiply_all(taken) != size:
            if not rest:
                return None
            taken.append(rest.pop(0))
        found.append(tuple(taken))
    if any(size != 1 for size in rest) or not found:
        return None
    return [*found[:-1], (*found[-1], *rest)]

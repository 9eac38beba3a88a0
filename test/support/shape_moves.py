"""Random ops that only move elements: slices of slices, concatenations of many parts and of none, reshapes, gathers."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

from relaxir.dialect.symbolic import Dim, Expr
from support.shape_ops import SIZES, Step, exact, one
from support.shape_values import ROUNDS, Emitter, Made, Sizes, is_float, size_of

__all__ = ["MOVES"]


def _slice(em: Emitter, x: Made, axis: int) -> list[Made]:
    """A part along an axis: of a constant dimension any, also empty, beyond it or from its end; else one that lies inside."""
    rng, dim, sizes = em.rng, x.info.shape[axis], [s[axis] for s in x.sizes]
    stride = rng.choice((1, 1, 1, 2, 3))
    if isinstance(dim, int):
        begin, end = (rng.randrange(-dim - 2, dim + 3) for _ in range(2))
        if rng.random() < 0.6:
            begin, end = sorted((begin % (dim + 1), end % (dim + 1)))
        return em.op("StridedSlice", [x], x.bound, x.error, axes=[axis], begin=[begin], end=[end], strides=[stride])
    least = min(sizes)
    low = rng.randrange(least + 1)
    ends: list[Dim] = [rng.randrange(low, least + 1), 2**62]
    if isinstance(dim, Expr):
        ends += [dim, dim]
    begins: list[Dim] = [low, low]
    if isinstance(dim, Expr) and least:
        begins.append(dim - rng.randrange(1, least + 1))
        ends.append(dim - rng.randrange(least - low + 1) if least > low else dim)
    begin, end = rng.choice(begins), rng.choice(ends)
    if dim is None and (begin != 0 or end != 2**62) and not isinstance(end, int):
        return []

    def at(bound: Dim, round_: int) -> Dim:
        return size_of(bound, round_, em.symbols)

    if any(_inside(at(begin, r), n) > _inside(at(end, r), n) for r, n in enumerate(sizes)):
        return []
    return em.op(
        "StridedSlice", [x], x.bound, x.error, axes=[axis], begin=[begin], end=[end], strides=[stride],
        actual=lambda r: {"begin": [at(begin, r)], "end": [at(end, r)]},
    )  # fmt: skip


def _inside(bound: Dim, size: int) -> int:
    assert isinstance(bound, int)
    return min(bound, size) if bound >= 0 else max(0, size + bound)


def _sliced(em: Emitter, values: Sequence[Made]) -> list[Made]:
    """One to four slices of one another; every one of them may be used."""
    x = one(em, values, rank=1)
    found: list[Made] = []
    for _ in range(em.rng.choice((1, 2, 2, 3, 4))):
        if x is None:
            break
        axis = x.rank - 1 if em.rng.random() < 0.6 else em.rng.randrange(x.rank)
        made = _slice(em, x, axis)
        found += made
        x = made[0] if made else x
    return found[-2:]


def _concat(em: Emitter, values: Sequence[Made]) -> list[Made]:
    """Two to six parts: others that fit, slices of one, empty ones."""
    x = one(em, values, rank=1)
    if x is None:
        return []
    axis, total = em.rng.randrange(x.rank), x
    for _ in range(em.rng.choice((1, 1, 2, 3, 5))):
        fitting = [v for v in values if v.dtype == x.dtype and v.rank == x.rank and _fits(v, x, axis)]
        part = em.rng.choice([*fitting, x])
        if em.rng.random() < 0.4:
            part = next(iter(_slice(em, part, axis)), part)
        elif em.rng.random() < 0.3:
            part = _empty(em, x, axis) or part
        pair = (part, total) if em.rng.random() < 0.3 else (total, part)
        error = max(part.error, total.error)
        total = next(iter(em.op("Concat", pair, max(part.bound, total.bound), error, axis=axis)), total)
    return [total]


def _fits(v: Made, x: Made, axis: int) -> bool:
    pairs = zip(v.sizes, x.sizes, strict=True)
    return all(a[:axis] + a[axis + 1 :] == b[:axis] + b[axis + 1 :] for a, b in pairs)


def _empty(em: Emitter, x: Made, axis: int) -> Made | None:
    if None in x.info.shape:
        return None
    shape = [0 if i == axis else d for i, d in enumerate(x.info.shape)]
    return em.full(shape, tuple(tuple(0 if i == axis else n for i, n in enumerate(s)) for s in x.sizes), x.dtype, 1)


def _rotary(em: Emitter, values: Sequence[Made]) -> list[Made]:
    """A part of each row with its halves exchanged, one of them negated, and what is left of the row, perhaps nothing."""
    x = one(em, [v for v in values if is_float(v)], rank=1)
    size = x.info.shape[-1] if x is not None else None
    if x is None or not isinstance(size, int) or size < 2:
        return []
    turned = em.rng.choice((size // 2 * 2, 2 * em.rng.randrange(1, size // 2 + 1)))
    part, rest = (_range(em, x, begin, end) for begin, end in ((0, turned), (turned, size)))
    if em.rng.random() < 0.5:
        first, second = (_range(em, part, begin, end) for begin, end in ((0, turned // 2), (turned // 2, turned)))
        negative = em.single("Negative", [second], x.bound, x.error)
        swapped = em.single("Concat", [negative, first], x.bound, x.error, axis=-1)
    else:
        odd, even = (_range(em, part, start, turned, 2) for start in (1, 0))
        pairs = [em.single("ExpandDims", [v], x.bound, x.error, axis=[x.rank]) for v in (odd, even)]
        both = em.single("Concat", pairs, x.bound, x.error, axis=-1)
        swapped = em.single("Reshape", [both], x.bound, x.error, types=[(part.info, part.sizes)])
    made = em.single("Add", [part, swapped], 2 * x.bound, 2 * x.error + (em.rounding(x, 2 * x.bound) if x.error else 0))
    return em.op("Concat", [made, rest], 2 * x.bound, made.error, axis=-1)


def _range(em: Emitter, x: Made, begin: int, end: int, stride: int = 1) -> Made:
    return em.single("StridedSlice", [x], x.bound, x.error, axes=[-1], begin=[begin], end=[end], strides=[stride])


def _split(em: Emitter, values: Sequence[Made]) -> list[Made]:
    x = one(em, values, rank=1)
    if x is None:
        return []
    axis = em.rng.randrange(x.rank)
    sections = em.rng.choice((1, 2, 2, 3, 4))
    if not isinstance(x.info.shape[axis], int) or x.info.shape[axis] % sections:
        return []
    made = tuple(tuple(n // sections if i == axis else n for i, n in enumerate(s)) for s in x.sizes)
    shape = [d // sections if i == axis and isinstance(d, int) else d for i, d in enumerate(x.info.shape)]
    types = [(x.info.with_(shape=shape), made)] * sections
    return em.op("Split", [x], x.bound, x.error, types=types, sections=sections, axis=axis)


def _reshape(em: Emitter, values: Sequence[Made]) -> list[Made]:
    """Dimensions merged, constant ones divided, ones put in or left out; one of the result may be unknown."""
    x = one(em, values)
    if x is None or None in x.info.shape:
        return []
    columns = list(zip(x.info.shape, zip(*x.sizes, strict=True), strict=True))
    for _ in range(em.rng.choice((1, 1, 2, 3))):
        kind = em.rng.randrange(4)
        if kind == 0 and len(columns) > 1:
            at = em.rng.randrange(len(columns) - 1)
            (a, m), (b, n) = columns[at : at + 2]
            columns[at : at + 2] = [(a * b, tuple(i * j for i, j in zip(m, n, strict=True)))]
        elif kind == 1 and columns:
            at = em.rng.randrange(len(columns))
            dim = columns[at][0]
            divisors = [d for d in range(1, dim + 1) if dim % d == 0] if isinstance(dim, int) else []
            if divisors and isinstance(dim, int):
                by = em.rng.choice(divisors)
                columns[at : at + 1] = [(n, (n,) * ROUNDS) for n in (dim // by, by)]
        elif kind == 2:
            columns.insert(em.rng.randrange(len(columns) + 1), (1, (1,) * ROUNDS))
        else:
            columns = [c for c in columns if c[0] != 1 or em.rng.random() < 0.5]
    if em.rng.random() < 0.15:
        whole: Dim = 1
        for dim, _ in columns:
            whole *= dim
        columns = [(whole, tuple(math.prod(c[r] for _, c in columns) for r in range(ROUNDS)))]
    if len(columns) > 6:
        return []
    shape: list[Dim] = [d for d, _ in columns]
    sizes: Sizes = tuple(tuple(c[r] for _, c in columns) for r in range(ROUNDS))
    if em.rng.random() < 0.15 and shape and not any(0 in s for s in sizes):
        shape[em.rng.randrange(len(shape))] = None
    return em.op("Reshape", [x], x.bound, x.error, types=[(x.info.with_(shape=shape), sizes)])


def _permute(em: Emitter, values: Sequence[Made]) -> list[Made]:
    x = one(em, values, rank=1)
    if x is None:
        return []
    axes = em.rng.choice((None, em.rng.sample(range(x.rank), x.rank), em.rng.sample(range(x.rank), x.rank)))
    return em.op("PermuteDims", [x], x.bound, x.error, axes=axes)


def _ones(em: Emitter, values: Sequence[Made]) -> list[Made]:
    """A dimension of one more or less."""
    x = one(em, [v for v in values if v.rank < 5])
    if x is None:
        return []
    axes = [a for a, d in enumerate(x.info.shape) if d == 1 or (d is None and all(s[a] == 1 for s in x.sizes))]
    if axes and em.rng.random() < 0.5:
        return em.op("Squeeze", [x], x.bound, x.error, axis=em.rng.sample(axes, em.rng.randrange(1, len(axes) + 1)))
    return em.op("ExpandDims", [x], x.bound, x.error, axis=[em.rng.randrange(x.rank + 1)])


def _around(em: Emitter, values: Sequence[Made]) -> list[Made]:
    x = one(em, values, rank=1)
    if x is None:
        return []
    axis, kind = em.rng.randrange(x.rank), em.rng.randrange(4)
    if kind == 0:
        return em.op("Flip", [x], x.bound, x.error, axis=axis)
    if kind == 1:
        return em.op("Repeat", [x], x.bound, x.error, repeats=em.rng.choice((1, 2, 3, 4, 0)), axis=axis)
    if kind == 2:
        return em.op("Tile", [x], x.bound, x.error, repeats=[em.rng.choice((1, 1, 2, 3, 1, 1, 2, 3, 0)) for _ in range(x.rank)])
    before, after = ([em.rng.choice((0, 0, 1, 3)) for _ in range(x.rank)] for _ in range(2))
    return em.op("Pad", [x], max(1, x.bound), x.error, before=before, after=after, value=1)


def _spread(em: Emitter, values: Sequence[Made]) -> list[Made]:
    """Broadcast to more dimensions, or along those of one."""
    x = one(em, [v for v in values if v.rank < 4])
    if x is None or None in x.info.shape:
        return []
    choices = [*((n, (n,) * ROUNDS) for n in SIZES[:9]), *em.dims()]
    more = [em.rng.choice(choices) for _ in range(em.rng.randrange(2))]
    own = [em.rng.choice(choices) if d == 1 else (d, tuple(s[i] for s in x.sizes)) for i, d in enumerate(x.info.shape)]
    columns = [*more, *own]
    sizes = tuple(tuple(c[1][r] for c in columns) for r in range(ROUNDS))
    return em.op("BroadcastTo", [x], x.bound, x.error, types=[(x.info.with_(shape=[c[0] for c in columns]), sizes)])


def _indices(em: Emitter, values: Sequence[Made], limit: int, shape: Sequence[int]) -> Made | None:
    """Indices below a limit: values that happen to be so, or constants."""
    fitting = [v for v in exact(values) if v.dtype in ("i32", "i64") and v.bound < limit and not v.dtype.startswith("u")]
    if fitting and em.rng.random() < 0.4:
        return em.rng.choice(fitting)
    if limit < 1 and math.prod(shape):
        return None
    made = em.constant(shape, em.rng.choice(("i32", "i64")))
    last = min(limit - 1, 3)
    return next(iter(em.op("Clip", [made], last, min=-last, max=last)), None) if limit > 0 else made


def _gather(em: Emitter, values: Sequence[Made]) -> list[Made]:
    x = one(em, values, rank=1)
    if x is None:
        return []
    axis, kind = em.rng.randrange(x.rank), em.rng.randrange(4)
    limit = min(s[axis] for s in x.sizes)
    count = em.rng.choice((0, 1, 2, 5, 17))
    if kind == 0:
        shape = [em.rng.choice((0, 1, 2, 3, 9)) for _ in range(em.rng.choice((0, 1, 1, 2)))]
        at = _indices(em, values, limit, shape)
        return [] if at is None else em.op("Take", [x, at], x.bound, x.error, axis=axis)
    if kind == 1:
        sizes = [min(s[i] for s in x.sizes) for i in range(x.rank)]
        shape = [count if i == axis else em.rng.randrange(n + 1) for i, n in enumerate(sizes)]
        at = _indices(em, [], limit, shape) if math.prod(shape) < 300 else None
        return [] if at is None else em.op("GatherElements", [x, at], x.bound, x.error, axis=axis)
    if kind == 2:
        depth = em.rng.randrange(1, x.rank + 1)
        limit = min(min(s[:depth]) for s in x.sizes)
        at = _indices(em, [], limit, [count, depth])
        return [] if at is None else em.op("GatherND", [x, at], x.bound, x.error)
    return _index_copy(em, x, axis, limit)


def _index_copy(em: Emitter, x: Made, axis: int, limit: int) -> list[Made]:
    if None in x.info.shape:
        return []
    count = em.rng.choice((0, 1, 3))
    at = _indices(em, [], limit, [count])
    shape = [count if i == axis else d for i, d in enumerate(x.info.shape)]
    sizes = tuple(tuple(count if i == axis else n for i, n in enumerate(s)) for s in x.sizes)
    new = em.full(shape, sizes, x.dtype, 1)
    return [] if at is None or new is None else em.op("IndexCopy", [x, at, new], max(1, x.bound), x.error, axis=axis)


def _triangle(em: Emitter, values: Sequence[Made]) -> list[Made]:
    x = one(em, values, rank=2)
    return [] if x is None else em.op(em.rng.choice(("Tril", "Triu")), [x], x.bound, x.error, k=em.rng.randrange(-3, 4))


def _widened(em: Emitter, values: Sequence[Made]) -> list[Made]:
    """An embedding: rows of a weight by indices, of which some are the last rows'."""
    table = one(em, [replace(v) for v in values if isinstance(v.info.shape[0] if v.rank else None, int)], rank=2)
    if table is None:
        return []
    at = _indices(em, values, min(s[0] for s in table.sizes), [em.rng.choice((1, 4, 0))])
    return [] if at is None else em.op("Take", [table, at], table.bound, table.error, axis=0)


MOVES: tuple[tuple[Step, int], ...] = (
    (_sliced, 10), (_concat, 8), (_rotary, 5), (_split, 3), (_reshape, 6), (_permute, 4), (_ones, 3), (_around, 4),
    (_spread, 3), (_gather, 4), (_triangle, 1), (_widened, 1),
)  # fmt: skip

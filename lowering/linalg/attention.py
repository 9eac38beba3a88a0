"""Attention as one kernel: for each head, blocks of rows whose scores stay in cache between the two matrix products.

::

    panels = pack(transpose(k))                 // an op of its own
    for each batch index, key head, query head of its group and block of rows of q:
      scores = q[rows] * panels                 // contraction
      scores = scores * scale + mask            // and -inf where a causal query does not look
      most = max(scores);  scores = exp(scores - most);  sums = sum(scores)
      out[rows] = (scores * v) / sums           // contraction

A row that sees no key is exp(-inf - -inf): NaN.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from ...dialect.bindings import ir
from ...dialect.errors import RelaxError
from ...dialect.symbolic import dim_text
from .builder import ZERO, Builder, Input, Size, Tensor, index, value_type
from .contraction import Matrix, pack_transposed, sum_products
from .conversion import load, store
from .dtypes import accumulator_type, is_boolean, storage_dtype
from .kernel import call_kernel, loop
from .reduction import TOTAL, Reduction, extreme
from .registry import Source, lowering
from .scalar import Scalar, select
from .scalar import math as math_op
from .slicing import extract_slice, insert_slice

__all__: list[str] = []

#: Rows of a block: their scores of 512 keys in f32 are 64 KiB, which a second-level cache holds beside the keys.
#: Measured on Zen 5 (12 heads, 512 and 2048 keys): 16, 32 and 64 run equally fast.
_ROWS = 32


@lowering("relax.attention")
def _lower_attention(b: Builder, source: Source) -> ir.Value:
    q, k, v = source.operands[:3]
    mask = source.operands[3] if len(source.operands) > 3 else None
    _check_sizes(b, q, k, v)
    batch = source.result.with_(shape=source.result.shape[:-3])
    sizes = b.broadcast_sizes([_leading(t, 3) for t in (q, k, v)], batch)
    heads, rows, columns = b.size(q, q.rank - 3), b.size(q, q.rank - 2), b.size(k, k.rank - 2)
    width, wide = b.size(v, v.rank - 1), accumulator_type(q.dtype)
    block = b.arith("minsi", rows, _ROWS)
    scratch = [b.empty([block, columns], wide), b.empty([block], wide), b.empty([block], wide)]
    if storage_dtype(q.dtype) != wide:
        scratch.append(b.empty([block, width], wide))
    where = tuple(tuple(b.broadcast_exprs(_leading(t, 3), batch)) for t in (q, k, v))
    kernel = _Kernel(b, q.dtype, mask, _mask_exprs(b, mask, source, k), where, _scale(source), source.attrs["causal"])
    inputs = [q.value, pack_transposed(b, k, b.tile), v.value, *([mask.value] if mask is not None else [])]
    out = b.empty([*sizes, heads, rows, width], storage_dtype(q.dtype))
    return call_kernel(b, "attention", inputs, out, kernel.key, lambda a: kernel.build(a, len(inputs)), scratch)


def _leading(x: Tensor, trailing: int) -> Tensor:
    """The tensor seen as if it had its leading dimensions only."""
    return Tensor(x.value, x.info.with_(shape=x.shape[: x.rank - trailing]))


def _check_sizes(b: Builder, q: Tensor, k: Tensor, v: Tensor) -> None:
    """Checks what the types leave open."""
    message = "expected query, key and value that fit together"
    for x, y, axis in ((q, k, -1), (k, v, -2), (k, v, -3)):
        if x.shape[axis] is None or y.shape[axis] is None:
            b.check_equal(b.size(x, x.rank + axis), b.size(y, y.rank + axis), message)
    heads, groups = q.shape[-3], k.shape[-3]
    ratio = None if heads is None or groups is None or groups == 0 else heads // groups
    if heads == groups or (ratio is not None and groups is not None and ratio * groups == heads):
        return
    found, given = b.size(q, q.rank - 3), b.size(k, k.rank - 3)
    whole = b.arith("muli", b.arith("divsi", found, b.arith("maxsi", given, 1)), given)
    b.check_equal(found, whole, "expected a number of query heads that is a multiple of the key heads")


def _scale(source: Source) -> float:
    given, depth = source.attrs["scale"], source.operands[0].shape[-1]
    if given is not None:
        return given
    if not isinstance(depth, int):
        raise RelaxError(f"expected a scale, as the size of the heads is not constant, got {dim_text(depth)}")
    return 1 / math.sqrt(depth) if depth else 0.0


def _mask_exprs(b: Builder, mask: Tensor | None, source: Source, k: Tensor) -> tuple[int, ...]:
    """Where a mask is read, by the dimensions of the scores; what types leave open is checked."""
    if mask is None:
        return ()
    scores = source.result.with_(shape=[*source.result.shape[:-1], k.shape[-2]])
    sizes = [b.evaluate_or(d, source.operands[0], i) for i, d in enumerate(scores.shape[-3:-1], source.operands[0].rank - 3)]
    sizes.append(b.size(k, k.rank - 2))
    for axis, dim in enumerate(mask.shape):
        if dim is None and axis >= mask.rank - 3:
            size = sizes[axis - mask.rank]
            b.check_equal(b.size(mask, axis), size, "expected a mask that broadcasts to the scores")
    return tuple(b.broadcast_exprs(mask, scores))


@dataclass(frozen=True)
class _Block:
    """A block of rows of one head: its first row, how many rows it has and how many keys they may see."""

    first: Size
    rows: Size
    columns: Size


@dataclass(frozen=True)
class _Kernel:
    """The kernel's body. ``where`` says where the batch dimensions of query, key and value are read."""

    b: Builder
    dtype: ir.Type
    mask: Tensor | None
    mask_exprs: tuple[int, ...]
    where: tuple[tuple[int, ...], ...]
    scale: float
    causal: bool

    @property
    def key(self) -> tuple[str, ...]:
        mask = "" if self.mask is None else str(self.mask.dtype)
        return (str(self.dtype), mask, str(self.mask_exprs), str(self.where), repr(self.scale), str(self.causal))

    def build(self, arguments: Sequence[ir.Value], inputs: int) -> ir.Value:
        b, operands, scratch, out = self.b, arguments[:inputs], arguments[inputs:-1], arguments[-1]
        *batch, heads, _, _ = b.value_sizes(out)
        groups = b.dim(operands[2], value_type(operands[2]).rank - 3)
        ratio = b.arith("divsi", heads, b.arith("maxsi", groups, 1))

        def head(indices: list[ir.Value], result: ir.Value) -> ir.Value:
            *outer, group, number = indices
            which = b.arith("addi", b.arith("muli", group, ratio), number)
            return self._head(operands, scratch, (outer, which, group), result)

        return _nest(b, [*batch, groups, ratio], head, out)

    def _batch(self, operand: int, indices: Sequence[ir.Value]) -> list[Size]:
        return [0 if e == ZERO else indices[e] for e in self.where[operand]]

    def _head(
        self,
        operands: Sequence[ir.Value],
        scratch: Sequence[ir.Value],
        place: tuple[list[ir.Value], Size, Size],
        result: ir.Value,
    ) -> ir.Value:
        """All blocks of rows of one query head."""
        b, (indices, head, group) = self.b, place
        q, k, v = operands[:3]
        rows, keys = b.dim(q, value_type(q).rank - 2), b.dim(v, value_type(v).rank - 2)
        panels = _panels(b, k, [*self._batch(1, indices), group])

        def of_block(first: ir.Value, carried: ir.Value) -> list[ir.Value]:
            start: Size = 0 if isinstance(rows, int) and rows <= _ROWS else first
            count = rows if start == 0 else _ROWS
            if not isinstance(rows, int) or (rows % _ROWS and rows > _ROWS):
                count = b.arith("minsi", b.arith("subi", rows, first), _ROWS)
            seen = b.arith("minsi", b.arith("addi", start, count), keys) if self.causal else keys
            block = _Block(start, count, seen)
            query = _matrix(b, q, [*self._batch(0, indices), head], start, count)
            scores = self._scores((query, panels), block, operands[3:], scratch[0], (*indices, head))
            value = _matrix(b, v, [*self._batch(2, indices), group], 0, seen)
            return [self._weighted(scores, value, scratch, block, [*indices, head], carried)]

        return loop(b, rows, [result], of_block, _ROWS)[0]

    def _scores(
        self,
        factors: tuple[ir.Value, ir.Value],
        block: _Block,
        masks: Sequence[ir.Value],
        scratch: ir.Value,
        indices: Sequence[Size],
    ) -> ir.Value:
        """``query * keys * scale + mask``, in the scratch for scores."""
        b, wide = self.b, value_type(scratch).element_type
        place = b.fill(extract_slice(scratch, [0, 0], [block.rows, block.columns], 2), 0)
        matrices = Matrix(factors[0], self.dtype, ()), Matrix(factors[1], wide, ())
        summed = sum_products(b, *matrices, place, self.dtype)
        inputs: list[Input] = [self._mask_input(m, block, indices) for m in masks]
        origin = Scalar(b.as_index(block.first))

        def limited(*elements: ir.Value) -> ir.Value:
            score = Scalar(elements[-1]) * self.scale
            if self.mask is not None:
                score = _masked(score, load(elements[0], self.mask.dtype), is_boolean(self.mask.dtype))
            if self.causal:
                score = select(index(1).compare("le", index(0) + origin), score, -math.inf)
            return score.value

        return b.generic("pp", inputs, summed, limited)

    def _mask_input(self, mask: ir.Value, block: _Block, indices: Sequence[Size]) -> Input:
        """The part of the mask for a block, and where it is read."""
        exprs, scores = self.mask_exprs, len(indices) + 2
        rank = min(2, len(exprs))
        row, column = scores - 2, scores - 1
        offsets: list[Size] = [0 if e in (ZERO, column) else block.first if e == row else indices[e] for e in exprs]
        extents: list[Size] = [block.rows if e == row else block.columns if e == column else 1 for e in exprs]
        part = extract_slice(mask, offsets, extents, rank)
        return part, [ZERO if e == ZERO else e - row for e in exprs[len(exprs) - rank :]]

    def _weighted(
        self,
        scores: ir.Value,
        value: ir.Value,
        scratch: Sequence[ir.Value],
        block: _Block,
        lead: Sequence[Size],
        result: ir.Value,
    ) -> ir.Value:
        """``softmax(scores) * value`` into the block's rows of the result."""
        b, (most, sums) = self.b, (extract_slice(s, [0], [block.rows], 1) for s in scratch[1:3])
        wide = value_type(scores).element_type
        most = _reduced(b, scores, most, extreme(wide, "max"))
        powers = b.generic("pp", [(most, [0])], scores, lambda m, x: math_op("exp", Scalar(x) - Scalar(m)).value)
        sums = _reduced(b, powers, sums, TOTAL)
        width = value_type(value).shape[-1] if not value_type(value).is_dynamic_dim(1) else b.dim(value, 1)
        offsets: list[Size] = [*lead, block.first, 0]
        extents: list[Size] = [*[1] * len(lead), block.rows, width]
        out = extract_slice(result, offsets, extents, 2)
        direct = len(scratch) == 3
        place = out if direct else extract_slice(scratch[3], [0, 0], [block.rows, width], 2)
        matrices = Matrix(powers, wide, ()), Matrix(value, self.dtype, ())
        summed = sum_products(b, *matrices, b.fill(place, 0), self.dtype, packed=False)
        if direct:
            shares = b.generic("pp", [(sums, [0])], summed, lambda s, x: (Scalar(x) / Scalar(s)).value)
        else:
            inputs: list[Input] = [(summed, [0, 1]), (sums, [0])]
            shares = b.generic("pp", inputs, out, lambda x, s, _: store(Scalar(x) / Scalar(s), self.dtype))
        return insert_slice(b, shares, result, offsets, extents)


def _nest(
    b: Builder, sizes: Sequence[Size], body: Callable[[list[ir.Value], ir.Value], ir.Value], result: ir.Value
) -> ir.Value:  # fmt: skip
    """Loops over all sizes that carry one tensor; the body gets the indices."""

    def level(axis: int, indices: list[ir.Value], carried: ir.Value) -> ir.Value:
        if axis == len(sizes):
            return body(indices, carried)
        return loop(b, sizes[axis], [carried], lambda i, r: [level(axis + 1, [*indices, i], r)])[0]

    return level(0, [], result)


def _matrix(b: Builder, value: ir.Value, lead: Sequence[Size], first: Size, rows: Size) -> ir.Value:
    """Rows of one matrix out of many."""
    columns = b.dim(value, value_type(value).rank - 1)
    return extract_slice(value, [*lead, first, 0], [*[1] * len(lead), rows, columns], 2)


def _panels(b: Builder, packed: ir.Value, lead: Sequence[Size]) -> ir.Value:
    """The panels of one matrix out of many."""
    sizes = b.value_sizes(packed)[-3:]
    return extract_slice(packed, [*lead, 0, 0, 0], [*[1] * len(lead), *sizes], 3)


def _reduced(b: Builder, x: ir.Value, into: ir.Value, reduction: Reduction) -> ir.Value:
    """Each row of a matrix combined."""
    start = b.fill(into, reduction.initial)
    return b.generic("pr", [(x, [0, 1])], start, lambda e, t: reduction.combine(Scalar(t), Scalar(e)).value, [0])


def _masked(score: Scalar, mask: Scalar, boolean: bool) -> Scalar:
    return select(mask, score, -math.inf) if boolean else score + mask

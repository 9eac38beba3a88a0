"""Rows of one attention head, or of a group of heads: softmax of scores known block by block, applied to values.

::

    turned = transpose(q[rows]) * scale; most = lowest; sums = 0; result = 0
    for each block of keys that the rows may see:
      scores = k[keys] * turned + mask            // one column per row: statistics are vectors
      largest = max(most, max(scores));  old = exp(most - largest);  powers = exp(scores - largest)
      sums = sums * old + sum(powers);   result = result * old + transpose(powers) * v[keys];   most = largest
    out[rows] = result / sums

No key is packed: a product reads them as its left-hand side, element by element. Three rows would not fill its vectors:
their scores are dot products with keys, ``[rows, keys]``, and nothing is transposed. Of heads that share keys, a row each may
be what is computed together. For many rows, keys and values of 16 bits are widened block by block. The largest score so far
starts at the lowest finite number, so that what is not seen (-inf) is a power of 0 whatever was seen before, and a row that
sees nothing is 0 / 0, and 0 where there is no key.

Powers that are less than ``e ** -80`` are 0, too. Masks of -100, as Swin has, or far keys by ALiBi, would give subnormal
numbers otherwise, which Intel's processors take long for. 64 windows of 49 rows and keys, 3 heads of 32, half hidden by -100,
Cascade Lake: 2.0 instead of 32 ms; hidden by -1e9, 2.0 instead of 3.7. An infinite value of such a key gives NaN, not infinity.

Milakov and Gimelshein, "Online normalizer calculation for softmax" (2018); Dao et al., "FlashAttention" (2022).
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from ...dialect.bindings import ir
from .builder import DYNAMIC, ZERO, Input, LinalgBuilder, Size, index, read, value_type
from .contraction import Matrix, factor, sum_products
from .conversion import load, store
from .dtypes import accumulator_type, is_boolean
from .kernel import choose_all, local, loop
from .reduction import LARGEST, TOTAL, Reduction, accumulated, extreme
from .scalar import Scalar, constant, emit, larger, select, weight_of
from .scalar import math as math_op
from .slicing import extract_slice, insert_slice
from .views import View

__all__ = ["FEW", "OnlineSoftmax", "Rows", "RowsPlace"]

#: From so many rows on a block's scores are a matrix product. One token of 32 heads, 8 heads of 4096 keys of 64 elements,
#: Cascade Lake, with 4 instead of 8: 0.66 of the time with one thread, 0.82 with two.
FEW = 4
#: From so many rows on a block's keys, and values, of 16 bits are widened once, not where each tile reads them. 32 heads, 8 of
#: 1024 keys of 64 elements, Cascade Lake, one thread, time with by time without: keys in f16 (bf16) with 4 rows 1.11 (1.11),
#: with 6 0.88 (0.95), with 8 0.77 (0.84), with 16 0.54 (0.96); values with 8 rows 1.07 (1.07), with 16 0.98 (0.96).
_WIDE_KEYS = 6
_WIDE_VALUES = 16
#: Bytes of such a copy: 384 keys of 170 elements. Others are read as they are.
_COPY_ON_STACK = 1 << 18

_T = TypeVar("_T")
_LOWEST_F32 = -3.4028234663852886e38


@dataclass(frozen=True)
class OnlineSoftmax:
    """What is computed.

    Attributes:
        dtype: of query and result, and that everything is computed in.
        stored: of key and value, which may be floats of fewer bits.
        mask: the dtype of the mask, if there is one.
        mask_exprs: where the mask is read, by the dimensions of the scores.
        scale: what scores are multiplied by; None for the reciprocal root of the number of elements that they are sums of.
        causal: whether row i sees the keys up to i only.
        keys: how many of them are a block.
        single: whether one block holds all.
    """

    dtype: ir.Type
    stored: tuple[ir.Type, ir.Type]
    mask: ir.Type | None
    mask_exprs: tuple[int, ...]
    scale: float | None
    causal: bool
    keys: int
    single: bool

    @property
    def key(self) -> tuple[str, ...]:
        """What tells kernels apart."""
        types = self.dtype, *self.stored, self.mask
        return tuple(map(str, (*types, self.mask_exprs, repr(self.scale), self.causal, self.keys, self.single)))


@dataclass(frozen=True)
class RowsPlace:
    """Which rows: where query, key and value are in their batches and heads, where the result is, the first row, how many.

    Of several heads, query and result are at the first one, and there is one row of each.
    """

    query: Sequence[Size]
    key: Sequence[Size]
    value: Sequence[Size]
    result: Sequence[Size]
    first: Size
    count: Size


@dataclass(frozen=True)
class _Keys:
    """A block of keys: the first one, and how many there are."""

    first: Size
    count: Size


@dataclass(frozen=True)
class Rows:
    """Computes up to ``size`` rows. ``operands`` are query, key, value and perhaps a mask.

    Of the first three, ``views`` say where their elements are in the operands; the result's dimensions are in this ``order``.
    ``given`` are tensors to work in where sizes are not constant: the query and the result before it is divided. There are more
    rows in them then than are computed. With ``by_head``, the rows are one of each of ``size`` heads.
    """

    b: LinalgBuilder
    attention: OnlineSoftmax
    operands: Sequence[ir.Value]
    views: Sequence[View]
    order: Sequence[int]
    size: int
    given: Sequence[ir.Value] = ()
    by_head: bool = False

    def dim(self, operand: int, axis: int) -> Size:
        """The size of a dimension of query, key or value."""
        return self.views[operand].size(self.b, self.operands[operand], axis)

    @property
    def _few(self) -> bool:
        return self.size < FEW

    def _pair(self, key: _T, row: _T) -> list[_T]:
        """What is said of keys and of rows, in the order of the scores' dimensions; of depth and rows in the query's."""
        return [row, key] if self._few else [key, row]

    def _ranges(self, lead: Sequence[Size], place: RowsPlace, columns: Size) -> tuple[list[Size], list[Size], list[int]]:
        """Where the rows are in a query or result, and the dimensions that they have."""
        rows = [self.size, 1] if self.by_head else [1, place.count]
        axis = len(lead) - 1 if self.by_head and self.size > 1 else len(lead)
        return [*lead, place.first, 0], [*_ones(lead[:-1]), *rows, columns], [axis, len(lead) + 1]

    @property
    def _wide(self) -> ir.FloatType:
        wide = accumulator_type(self.attention.dtype)
        assert isinstance(wide, ir.FloatType)
        return wide

    def build(self, place: RowsPlace, result: ir.Value) -> ir.Value:
        """The result with these rows in it."""
        b, seen = self.b, self.dim(2, -2)
        if self.attention.causal:
            seen = b.arith("minsi", b.arith("addi", place.first, 1 if self.by_head else place.count), seen)
        query = self._query(place)
        start = self._start()
        if self.attention.single or (isinstance(seen, int) and 0 < seen <= self.attention.keys):
            return self._finish(place, self._block(place, query, _Keys(0, seen), start, alone=True), result)

        whole = isinstance(seen, int) and seen % self.attention.keys == 0
        return self._finish(place, self._blocks(place, query, _Keys(0, seen), start, whole), result)

    def _start(self) -> list[ir.Value]:
        """Result, largest scores and sums before any key is taken in."""
        b, lowest = self.b, -sys.float_info.max if self._wide == ir.F64Type.get() else _LOWEST_F32
        scratch = self.given[1] if self.given else local([self.size, _static(self.dim(2, -1))], self._wide)
        sums = b.fill_with(local([self.size], self._wide), self._first_sum())
        return [b.fill(scratch, 0), b.fill(local([self.size], self._wide), lowest), sums]

    def _first_sum(self) -> ir.Value:
        """What sums begin with: where there are no keys at all, a row is 0, as a sum over none is, and not 0 / 0."""
        keys, zero = self.dim(2, -2), constant(self._wide, 0)
        if isinstance(keys, int):
            return constant(self._wide, 0 if keys else 1).value
        return select(Scalar(keys).compare("eq", 0), constant(self._wide, 1), zero).value

    def _blocks(self, place: RowsPlace, query: ir.Value, keys: _Keys, start: list[ir.Value], whole: bool) -> list[ir.Value]:
        """The state with keys taken in block by block; ``whole`` where they are a multiple of blocks."""
        b = self.b

        def block(first: ir.Value, *state: ir.Value) -> list[ir.Value]:
            left = b.arith("subi", keys.count, first)
            count = self.attention.keys if whole else b.arith("minsi", left, self.attention.keys)
            taken = _Keys(b.arith("addi", first, keys.first), count)
            return self._unless_hidden(place, taken, state, lambda: self._block(place, query, taken, state))

        return loop(b, keys.count, start, block, self.attention.keys)

    # -- keys in parts, so that threads share those of few rows -------------------------------------------------------

    def part(self, place: RowsPlace, which: Size, span: int, number: Size, partials: ir.Value) -> ir.Value:
        """``partials`` with the state of ``span`` keys as its element ``number``: result, largest scores and sums in a row."""
        b, keys = self.b, self.dim(2, -2)
        first = b.arith("muli", which, span)
        whole = isinstance(keys, int) and keys % span == 0
        count = span if whole else b.arith("minsi", b.arith("subi", keys, first), span)
        state = self._blocks(place, self._query(place), _Keys(first, count), self._start(), whole)
        for value, column in zip(state, self._columns(), strict=True):
            shape = list(value_type(value).shape)
            where = [number, 0, column], [1, self.size, shape[1] if len(shape) == 2 else 1]
            kept = [1, 2] if len(shape) == 2 else [1]
            stored = b.generic("p" * len(shape), [(value, range(len(shape)))], extract_slice(partials, *where, kept), _first)
            partials = insert_slice(b, stored, partials, *where, kept)
        return partials

    def merged(self, place: RowsPlace, count: Size, number: Size, partials: ir.Value, result: ir.Value) -> ir.Value:
        """The result with these rows in it, of ``count`` parts from ``number`` on, one after the other."""
        b, width = self.b, _static(self.dim(2, -1))

        def take_in(which: ir.Value, *state: ir.Value) -> list[ir.Value]:
            total, most, sums = state
            at = b.arith("addi", number, which)
            found = [
                extract_slice(partials, [at, 0, column], [1, self.size, width if i == 0 else 1], [1, 2] if i == 0 else [1])
                for i, column in enumerate(self._columns())
            ]
            before = self._negative(most)
            most = b.generic("p", [(found[1], [0])], most, lambda m, x: larger(Scalar(x), Scalar(m)).value)
            old = b.generic("p", [(most, [0])], before, lambda m, n: weight_of(-(Scalar(n) + Scalar(m))).value)
            share = local([self.size], self._wide)
            new = b.generic("p", [(found[1], [0]), (most, [0])], share, lambda x, m, _: weight_of(Scalar(x) - Scalar(m)).value)
            sums = b.generic("p", [(old, [0]), (found[2], [0]), (new, [0])], sums, _blended)
            total = b.generic("pp", [(old, [0]), (found[0], [0, 1]), (new, [0])], total, _blended)
            return [total, most, sums]

        return self._finish(place, loop(b, count, self._start(), take_in), result)

    def _columns(self) -> list[int]:
        """Where result, largest scores and sums are in a part."""
        width = _static(self.dim(2, -1))
        return [0, width, width + 1]

    # -- query -----------------------------------------------------------------------------------------------------

    def _query(self, place: RowsPlace) -> ir.Value:
        """``[depth, rows]``, few ``[rows, depth]``, times the scale; rows that do not exist are 0."""
        b, depth = self.b, self.dim(0, -1)
        part = self.views[0].part(b, self.operands[0], *self._ranges(place.query, place, depth))
        made = self.given[0] if self.given else local(self._pair(_static(depth), self.size), self._wide)
        where, scale = [(part, self._pair(1, 0))], self._scale(depth)

        def scaled(x: ir.Value, _: ir.Value) -> ir.Value:
            return (load(x, self.attention.dtype) * scale).value

        if self.by_head or place.count == self.size:
            return _stored(b.generic("pp", where, made, scaled), local(list(value_type(made).shape), self._wide))
        made, extents = b.fill(made, 0), self._pair(depth, place.count)
        rows = b.generic("pp", where, extract_slice(made, [0, 0], extents, 2), scaled)
        return insert_slice(b, rows, made, [0, 0], extents)

    def _scale(self, depth: Size) -> Scalar | float:
        """What queries are multiplied by; a default one of a depth that types do not say is computed."""
        if self.attention.scale is not None:
            return self.attention.scale
        number = emit("arith.index_cast", ir.IntegerType.get_signless(64), self.b.as_index(self.b.arith("maxsi", depth, 1)))
        return 1 / math_op("sqrt", Scalar(emit("arith.sitofp", self._wide, number)))

    # -- a block of keys -------------------------------------------------------------------------------------------

    def _block(
        self, place: RowsPlace, query: ir.Value, keys: _Keys, state: Sequence[ir.Value], alone: bool = False
    ) -> list[ir.Value]:
        """Result, largest scores and sums with these keys taken in; ``alone`` there are no others."""
        b, (total, most, sums) = self.b, state
        row = 0 if self._few else 1
        scores = self._scores(query, place, keys)
        scores = self._causal(scores, place, keys) if self.attention.causal and not self.by_head else scores
        scores = self._masked(scores, place, keys) if self.attention.mask is not None else scores
        before = None if alone else self._negative(most)
        most = self._reduced(scores, most, LARGEST)
        if before is not None:
            old = b.generic("p", [(most, [0])], before, lambda m, n: weight_of(-(Scalar(n) + Scalar(m))).value)
            sums = b.generic("p", [(old, [0])], sums, _times)
            total = b.generic("pp", [(old, [0])], total, _times)
        powers = b.generic("pp", [(most, [row])], scores, lambda m, x: weight_of(Scalar(x) - Scalar(m)).value)
        sums = self._reduced(powers, sums, TOTAL)
        value = self._rows_of(2, place.value, keys), self.attention.stored[1]
        value = self._widened(*value, keys) if self.size >= _WIDE_VALUES else value
        factors = Matrix(powers, self._wide, ()), Matrix(*value, ())
        total = sum_products(b, *factors, total, self.attention.dtype, turned=not self._few)
        return [total, most, sums]

    def _negative(self, most: ir.Value) -> ir.Value:
        """What outlives the update in place, as a computation: a copy is what upstream simplification takes for needless."""
        negative = local([self.size], self._wide)
        return self.b.generic("p", [(most, [0])], negative, lambda m, _: (-Scalar(m)).value)

    def _rows_of(self, operand: int, lead: Sequence[Size], keys: _Keys) -> ir.Value:
        sizes, kept = [*_ones(lead), keys.count, self.dim(operand, -1)], [len(lead), len(lead) + 1]
        return self.views[operand].part(self.b, self.operands[operand], [*lead, keys.first, 0], sizes, kept)

    def _widened(self, rows: ir.Value, stored: ir.Type, keys: _Keys) -> tuple[ir.Value, ir.Type]:
        """Keys or values of a block as what is computed with, in a copy on the stack, and the dtype of its elements."""
        width, size = value_type(rows).shape[1], self._wide.width // 8
        if not self.b.panels or value_type(rows).element_type not in (ir.F16Type.get(), ir.BF16Type.get()) or width == DYNAMIC:
            return rows, stored
        if self.attention.keys * width * size > _COPY_ON_STACK:
            return rows, stored
        room = extract_slice(local([self.attention.keys, width], self._wide), [0, 0], [keys.count, width], 2)
        return _stored(rows, room), self._wide

    def _scores(self, query: ir.Value, place: RowsPlace, keys: _Keys) -> ir.Value:
        """``[keys, rows]``, few ``[rows, keys]``."""
        b, dtype, stored = self.b, self.attention.dtype, self.attention.stored[0]
        scratch = local(self._pair(self.attention.keys, self.size), self._wide)
        start = b.fill(extract_slice(scratch, [0, 0], self._pair(keys.count, self.size), 2), 0)
        key = self._rows_of(1, place.key, keys)
        if not self._few:
            key, stored = self._widened(key, stored, keys) if self.size >= _WIDE_KEYS else (key, stored)
            return sum_products(b, Matrix(key, stored, ()), Matrix(query, self._wide, ()), start, dtype)

        def add(x: ir.Value, y: ir.Value, sum_: ir.Value) -> ir.Value:
            return (Scalar(sum_) + factor(x, stored, dtype) * Scalar(y)).value

        # Not a contraction for the matrix template: the key's own elements are the vector of a dot product.
        return b.generic("ppr", [(key, [0, 2]), (query, [1, 2])], start, add, [1, 0])

    def _causal(self, scores: ir.Value, place: RowsPlace, keys: _Keys) -> ir.Value:
        """-inf where a key comes after the row. All see the keys up to the first row: those, but for one, are left."""
        b = self.b
        common = b.arith("subi", b.arith("addi", place.first, 1), keys.first)
        skipped = b.arith("minsi", b.arith("maxsi", common, 0), b.arith("subi", keys.count, 1))
        rest = b.arith("subi", keys.count, skipped)
        ranges = self._pair(skipped, 0), self._pair(rest, self.size)
        key, row = self._pair(0, 1)
        shift = Scalar(b.as_index(b.arith("subi", b.arith("addi", keys.first, skipped), place.first)))

        def limited(x: ir.Value) -> ir.Value:
            return select((index(key) + shift).compare("le", index(row)), Scalar(x), -math.inf).value

        part = b.generic("pp", [], extract_slice(scores, *ranges, 2), limited)
        return insert_slice(b, part, scores, *ranges)

    def _unless_hidden(
        self, place: RowsPlace, keys: _Keys, state: Sequence[ir.Value], taken_in: Callable[[], list[ir.Value]]
    ) -> list[ir.Value]:
        """The state with these keys taken in, if the mask shows any row one of them: of a cache, most may be still to come."""
        b, dtype = self.b, self.attention.mask
        if dtype is None or len(place.result) + 1 not in self.attention.mask_exprs:
            return taken_in()
        part, _ = self._mask_part(place, keys)
        largest, rank = extreme(dtype, "max"), value_type(part).rank
        element = value_type(part).element_type if is_boolean(dtype) else accumulator_type(dtype)

        def combine(x: ir.Value, most: ir.Value) -> ir.Value:
            return largest.combine(accumulated(most, element), accumulated(x, dtype)).value

        found = b.generic("r" * rank, [(part, range(rank))], b.fill(local([], element), largest.initial), combine, [])
        shown = Scalar(read(found, [])).compare("ne", largest.initial).value
        return choose_all(b, shown, [v.type for v in state], taken_in, lambda: state)

    def _mask_part(self, place: RowsPlace, keys: _Keys) -> tuple[ir.Value, list[int]]:
        """The mask of these keys and of the rows that exist, and where it is read, by the dimensions of a block's scores."""
        exprs, row, column = self.attention.mask_exprs, len(place.result), len(place.result) + 1
        lane, count = (row - 1, self.size) if self.by_head else (row, place.count)
        starts = dict(enumerate([*place.result, place.first, keys.first])) | {ZERO: 0}
        sizes, loops = {lane: count, column: keys.count}, dict(zip((column, lane), self._pair(0, 1), strict=True))
        kept = [axis for axis, e in enumerate(exprs) if e in sizes] or [len(exprs) - 1] * bool(exprs)
        extents = [sizes.get(e, 1) for e in exprs]
        part = extract_slice(self.operands[3], [starts[e] for e in exprs], extents, kept)
        return part, [loops.get(exprs[axis], ZERO) for axis in kept]

    def _masked(self, scores: ir.Value, place: RowsPlace, keys: _Keys) -> ir.Value:
        """With the mask applied to the rows that exist."""
        b, dtype, mask = self.b, self.attention.mask, self._mask_part(place, keys)
        assert dtype is not None

        def apply(m: ir.Value, x: ir.Value) -> ir.Value:
            score, mask = Scalar(x), load(m, dtype)
            return (select(mask, score, -math.inf) if is_boolean(dtype) else score + mask).value

        ranges = [0, 0], self._pair(keys.count, self.size if self.by_head else place.count)
        seen = b.generic("pp", [mask], extract_slice(scores, *ranges, 2), apply)
        return insert_slice(b, seen, scores, *ranges)

    def _reduced(self, scores: ir.Value, start: ir.Value, reduction: Reduction) -> ir.Value:
        """The scores of each row combined with what is there."""

        def combine(x: ir.Value, total: ir.Value) -> ir.Value:
            return reduction.combine(Scalar(total), Scalar(x)).value

        kinds, row = ("pr", 0) if self._few else ("rp", 1)
        return self.b.generic(kinds, [(scores, [0, 1])], start, combine, [row])

    # -- result ----------------------------------------------------------------------------------------------------

    def _finish(self, place: RowsPlace, state: Sequence[ir.Value], result: ir.Value) -> ir.Value:
        b, (total, _, sums) = self.b, state
        width = b.dim(total, 1)
        offsets, sizes, kept = self._ranges(place.result, place, width)
        starts, extents = ([values[axis] for axis in self.order] for values in (offsets, sizes))
        axes = sorted(self.order.index(axis) for axis in kept)
        count = self.size if self.by_head else place.count
        inputs: list[Input] = [
            (extract_slice(total, [0, 0], [count, width], 2), [0, 1]),
            (extract_slice(sums, [0], [count], 1), [0]),
        ]

        def share(x: ir.Value, s: ir.Value, _: ir.Value) -> ir.Value:
            return store(Scalar(x) / Scalar(s), self.attention.dtype)

        out = b.generic("pp", inputs, extract_slice(result, starts, extents, axes), share)
        return insert_slice(b, out, result, starts, extents, axes)


def _stored(value: ir.Value, into: ir.Value) -> ir.Value:
    """The tensor as ``linalg.copy`` gives it: upstream fusion takes no named op, and would compute elements for each use."""
    type_, segments = value_type(into), ir.DenseI32ArrayAttr.get([1, 1])
    op = ir.Operation.create("linalg.copy", [type_], [value, into], {"operandSegmentSizes": segments}, regions=1)
    elements = [value_type(value).element_type, type_.element_type]
    block = ir.Block.create_at_start(op.regions[0], elements, [op.location] * 2)
    with ir.InsertionPoint(block):
        element, _ = block.arguments
        same = element.type == type_.element_type
        ir.Operation.create("linalg.yield", [], [element if same else emit("arith.extf", type_.element_type, element)])
    return op.results[0]


def _first(x: ir.Value, _: ir.Value) -> ir.Value:
    return x


def _blended(old: ir.Value, x: ir.Value, new: ir.Value, value: ir.Value) -> ir.Value:
    return (Scalar(value) * Scalar(old) + Scalar(x) * Scalar(new)).value


def _times(factor_: ir.Value, x: ir.Value) -> ir.Value:
    return (Scalar(x) * Scalar(factor_)).value


def _ones(lead: Sequence[Size]) -> list[Size]:
    return [1] * len(lead)


def _static(size: Size) -> int:
    assert isinstance(size, int)
    return size

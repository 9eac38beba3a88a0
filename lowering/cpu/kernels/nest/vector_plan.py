"""Chooses how a loop nest is vectorized: which loop becomes the vector, how wide, and in what order the others run."""

from __future__ import annotations

import math
from collections.abc import Sequence

from .....dialect.bindings import ir
from ....kernels.emit.linear_index import LaneForm, Linear
from ....kernels.expand.expand_math import EXPANDED
from ....kernels.structure.combiners import combiners, element_bits
from ....kernels.structure.nest import Nest, Operand
from ....target import Target
from .nest_plan import NestPlan

__all__ = ["fetched_rows", "is_transposed", "lanes_for", "make_plan"]

# Cost of one access of a whole vector, in vector loads. Measured on Zen 5: a gather of 16 f32 costs about a load per lane.
_UNIFORM, _CONTIGUOUS, _GATHER_LANE, _SCATTER_LANE = 0.1, 1.0, 1.0, 1.5
# A vector of a tile that is transposed in registers: its load, and four of the 64 shuffles of 16 vectors. The transposed sum of
# two matrices of 1024 x 1024 f32, Zen 5: 7.9 ms as scattered sums, 0.6 ms as a sum of transposed tiles.
_TURNED = 5.0
# A horizontal reduction is log2(lanes) dependent shuffles and adds.
_HORIZONTAL = 12.0
# Independent accumulators that hide the latency of an addition (4 cycles, 2 per cycle would need 8; loads bound first).
_ACCUMULATORS = 4
# Long bodies run two vectors at a time. Sin over 1024 x 1024 f32, Zen 5: 360 us, one by one 583 us; log spills by four.
_LONG_BODY, _UNROLLED = 8, 2
# Neighbours that read the same elements of an operand, as pixels do the taps of a filter per channel, are taken together, each
# of two vectors: accumulators and operands fit 16 registers. 7 by 7 taps of 96 channels, Zen 3: 0.4 of the time.
_BLOCK, _BLOCK_VECTORS = 4, 2
# Rows that are reduced into one are read one after the other, if they are that many and bytes apart. The sum of 1024 rows of
# 1024 f32 in the level 3 cache, Zen 3: 0.3 of the time.
_MANY_ROWS, _FAR = 16, 512
# Products of rows with one row, as scores of one token, ask for rows that are so many bytes behind, if a row is that short: the
# processor does not follow. 32 heads of 4096 keys of 64 elements, Cascade Lake: attention takes 0.9 of the time.
_FETCH_BYTES, _SHORT_ROW = 8192, 2048
# A tile of a transposition is turned in registers.
_TILE_LANES = 16


def make_plan(nest: Nest, target: Target, rows: int = 0) -> NestPlan:
    """The cheapest way to run the nest by counting accesses per element.

    The loops over dimensions below ``rows`` are the outermost, one iteration at a time.
    """
    parallel = [d for d in nest.extents if d not in nest.reductions]
    reductions = [d for d in nest.extents if d in nest.reductions]
    lanes = lanes_for(nest, target)
    splittable = combiners(nest) is not None
    candidates = [*(d for d in reversed(parallel) if d >= rows), *(reversed(reductions) if splittable else ())]
    if not candidates:
        return NestPlan((*parallel, *reductions), None, 0, 0, False)
    vector = min(candidates, key=lambda d: _cost(nest, d, lanes, None if rows else _tile_loop(nest, d, lanes)))
    width, wide = _widths(nest, vector, lanes)
    if vector in nest.reductions:
        rest = [d for d in reductions if d != vector]
        return NestPlan((*parallel, *rest, vector), vector, width, wide, True, fetch=_fetch(nest, parallel, vector))
    tile = None if rows else _tile_loop(nest, vector, lanes)
    rest = [d for d in parallel if d not in (vector, tile)]
    if tile is not None:
        width = min(lanes, _TILE_LANES)
        return NestPlan((*rest, tile, vector), vector, width, width, False, tile)
    if not rows and _is_streamed(nest, vector, reductions, 4 * lanes):
        return NestPlan((*rest, *reductions, vector), vector, width, wide, False, streamed=True)
    shared = _block_loop(nest, vector, rest, rows)
    if shared is not None:
        rest.remove(shared)
        wide = min(wide, _BLOCK_VECTORS * width)
        return NestPlan((*rest, vector, shared, *reductions), vector, width, wide, False, block=_BLOCK)
    return NestPlan((*rest, vector, *reductions), vector, width, wide, False)


def fetched_rows(nest: Nest, row: int, vector: int) -> list[Operand]:
    """What is read row by row, rows being as they lie in memory."""
    read = [o for o in nest.inputs if o.used and o.buffer is not None and not o.offset.floors()]
    return [o for o in read if o.offset.factor(vector).static == 1 and o.offset.factor(row).static]


def _fetch(nest: Nest, parallel: Sequence[int], vector: int) -> int:
    """How many bytes ahead rows are asked for that are multiplied with one that stays: more than that, and short ones."""
    if not parallel or len(nest.reductions) != 1:
        return 0
    row, length = parallel[-1], nest.extents[vector].static
    stays = any(o.used and vector in o.offset.dims() and row not in o.offset.dims() for o in nest.inputs)
    moves = fetched_rows(nest, row, vector)
    if not stays or len(moves) != 1 or length is None:
        return 0
    bits, rows, step = element_bits(moves[0].argument.type), nest.extents[row].static, moves[0].offset.factor(row).static
    is_many = rows is None or rows * (step or 0) * bits > 8 * _FETCH_BYTES
    return _FETCH_BYTES if is_many and length * bits <= 8 * _SHORT_ROW else 0


def _is_streamed(nest: Nest, vector: int, reductions: Sequence[int], short: int) -> bool:
    """Whether many rows are reduced whose sums do not fit registers, too far apart to go from one to the next."""
    rows = [nest.extents[d].static for d in reductions]
    known = math.prod(n for n in rows if n is not None)
    if len(nest.outputs) > 1 or not _at_least(nest, vector, short + 1):
        return False  # of pairs, as those of argmax, too much would be written
    if not rows or (None not in rows and known < _MANY_ROWS):
        return False
    read = [o for o in nest.inputs if o.buffer is not None and o.used and {vector, reductions[-1]} <= o.offset.dims()]
    steps = [(o.offset.factor(reductions[-1]).static, element_bits(o.argument.type)) for o in read]
    alone = all(o.offset.factor(vector).static == 1 for o in nest.outputs)
    return alone and bool(steps) and all(step is None or step * bits >= 8 * _FAR for step, bits in steps)


def _block_loop(nest: Nest, vector: int, rest: Sequence[int], rows: int) -> int | None:
    """The loop whose iterations read the same elements of an operand while others are reduced, None when there is none."""
    for dim in (d for d in reversed(rest) if d >= rows and _at_least(nest, d, 2)):
        shared = [o for o in nest.inputs if o.used and dim not in o.offset.dims() and vector in o.offset.dims()]
        if any(o.offset.dims() & nest.reductions for o in shared):
            return dim
    return None


def is_transposed(operand: Operand, vector: int, tile: int) -> bool:
    """Whether an operand is strided along the vector and contiguous along another loop."""
    if operand.buffer is None or any({vector, tile} & f.inner.dims() for f in operand.offset.floors()):
        return False
    along = operand.offset.factor(vector)
    return bool(along.terms) and along.static != 1 and operand.offset.factor(tile).static == 1


def _tile_loop(nest: Nest, vector: int, lanes: int) -> int | None:
    """The loop to take ``lanes`` iterations of at a time, None when no operand gains from it."""
    width = min(lanes, _TILE_LANES)
    if nest.reductions or not _at_least(nest, vector, width):
        return None
    for tile in (d for d in nest.extents if d != vector and _at_least(nest, d, width)):
        if any(operand.used and is_transposed(operand, vector, tile) for operand in nest.inputs):
            return tile
    return None


def _at_least(nest: Nest, dim: int, width: int) -> bool:
    static = nest.extents[dim].static
    return static is None or static >= width


def lanes_for(nest: Nest, target: Target) -> int:
    """Lanes by the widest element that the nest touches, at least 8 and at most 32 bits (LLVM splits wider ones)."""
    operations, _ = nest.body()
    widths = [element_bits(o.argument.type if o.buffer is None else o.buffer.element) for o in nest.operands]
    results = [op.results[0].type for op in operations]
    widths += [element_bits(kind) for kind in results if not isinstance(kind, ir.IndexType)]
    return target.lanes(max(8, min(32, max(widths))))


def _cost(nest: Nest, dim: int, lanes: int, tile: int | None) -> float:
    """Accesses per element when ``dim`` is the vector, and operands are transposed by tiles of it and of another loop."""
    static = nest.extents[dim].static
    useful = lanes if static is None else min(static, lanes)
    multiples = {dim: lanes}
    total = 0.0
    for operand in nest.operands:
        if operand.buffer is not None and (operand.used or operand in nest.outputs):
            is_turned = tile is not None and operand in nest.inputs and is_transposed(operand, dim, tile)
            total += _TURNED if is_turned else _access_cost(operand, dim, lanes, multiples, operand in nest.outputs)
    if dim in nest.reductions:
        total += _HORIZONTAL * lanes / (static or 8 * lanes)
    return total / max(useful, 1)


def _access_cost(operand: Operand, dim: int, lanes: int, multiples: dict[int, int], written: bool) -> float:
    form = _form(operand.offset, dim, lanes, multiples)
    if form.uniform:
        return _UNIFORM
    if form.contiguous:
        return _CONTIGUOUS
    return (_SCATTER_LANE if written else _GATHER_LANE) * lanes


def _form(offset: Linear, dim: int, lanes: int, multiples: dict[int, int]) -> LaneForm:
    return offset.lanes(dim, lanes, multiples)


def _is_long(nest: Nest) -> bool:
    """Whether the body is a chain of many operations, which the processor cannot overlap far enough by itself."""
    operations, _ = nest.body()
    return len(operations) >= _LONG_BODY or any(op.name in EXPANDED for op in operations)


def _widths(nest: Nest, vector: int, lanes: int) -> tuple[int, int]:
    """The vector width, halved while the loop is shorter, and the width of the main loop."""
    static = nest.extents[vector].static
    width = lanes
    while static is not None and width > 1 and static <= width // 2:
        width //= 2
    wide = width * (_ACCUMULATORS if nest.reductions else _UNROLLED if _is_long(nest) else 1)
    while static is not None and wide > width and static < wide:
        wide //= 2
    return width, wide

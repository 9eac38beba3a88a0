"""Attention as one kernel: threads share blocks of rows of heads, each of which goes through the keys block by block.

::

    for each batch index, key head, query head of its group and block of rows of q:   // one loop, its iterations independent
      out[rows] = softmax(q[rows] * k + mask) * v                                     // see online_softmax.py

A row that sees none of the keys is NaN, and 0 where there are none. Few rows, as when one token follows another, are computed
for all heads that share keys at once, see online_softmax.py. Where types do not say how many rows there are, the kernel has
both ways. Blocks of keys that the mask hides from all of the rows are left out, whatever is in them. Of one row over many keys,
threads share parts of these, and what the parts found is merged in their order.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from ...dialect.bindings import ir
from ...dialect.op import attrs_of
from ..attention_mark import AttentionMark
from .builder import ZERO, LinalgBuilder, Size, Tensor, value_type
from .dtypes import accumulator_type, storage_dtype
from .kernel import call_kernel, choose, flat_loop
from .manipulate import permutation
from .online_softmax import FEW, OnlineSoftmax, Rows, RowsPlace
from .registry import Source, lowering
from .scalar import Scalar
from .views import View, view_of

__all__: list[str] = []

#: Rows of a block: what is read of a key is used for all of them.
_ROWS = 32
#: Fewer rows of heads that share keys are computed row by row, for all of these heads at once.
_BY_HEAD = 8
#: Bytes of a query and of a result that a thread works in on its stack; with the scores and a copy it takes twice that.
_ON_STACK = 1 << 17


@lowering("relax.attention")
def _lower_attention(b: LinalgBuilder, source: Source) -> Tensor:
    q, k, v = source.operands[:3]
    mask = source.operands[3] if len(source.operands) > 3 else None
    batch = source.result.with_(shape=source.result.shape[:-3])
    sizes = b.broadcast_sizes([_leading(t, 3) for t in (q, k, v)], batch)
    sizes += [b.size(q, q.rank - 3), b.size(q, q.rank - 2), b.size(v, v.rank - 1)]
    exprs, keys = _mask_exprs(b, mask, source, k), b.size(k, k.rank - 2)
    at_once, limit = b.key_blocks.at_once(mask is not None and _differs(q, exprs))
    single = isinstance(keys, int) and 0 < keys <= limit
    by_rows, many = (-2, -1), isinstance(sizes[-2], int) and sizes[-2] >= _BY_HEAD
    parts = [by_rows] if many or q.shape[-3] == k.shape[-3] else [by_rows, (-3, -1)]
    # A cache may be in f16 where all else is f32: kernels of GPUs multiply what has one type.
    is_widened = b.panels and isinstance(q.dtype, ir.F32Type)
    seen = view_of(q.value, *parts), *(view_of(t.value, by_rows, widened=is_widened) for t in (k, v))
    key, value = (value_type(t).element_type if is_widened else q.dtype for t, _ in seen[1:])
    attention = OnlineSoftmax(
        q.dtype,
        (key, value),
        None if mask is None else mask.dtype,
        exprs,
        _scale(source),
        source.attrs["causal"],
        keys if single and isinstance(keys, int) else at_once,
        single,
    )
    where = tuple(tuple(b.broadcast_exprs(_leading(t, 3), batch)) for t in (q, k, v))
    order = _order_wanted(source.op)
    out = b.empty([sizes[axis] for axis in order], storage_dtype(q.dtype))
    kernel = _Kernel(b, attention, where, tuple(view for _, view in seen), order, _rows_at_once(sizes[-2]))
    inputs = [*(value for value, _ in seen), *(t.value for t in source.operands[3:])]
    scratch = kernel.scratch(b.size(q, q.rank - 1), sizes[-1]) or kernel.partials(sizes, b.size(k, k.rank - 3), keys)
    marks = kernel.marks([value for value, _ in seen])
    build = lambda a: kernel.build(a, len(inputs))  # noqa: E731
    made = call_kernel(b, "attention", inputs, out, kernel.key, build, scratch, stack=True, marks=marks)
    return Tensor(made, source.result, order=() if order == tuple(range(q.rank)) else order)


def _differs(q: Tensor, exprs: Sequence[int]) -> bool:
    """Whether a mask may show different keys to rows, as in a cache that they fill one after the other."""
    return q.rank - 1 in exprs and (q.rank - 2 in exprs or q.shape[-2] == 1)


def _order_wanted(op: ir.OpView) -> tuple[int, ...]:
    """The order in which the result's dimensions are stored: that of a permutation which is all that reads it."""
    rank, uses = value_type(op.results[0]).rank, list(op.results[0].uses)
    user = uses[0].owner if len(uses) == 1 else None
    if user is None or user.operation.name != "relax.permute_dims" or user.operation.block != op.operation.block:
        return tuple(range(rank))
    order = permutation(attrs_of(user)["axes"], rank)
    return order if order[-1] == rank - 1 else tuple(range(rank))


def _rows_at_once(rows: Size) -> int:
    return rows if isinstance(rows, int) and 0 < rows <= _ROWS else _ROWS


def _leading(x: Tensor, trailing: int) -> Tensor:
    """The tensor seen as if it had its leading dimensions only."""
    return Tensor(x.value, x.info.with_(shape=x.shape[: x.rank - trailing]))


def _scale(source: Source) -> float | None:
    given, depth = source.attrs["scale"], source.operands[0].shape[-1]
    if given is not None or not isinstance(depth, int):
        return given
    return 1 / math.sqrt(depth) if depth else 0.0


def _mask_exprs(b: LinalgBuilder, mask: Tensor | None, source: Source, k: Tensor) -> tuple[int, ...]:
    """Where a mask is read, by the dimensions of the scores."""
    if mask is None:
        return ()
    scores = source.result.with_(shape=[*source.result.shape[:-1], k.shape[-2]])
    return tuple(b.broadcast_exprs(mask, scores))


@dataclass(frozen=True)
class _Kernel:
    """The kernel's body: up to ``rows`` at once.

    ``where`` says where the batch dimensions of query, key and value are read, ``views`` where their elements are in the
    operands; the result's dimensions are stored in this ``order``.
    """

    b: LinalgBuilder
    attention: OnlineSoftmax
    where: tuple[tuple[int, ...], ...]
    views: tuple[View, ...]
    order: tuple[int, ...]
    rows: int

    @property
    def key(self) -> tuple[str, ...]:
        return (*self.attention.key, *map(str, (self.where, self.views, self.order, self.rows)))

    def marks(self, operands: Sequence[ir.Value]) -> dict[str, ir.Attribute]:
        """What the function says that it computes; nothing where only its body knows what scores are multiplied by."""
        scale, rank = self.attention.scale, len(self.order)
        if scale is None:
            return {}
        places = [view.map(rank, [*where, *range(rank - 3, rank)]) for view, where in zip(self.views, self.where, strict=True)]
        mask = [] if self.attention.mask is None else [self.b.map(rank, self.attention.mask_exprs)]
        maps = [ir.AffineMapAttr(m).value for m in (*places, *mask, self.b.map(rank, self.order))]
        sizes = ((2, -3), (1, -2), (0, -1))
        known = tuple(self.views[operand].size(self.b, operands[operand], axis) for operand, axis in sizes)
        return AttentionMark(
            tuple(maps), tuple(s if isinstance(s, int) else None for s in known), scale, self.attention.causal
        ).mark()

    def scratch(self, depth: Size, width: Size) -> list[ir.Value]:
        """What is too large for the stack, or may be: one tensor for all iterations, which threads cannot share then.

        Its rows are more than there are: upstream would simplify writing all of it to writing something else.
        """
        wide = accumulator_type(self.attention.dtype)
        assert isinstance(wide, ir.FloatType)
        if isinstance(depth, int) and isinstance(width, int) and _ROWS * (depth + width) * wide.width // 8 <= _ON_STACK:
            return []
        rows = self.rows + 1
        return [self.b.empty([rows, depth] if rows < FEW else [depth, rows], wide), self.b.empty([rows, width], wide)]

    def partials(self, sizes: Sequence[Size], groups: Size, keys: Size) -> list[ir.Value]:
        """Where parts of the keys leave what they find for one row per head, if these are more than a part."""
        *batch, heads, rows, width = sizes
        if rows != 1 or self._is_whole(keys) or not isinstance(heads, int) or not isinstance(groups, int):
            return []
        b, together = self.b, self._together(heads, groups)
        count = b.product([*batch, heads // together, b.arith("ceildivsi", keys, self._span)])
        columns = b.arith("addi", width, 2)
        return [b.empty([count, together, columns], accumulator_type(self.attention.dtype))]

    @property
    def _span(self) -> int:
        return self.b.key_blocks.parts * self.attention.keys

    def _is_whole(self, keys: Size) -> bool:
        """Whether keys are too few to be more than a part."""
        return self.attention.single or self.attention.causal or (isinstance(keys, int) and keys <= self._span)

    def _together(self, heads: int, groups: int) -> int:
        """The heads that are computed together: all that share keys, unless they are many."""
        shared = heads // groups if groups else 1
        return shared if shared <= _ROWS else 1

    def build(self, arguments: Sequence[ir.Value], inputs: int) -> ir.Value:
        b, operands, scratch, out = self.b, arguments[:inputs], arguments[inputs:-1], arguments[-1]
        *_, heads, rows, _ = self._sizes(out)
        groups = self.views[2].size(b, operands[2], -3)
        kernel = Rows(b, self.attention, operands, self.views, self.order, self.rows)
        if len(scratch) == 2:
            return self._all(replace(kernel, size=self.rows + 1, given=scratch), out)
        shared = heads // groups if isinstance(heads, int) and isinstance(groups, int) and groups else 1
        together = replace(kernel, size=shared if shared <= _ROWS else 1, by_head=True)
        if scratch:
            return self._in_parts(together, out, *scratch)
        if isinstance(rows, int):
            return self._all(together if rows < _BY_HEAD and (rows == 1 or shared > 1) else kernel, out)
        few = Scalar(rows).compare("lt", _BY_HEAD).value
        return choose(b, few, out.type, lambda: self._all(together, out), lambda: self._all(kernel, out))

    def _sizes(self, out: ir.Value) -> list[Size]:
        """The result's, given how it is stored."""
        return [self.b.dim(out, self.order.index(axis)) for axis in range(len(self.order))]

    def _in_parts(self, kernel: Rows, out: ir.Value, partials: ir.Value) -> ir.Value:
        """One row of each head, by parts of the keys, which threads share, and then by head."""
        b, groups, keys = self.b, kernel.dim(2, -3), kernel.dim(2, -2)
        *batch, heads, _, _ = self._sizes(out)
        ratio = b.arith("divsi", heads, b.arith("maxsi", groups, 1))
        sizes, parts = [*batch, groups, b.arith("divsi", ratio, kernel.size)], b.arith("ceildivsi", keys, self._span)

        def place(indices: Sequence[Size]) -> RowsPlace:
            *outer, group, number = indices
            head = b.arith("addi", b.arith("muli", group, ratio), b.arith("muli", number, kernel.size))
            query, key, value = ([*self._batch(i, outer), group if i else head] for i in range(3))
            return RowsPlace(query, key, value, [*outer, head], 0, 1)

        def first(indices: Sequence[Size]) -> Size:
            number: Size = 0
            for index, size in zip(indices, sizes, strict=True):
                number = b.arith("addi", b.arith("muli", number, size), index)
            return b.arith("muli", number, parts)

        def part(indices: list[Size], found: ir.Value) -> ir.Value:
            *heads, which = indices
            return kernel.part(place(heads), which, self._span, b.arith("addi", first(heads), which), found)

        found = flat_loop(b, [*sizes, parts], partials, part, self._shared(kernel))
        return flat_loop(b, sizes, out, lambda i, result: kernel.merged(place(i), parts, first(i), found, result))

    def _shared(self, kernel: Rows) -> list[tuple[int, int]]:
        """What all scores take, for :data:`~relaxir.lowering.marks.SHARED`."""
        of_query = range(value_type(kernel.operands[0]).rank)
        return [*((0, axis) for axis in of_query), (1, self.views[1].axis(-2))]

    def _all(self, kernel: Rows, out: ir.Value) -> ir.Value:
        """All rows of all heads."""
        b, groups = self.b, kernel.dim(2, -3)
        *batch, heads, rows, _ = self._sizes(out)
        ratio = b.arith("divsi", heads, b.arith("maxsi", groups, 1))
        step, at_once = (kernel.size, 1) if kernel.by_head else (1, min(kernel.size, _ROWS))

        def block(indices: list[Size], result: ir.Value) -> ir.Value:
            *outer, group, number, which = indices
            head = b.arith("addi", b.arith("muli", group, ratio), b.arith("muli", number, step))
            first = b.arith("muli", which, at_once)
            whole = at_once == 1 or (isinstance(rows, int) and rows % at_once == 0 and not kernel.given)
            count = at_once if whole else b.arith("minsi", b.arith("subi", rows, first), at_once)
            query, key, value = ([*self._batch(i, outer), group if i else head] for i in range(3))
            return kernel.build(RowsPlace(query, key, value, [*outer, head], first, count), result)

        sizes = [*batch, groups, b.arith("divsi", ratio, step), b.arith("ceildivsi", rows, at_once)]
        return flat_loop(b, sizes, out, block, [] if kernel.given else self._shared(kernel))

    def _batch(self, operand: int, indices: Sequence[Size]) -> list[Size]:
        return [0 if e == ZERO else indices[e] for e in self.where[operand]]

"""Sorting along an axis: positions, merged run by run in a kernel of scalar loops.

Runs of one element are in order. Each pass makes runs twice as long: a loop over the row takes of two neighbours whichever is
first, of equals the left one, into memory beside, and another one copies back. A row of n elements takes n log2 n steps.

Long rows of integers and floats are sorted by digits instead (:mod:`.radix_sort`).

Where only a few first positions are read, an element that comes before the last of them is put in its place among them: for one
that does not a row takes one comparison.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence

from ...dialect.bindings import ir
from ...dialect.inference import normalize_axis
from ...dialect.op import attrs_of
from ..marks import SORT
from .builder import LinalgBuilder, Size, read, value_type
from .element_order import precedes
from .kernel import call_kernel, choose_all, loop
from .radix_sort import LEAST_ROW, RadixRow, has_keys
from .registry import Source, lowering
from .scalar import Scalar, emit, minimum, select
from .slicing import extract_slice, insert_slice

__all__: list[str] = []

_MOST_PASSES = 48  # memory is not larger

# As many first positions are looked for one by one. In the worst order of elements each comes before the last one found, which
# takes as long as sorting 2,000. Of random rows of 1,024 the first 8 take 3.1 us instead of 86; of 32,000 the first 50 take 120
# instead of 4,550.
_MOST_FIRST = 64


@lowering("relax.argsort")
def _lower_argsort(b: LinalgBuilder, source: Source) -> ir.Value:
    (x,) = source.operands
    axis, descending = normalize_axis(source.attrs["axis"], x.rank), source.attrs["descending"]
    sizes, i64 = b.sizes(x), ir.IntegerType.get_signless(64)
    count = _wanted(source.op, axis)

    element, size = value_type(x.value).element_type, sizes[axis]
    by_digits = count is None and has_keys(element) and not (isinstance(size, int) and size < LEAST_ROW)

    def body(given: Sequence[ir.Value]) -> ir.Value:
        kinds = _RadixRows if by_digits else _Rows
        rows = kinds if count is None else functools.partial(_FirstOfRows, count)
        return rows(b, given[0], x.dtype, axis, descending).sorted(given[1:-1], given[-1])

    key = (str(x.dtype), str(axis), str(descending), str(count))
    mark = {"axis": ir.IntegerAttr.get(i64, axis), "descending": ir.BoolAttr.get(descending), "dtype": ir.TypeAttr.get(x.dtype)}
    beside = [b.empty([size], i64) if count is None else b.empty([count], element)]
    if by_digits:
        beside = RadixRow(b, element, x.dtype, descending).scratch(size)
    marks = {SORT: ir.DictAttr.get(mark)}
    return call_kernel(b, "argsort", [x.value], b.empty(sizes, i64), key, body, beside, marks=marks)


def _wanted(op: ir.OpView, axis: int) -> int | None:
    """How many first positions are read, where these are few; else None."""
    ends = [_end(use.owner, axis) for use in op.operation.results[0].uses]
    known = [end for end in ends if end is not None and 0 < end <= _MOST_FIRST]
    return max(known) if known and len(known) == len(ends) else None


def _end(user: ir.OpView, axis: int) -> int | None:
    """Where a slice along one axis ends that begins at a place known; None of another user."""
    if user.operation.name != "relax.strided_slice":
        return None
    attrs = attrs_of(user)
    begins, ends = attrs["begin"], attrs["end"]
    if list(attrs["axes"]) != [axis] or not isinstance(begins[0], int) or not isinstance(ends[0], int) or begins[0] < 0:
        return None
    return ends[0]


class _Rows:
    """The rows of a tensor along an axis, while they are sorted."""

    def __init__(self, b: LinalgBuilder, x: ir.Value, dtype: ir.Type, axis: int, descending: bool):
        self._b, self._x, self._dtype, self._axis, self._descending = b, x, dtype, axis, descending
        self._sizes = b.value_sizes(x)
        self._size = Scalar(b.as_index(self._sizes[axis]))
        self._last = self._size - 1
        self._passes = self._pass_count()

    def sorted(self, beside: Sequence[ir.Value], out: ir.Value) -> ir.Value:
        """All rows, one after the other; ``beside`` is memory for one."""
        others = [d for d in range(len(self._sizes)) if d != self._axis]

        def nest(at: dict[int, Size], *memory: ir.Value) -> list[ir.Value]:
            if len(at) == len(others):
                return self._row(at, *memory)
            axis = others[len(at)]
            return loop(self._b, self._sizes[axis], memory, lambda i, *m: nest({**at, axis: i}, *m))

        return nest({}, *beside, out)[-1]

    def _pass_count(self) -> Size:
        """How often a run of one element is doubled until it has all."""
        size = self._sizes[self._axis]
        if isinstance(size, int):
            return max(size - 1, 0).bit_length()
        index = ir.IndexType.get()
        longer = [emit("arith.index_castui", index, self._size.compare("gt", 1 << i).value) for i in range(_MOST_PASSES)]
        count = Scalar(longer[0])
        for each in longer[1:]:
            count = count + Scalar(each)
        return count.value

    def _row(self, at: dict[int, Size], *memory: ir.Value) -> list[ir.Value]:
        beside, out = memory
        b, length = self._b, self._sizes[self._axis]
        (out,) = loop(b, length, [out], lambda i, r: [self._put(r, at, i, self._as_i64(i))])

        def merge(number: ir.Value, beside: ir.Value, out: ir.Value) -> list[ir.Value]:
            run = Scalar(b.number(1)) << Scalar(number)
            start = b.number(0)
            merged = loop(b, length, [start, start, beside], lambda i, *c: self._take(Scalar(i), run, at, out, *c))[2]

            def back(i: ir.Value, result: ir.Value) -> list[ir.Value]:
                return [self._put(result, at, i, read(merged, [Scalar(i)]))]

            return [merged, loop(b, length, [out], back)[0]]

        return loop(b, self._passes, [beside, out], merge)

    def _take(
        self, i: Scalar, run: Scalar, at: dict[int, Size], order: ir.Value, left: ir.Value, right: ir.Value, beside: ir.Value
    ) -> list[ir.Value]:
        """The ``i``-th place of a pass: ``left`` and ``right`` are the next of two neighbouring runs."""
        begin = i & (0 - (run << 1))
        is_first = i.compare("eq", begin)
        middle, end = minimum(begin + run, self._size), minimum(begin + (run << 1), self._size)
        first, second = select(is_first, i, Scalar(left)), select(is_first, middle, Scalar(right))
        candidates = [self._get(order, at, minimum(p, self._last)) for p in (first, second)]
        is_left = first.compare("lt", middle) & (second.compare("ge", end) | ~self._precedes(at, candidates[1], candidates[0]))
        chosen = select(is_left, Scalar(candidates[0]), Scalar(candidates[1]))
        step = Scalar(emit("arith.index_castui", ir.IndexType.get(), is_left.value))
        placed = emit("tensor.insert", beside.type, chosen.value, beside, i.value)
        return [(first + step).value, (second + (1 - step)).value, placed]

    def _precedes(self, at: dict[int, Size], one: ir.Value, other: ir.Value) -> Scalar:
        """Whether the element at one position comes before that at another in any order of equals."""
        found = [Scalar(emit("arith.index_cast", ir.IndexType.get(), p)) for p in (one, other)]
        x, y = (self._get(self._x, at, p) for p in found)
        return precedes(x, y, self._dtype, descending=self._descending)

    def _as_i64(self, i: ir.Value) -> ir.Value:
        return emit("arith.index_cast", ir.IntegerType.get_signless(64), i)

    def _places(self, at: dict[int, Size], along: ir.Value) -> list[ir.Value]:
        return [along if d == self._axis else self._b.as_index(at[d]) for d in range(len(self._sizes))]

    def _get(self, tensor: ir.Value, at: dict[int, Size], along: Scalar) -> ir.Value:
        return read(tensor, [Scalar(p) for p in self._places(at, along.value)])

    def _put(self, tensor: ir.Value, at: dict[int, Size], along: ir.Value, value: ir.Value) -> ir.Value:
        return emit("tensor.insert", tensor.type, value, tensor, *self._places(at, along))


class _RadixRows(_Rows):
    """The rows of a tensor along an axis that are sorted by digits, but for short ones."""

    def _row(self, at: dict[int, Size], *memory: ir.Value) -> list[ir.Value]:
        *scratch, out = memory
        row = RadixRow(self._b, value_type(self._x).element_type, self._dtype, self._descending)

        def by_digits() -> list[ir.Value]:
            def put(out: ir.Value, where: ir.Value, position: ir.Value) -> ir.Value:
                return self._put(out, at, where, position)

            return row.sort(self._size, scratch, out, lambda i: self._get(self._x, at, i), put)

        def merged() -> list[ir.Value]:
            keys, positions, counts = scratch
            where = [0, 0], [1, self._sizes[self._axis]]
            beside, result = super(_RadixRows, self)._row(at, extract_slice(positions, *where, [1]), out)
            return [keys, insert_slice(self._b, beside, positions, *where, [1]), counts, result]

        if isinstance(self._sizes[self._axis], int):
            return by_digits()
        is_long = self._size.compare("ge", LEAST_ROW)
        return choose_all(self._b, is_long.value, [v.type for v in memory], by_digits, merged)


class _FirstOfRows(_Rows):
    """The rows of a tensor along an axis, while the first elements of each are found; memory beside holds these."""

    def __init__(self, count: int, b: LinalgBuilder, x: ir.Value, dtype: ir.Type, axis: int, descending: bool):
        super().__init__(b, x, dtype, axis, descending)
        self._count = count

    def _row(self, at: dict[int, Size], *memory: ir.Value) -> list[ir.Value]:
        beside, out = memory
        b, count = self._b, self._count
        beside, out = loop(
            b, minimum(Scalar(b.number(count)), self._size).value, [beside, out], functools.partial(self._add, at)
        )
        return loop(b, (self._size - count).value, [beside, out], functools.partial(self._replace, at))

    def _add(self, at: dict[int, Size], i: ir.Value, beside: ir.Value, out: ir.Value) -> list[ir.Value]:
        """One of the first elements of a row, of which all are kept."""
        beside, out, last, place = self._inserted(at, i, i, beside, out)
        return [emit("tensor.insert", beside.type, last, beside, i), self._put(out, at, i, place)]

    def _replace(self, at: dict[int, Size], i: ir.Value, beside: ir.Value, out: ir.Value) -> list[ir.Value]:
        """A later element, which takes its place among those found where it comes before the last one."""
        along = (Scalar(i) + self._count).value
        element = self._get(self._x, at, Scalar(along))
        last = read(beside, [Scalar(self._b.number(self._count - 1))])
        is_before = precedes(element, last, self._dtype, descending=self._descending)
        found = self._b.number(self._count)
        types = [beside.type, out.type]
        return choose_all(
            self._b, is_before.value, types, lambda: self._inserted(at, along, found, beside, out)[:2], lambda: [beside, out]
        )

    def _inserted(
        self, at: dict[int, Size], along: ir.Value, found: ir.Value, beside: ir.Value, out: ir.Value
    ) -> list[ir.Value]:  # fmt: skip
        """An element put among those found, and the one that has no place then, with its position."""
        element = self._get(self._x, at, Scalar(along))
        no = emit("arith.constant", ir.IntegerType.get_signless(1), value=ir.BoolAttr.get(False))

        def step(
            i: ir.Value, beside: ir.Value, out: ir.Value, moved: ir.Value, place: ir.Value, moving: ir.Value
        ) -> list[ir.Value]:
            there, position = read(beside, [Scalar(i)]), self._get(out, at, Scalar(i))
            moves = Scalar(moving) | precedes(moved, there, self._dtype, descending=self._descending)
            kept, kept_place = (select(moves, Scalar(a), Scalar(c)).value for a, c in ((moved, there), (place, position)))
            next_, next_place = (select(moves, Scalar(a), Scalar(c)).value for a, c in ((there, moved), (position, place)))
            placed = emit("tensor.insert", beside.type, kept, beside, i)
            return [placed, self._put(out, at, i, kept_place), next_, next_place, moves.value]

        return loop(self._b, found, [beside, out, element, self._as_i64(along), no], step)[:4]

"""Sorting along an axis: positions, merged run by run in a kernel of scalar loops.

Runs of one element are in order. Each pass makes runs twice as long: a loop over the row takes of two neighbours whichever is
first, of equals the left one, into memory beside, and another one copies back. A row of n elements takes n log2 n steps.
"""

from __future__ import annotations

from collections.abc import Sequence

from ...dialect.bindings import ir
from ...dialect.inference import normalize_axis
from ..marks import SORT
from .builder import LinalgBuilder, Size, read
from .element_order import precedes
from .kernel import call_kernel, loop
from .registry import Source, lowering
from .scalar import Scalar, emit, minimum, select

__all__: list[str] = []

_MOST_PASSES = 48  # memory is not larger


@lowering("relax.argsort")
def _lower_argsort(b: LinalgBuilder, source: Source) -> ir.Value:
    (x,) = source.operands
    axis, descending = normalize_axis(source.attrs["axis"], x.rank), source.attrs["descending"]
    sizes, i64 = b.sizes(x), ir.IntegerType.get_signless(64)

    def body(given: Sequence[ir.Value]) -> ir.Value:
        return _Rows(b, given[0], x.dtype, axis, descending).sorted(given[1], given[2])

    key = (str(x.dtype), str(axis), str(descending))
    mark = {"axis": ir.IntegerAttr.get(i64, axis), "descending": ir.BoolAttr.get(descending), "dtype": ir.TypeAttr.get(x.dtype)}
    marks, beside = {SORT: ir.DictAttr.get(mark)}, [b.empty([sizes[axis]], i64)]
    return call_kernel(b, "argsort", [x.value], b.empty(sizes, i64), key, body, beside, marks=marks)


class _Rows:
    """The rows of a tensor along an axis, while they are sorted."""

    def __init__(self, b: LinalgBuilder, x: ir.Value, dtype: ir.Type, axis: int, descending: bool):
        self._b, self._x, self._dtype, self._axis, self._descending = b, x, dtype, axis, descending
        self._sizes = b.value_sizes(x)
        self._size = Scalar(b.as_index(self._sizes[axis]))
        self._last = self._size - 1
        self._passes = self._pass_count()

    def sorted(self, beside: ir.Value, out: ir.Value) -> ir.Value:
        """All rows, one after the other; ``beside`` holds one."""
        others = [d for d in range(len(self._sizes)) if d != self._axis]

        def nest(at: dict[int, Size], beside: ir.Value, out: ir.Value) -> list[ir.Value]:
            if len(at) == len(others):
                return self._row(at, beside, out)
            axis = others[len(at)]
            return loop(self._b, self._sizes[axis], [beside, out], lambda i, s, r: nest({**at, axis: i}, s, r))

        return nest({}, beside, out)[1]

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

    def _row(self, at: dict[int, Size], beside: ir.Value, out: ir.Value) -> list[ir.Value]:
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

"""Parts of tensors, chosen by indices or by ranges.

Indices are data, so they are checked at run time: the entry reports one that is out of range. Reads are limited to the tensor
all the same, because a reader may have been fused and moved before the check.
"""

from __future__ import annotations

from collections.abc import Sequence

from ...dialect.analysis.index_range import reads_inside
from ...dialect.bindings import func, ir
from ...dialect.errors import RelaxError
from ...dialect.inference import normalize_axis
from ...dialect.ops.indexing import NO_SIZE_REACHES
from ...dialect.symbolic import Dim
from ..entries import entry_of
from .builder import Input, LinalgBuilder, Size, read, value_type
from .conversion import load, store
from .kernel import call_kernel, loop, nested_loop
from .manipulate import sliced
from .registry import Source, lowering
from .scalar import Scalar, emit, maximum, minimum, select
from .slicing import extract_slice, insert_slice

__all__: list[str] = []


@lowering("relax.take")
def _lower_take(b: LinalgBuilder, source: Source) -> ir.Value:
    x, indices = source.operands
    axis = normalize_axis(source.attrs["axis"], x.rank)
    size, sizes = b.size(x, axis), b.sizes(x)
    after = axis + indices.rank
    _check_range(b, source, size)
    bound = _Bound(b, size, source.attrs["wrap_negative_indices"])

    def element(loops: list[Scalar], position: ir.Value) -> ir.Value:
        return read(x.value, [*loops[:axis], bound.position(load(position, indices.dtype)), *loops[after:]])

    shape = [*sizes[:axis], *b.sizes(indices), *sizes[axis + 1 :]]
    return b.gather(shape, value_type(x.value).element_type, element, (indices.value, range(axis, after)))


@lowering("relax.packed_take")
def _lower_packed_take(b: LinalgBuilder, source: Source) -> ir.Value:
    weight, indices = source.operands
    n, tile, k = source.attrs["n"], source.attrs["layout"].tile, b.size(weight, 1)
    _check_range(b, source, n)
    bound = _Bound(b, n, source.attrs["wrap_negative_indices"])

    def element(loops: list[Scalar], position: ir.Value) -> ir.Value:
        row = bound.position(load(position, indices.dtype))
        return read(weight.value, [row / tile, loops[-1], row % tile])

    shape = [*b.sizes(indices), k]
    return b.gather(shape, value_type(weight.value).element_type, element, (indices.value, range(indices.rank)))


@lowering("relax.gather_elements")
def _lower_gather_elements(b: LinalgBuilder, source: Source) -> ir.Value:
    x, indices = source.operands
    axis = normalize_axis(source.attrs["axis"], x.rank)
    size = b.size(x, axis)
    _check_range(b, source, size)
    bound = _Bound(b, size, source.attrs["wrap_negative_indices"])

    def element(loops: list[Scalar], position: ir.Value) -> ir.Value:
        chosen = bound.position(load(position, indices.dtype))
        return read(x.value, [chosen if d == axis else i for d, i in enumerate(loops)])

    return b.gather(b.sizes(indices), value_type(x.value).element_type, element, (indices.value, range(x.rank)))


@lowering("relax.gather_nd")
def _lower_gather_nd(b: LinalgBuilder, source: Source) -> ir.Value:
    x, indices = source.operands
    batch, outer = source.attrs["batch_dims"], indices.rank - 1
    depth = value_type(indices.value).shape[-1]
    sizes = b.sizes(x)
    bounds = [_Bound(b, sizes[batch + i], source.attrs["wrap_negative_indices"]) for i in range(depth)]
    for axis, bound in enumerate(bounds):
        _check_range(b, source, bound.size, axis)

    def element(loops: list[Scalar], *positions: ir.Value) -> ir.Value:
        chosen = [bound.position(load(p, indices.dtype)) for bound, p in zip(bounds, positions, strict=True)]
        return read(x.value, [*loops[:batch], *chosen, *loops[outer:]])

    inputs: list[Input] = [(indices.value, [*range(outer), ir.AffineExpr.get_constant(i)]) for i in range(depth)]
    shape = [*b.sizes(indices)[:-1], *sizes[batch + depth :]]
    return b.gather(shape, value_type(x.value).element_type, element, *inputs)


@lowering("relax.index_copy")
def _lower_index_copy(b: LinalgBuilder, source: Source) -> ir.Value:
    """One kernel that writes the values into ``x`` itself; bufferization copies ``x`` first where something still reads it."""
    x, indices, values = source.operands
    axis = normalize_axis(source.attrs["axis"], x.rank)
    wraps = source.attrs["wrap_negative_indices"]
    state = _state_name(source.op.operands[0])
    _check_range(b, source, b.size(x, axis), note=f" of state '{state}': one that is full takes no more" if state else "")

    def body(arguments: Sequence[ir.Value]) -> ir.Value:
        given, where, out = arguments
        sizes = b.value_sizes(out)
        bound = _Bound(b, sizes[axis], wraps)
        extent = [1 if i == axis else size for i, size in enumerate(sizes)]

        def at(position: Size) -> list[Size]:
            return [position if i == axis else 0 for i in range(x.rank)]

        def write(i: ir.Value, into: ir.Value) -> list[ir.Value]:
            position = bound.position(load(read(where, [Scalar(i)]), indices.dtype))
            slice_ = extract_slice(given, at(i), extent, x.rank)
            if extent == sizes:  # an insertion of all there is would be what is inserted, and nothing would be written
                return [emit("bufferization.materialize_in_destination", into.type, slice_, into)]
            return [insert_slice(b, slice_, into, at(position.value), extent)]

        return loop(b, b.dim(where, 0), [out], write)[0]

    key = (str(axis), str(indices.dtype), str(wraps))
    return call_kernel(b, "index_copy", [values.value, indices.value], x.value, key, body)


@lowering("relax.scatter_elements")
def _lower_scatter_elements(b: LinalgBuilder, source: Source) -> ir.Value:
    """One kernel that goes through the updates in the order of memory, and writes into ``x`` itself: whole rows at once, where
    one index says where each goes.
    """
    x, indices, updates = source.operands
    axis, reduction = normalize_axis(source.attrs["axis"], x.rank), source.attrs["reduction"]
    wraps = source.attrs["wrap_negative_indices"]
    _check_range(b, source, b.size(x, axis))
    others = [d for d in range(x.rank) if d != axis]
    by_rows = axis < x.rank - 1 and all(indices.shape[d] == 1 for d in others) and updates.shape[-1] != 1

    def body(arguments: Sequence[ir.Value]) -> ir.Value:
        scatter = _Scatter(b, arguments, axis, (indices.dtype, x.dtype), reduction, wraps)
        return scatter.rows(others) if by_rows else scatter.elements()

    key = (str(axis), str(x.dtype), str(indices.dtype), reduction, str(wraps))
    return call_kernel(b, "scatter_elements", [indices.value, updates.value], x.value, key, body)


class _Scatter:
    """The body of a kernel that puts updates where indices say."""

    def __init__(
        self,
        b: LinalgBuilder,
        arguments: Sequence[ir.Value],
        axis: int,
        dtypes: tuple[ir.Type, ir.Type],
        reduction: str,
        wraps: bool,
    ):
        self._b, self._axis, self._reduction = b, axis, reduction
        self._where, self._given, self._out = arguments
        self._index_dtype, self._dtype = dtypes
        self._bound = _Bound(b, b.dim(self._out, axis), wraps)
        self._are_alike = [size == 1 for size in b.value_sizes(self._where)]

    def elements(self) -> ir.Value:
        b = self._b

        def write(at: list[Size], into: ir.Value) -> ir.Value:
            places = [Scalar(b.as_index(i)) for i in at]
            to = [self._position(places) if d == self._axis else i for d, i in enumerate(places)]
            update = read(self._given, places)
            there = update if self._reduction == "update" else self._made(read(into, to), update)
            return emit("tensor.insert", into.type, there, into, *(i.value for i in to))

        return nested_loop(b, b.value_sizes(self._given), self._out, write)

    def rows(self, others: list[int]) -> ir.Value:
        """Where an index is for all other dimensions."""
        b, loops = self._b, range(len(others))
        extent: list[Size] = [1 if d == self._axis else size for d, size in enumerate(b.value_sizes(self._out))]

        def at(position: Size) -> list[Size]:
            return [position if d == self._axis else 0 for d in range(len(extent))]

        def write(i: ir.Value, into: ir.Value) -> list[ir.Value]:
            to = at(self._position([Scalar(i)] * len(extent)).value)
            update = extract_slice(self._given, at(i), extent, others)
            there = extract_slice(into, to, extent, others)
            made = b.generic("p" * len(others), [(update, loops)], there, lambda new, old: self._made(old, new))
            return [insert_slice(b, made, into, to, extent, others)]

        return loop(b, b.dim(self._where, self._axis), [self._out], write)[0]

    def _position(self, places: list[Scalar]) -> Scalar:
        """What the index at a place says; an index that is one for all of a dimension is its first."""
        first = Scalar(self._b.number(0))
        at = [first if alike else i for i, alike in zip(places, self._are_alike, strict=True)]
        return self._bound.position(load(read(self._where, at), self._index_dtype))

    def _made(self, there: ir.Value, update: ir.Value) -> ir.Value:
        if self._reduction == "update":
            return update
        return store(_combined(self._reduction, load(there, self._dtype), load(update, self._dtype)), self._dtype)


def _combined(reduction: str, there: Scalar, update: Scalar) -> Scalar:
    if reduction in ("add", "mul"):
        return there + update if reduction == "add" else there * update
    return minimum(there, update) if reduction == "min" else maximum(there, update)


class _Bound:
    """The dimension that positions are in; its size is computed once, before the bodies that use it.

    Args:
        wraps: whether a negative position counts from the end.
    """

    def __init__(self, b: LinalgBuilder, size: Size, wraps: bool):
        self.size = size
        self._wraps = wraps
        self._size = Scalar(b.as_index(size))
        self._last = self._size - 1

    def position(self, given: Scalar) -> Scalar:
        """In a body: an index counted from the start, limited to the dimension."""
        value = _as_index(given)
        if value.unsigned:
            return Scalar(minimum(value, self._last).value)
        counted = select(value.compare("lt", 0), value + self._size, value) if self._wraps else value
        return maximum(minimum(counted, self._last), 0)


def _state_name(value: ir.Value) -> str:
    """The name of the state that an argument is, such as a cache of keys; empty for anything else."""
    block = value.owner
    if not isinstance(block, ir.Block) or not isinstance(block.owner, func.FuncOp):
        return ""
    entry, index = entry_of(block.owner), ir.BlockArgument(value).arg_number
    return next((s.name for s in entry.spec.state if s.argument == index), "") if entry is not None else ""


def _check_range(b: LinalgBuilder, source: Source, size: Size, column: int | None = None, note: str = "") -> None:
    """Checks that indices lie in ``[-size, size)``, or in ``[0, size)`` where negative ones do not count from the end.

    With a column only those of that position in the last dimension.

    Once: the caches of all layers are as large, and written at the same places. Not where the ops that made them prove it.
    """
    x, indices = source.operands[:2]
    if reads_inside(source.op, x.info):
        return
    wraps = source.attrs["wrap_negative_indices"]
    message = f"expected indices in [{f'-{_text(size)}' if wraps else 0}, {_text(size)}){note}"
    if indices.splat is not None and isinstance(size, int):
        if not (-size if wraps else 0) <= indices.splat < size:
            raise RelaxError(f"{message}, got {indices.splat}")
        return
    if not b.symbols.is_new_check(("range", indices.value, size, column, wraps)):
        return
    i8 = ir.IntegerType.get_signless(8)
    limit = Scalar(b.as_index(size))
    rank = indices.rank if column is None else indices.rank - 1

    def body(given: ir.Value, fine: ir.Value) -> ir.Value:
        inside = emit("arith.extui", i8, _inside(load(given, indices.dtype), limit, wraps).value)
        return (Scalar(fine) & Scalar(inside)).value

    exprs = [*range(rank)] if column is None else [*range(rank), ir.AffineExpr.get_constant(column)]
    _check_places(b, b.product(b.sizes(indices)[:rank]), size, message)
    fine = b.generic("r" * rank, [(indices.value, exprs)], b.filled([], i8, 1), body, [])
    b.check(Scalar(read(fine, [])).compare("ne", 0).value, message, deferrable=True)


def _check_places(b: LinalgBuilder, count: Size, size: Size, message: str) -> None:
    """Checks that there is no index where its dimension has no place to limit it to: that takes sizes alone."""
    if count == 0 or (isinstance(size, int) and size > 0):
        return
    places, indices = Scalar(b.as_index(size)), Scalar(b.as_index(count))
    b.check((places.compare("gt", 0) | indices.compare("eq", 0)).value, message)


def _text(size: Size) -> str:
    return str(size) if isinstance(size, int) else "size"


def _inside(given: Scalar, limit: Scalar, wraps: bool) -> Scalar:
    value = _as_index(given)
    below = value.compare("lt", limit)
    return below if value.unsigned else below & value.compare("ge", 0 - limit if wraps else 0)


def _as_index(given: Scalar) -> Scalar:
    """An index as it is; of 64 bits without a sign, it stays without one."""
    cast = "arith.index_castui" if given.unsigned else "arith.index_cast"
    return Scalar(emit(cast, ir.IndexType.get(), given.value), unsigned=given.unsigned)


@lowering("relax.strided_slice")
def _lower_strided_slice(b: LinalgBuilder, source: Source) -> ir.Value:
    (x,) = source.operands
    attrs = source.attrs
    axes = [normalize_axis(a, x.rank, "axes") for a in attrs["axes"]]
    strides = attrs["strides"] or [1] * len(axes)
    sizes, begins = b.sizes(x), list[Size]([0] * x.rank)
    for axis, begin, end, stride in zip(axes, attrs["begin"], attrs["end"], strides, strict=True):
        if source.result.shape[axis] == 0:  # whatever its bounds are
            sizes[axis] = 0
            continue
        limited = (0, axis) in source.unknown
        begins[axis], sizes[axis] = _range(b, b.size(x, axis), (begin, end, stride), limited)
    steps = dict(zip(axes, strides, strict=True))
    exprs = [sliced(i, begins[i], steps[i], sizes[i], b.size(x, i)) if i in steps else i for i in range(x.rank)]
    known = [e for e in exprs if e is not None]
    if len(known) == x.rank:
        return b.movement(x.value, known, sizes)
    firsts = [Scalar(b.as_index(begin)) for begin in begins]

    def element(loops: list[Scalar]) -> ir.Value:
        scaled = [i * steps[d] if steps.get(d, 1) != 1 else i for d, i in enumerate(loops)]
        return read(x.value, [i if begins[d] == 0 else i + firsts[d] for d, i in enumerate(scaled)])

    return b.gather(sizes, value_type(x.value).element_type, element)


def _range(b: LinalgBuilder, size: Size, bounds: tuple[Dim, Dim, int], limited: bool) -> tuple[Size, Size]:
    """First index and length of a slice of a dimension.

    That symbolic bounds, and those in a dimension of symbolic size, lie inside has been checked; ``limited`` are those in a
    dimension of unknown size.
    """
    begin, end, stride = bounds
    bound = _limited_bound if limited else _bound
    first, last = bound(b, begin, size), bound(b, end, size)
    if limited or (isinstance(first, int) and isinstance(last, int)):
        last = b.arith("maxsi", first, last)
    span = b.arith("subi", last, first)
    return first, span if stride == 1 else b.arith("ceildivsi", span, stride)


def _bound(b: LinalgBuilder, bound: Dim, size: Size) -> Size:
    """A slice bound counted from the start. Only constants are limited to the dimension."""
    if isinstance(bound, int) and bound <= -NO_SIZE_REACHES:
        return 0
    if isinstance(bound, int) and bound < 0:
        bound_size = b.arith("addi", size, bound)
        return max(bound_size, 0) if isinstance(bound_size, int) else bound_size
    if isinstance(bound, int):
        return min(bound, size) if isinstance(size, int) else size if bound >= NO_SIZE_REACHES else bound
    return b.evaluate(bound)


@lowering("relax.dynamic_strided_slice")
def _lower_dynamic_strided_slice(b: LinalgBuilder, source: Source) -> ir.Value:
    x, begin, end = source.operands
    axes = [normalize_axis(a, x.rank, "axes") for a in source.attrs["axes"]]
    strides = source.attrs["strides"] or [1] * len(axes)
    sizes, firsts, steps = b.sizes(x), dict[int, Scalar](), dict(zip(axes, strides, strict=True))
    for i, axis in enumerate(axes):
        place = Scalar(b.number(i))
        given = (_as_index(Scalar(read(bound.value, [place]))).value for bound in (begin, end))
        first, last = (_limited(b, value, sizes[axis]) for value in given)
        span = b.arith("subi", b.arith("maxsi", first, last), first)
        firsts[axis] = Scalar(b.as_index(first))
        sizes[axis] = span if steps[axis] == 1 else b.arith("ceildivsi", span, steps[axis])

    def element(loops: list[Scalar]) -> ir.Value:
        return read(x.value, [i * steps[d] + firsts[d] if d in firsts else i for d, i in enumerate(loops)])

    return b.gather(sizes, value_type(x.value).element_type, element)


def _limited_bound(b: LinalgBuilder, bound: Dim, size: Size) -> Size:
    """A slice bound counted from the start and limited to the dimension, as in Python."""
    return _limited(b, b.evaluate(bound), size)


def _limited(b: LinalgBuilder, place: Size, size: Size) -> Size:
    if isinstance(place, int):
        place = place if place >= 0 else b.arith("addi", size, place)
    else:
        given = Scalar(place)
        place = select(given.compare("lt", 0), given + Scalar(b.as_index(size)), given).value
    return b.arith("minsi", b.arith("maxsi", place, 0), size)

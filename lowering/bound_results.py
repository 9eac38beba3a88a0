"""Results whose sizes data decides: an entry gives them in as much memory as they can need, and their sizes beside.

Before, with ``u`` rows of the ``n`` rows of ``%x``::

    %0 = "relax.dynamic_strided_slice"(%x, %begin, %end) {axes = array<i64: 0>} : ... -> tensor<?x4xf32>
    %y = "relax.match_cast"(%0) : ... -> tensor<?x4xf32, {sym = ["u"]}>
    return %y

after, so that a caller knows the memory that it passes, and the runtime which part of it is the result::

    %rows = "relax.arange"() {start = [0], end = ["u"], step = [1]} : () -> tensor<?xi64, {sym = ["u"]}>
    %all = "relax.index_copy"(%zeros, %rows, %y) {axis = 0} : ... -> tensor<?x4xf32, {sym = ["n"]}>
    %sizes = tensor<2xi64> of u and 4
    return %all, %sizes
"""

from __future__ import annotations

from collections.abc import Collection

from ..dialect.analysis.known_sizes import KnownSizes, known_sizes
from ..dialect.bindings import func, ir
from ..dialect.functions import argument_names, body_of, set_names, terminator, update_type
from ..dialect.ops import Arange, Concat, DynamicStridedSlice, ExpandDims, Full, IndexCopy, MatchCast, ShapeValue
from ..dialect.size_choices import alternatives
from ..dialect.struct_info import TensorInfo, is_tensor
from ..dialect.symbolic import Dim, Expr, substitute, symbol
from ..dialect.weights import full_result_names

__all__ = ["bound_results"]


def bound_results(function: func.FuncOp, symbols: Collection[str]) -> list[tuple[str, str]]:
    """Rewrites an entry in place; what each such result is called, with the name of the result that has its sizes.

    A result whose sizes have no bound in terms of the arguments' stays as it is.

    Args:
        function: the entry.
        symbols: those that arguments determine.
    """
    block = body_of(function)
    assert block is not None
    end = terminator(block)
    values = [v for v in end.operands if is_tensor(v)]
    dims = [d for v in values for d in TensorInfo.of(v).shape]
    if all(isinstance(d, int) or (isinstance(d, Expr) and d.names <= set(symbols)) for d in dims):
        return []
    bounds, names = _Bounds(known_sizes(function), frozenset(symbols)), full_result_names(function)
    found: list[tuple[str, str]] = []
    more: list[ir.Value] = []
    with ir.InsertionPoint(end), end.location:
        for i, value in enumerate(end.operands):
            shape = bounds.of(value)
            if shape is not None:
                named = _named(value, f"{function.name.value}_{i}")
                end.operands[i] = _widened(named, shape)
                more.append(_sizes(named))
                found.append((names[i], f"{names[i]}.sizes"))
        if found:
            ir.Operation.create("func.return", operands=[*end.operands, *more])
    if found:
        arguments = argument_names(function)
        end.erase()
        update_type(function)
        set_names(function, arguments, [*names, *(sizes for _, sizes in found)])
    return found


class _Bounds:
    """How large sizes can be that slices by data have, in terms of the arguments' sizes."""

    def __init__(self, known: KnownSizes, symbols: frozenset[str]):
        self._known, self._symbols = known, symbols

    def of(self, value: ir.Value) -> tuple[int | Expr, ...] | None:
        """A shape that holds the value; None where the arguments determine its own, or nothing bounds it."""
        if not is_tensor(value):
            return None
        shape = self._known.by_arguments(value)
        if all(self._is_given(d) for d in shape):
            return None
        bounds = [self._bound(d) for d in shape]
        found = tuple(d for d in bounds if d is not None)
        return found if len(found) == len(bounds) else None

    def _is_given(self, dim: int | Expr) -> bool:
        return isinstance(dim, int) or dim.names <= self._symbols

    def _bound(self, dim: int | Expr) -> Dim:
        """At least as large as a size: sums and products of bounds, where nothing is taken off."""
        if isinstance(dim, int) or self._is_given(dim):
            return dim
        choice = alternatives(dim)
        if choice is not None:  # as large as both would be together, where neither is known to be larger
            both = [self._bound(d) for d in choice]
            return None if both[0] is None or both[1] is None else _at_least_both(both[0], both[1])
        limits: dict[str, int | Expr] = {}
        for name in dim.names - self._symbols:
            limit = self._largest(name)
            if limit is None:
                return None
            limits[name] = limit
        for atoms, factor in dim.terms:
            grows = factor > 0 and all(a.isidentifier() for a in atoms)
            if not grows and not Expr({atoms: 1}).names <= self._symbols:
                return None
        return substitute(dim, limits)

    def _largest(self, name: str) -> Dim:
        """The largest size of a dimension that has a name of its own."""
        place = self._known.opened.get(name)
        owner = None if place is None or isinstance(place[0], ir.BlockArgument) else place[0].owner.opview
        if place is None or not isinstance(owner, DynamicStridedSlice):
            return None
        x = TensorInfo.of(owner.operands[0])
        axes = [a % x.rank for a in ir.DenseI64ArrayAttr(owner.attributes["axes"])]
        if place[1] not in axes:
            return None
        strides = list(ir.DenseI64ArrayAttr(owner.attributes["strides"])) if "strides" in owner.attributes else [1] * len(axes)
        whole, stride = self._bound(self._known.by_arguments(owner.operands[0])[place[1]]), strides[axes.index(place[1])]
        return None if whole is None else whole if stride == 1 else (whole + stride - 1) // stride


def _at_least_both(a: int | Expr, b: int | Expr) -> int | Expr:
    return max(a, b) if isinstance(a, int) and isinstance(b, int) else a if a == b else a + b


def _named(value: ir.Value, prefix: str) -> ir.Value:
    """The value with symbols for sizes that have none."""
    info = TensorInfo.of(value)
    shape = [symbol(f"{prefix}_{axis}") if d is None else d for axis, d in enumerate(info.shape)]
    return value if list(info.shape) == shape else MatchCast.create(value, result_types=[info.with_(shape=shape).type]).result


def _widened(value: ir.Value, bounds: tuple[int | Expr, ...]) -> ir.Value:
    """The value in the first places of a tensor of these sizes; zeros behind it."""
    info = TensorInfo.of(value)
    for axis, (size, bound) in enumerate(zip(info.shape, bounds, strict=True)):
        if size == bound:
            continue
        info = info.with_(shape=[*info.shape[:axis], bound, *info.shape[axis + 1 :]])
        zeros = Full.create(value=0, result_types=[info.type]).result
        i64 = TensorInfo((size,), ir.IntegerType.get_signless(64))
        places = Arange.create(start=[0], end=[size], step=[1], result_types=[i64.type]).result
        value = IndexCopy.create(zeros, places, value, axis=axis).result
    return value


def _sizes(value: ir.Value) -> ir.Value:
    """The sizes of a tensor as elements."""
    i64 = ir.IntegerType.get_signless(64)
    found: ir.Value | None = None
    for dim in TensorInfo.of(value).shape:
        one = ShapeValue.create(value=[dim], result_types=[TensorInfo((), i64).type]).result
        row = ExpandDims.create(one, axis=[0]).result
        found = row if found is None else Concat.create(found, row, axis=0).result
    assert found is not None
    return found

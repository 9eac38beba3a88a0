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

from collections.abc import Collection, Sequence

from ..dialect.analysis.known_sizes import KnownSizes, Shape, argument_shapes, known_sizes
from ..dialect.bindings import func, ir
from ..dialect.functions import argument_names, body_of, set_names, terminator, update_type
from ..dialect.op import EffectOp, attrs_of
from ..dialect.ops import Arange, Concat, DynamicStridedSlice, ExpandDims, Full, IndexCopy, MatchCast, ShapeValue, StridedSlice
from ..dialect.ops.indexing import NO_SIZE_REACHES
from ..dialect.size_choices import alternatives
from ..dialect.struct_info import TensorInfo, is_tensor
from ..dialect.symbolic import Dim, Expr, divided, multiply_all, symbol
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
    unnamed = {a: shape for a, shape in argument_shapes(function).items() if None in TensorInfo.of(a).shape}
    with ir.InsertionPoint(end), end.location:
        for i, value in enumerate(end.operands):
            shape = bounds.of(value)
            if shape is not None:
                _name_arguments(unnamed, {n for d in shape if isinstance(d, Expr) for n in d.names})
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


#: Of loops, how many operands and arguments of their bodies are before those that iterations pass on.
_CARRIED = {"scf.for": (3, 1), "scf.while": (0, 0)}


#: Rows for which memory is taken though the dimension may have fewer.
_FEW = 1024


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
        """At least as large as a size: sums and products of bounds; what is taken off may be nothing."""
        if isinstance(dim, int) or self._is_given(dim):
            return dim
        choice = alternatives(dim)
        if choice is not None:  # as large as both would be together, where neither is known to be larger
            return _both([self._bound(d) for d in choice])
        total: int | Expr = 0
        for atoms, factor in dim.terms:
            term = Expr({atoms: factor})
            if self._is_given(term):
                total = total + term
            elif not all(map(_is_never_negative, atoms)) and (factor < 0 or len(atoms) > 1):
                return None
            elif factor > 0:
                limit = multiply_all([factor, *(self._atom(a) for a in atoms)])
                if limit is None:
                    return None
                total = total + limit
        return total

    def _atom(self, atom: str) -> Dim:
        """At least as large as a symbol, a quotient or a remainder, which is not negative."""
        if atom in self._symbols:
            return symbol(atom)
        if atom.isidentifier():
            return self._largest(atom)
        dividend, divisor, is_remainder = divided(atom)
        if dividend is None or divisor is None:
            return None
        if is_remainder:
            return self._bound(divisor)
        limit = self._bound(dividend)
        return limit if limit is None or not isinstance(divisor, int) else limit // divisor

    def _largest(self, name: str) -> Dim:
        """The largest size of a dimension that has a name of its own."""
        place = self._known.opened.get(name)
        if place is None or isinstance(place[0], ir.BlockArgument):
            return None
        value, axis = place
        owner = value.owner.opview
        if isinstance(owner, DynamicStridedSlice | StridedSlice):
            return self._largest_slice(owner, axis)
        number = ir.OpResult(value).result_number
        if owner.operation.name == "scf.if":
            yielded = [terminator(region.blocks[0]).operands[number] for region in owner.operation.regions]
            return _both([self._bound(self._size(v, axis)) for v in yielded])
        if owner.operation.name in _CARRIED:
            return self._largest_carried(owner.operation, number, axis)
        return None

    def _size(self, value: ir.Value, axis: int) -> int | Expr:
        return self._known.by_arguments(value)[axis]

    def _largest_carried(self, loop: ir.Operation, number: int, axis: int) -> Dim:
        """What a loop begins with, where each of its regions passes on what is as large as what it was given."""
        operands, inner = _CARRIED[loop.name]
        for region in loop.regions:
            block = region.blocks[0]
            end = terminator(block)
            passed = end.operands[number + (1 if end.name == "scf.condition" else 0)]
            if self._size(passed, axis) != self._size(block.arguments[number + inner], axis):
                return None
        return self._bound(self._size(loop.operands[number + operands], axis))

    def _largest_slice(self, op: EffectOp, axis: int) -> Dim:
        """What a slice leaves of all, or what is between its bounds where that is little, or nothing bounds all."""
        x, attrs = op.operands[0], attrs_of(op)
        axes = [a % TensorInfo.of(x).rank for a in attrs["axes"]]
        if axis not in axes:
            return None
        i = axes.index(axis)
        limit, between = self._bound(self._size(x, axis)), None
        if isinstance(op, StridedSlice):
            between = _between(attrs["begin"][i], attrs["end"][i])
        if between is not None and (limit is None or between <= _FEW):
            limit = between
        stride = (attrs["strides"] or [1] * len(axes))[i]
        return None if limit is None else limit if stride == 1 else (limit + stride - 1) // stride


def _between(begin: Dim, end: Dim) -> int | None:
    """The longest slice of known bounds that count from the same end."""
    if not isinstance(begin, int) or not isinstance(end, int) or (begin < 0) != (end < 0):
        return None
    return max(end - begin, 0) if begin > -NO_SIZE_REACHES and end < NO_SIZE_REACHES else None


def _is_never_negative(atom: str) -> bool:
    return "-" not in atom


def _both(bounds: Sequence[Dim]) -> Dim:
    """What is at least as large as each of two; None where nothing is known of one."""
    a, b = bounds
    return None if a is None or b is None else _at_least_both(a, b)


def _at_least_both(a: int | Expr, b: int | Expr) -> int | Expr:
    return max(a, b) if isinstance(a, int) and isinstance(b, int) else a if a == b else a + b


def _name_arguments(arguments: dict[ir.Value, Shape], used: Collection[str]) -> None:
    """Gives names to those unknown sizes of arguments that are used, in casts."""
    for argument, shape in list(arguments.items()):
        if any(isinstance(d, Expr) and d.names & set(used) for d in shape):
            MatchCast.create(argument, result_types=[TensorInfo.of(argument).with_(shape=shape).type])
            del arguments[argument]


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

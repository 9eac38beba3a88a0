"""Branches and loops of a :class:`relaxir.Builder`: Python functions of values, whose ops become the regions of ``scf`` ops."""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import TYPE_CHECKING, Any, TypeAlias

from ..dialect.bindings import ir
from ..dialect.errors import RelaxError
from ..dialect.inference import boolean
from ..dialect.ops import Full, IndexCopy, Reshape, ShapeValue, Take
from ..dialect.struct_info import TensorInfo
from ..dialect.symbolic import Dim, Expr
from .arguments import Function, number_value
from .value import Value, ValueLike

__all__ = ["ControlFlow"]

#: One value, or several as a tuple or list; functions take several one by one, and return them in the same way.
Values: TypeAlias = Any


class ControlFlow:
    """What of a builder is branches and loops. Functions may use any value of the function around them."""

    if TYPE_CHECKING:

        def _at_caller(self) -> AbstractContextManager[ir.Location]: ...

        def _scope(self) -> Function: ...

        def _operands(self, scope: Function, operands: Sequence[ValueLike | None], what: str) -> list[ir.Value]: ...

        def _value(self, scope: Function, value: ir.Value) -> Value: ...

    def cond(self, flag: Value, then: Callable[..., Values], otherwise: Callable[..., Values], *operands: Value) -> Values:
        """``then(*operands)`` where ``flag``, one boolean, is true; else ``otherwise(*operands)``. Only one of them runs.

        Raises:
            RelaxError: the flag is something else, or the functions return different shapes or dtypes.
        """
        with self._at_caller():
            scope = self._scope()
            (condition,) = self._operands(scope, [flag], "condition")
            values = self._operands(scope, operands, "operand of a branch")
            element = _element(condition, scope.place)
            with _blocks(scope, [], []) as blocks:
                traced = [self._traced(scope, b, f, values) for b, f in zip(blocks, (then, otherwise), strict=True)]
                (like, results), (_, others) = traced
                _check("of both branches", results, others)
                for block, found in zip(blocks, (results, others), strict=True):
                    block.end("scf.yield", found)
                return self._made(scope, "scf.if", results, [element], blocks, like)

    def while_loop(self, condition: Callable[..., Value], body: Callable[..., Values], start: Values) -> Values:
        """``start``, then what ``body`` makes of it, as often as ``condition``, one boolean, is true of that.

        Raises:
            RelaxError: the body returns other shapes or dtypes than it gets, or the condition is something else.
        """
        with self._at_caller():
            scope = self._scope()
            values = self._operands(scope, _several(start), "start of a loop")
            types = [v.type for v in values]
            with _blocks(scope, types, types) as (before, after):
                _, flags = self._traced(scope, before, condition, before.arguments)
                if len(flags) != 1:
                    raise RelaxError(f"expected a condition that is one boolean, got {len(flags)} values")
                before.end("scf.condition", [_element(flags[0], before.place), *before.arguments])
                _, found = self._traced(scope, after, body, after.arguments)
                _check("from the body of a loop", values, found)
                after.end("scf.yield", found)
                return self._made(scope, "scf.while", values, values, [before, after], start)

    def scan(self, step: Callable[..., tuple[Values, Values]], start: Values, rows: Values) -> tuple[Values, Values]:
        """Goes through the first dimension: ``carried, row = step(carried, row_of_rows)``, as ``jax.lax.scan`` does.

        Args:
            step: takes what is carried and a row (each several values, where start or rows are); returns both.
            start: what the first step gets.
            rows: tensors of one length ``[n, ...]``, whose rows the steps get.

        Returns:
            What the last step carried, and the rows that the steps returned, ``[n, ...]``.

        Raises:
            RelaxError: what is carried changes its shape or dtype, or sizes are unknown.
        """
        with self._at_caller() as location:
            scope = self._scope()
            values = self._operands(scope, _several(start), "start of a loop")
            given = self._operands(scope, _several(rows), "rows of a loop")
            rounds = _length(given)
            with _blocks(scope, [ir.IndexType.get(), *(v.type for v in values)]) as (block,):
                index = _counter(block)
                taken = [_row(x, index, block.place) for x in given]
                returned: list[Values] = []

                def stepped(*arguments: Value) -> list[Values]:
                    carried, row = arguments[: len(values)], arguments[len(values) :]
                    found = step(_as_given(start, carried), _as_given(rows, row))
                    returned.extend(_pair(found, len(values)))
                    return [*_several(returned[0]), *_several(returned[1])]

                _, results = self._traced(scope, block, stepped, [*block.arguments[1:], *taken])
                carried, added = results[: len(values)], results[len(values) :]
                _check("from each step", values, carried)
                empty = [_empty(row, rounds, scope.place) for row in added]
                written = [block.argument(x.type, location) for x in empty]
                put = [_put(x, index, row, block.place) for x, row in zip(written, added, strict=True)]
                block.end("scf.yield", [*carried, *put])
                bounds = [_index(d, scope.place) for d in (0, rounds, 1)]
                found = self._made(scope, "scf.for", [*values, *empty], [*bounds, *values, *empty], [block], ())
            return _as_given(start, found[: len(values)]), _as_given(returned[1], found[len(values) :])

    def _traced(
        self, scope: Function, block: _Block, function: Callable[..., Values], arguments: Sequence[ir.Value]
    ) -> tuple[Values, list[ir.Value]]:
        """What a function returns, as it does and as operands; its ops are in the block."""
        with scope.inside(block.block):
            found = function(*(self._value(scope, v) for v in arguments))
            return found, self._operands(scope, _several(found), "result of a branch or loop")

    def _made(
        self,
        scope: Function,
        name: str,
        like: Sequence[ir.Value],
        operands: Sequence[ir.Value],
        blocks: Sequence[_Block],
        shape: Values,
    ) -> Values:
        types = [v.type for v in like]
        op = ir.Operation.create(name, types, list(operands), regions=len(blocks), ip=scope.place)
        for region, block in zip(op.regions, blocks, strict=True):
            block.move_to(region)
        return _as_given(shape, [self._value(scope, r) for r in op.results])


class _Block:
    """A block that is filled before the op is there that it belongs to: what that returns is known only then."""

    def __init__(self, scope: Function, types: Sequence[ir.Type]) -> None:
        self.holder = ir.Operation.create("scf.execute_region", regions=1, ip=scope.place)
        self.block: ir.Block = self.holder.regions[0].blocks.append(*types)
        self.is_used = False

    @property
    def arguments(self) -> list[ir.Value]:
        return list(self.block.arguments)

    @property
    def place(self) -> ir.InsertionPoint:
        return ir.InsertionPoint(self.block)

    def argument(self, type_: ir.Type, location: ir.Location) -> ir.Value:
        return self.block.add_argument(type_, location)

    def end(self, terminator: str, operands: Sequence[ir.Value]) -> None:
        ir.Operation.create(terminator, operands=list(operands), ip=self.place)

    def move_to(self, region: ir.Region) -> None:
        """Nothing may touch the block's handle, or those of its arguments, after this."""
        self.block.append_to(region)
        self.is_used = True
        self.holder.erase()


@contextmanager
def _blocks(scope: Function, *types: Sequence[ir.Type]) -> Generator[list[_Block]]:
    """A block for each list of arguments' types; a failure leaves nothing of them behind."""
    blocks = [_Block(scope, t) for t in types]
    try:
        yield blocks
    finally:
        for block in blocks:
            if not block.is_used:
                block.holder.erase()


def _pair(found: Any, count: int) -> tuple[Values, Values]:
    if not isinstance(found, tuple) or len(found) != 2 or len(_several(found[0])) != count:
        raise RelaxError(f"expected a tuple of what is carried, {count} values, and a row from each step")
    return found[0], found[1]


def _several(values: Values) -> list[Any]:
    return list(values) if isinstance(values, tuple | list) else [values]


def _as_given(like: Values, values: Sequence[Value]) -> Values:
    return tuple(values) if isinstance(like, tuple | list) else values[0]


def _check(what: str, wanted: Sequence[ir.Value], got: Sequence[ir.Value]) -> None:
    if len(wanted) != len(got):
        raise RelaxError(f"expected {len(wanted)} values {what}, got {len(got)}")
    for one, other in zip(wanted, got, strict=True):
        if one.type != other.type:
            raise RelaxError(f"expected tensor<{TensorInfo.of(one)}> {what}, got tensor<{TensorInfo.of(other)}>")


def _element(flag: ir.Value, place: ir.InsertionPoint) -> ir.Value:
    """The only element of a tensor of booleans."""
    info = TensorInfo.of(flag)
    if info.dtype != boolean() or any(d != 1 for d in info.shape):
        raise RelaxError(f"expected a condition that is one boolean, got tensor<{info}>")
    places = [_index(0, place)] * info.rank
    return ir.Operation.create("tensor.extract", [info.dtype], [flag, *places], ip=place).result


def _length(rows: Sequence[ir.Value]) -> int | Expr:
    lengths = {TensorInfo.of(x).shape[:1] for x in rows}
    found = next(iter(lengths)) if len(lengths) == 1 else ()
    if not found or found[0] is None:
        raise RelaxError("expected rows of one length, which is known or symbolic")
    return found[0]


def _counter(block: _Block) -> ir.Value:
    """The number of the round, the block's first argument, as ``tensor<1xi64>``."""
    i64 = ir.IntegerType.get_signless(64)
    number = ir.Operation.create("arith.index_cast", [i64], [block.arguments[0]], ip=block.place).result
    return ir.Operation.create("tensor.from_elements", [TensorInfo((1,), i64).type], [number], ip=block.place).result


def _index(value: Dim, place: ir.InsertionPoint) -> ir.Value:
    index = ir.IndexType.get()
    if not isinstance(value, Expr):
        attributes = {"value": ir.IntegerAttr.get(index, value)}
        return ir.Operation.create("arith.constant", [index], attributes=attributes, ip=place).result
    i64 = ir.IntegerType.get_signless(64)
    scalar = ShapeValue.create(value=[value], result_types=[TensorInfo((), i64).type], ip=place).results[0]
    number = ir.Operation.create("tensor.extract", [i64], [scalar], ip=place).result
    return ir.Operation.create("arith.index_cast", [index], [number], ip=place).result


def _row(x: ir.Value, index: ir.Value, place: ir.InsertionPoint) -> ir.Value:
    info = TensorInfo.of(x)
    row = Take.create(x, index, axis=0, ip=place).results[0]
    return Reshape.create(row, result_types=[info.with_(shape=info.shape[1:]).type], ip=place).results[0]


def _put(x: ir.Value, index: ir.Value, row: ir.Value, place: ir.InsertionPoint) -> ir.Value:
    info = TensorInfo.of(row)
    one = Reshape.create(row, result_types=[info.with_(shape=(1, *info.shape)).type], ip=place).results[0]
    return IndexCopy.create(x, index, one, axis=0, ip=place).results[0]


def _empty(row: ir.Value, rounds: int | Expr, place: ir.InsertionPoint) -> ir.Value:
    info = TensorInfo.of(row)
    if None in info.shape:
        raise RelaxError(f"expected rows whose sizes are known or symbolic, got tensor<{info}>")
    zero, stacked = number_value(0, info.dtype), info.with_(shape=(rounds, *info.shape))
    return Full.create(value=zero, result_types=[stacked.type], ip=place).results[0]

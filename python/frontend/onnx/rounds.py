"""Rounds of a body: written out, a counted loop, or a loop that goes on as long as data says."""

from __future__ import annotations

from collections.abc import Callable, Collection, Generator, Sequence
from contextlib import contextmanager
from typing import Any

from ...dialect import ops
from ...dialect.bindings import arith, ir, scf
from ...dialect.errors import RelaxError
from ...dialect.inference import boolean
from ...dialect.struct_info import TensorInfo
from ...dialect.symbolic import Dim, Expr
from ..emit import concat, emit, full, info_of, integer, match, reshape, slice_axis, squeeze, unsqueeze
from ..places import first_of
from .equal_sizes import with_sizes
from .values import GraphValue, known_value, numbers_array, tensor_value

__all__ = [
    "MOST_WRITTEN_OUT", "as_type", "element", "joined", "named_sizes", "repeat", "repeat_while", "scratch", "stacked",
    "taken",
]  # fmt: skip

#: Loops of at most so many rounds are written out: sizes may then differ from round to round, and nothing is stored in between.
MOST_WRITTEN_OUT = 16

#: Results of rounds whose number data decides have room for all that there can be: 2^31 elements at most.
_MOST_ROOM = 1 << 31

#: Of the round's number and what is carried: what is carried on, and what the round gives.
Body = Callable[[GraphValue, "list[Any]"], "tuple[list[Any], list[Any]]"]
#: The same, of the condition too; first whether it goes on.
OpenBody = Callable[[GraphValue, ir.Value, "list[Any]"], "tuple[ir.Value, list[Any], list[Any]]"]


@contextmanager
def scratch() -> Generator[ir.Block]:
    """What is emitted inside, into a block of its own, is thrown away: types are inferred by it."""
    holder = scf.ExecuteRegionOp([])
    try:
        block = holder.regions[0].blocks.append()
        with ir.InsertionPoint(block):
            yield block
    finally:
        holder.operation.erase()


def joined(a: TensorInfo, b: TensorInfo) -> TensorInfo:
    """The type of what may be either; sizes that differ are unknown. Raises RelaxError where dtypes or ranks do."""
    if a.dtype != b.dtype or a.rank != b.rank:
        raise RelaxError(f"expected branches with results of one dtype and rank, got {a} and {b}")
    return a.with_(shape=[x if x == y else None for x, y in zip(a.shape, b.shape, strict=True)])


def as_type(value: ir.Value, info: TensorInfo) -> ir.Value:
    """The tensor under a type that its own is one of."""
    return value if info_of(value).shape == info.shape else match(value, info)


def named_sizes(info: TensorInfo, names: Collection[str] | None) -> TensorInfo:
    """The type where sizes of other names, which are of a branch or a loop alone, are unknown; as it is without a list."""
    if names is None:
        return info
    return info.with_(shape=[d if not isinstance(d, Expr) or d.names <= set(names) else None for d in info.shape])


def element(value: ir.Value) -> ir.Value:
    """The one element of a tensor as a scalar."""
    scalar = reshape(value, ())
    return ir.Operation.create("tensor.extract", [info_of(scalar).dtype], [scalar]).results[0]


def stacked(parts: Sequence[ir.Value]) -> ir.Value:
    """Tensors behind each other along a new first dimension."""
    return concat([unsqueeze(v, 0) for v in parts], 0)


def taken(x: ir.Value, number: GraphValue, axis: int) -> ir.Value:
    """What a round of that number reads of a tensor, along an axis."""
    if number.known is not None:
        i = int(number.known)
        return squeeze(slice_axis(x, axis, i, i + 1), axis)
    return emit(ops.Take, x, number.value, axis=axis)


def repeat(
    count: int | Expr, carried: list[Any], body: Body, names: Collection[str] | None = None
) -> tuple[list[Any], list[ir.Value]]:  # fmt: skip
    """What is carried in the end, and what each round gives, stacked along a first dimension.

    Args:
        count: how many rounds.
        carried: operands of the first round.
        body: of the round's number and what is carried, what is carried on, and what the round gives.
        names: symbols of sizes that mean something outside of the body; all where none are given.
    """
    if isinstance(count, int) and count <= MOST_WRITTEN_OUT:
        return _written_out(count, carried, body)
    return _counted(count, carried, body, names)


def _written_out(count: int, carried: list[Any], body: Body) -> tuple[list[Any], list[ir.Value]]:
    given: list[list[ir.Value]] = []
    for i in range(count):
        carried, results = body(known_value("round", numbers_array([i], ())), carried)
        given.append([r.value for r in results])
    return carried, [stacked(column) for column in zip(*given, strict=True)]


def _counted(
    count: int | Expr, carried: list[Any], body: Body, names: Collection[str] | None
) -> tuple[list[Any], list[ir.Value]]:  # fmt: skip
    """``scf.for`` that carries the round's number, what is carried, and the results, into which each round writes."""

    def once(values: list[Any]) -> tuple[list[Any], list[Any]]:
        return body(_tensor(full(0, integer())), values)

    starts, infos, pieces = _traced([c.value for c in carried], once, names)
    starts = [as_type(v, i) for v, i in zip(starts, infos, strict=True)]
    room = [full(0, p.dtype, (count, *p.shape)) for p in pieces]
    loop = scf.ForOp(_index(0), _index(count), _index(1), [full(0, integer()), *starts, *room])
    with ir.InsertionPoint(loop.body):
        number, *rest = loop.inner_iter_args
        current, rows = rest[: len(starts)], rest[len(starts) :]
        after, given = body(_tensor(number), [_tensor(v) for v in current])
        scf.YieldOp([_next(number), *_as_types(after, infos), *_written(rows, number, given)])
    found = list(loop.results)[1:]
    return [_tensor(v) for v in found[: len(starts)]], found[len(starts) :]


def repeat_while(
    most: ir.Value | None,
    room: int | Expr | None,
    condition: ir.Value,
    carried: list[Any],
    body: OpenBody,
    names: Collection[str],
    symbol: Callable[[], str],
) -> tuple[list[Any], list[ir.Value]]:
    """The same while a condition of one element holds, and for at most so many rounds.

    Args:
        most: how many rounds at most, an element; None for any number.
        room: how many at most, as a number or an expression; None where it is not known. Results of rounds want one.
        condition: whether there is a first round.
        carried: operands of the first round.
        body: also says whether it goes on.
        names: symbols of sizes that mean something outside of the body.
        symbol: gives a name for how many rounds there were.

    Raises:
        RelaxError: rounds give results, and their number is not limited.
    """
    flag = TensorInfo((), boolean())
    condition = reshape(condition, ())

    def once(values: list[Any]) -> tuple[list[Any], list[Any]]:
        _, after, given = body(_tensor(full(0, integer())), condition, values)
        return after, given

    starts, infos, pieces = _traced([c.value for c in carried], once, names)
    starts = [as_type(v, i) for v, i in zip(starts, infos, strict=True)]
    rows = [full(0, p.dtype, _room(room, p)) for p in pieces]
    values = [full(0, integer()), condition, *starts, *rows]
    types = [v.type for v in values]
    loop = ir.Operation.create("scf.while", types, values, regions=2)
    before, then = (region.blocks.append(*types) for region in loop.regions)
    with ir.InsertionPoint(before):
        number, goes_on, *_ = before.arguments
        if most is not None:
            goes_on = emit(ops.LogicalAnd, goes_on, emit(ops.Less, number, reshape(most, ())))
        ir.Operation.create("scf.condition", operands=[element(goes_on), *before.arguments])
    with ir.InsertionPoint(then):
        number, goes_on, *rest = then.arguments
        current, filled = rest[: len(starts)], rest[len(starts) :]
        goes_on, after, given = body(_tensor(number), goes_on, [_tensor(v) for v in current])
        goes_on = as_type(reshape(goes_on, ()), flag)
        scf.YieldOp([_next(number), goes_on, *_as_types(after, infos), *_written(filled, number, given)])
    count, _, *found = loop.results
    name = symbol() if rows else ""
    return [_tensor(v) for v in found[: len(starts)]], [first_of(v, count, name) for v in found[len(starts) :]]


def _tensor(value: ir.Value) -> GraphValue:
    return tensor_value("carried", value)


def _traced(
    starts: list[ir.Value], once: Callable[[list[Any]], tuple[list[Any], list[Any]]], names: Collection[str] | None
) -> tuple[list[ir.Value], list[TensorInfo], list[TensorInfo]]:
    """What is carried into the first round, of the sizes that a round takes sizes to be; what rounds carry, and give.

    Raises:
        RelaxError: sizes of what rounds give are not the same in all.
    """
    with scratch() as block:
        after, given = once([_tensor(v) for v in starts])
        equal = _taken_to_be_equal(block)
        pairs = [zip(info_of(a).shape, info_of(b.value).shape, strict=False) for a, b in zip(starts, after, strict=True)]
        sizes = [{i: y for i, (x, y) in enumerate(p) if (x, y) in equal} for p in pairs]
        if not any(sizes):
            return starts, *_types(starts, after, given, names)
    starts = [with_sizes(v, s) for v, s in zip(starts, sizes, strict=True)]
    with scratch():
        return starts, *_types(starts, *once([_tensor(v) for v in starts]), names)


def _taken_to_be_equal(block: ir.Block) -> set[tuple[Dim, Dim]]:
    """Sizes of tensors, and what operators of a block take them to be."""
    casts = [op.operation for op in block.operations if op.operation.name == "relax.match_cast"]
    shapes = [(info_of(c.operands[0]).shape, info_of(c.results[0]).shape) for c in casts]
    return {(x, y) for before, after in shapes for x, y in zip(before, after, strict=True) if isinstance(x, Expr) and x != y}


def _types(
    starts: Sequence[ir.Value], after: Sequence[Any], given: Sequence[Any], names: Collection[str] | None
) -> tuple[list[TensorInfo], list[TensorInfo]]:
    """What rounds carry, and what they give. Raises RelaxError where sizes of what they give are not the same in all."""
    infos = [joined(info_of(a), named_sizes(info_of(b.value), names)) for a, b in zip(starts, after, strict=True)]
    pieces = [named_sizes(info_of(v.value), names) for v in given]
    if any(d is None for p in pieces for d in p.shape):
        raise RelaxError("expected results of a loop's rounds of known or symbolic sizes")
    return infos, pieces


def _as_types(values: Sequence[Any], infos: Sequence[TensorInfo]) -> list[ir.Value]:
    return [as_type(v.value, i) for v, i in zip(values, infos, strict=True)]


def _written(rows: Sequence[ir.Value], number: ir.Value, given: Sequence[Any]) -> list[ir.Value]:
    at = reshape(number, (1,))
    return [emit(ops.IndexCopy, r, at, unsqueeze(v.value, 0), axis=0) for r, v in zip(rows, given, strict=True)]


def _next(number: ir.Value) -> ir.Value:
    return emit(ops.Add, number, full(1, integer()))


def _room(count: Dim, piece: TensorInfo) -> tuple[Dim, ...]:
    size = count
    for dim in piece.shape:
        size = None if size is None or dim is None else size * dim
    if count is None or (isinstance(size, int) and size > _MOST_ROOM):
        raise RelaxError(
            f"expected a loop whose rounds, which give {piece} each and end as data says, are limited by a number that is "
            f"known or symbolic, got {'no limit' if count is None else count}"
        )
    return (count, *piece.shape)


def _index(number: int | Expr) -> ir.Value:
    index = ir.IndexType.get()
    if isinstance(number, int):
        return arith.ConstantOp(index, number).result
    return arith.IndexCastOp(index, element(full(number, integer()))).result

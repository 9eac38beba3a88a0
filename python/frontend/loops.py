"""Loops of ``scf`` that a frontend writes around ops: so many rounds, or until a condition fails."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ..dialect import ops
from ..dialect.bindings import ir
from ..dialect.errors import RelaxError
from ..dialect.struct_info import TensorInfo
from ..dialect.symbolic import Dim, Expr
from .emit import emit, full, info_of, integer, match, squeeze, unsqueeze

__all__ = ["end_region", "loop", "only_element", "put", "row", "typed", "while_holds"]


def loop(
    rounds: Dim, start: Sequence[ir.Value], step: Callable[[list[ir.Value], ir.Value], list[ir.Value]]
) -> list[ir.Value]:  # fmt: skip
    """``scf.for`` over an index, which ``step`` gets as ``tensor<1xi64>``; what it returns is carried to the next round."""
    types = [x.type for x in start]
    made = ir.Operation.create("scf.for", types, [_index(0), _index(rounds), _index(1), *start], regions=1)
    block = made.regions[0].blocks.append(ir.IndexType.get(), *types)
    with ir.InsertionPoint(block):
        counter, *state = block.arguments
        number = ir.Operation.create("arith.index_cast", [integer()], [counter]).result
        index = ir.Operation.create("tensor.from_elements", [TensorInfo((1,), integer()).type], [number]).result
        found = step(list(state), index)
        end_region("scf.yield", found, [info_of(x) for x in start])
    return list(made.results)


def while_holds(
    start: Sequence[ir.Value],
    condition: Callable[[list[ir.Value]], ir.Value],
    step: Callable[[list[ir.Value]], list[ir.Value]],
) -> list[ir.Value]:
    """``scf.while``: rounds as long as a condition, a tensor of one boolean, holds of what is carried."""
    infos = [info_of(x) for x in start]
    types = [info.type for info in infos]
    made = ir.Operation.create("scf.while", types, list(start), regions=2)
    before, after = (region.blocks.append(*types) for region in made.regions)
    with ir.InsertionPoint(before):
        flag = only_element(condition(list(before.arguments)))
        ir.Operation.create("scf.condition", operands=[flag, *before.arguments])
    with ir.InsertionPoint(after):
        end_region("scf.yield", step(list(after.arguments)), infos)
    return list(made.results)


def end_region(name: str, values: Sequence[ir.Value], infos: Sequence[TensorInfo]) -> None:
    """The terminator of a region, which gives the values as :func:`typed` does."""
    ir.Operation.create(name, operands=typed(values, infos))


def typed(values: Sequence[ir.Value], infos: Sequence[TensorInfo]) -> list[ir.Value]:
    """The values under these types, checked at run time where they differ. Raises RelaxError for another dtype."""
    found: list[ir.Value] = []
    for value, info in zip(values, infos, strict=True):
        if info_of(value).dtype != info.dtype:
            raise RelaxError(f"expected {info} from each round and branch, got {info_of(value)}")
        found.append(value if value.type == info.type else match(value, info))
    return found


def row(x: ir.Value, index: ir.Value) -> ir.Value:
    """What is at a place of the first dimension."""
    return squeeze(emit(ops.Take, x, index, axis=0), 0)


def put(stacked: Sequence[ir.Value], index: ir.Value, rows: Sequence[ir.Value]) -> list[ir.Value]:
    """The tensors with other rows at a place of the first dimension."""
    return [emit(ops.IndexCopy, x, index, unsqueeze(row, 0), axis=0) for x, row in zip(stacked, rows, strict=True)]


def only_element(x: ir.Value) -> ir.Value:
    """The only element of a tensor."""
    places = [_index(0)] * info_of(x).rank
    return ir.Operation.create("tensor.extract", [info_of(x).dtype], [x, *places]).result


def _index(value: Dim) -> ir.Value:
    if isinstance(value, Expr):
        return ir.Operation.create("arith.index_cast", [ir.IndexType.get()], [only_element(full(value, integer()))]).result
    if value is None:
        raise RelaxError("expected a number of rows that is known or symbolic, got an unknown one")
    attribute = ir.IntegerAttr.get(ir.IndexType.get(), value)
    return ir.Operation.create("arith.constant", [ir.IndexType.get()], attributes={"value": attribute}).result

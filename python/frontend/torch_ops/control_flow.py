"""torch.cond, while_loop, scan and map: branches and loops of ``scf`` around what their graphs become."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ...dialect import ops
from ...dialect.bindings import ir
from ...dialect.errors import RelaxError
from ...dialect.op import EffectOp
from ...dialect.struct_info import TensorInfo
from ...dialect.symbolic import Dim, Expr
from ..emit import emit, full, info_of, integer, match, squeeze, unsqueeze
from ..torch_op import TorchOp, handles
from ..torch_subgraphs import COUNTS, GRAPHS

__all__ = ["loop", "put", "row"]

_COMPARISONS: dict[str, type[EffectOp]] = {
    "torch.aten.eq.int": ops.Equal,
    "torch.aten.ne.int": ops.NotEqual,
    "torch.aten.lt.int": ops.Less,
    "torch.aten.le.int": ops.LessEqual,
    "torch.aten.gt.int": ops.Greater,
    "torch.aten.ge.int": ops.GreaterEqual,
}


@handles("higher_order.cond")
def _cond(op: TorchOp) -> list[ir.Value]:
    values = [op.tensor(i) for i in range(1, len(op.operands))]
    infos = [_within(info, values) for info in _declared(op)]
    branch = ir.Operation.create("scf.if", [i.type for i in infos], [_condition(op)], regions=2)
    for region, graph in zip(branch.regions, _graphs(op), strict=True):
        with ir.InsertionPoint(region.blocks.append()):
            _end("scf.yield", op.values.inlined(graph, values), infos)
    return list(branch.results)


@handles("higher_order.while_loop")
def _while_loop(op: TorchOp) -> list[ir.Value]:
    condition, body = _graphs(op)
    carried, read = _lists(op)
    infos = [_common(info_of(x), info) for x, info in zip(carried, _declared(op), strict=True)]
    types = [info.type for info in infos]
    loop = ir.Operation.create("scf.while", types, _typed(carried, infos), regions=2)
    before, after = (region.blocks.append(*types) for region in loop.regions)
    with ir.InsertionPoint(before):
        (flag,) = op.values.inlined(condition, [*before.arguments, *read])
        ir.Operation.create("scf.condition", operands=[_scalar(flag), *before.arguments])
    with ir.InsertionPoint(after):
        _end("scf.yield", op.values.inlined(body, [*after.arguments, *read]), infos)
    return list(loop.results)


@handles("higher_order.scan")
def _scan(op: TorchOp) -> list[ir.Value]:
    (graph,) = _graphs(op)
    carried, scanned, read = _lists(op)
    declared = _declared(op)
    infos = [_common(info_of(x), info) for x, info in zip(carried, declared, strict=False)]
    stacked = [full(0, info.dtype, info.shape) for info in declared[len(carried) :]]

    def step(state: list[ir.Value], index: ir.Value) -> list[ir.Value]:
        before, written = state[: len(carried)], state[len(carried) :]
        found = op.values.inlined(graph, [*before, *(row(x, index) for x in scanned), *read])
        return [*_typed(found[: len(carried)], infos), *put(written, index, found[len(carried) :])]

    return loop(_length(scanned), [*_typed(carried, infos), *stacked], step)


@handles("higher_order.map_impl")
def _map(op: TorchOp) -> list[ir.Value]:
    (graph,) = _graphs(op)
    mapped, read = _lists(op)

    def step(state: list[ir.Value], index: ir.Value) -> list[ir.Value]:
        return put(state, index, op.values.inlined(graph, [*(row(x, index) for x in mapped), *read]))

    return loop(_length(mapped), [full(0, info.dtype, info.shape) for info in _declared(op)], step)


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
        _end("scf.yield", found, [info_of(x) for x in start])
    return list(made.results)


def _index(value: Dim) -> ir.Value:
    if isinstance(value, Expr):
        return ir.Operation.create("arith.index_cast", [ir.IndexType.get()], [_scalar(full(value, integer()))]).result
    if value is None:
        raise RelaxError("expected a number of rows that is known or symbolic, got an unknown one")
    attribute = ir.IntegerAttr.get(ir.IndexType.get(), value)
    return ir.Operation.create("arith.constant", [ir.IndexType.get()], attributes={"value": attribute}).result


def row(x: ir.Value, index: ir.Value) -> ir.Value:
    """What is at a place of the first dimension."""
    return squeeze(emit(ops.Take, x, index, axis=0), 0)


def put(stacked: Sequence[ir.Value], index: ir.Value, rows: Sequence[ir.Value]) -> list[ir.Value]:
    """The tensors with other rows at a place of the first dimension."""
    return [emit(ops.IndexCopy, x, index, unsqueeze(row, 0), axis=0) for x, row in zip(stacked, rows, strict=True)]


def _length(scanned: Sequence[ir.Value]) -> Dim:
    if not scanned:
        raise RelaxError("expected a tensor to go through, got none")
    return info_of(scanned[0]).shape[0]


def _condition(op: TorchOp) -> ir.Value:
    """The condition as ``i1``: an element of a tensor, or a comparison of sizes."""
    value = op.operands[0]
    if value in op.values.tensors:
        return _scalar(op.tensor(0))
    owner = None if isinstance(value, ir.BlockArgument) else value.owner.operation
    compared = None if owner is None else _COMPARISONS.get(owner.name)
    if owner is None or compared is None:
        raise RelaxError("expected a condition that is a tensor or a comparison of sizes")
    sides = [full(op.values.number(v), integer()) for v in owner.operands]
    return _scalar(emit(compared, *sides))


def _scalar(x: ir.Value) -> ir.Value:
    """The only element of a tensor."""
    places = [_index(0)] * info_of(x).rank
    return ir.Operation.create("tensor.extract", [info_of(x).dtype], [x, *places]).result


def _graphs(op: TorchOp) -> list[str]:
    return [ir.StringAttr(a).value for a in ir.ArrayAttr(op.op.attributes[GRAPHS])]


def _lists(op: TorchOp) -> list[list[ir.Value]]:
    """The tensors of each of the operator's lists."""
    values = iter([op.tensor(i) for i in range(len(op.operands))])
    return [[next(values) for _ in range(count)] for count in ir.DenseI64ArrayAttr(op.op.attributes[COUNTS])]


def _declared(op: TorchOp) -> list[TensorInfo]:
    found = [info for info in op.results if info is not None]
    if len(found) != len(op.results):
        raise RelaxError("expected results that are tensors")
    return found


def _within(info: TensorInfo, values: Sequence[ir.Value]) -> TensorInfo:
    """The type with those sizes alone that the sizes of these values determine; others are known behind the branch."""
    names = {name for v in values for d in info_of(v).shape if isinstance(d, Expr) for name in d.names}
    return info.with_(shape=[d if not isinstance(d, Expr) or names.issuperset(d.names) else None for d in info.shape])


def _common(first: TensorInfo, other: TensorInfo) -> TensorInfo:
    """The type of what a loop carries: sizes that change are unknown."""
    if first.rank != other.rank or first.dtype != other.dtype:
        raise RelaxError(f"expected a loop that carries {first}, got {other}")
    return first.with_(shape=[a if a == b else None for a, b in zip(first.shape, other.shape, strict=True)])


def _typed(values: Sequence[ir.Value], infos: Sequence[TensorInfo]) -> list[ir.Value]:
    found: list[ir.Value] = []
    for value, info in zip(values, infos, strict=True):
        if info_of(value).dtype != info.dtype:
            raise RelaxError(f"expected {info} from each round and branch, got {info_of(value)}")
        found.append(value if value.type == info.type else match(value, info))
    return found


def _end(name: str, values: Sequence[ir.Value], infos: Sequence[TensorInfo]) -> None:
    ir.Operation.create(name, operands=_typed(values, infos))

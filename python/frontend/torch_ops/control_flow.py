"""torch.cond, while_loop, scan and map: branches and loops of ``scf`` around what their graphs become."""

from __future__ import annotations

from collections.abc import Sequence

from ...dialect import ops
from ...dialect.bindings import ir
from ...dialect.errors import RelaxError
from ...dialect.op import EffectOp
from ...dialect.struct_info import TensorInfo
from ...dialect.symbolic import Dim, Expr
from ..emit import emit, full, info_of, integer
from ..loops import end_region, loop, only_element, put, row, typed, while_holds
from ..torch_op import TorchOp, handles
from ..torch_subgraphs import COUNTS, GRAPHS

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
            end_region("scf.yield", op.values.inlined(graph, values), infos)
    return list(branch.results)


@handles("higher_order.while_loop")
def _while_loop(op: TorchOp) -> list[ir.Value]:
    condition, body = _graphs(op)
    carried, read = _lists(op)
    infos = [_common(info_of(x), info) for x, info in zip(carried, _declared(op), strict=True)]

    def holds(state: list[ir.Value]) -> ir.Value:
        (flag,) = op.values.inlined(condition, [*state, *read])
        return flag

    return while_holds(typed(carried, infos), holds, lambda state: op.values.inlined(body, [*state, *read]))


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
        return [*typed(found[: len(carried)], infos), *put(written, index, found[len(carried) :])]

    return loop(_length(scanned), [*typed(carried, infos), *stacked], step)


@handles("higher_order.map_impl")
def _map(op: TorchOp) -> list[ir.Value]:
    (graph,) = _graphs(op)
    mapped, read = _lists(op)

    def step(state: list[ir.Value], index: ir.Value) -> list[ir.Value]:
        return put(state, index, op.values.inlined(graph, [*(row(x, index) for x in mapped), *read]))

    return loop(_length(mapped), [full(0, info.dtype, info.shape) for info in _declared(op)], step)


def _length(scanned: Sequence[ir.Value]) -> Dim:
    if not scanned:
        raise RelaxError("expected a tensor to go through, got none")
    return info_of(scanned[0]).shape[0]


def _condition(op: TorchOp) -> ir.Value:
    """The condition as ``i1``: an element of a tensor, or a comparison of sizes."""
    value = op.operands[0]
    if value in op.values.tensors:
        return only_element(op.tensor(0))
    owner = None if isinstance(value, ir.BlockArgument) else value.owner.operation
    compared = None if owner is None else _COMPARISONS.get(owner.name)
    if owner is None or compared is None:
        raise RelaxError("expected a condition that is a tensor or a comparison of sizes")
    sides = [full(op.values.number(v), integer()) for v in owner.operands]
    return only_element(emit(compared, *sides))


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

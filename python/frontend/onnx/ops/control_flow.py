"""ONNX operators with graphs inside: If, Loop, Scan and SequenceMap."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import onnx

from ....dialect import ops
from ....dialect.bindings import arith, ir, scf
from ....dialect.errors import RelaxError
from ....dialect.inference import boolean
from ....dialect.struct_info import TensorInfo
from ....dialect.symbolic import Expr
from ...emit import emit, full, info_of, integer, match, reshape, squeeze, unsqueeze
from ..graph import UNUSABLE
from ..node import Node, handles
from ..values import GraphValue, TensorSequence, known_value, numbers_array, tensor_value

#: Loops of at most so many rounds are written out: sizes may then differ from round to round, and nothing is stored in between.
_MOST_ROUNDS = 16


def run_graph(node: Node, graph: onnx.GraphProto, values: Sequence[Any], where: str) -> list[GraphValue | TensorSequence]:
    """The results of a graph for operands, at the current insertion point. Raises RelaxError where it cannot be converted."""
    scope = node.scope.nested(f"{node.name.removeprefix(node.scope.prefix)}/{where}")
    scope.initialize(graph)
    for given, value in zip(graph.input, values, strict=False):
        scope.names[given.name] = value
    before = len(scope.conversion.report.found)
    scope.convert(graph.node)
    found = [scope.find(o.name) for o in graph.output]
    if any(f is UNUSABLE for f in found) or len(scope.conversion.report.found) > before:
        raise RelaxError(f"expected a {where} of operators that have a relax form")
    return found


def _values(results: Sequence[GraphValue | TensorSequence]) -> list[ir.Value]:
    if any(isinstance(r, TensorSequence) for r in results):
        raise RelaxError("expected tensors from a branch or a loop that is not known at import, got a sequence")
    return [r.value for r in results if isinstance(r, GraphValue)]


@handles("If")
def _if(node: Node) -> list[Any]:
    """Of a condition that is known only that branch; else a branch at run time, whose results have one type."""
    names = ("then_branch", "else_branch")
    branches = [(node.attribute(k), k) for k in names]
    known = node.operand(0).known
    if known is not None:
        graph, name = branches[0 if bool(known.reshape(-1)[0]) else 1]
        return list(run_graph(node, graph, [], name))
    infos: list[list[TensorInfo]] = []
    for graph, name in branches:  # once to see the types: what is made of it goes
        block = _scratch()
        with ir.InsertionPoint(block):
            infos.append([info_of(v) for v in _values(run_graph(node, graph, [], name))])
        _discard(block)
    joined = [_joined(a, b) for a, b in zip(*infos, strict=True)]
    condition = _element(node.tensor(0))
    op = ir.Operation.create("scf.if", [i.type for i in joined], [condition], regions=2)
    for (graph, name), region in zip(branches, op.regions, strict=True):
        with ir.InsertionPoint(region.blocks.append()):
            values = _values(run_graph(node, graph, [], name))
            scf.YieldOp([_as(v, i) for v, i in zip(values, joined, strict=True)])
    return list(op.results)


def _scratch() -> ir.Block:
    """A block that is not in the function: types are inferred in it, and it is thrown away."""
    holder = scf.ExecuteRegionOp([])
    return holder.regions[0].blocks.append()


def _discard(block: ir.Block) -> None:
    block.owner.operation.erase()


def _joined(a: TensorInfo, b: TensorInfo) -> TensorInfo:
    if a.dtype != b.dtype or a.rank != b.rank:
        raise RelaxError(f"expected branches with results of one dtype and rank, got {a} and {b}")
    return a.with_(shape=[x if x == y else None for x, y in zip(a.shape, b.shape, strict=True)])


def _as(value: ir.Value, info: TensorInfo) -> ir.Value:
    return value if info_of(value).shape == info.shape else match(value, info)


def _element(value: ir.Value) -> ir.Value:
    """The one element of a tensor as a scalar."""
    return _extracted(reshape(value, ()))


def _extracted(scalar: ir.Value) -> ir.Value:
    return ir.Operation.create("tensor.extract", [info_of(scalar).dtype], [scalar]).results[0]


Body = Callable[[GraphValue, "list[GraphValue | TensorSequence]"], "tuple[list[Any], list[Any]]"]


def repeat(count: int | Expr, carried: list[Any], body: Body, stop: bool = False) -> tuple[list[Any], list[ir.Value]]:
    """Rounds of a body: what is carried in the end, and what each round gives, stacked along a first dimension.

    Args:
        count: how many rounds.
        carried: operands of the first round.
        body: of the round's number and what is carried, what is carried on, and what the round gives.
        stop: whether the first result of the body says if it goes on: rounds are then not known at import.
    """
    if stop:
        raise RelaxError("expected a loop whose number of rounds is known or symbolic at import")
    if isinstance(count, int) and count <= _MOST_ROUNDS:
        return _written_out(count, carried, body)
    return _looped(count, carried, body)


def _written_out(count: int, carried: list[Any], body: Body) -> tuple[list[Any], list[ir.Value]]:
    given: list[list[ir.Value]] = []
    for i in range(count):
        carried, results = body(known_value("round", numbers_array([i], ())), carried)
        given.append([r.value for r in results])
    stacked: list[ir.Value] = []
    for column in zip(*given, strict=True):
        parts = [unsqueeze(v, 0) for v in column]
        total = parts[0]
        for part in parts[1:]:
            total = emit(ops.Concat, total, part, axis=0)
        stacked.append(total)
    return carried, stacked


def _looped(count: int | Expr, carried: list[Any], body: Body) -> tuple[list[Any], list[ir.Value]]:
    """``scf.for`` that carries the round's number, what is carried, and the results, into which each round writes."""
    starts = [c.value for c in carried]
    block = _scratch()
    i64 = integer()
    with ir.InsertionPoint(block):
        zero = tensor_value("round", full(0, i64))
        after, given = body(zero, [tensor_value("carried", v) for v in starts])
        types = [info_of(v.value) for v in after]
        pieces = [info_of(v.value) for v in given]
    _discard(block)
    infos = [_joined(info_of(a), b) for a, b in zip(starts, types, strict=True)]
    starts = [_as(v, i) for v, i in zip(starts, infos, strict=True)]
    if any(d is None for p in pieces for d in p.shape):
        raise RelaxError("expected results of a loop's rounds of known or symbolic sizes")
    room = [full(0, p.dtype, (count, *p.shape)) for p in pieces]
    bounds = [_index(n) for n in (0, count, 1)]
    low, high, step = bounds
    loop = scf.ForOp(low, high, step, [full(0, i64), *starts, *room])
    with ir.InsertionPoint(loop.body):
        number, *rest = loop.inner_iter_args
        current, rows = rest[: len(starts)], rest[len(starts) :]
        after, given = body(tensor_value("round", number), [tensor_value("carried", v) for v in current])
        after = [_as(v.value, i) for v, i in zip(after, infos, strict=True)]
        at = reshape(number, (1,))
        rows = [emit(ops.IndexCopy, r, at, unsqueeze(v.value, 0), axis=0) for r, v in zip(rows, given, strict=True)]
        scf.YieldOp([emit(ops.Add, number, full(1, i64)), *after, *rows])
    found = list(loop.results)[1:]
    return [tensor_value("carried", v) for v in found[: len(starts)]], found[len(starts) :]


def _index(number: int | Expr) -> ir.Value:
    index = ir.IndexType.get()
    if isinstance(number, int):
        return arith.ConstantOp(index, number).result
    scalar = _extracted(full(number, integer()))
    return arith.IndexCastOp(index, scalar).result


@handles("Loop")
def _loop(node: Node) -> list[Any]:
    """A number of rounds that is known, and a condition that holds throughout."""
    graph = node.attribute("body")
    if not node.has(0):
        raise RelaxError("expected a loop whose number of rounds is known or symbolic at import")
    count = node.number(0)
    if node.has(1) and node.operand(1).known is not None and not bool(node.number(1)):
        count = 0
    kept = len(graph.input) - 2
    carried = list(node.operands[2:])
    if isinstance(count, int) and count <= 4096 and (not count or _conditions(node, graph) is None):
        return _rounds(node, graph, count, carried, kept)
    going = known_value("condition", numbers_array([1], ()).astype(bool), boolean())

    def body(number: GraphValue, values: list[Any]) -> tuple[list[Any], list[Any]]:
        condition, *results = run_graph(node, graph, [number, going, *values], "body")
        if not isinstance(condition, GraphValue) or condition.known is None or not bool(condition.known.reshape(-1)[0]):
            raise RelaxError("expected a loop whose condition holds throughout, or is known at import")
        return results[:kept], results[kept:]

    carried, stacked = repeat(count, carried, body)
    return [*carried, *stacked]


def _conditions(node: Node, graph: onnx.GraphProto) -> str | None:
    """The name of the condition that the body only hands on; None where it computes one."""
    name = graph.output[0].name
    for proto in graph.node:
        if name in proto.output:
            if proto.op_type != "Identity":
                return None
            name = proto.input[0]
    return name if name == graph.input[1].name else None


def _rounds(node: Node, graph: onnx.GraphProto, count: int, carried: list[Any], kept: int) -> list[Any]:
    """Round by round, as long as the condition, known in each round, holds."""
    given: list[list[Any]] = []
    condition: Any = known_value("condition", numbers_array([1], ()).astype(bool), boolean())
    for i in range(count):
        condition, *results = run_graph(
            node, graph, [known_value("round", numbers_array([i], ())), condition, *carried], "body"
        )
        carried = results[:kept]
        given.append(results[kept:])
        if not bool(condition.numbers().reshape(-1)[0]):
            break
    if not given:
        return [*carried, *_no_rounds(node, graph, carried, kept)]
    stacked = [_stacked([unsqueeze(v.value, 0) for v in column]) for column in zip(*given, strict=True)]
    return [*carried, *stacked]


def _no_rounds(node: Node, graph: onnx.GraphProto, carried: list[Any], kept: int) -> list[ir.Value]:
    """What rounds give, of none: their types are seen in one that is thrown away."""
    block = _scratch()
    with ir.InsertionPoint(block):
        going = known_value("condition", numbers_array([1], ()).astype(bool), boolean())
        number = tensor_value("round", full(0, integer()))
        results = run_graph(node, graph, [number, going, *(tensor_value("carried", c.value) for c in carried)], "body")
        infos = [info_of(v) for v in _values(results[1 + kept :])]
    _discard(block)
    return [full(0, i.dtype, (0, *i.shape)) for i in infos]


def _stacked(parts: list[ir.Value]) -> ir.Value:
    total = parts[0]
    for part in parts[1:]:
        total = emit(ops.Concat, total, part, axis=0)
    return total


@handles("Scan")
def _scan(node: Node) -> list[Any]:
    """Source: https://onnx.ai/onnx/operators/onnx__Scan.html."""
    graph = node.attribute("body")
    count = node.attribute("num_scan_inputs")
    operands = list(node.operands)
    if node.version < 9:
        return _batched_scan(node, graph, count)
    states, scanned = operands[: len(operands) - count], [o.value for o in operands[len(operands) - count :]]  # type: ignore[union-attr]
    axes = node.attribute("scan_input_axes", [0] * count)
    backwards = node.attribute("scan_input_directions", [0] * count)
    ranks = [info_of(v).rank for v in scanned]
    axes = [a + r if a < 0 else a for a, r in zip(axes, ranks, strict=True)]
    scanned = [emit(ops.Flip, v, axis=a) if b else v for v, a, b in zip(scanned, axes, backwards, strict=True)]
    rounds = info_of(scanned[0]).shape[axes[0]]
    if rounds is None:
        raise RelaxError("expected a scan over a dimension that is known or symbolic")
    carried, stacked = scan(node, graph, rounds, list(states), scanned, axes)
    outs = len(stacked)
    directions = node.attribute("scan_output_directions", [0] * outs)
    places = node.attribute("scan_output_axes", [0] * outs)
    return [*carried, *(_moved(v, p, d) for v, p, d in zip(stacked, places, directions, strict=True))]


def scan(node: Node, graph: onnx.GraphProto, rounds: Any, states: list[Any], scanned: list[ir.Value], axes: list[int]) -> Any:
    """Rounds of a graph over slices of tensors."""

    def body(number: GraphValue, values: list[Any]) -> tuple[list[Any], list[Any]]:
        slices = [tensor_value("slice", _taken(v, number, a)) for v, a in zip(scanned, axes, strict=True)]
        results = run_graph(node, graph, [*values, *slices], "body")
        return list(results[: len(states)]), list(results[len(states) :])

    return repeat(rounds, states, body)


def _taken(x: ir.Value, number: GraphValue, axis: int) -> ir.Value:
    from ...emit import slice_axis

    if number.known is not None:
        i = int(number.known)
        return squeeze(slice_axis(x, axis, i, i + 1), axis)
    return emit(ops.Take, x, number.value, axis=axis)


def _moved(x: ir.Value, axis: int, backwards: int) -> ir.Value:
    from ...emit import permute

    x = emit(ops.Flip, x, axis=0) if backwards else x
    rank = info_of(x).rank
    axis = axis + rank if axis < 0 else axis
    axes = list(range(1, rank))
    axes.insert(axis, 0)
    return permute(x, axes)


def _batched_scan(node: Node, graph: onnx.GraphProto, count: int) -> list[Any]:
    """Operator set 8: a first dimension of batches everywhere, and lengths as the first operand."""
    if node.has(0):
        raise RelaxError("expected a scan of operator set 8 without lengths of sequences")
    operands = [o.value for o in node.operands[1:]]  # type: ignore[union-attr]
    batch = info_of(operands[0]).shape[0]
    if not isinstance(batch, int):
        raise RelaxError("expected a scan of operator set 8 over a known number of batches")
    columns: list[list[Any]] = []
    for b in range(batch):
        from ...emit import slice_axis

        parts = [squeeze(slice_axis(v, 0, b, b + 1), 0) for v in operands]
        states, scanned = parts[: len(parts) - count], parts[len(parts) - count :]
        rounds = info_of(scanned[0]).shape[0]
        carried, stacked = scan(node, graph, rounds, [tensor_value("state", s) for s in states], scanned, [0] * count)
        columns.append([*(c.value for c in carried), *stacked])
    return [_stacked([unsqueeze(v, 0) for v in column]) for column in zip(*columns, strict=True)]


@handles("SequenceMap")
def _sequence_map(node: Node) -> list[Any]:
    sequence = node.sequence(0)
    graph = node.attribute("body")
    columns: list[list[Any]] = [[] for _ in graph.output]
    for i, item in enumerate(sequence.items):
        more = [o.items[i] if isinstance(o, TensorSequence) else o for o in node.operands[1:]]
        for column, result in zip(columns, run_graph(node, graph, [item, *more], "body"), strict=True):
            column.append(result)
    return [TensorSequence(c) for c in columns]

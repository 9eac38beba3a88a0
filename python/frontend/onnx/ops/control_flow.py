"""ONNX operators with graphs inside: If, Loop, Scan and SequenceMap."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import onnx

from ....dialect import ops
from ....dialect.bindings import ir, scf
from ....dialect.errors import RelaxError
from ....dialect.inference import boolean
from ....dialect.struct_info import TensorInfo
from ...emit import common_size, emit, full, info_of, integer, permute, require_different, slice_axis, squeeze
from ..either import Either
from ..equal_sizes import with_size
from ..graph import UNUSABLE
from ..node import Node, handles
from ..rounds import MOST_WRITTEN_OUT, element, named_sizes, repeat, repeat_while, scratch, stacked, taken
from ..size_expressions import OTHER_RANK, Equality
from ..values import GraphValue, TensorSequence, known_value, numbers_array, tensor_value

#: Loops whose conditions are known are written out up to so many rounds.
_MOST_ROUNDS = 4096


def run_graph(node: Node, graph: onnx.GraphProto, values: Sequence[Any], where: str) -> list[GraphValue | TensorSequence]:
    """The results of a graph for operands, at the current insertion point. Raises RelaxError where it cannot be converted."""
    scope = node.scope.nested(f"{node.name.removeprefix(node.scope.prefix)}/{where}")
    scope.initialize(graph)
    for given, value in zip(graph.input, values, strict=False):
        scope.names[given.name] = value
    before = len(scope.conversion.report.found)
    scope.convert(graph)
    found = [scope.find(o.name) for o in graph.output]
    if any(f is UNUSABLE for f in found) or len(scope.conversion.report.found) > before:
        raise RelaxError(f"expected a {where} of operators that have a relax form")
    return found


def _values(results: Sequence[GraphValue | TensorSequence]) -> list[ir.Value]:
    if any(isinstance(r, TensorSequence) for r in results):
        raise RelaxError("expected tensors from a branch or a loop that is not known at import, got a sequence")
    return [r.value for r in results if isinstance(r, GraphValue)]


def _want(node: Node, *indices: int) -> None:
    """Says that elements of operands would do: of a known condition one branch is left, of known rounds each is for itself."""
    for i in indices:
        if node.has(i):
            node.scope.conversion.wanted |= node.operand(i).inputs


@handles("If")
def _if(node: Node) -> list[Any]:
    """Of a condition that is known only that branch; else a branch at run time, whose results have one rank and dtype."""
    names = ("then_branch", "else_branch")
    branches = [(node.attribute(k), k) for k in names]
    known = node.operand(0).known
    if known is not None:
        graph, name = branches[0 if bool(known.reshape(-1)[0]) else 1]
        return list(run_graph(node, graph, [], name))
    symbols = frozenset(node.scope.conversion.symbols)
    infos: list[list[TensorInfo]] = []
    try:
        for graph, name in branches:  # once to see the types
            with scratch():
                found = _values(run_graph(node, graph, [], name))
                infos.append([named_sizes(info_of(v), symbols) for v in found])
        if any(a.rank != b.rank for a, b in zip(*infos, strict=True)) and (found := _where_sizes_differ(node, branches)):
            return found
        results = [Either(a, b) for a, b in zip(*infos, strict=True)]
    except RelaxError:
        _want(node, 0)
        raise
    types = [t for r in results for t in r.types]
    op = ir.Operation.create("scf.if", types, [element(node.tensor(0))], regions=2)
    for (graph, name), region in zip(branches, op.regions, strict=True):
        with ir.InsertionPoint(region.blocks.append()):
            values = _values(run_graph(node, graph, [], name))
            scf.YieldOp([x for v, r in zip(values, results, strict=True) for x in r.given(v)])
    yielded = iter(op.results)
    return [r.taken(yielded, node.new_symbol) for r in results]


def _where_sizes_differ(node: Node, branches: Sequence[tuple[onnx.GraphProto, str]]) -> list[Any] | None:
    """The results where two sizes differ, of a condition on whether they do; each call checks that. None for other conditions.

    So torch exports ``x.squeeze(1)``, whose rank depends on the size: ``If(Equal(size, 1))``.
    """
    folds = node.operand(0).folds
    condition = None if folds is None else folds.reshape(-1).tolist()[0]
    if not isinstance(condition, Equality):
        return None
    a, b = condition.left, condition.right
    require_different(a, b, f"expected {a} other than {b}, {OTHER_RANK}")
    graph, name = branches[0 if condition.is_negated else 1]
    return list(run_graph(node, graph, [], name))


@handles("Loop")
def _loop(node: Node) -> list[Any]:
    """Round by round where conditions are known, a counted loop where they hold throughout, else one that data ends."""
    graph = node.attribute("body")
    kept = len(graph.input) - 2
    carried = list(node.operands[2:])
    known = node.operand(0).known if node.has(0) else None
    count = None if known is None else known.reshape(-1).tolist()[0]
    first = node.operand(1).known if node.has(1) else numbers_array([1])
    if count is not None and first is not None and not first.reshape(-1)[0]:
        count = 0
    if any(isinstance(c, TensorSequence) for c in carried):
        return _rounds(node, graph, int(node.number(0)), carried, kept)
    throughout = first is not None and _conditions(node, graph) is not None
    if isinstance(count, int) and first is not None and _is_written_out(node, graph, count, throughout, carried):
        return _rounds(node, graph, count, carried, kept)
    if throughout and count is not None:
        return _counted(node, graph, count, carried, kept)
    return _open(node, graph, count, carried, kept)


def _is_written_out(node: Node, graph: onnx.GraphProto, count: int, throughout: bool, carried: list[Any]) -> bool:
    """Whether each round is converted for itself: few of them, or such that conditions are known."""
    if throughout or not count:
        return count <= MOST_WRITTEN_OUT
    if count > _MOST_ROUNDS:
        return False
    with scratch():
        condition, *_ = run_graph(node, graph, [known_value("round", numbers_array([0], ())), _holds(), *carried], "body")
    return isinstance(condition, GraphValue) and condition.known is not None


def _holds() -> GraphValue:
    return known_value("condition", numbers_array([1], ()).astype(bool), boolean())


def _counted(node: Node, graph: onnx.GraphProto, count: Any, carried: list[Any], kept: int) -> list[Any]:
    def body(number: GraphValue, values: list[Any]) -> tuple[list[Any], list[Any]]:
        _, *results = run_graph(node, graph, [number, _holds(), *values], "body")
        return results[:kept], results[kept:]

    carried, given = repeat(count, carried, body, frozenset(node.scope.conversion.symbols))
    return [*carried, *given]


def _open(node: Node, graph: onnx.GraphProto, count: Any, carried: list[Any], kept: int) -> list[Any]:
    """A number of rounds that is computed, or a condition that is."""

    def body(number: GraphValue, going: ir.Value, values: list[Any]) -> tuple[ir.Value, list[Any], list[Any]]:
        condition, *results = run_graph(node, graph, [number, tensor_value("condition", going), *values], "body")
        return _values([condition])[0], results[:kept], results[kept:]

    condition = node.tensor(1) if node.has(1) else full(True, boolean())
    most = node.tensor(0) if node.has(0) else None
    symbols = frozenset(node.scope.conversion.symbols)
    try:
        carried, given = repeat_while(most, count, condition, carried, body, symbols, node.new_symbol)
    except RelaxError:
        _want(node, 0, 1)
        raise
    return [*carried, *given]


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
    condition: Any = _holds()
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
    return [*carried, *(stacked(_values(column)) for column in zip(*given, strict=True))]


def _no_rounds(node: Node, graph: onnx.GraphProto, carried: list[Any], kept: int) -> list[ir.Value]:
    """What rounds give, of none: their types are seen in one that is thrown away."""
    with scratch():
        number = tensor_value("round", full(0, integer()))
        results = run_graph(node, graph, [number, _holds(), *carried], "body")
        infos = [info_of(v) for v in _values(results[1 + kept :])]
    return [full(0, i.dtype, (0, *i.shape)) for i in infos]


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
    rounds = common_size(info_of(v).shape[a] for v, a in zip(scanned, axes, strict=True))
    if rounds is None:
        raise RelaxError("expected a scan over a dimension that is known or symbolic")
    scanned = [with_size(v, a, rounds) for v, a in zip(scanned, axes, strict=True)]
    carried, given = scan(node, graph, rounds, list(states), scanned, axes)
    outs = len(given)
    directions = node.attribute("scan_output_directions", [0] * outs)
    places = node.attribute("scan_output_axes", [0] * outs)
    return [*carried, *(_moved(v, p, d) for v, p, d in zip(given, places, directions, strict=True))]


def scan(node: Node, graph: onnx.GraphProto, rounds: Any, states: list[Any], scanned: list[ir.Value], axes: list[int]) -> Any:
    """Rounds of a graph over slices of tensors."""

    def body(number: GraphValue, values: list[Any]) -> tuple[list[Any], list[Any]]:
        slices = [tensor_value("slice", taken(v, number, a)) for v, a in zip(scanned, axes, strict=True)]
        results = run_graph(node, graph, [*values, *slices], "body")
        return list(results[: len(states)]), list(results[len(states) :])

    return repeat(rounds, states, body, frozenset(node.scope.conversion.symbols))


def _moved(x: ir.Value, axis: int, backwards: int) -> ir.Value:
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
        parts = [squeeze(slice_axis(v, 0, b, b + 1), 0) for v in operands]
        states, scanned = parts[: len(parts) - count], parts[len(parts) - count :]
        rounds = info_of(scanned[0]).shape[0]
        carried, given = scan(node, graph, rounds, [tensor_value("state", s) for s in states], scanned, [0] * count)
        columns.append([*(c.value for c in carried), *given])
    return [stacked(column) for column in zip(*columns, strict=True)]


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

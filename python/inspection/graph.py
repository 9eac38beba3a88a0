"""A module as graphs: a node for each argument, op and result of a function, in program order, by the model's own modules.

A node's module is the name in its location, as imports write it. Where there is none, an op is in the module of the weights
that it reads, else in the one that all it reads come from; a weight is in the module that its name says. Ops that became one
kernel are a group of their own in the innermost module around all of them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

from ..dialect.analysis.work import op_work
from ..dialect.bindings import func, ir
from ..dialect.errors import location_text
from ..dialect.functions import (
    body_of,
    full_argument_names,
    functions,
    is_private,
    name_of,
    num_input,
    transform_targets,
)
from ..dialect.op_costs import Size, UnknownSizeError, data_bytes
from ..dialect.reports.kernels import Kernel
from ..dialect.reports.lifting import LiftSection
from ..dialect.reports.report import Report
from ..dialect.struct_info import TensorInfo, is_tensor
from ..dialect.symbolic import Expr, dim_text, evaluate
from ..dialect.traversal import free_values, nested_operations, operations
from ..dialect.weights import full_result_names

__all__ = ["FunctionGraph", "GraphNode", "KernelCall", "graphs_of"]

#: Longest attribute that is shown whole.
_MAX_ATTRIBUTE = 200


@dataclass(frozen=True)
class KernelCall:
    """A call of a kernel, and the ops that it computes.

    Attributes:
        kernel: what is known of it.
        places: where its ops are in the module's text, without those that an earlier call computes, too.
    """

    kernel: Kernel
    places: tuple[str, ...]


@dataclass(frozen=True)
class GraphNode:
    """An argument, an op or a result.

    Attributes:
        op: the op without ``relax.``; ``input``, ``weight`` or ``result``.
        path: the model's module, such as ``layers.0.mlp``; empty at the top.
        type: of what it makes, such as ``f32[n, 64]``.
        bytes: of an argument or a result its size, of an op what it reads and writes; a symbol counts as 1, the unknown as 0.
        flops: its arithmetic operations, likewise.
        label: its name; empty for an op without.
        attributes: one ``name: value`` a line.
        notes: where it was written, and what passes told of that place, likewise.
        reads: positions of the nodes that it reads.
        kernel: the group of those that became one kernel, a path in the place of the module's; empty elsewhere.
    """

    op: str
    path: str
    type: str
    bytes: int
    flops: int
    label: str
    attributes: str
    notes: str
    reads: tuple[int, ...]
    kernel: str = ""

    @property
    def group(self) -> str:
        """The path of the group that it is shown in."""
        return self.kernel or self.path


@dataclass(frozen=True)
class FunctionGraph:
    """The nodes of one function.

    Attributes:
        name: of the function.
        private: whether only other functions call it.
        prepares: the function whose weights it makes, or None.
        nodes: in program order.
    """

    name: str
    private: bool
    prepares: str | None
    nodes: tuple[GraphNode, ...]

    def named(self, op: str) -> dict[str, int]:
        """Positions of the nodes of an op by name."""
        return {node.label: i for i, node in enumerate(self.nodes) if node.op == op}


class Shown(Protocol):
    """What is shown of a module: :class:`relaxir.Module` is one, and imports this for notebooks."""

    @property
    def ir(self) -> ir.Module: ...
    @property
    def context(self) -> ir.Context: ...

    report: Report


def graphs_of(
    module: Shown, report: Report | None = None, kernels: Sequence[KernelCall] = ()
) -> list[FunctionGraph]:  # fmt: skip
    """A graph for each function with a body.

    Args:
        module: what to show.
        report: what a compilation told, where that is not the module's own report.
        kernels: their calls, by the places of what they compute (:func:`.kernels.kernel_calls`).
    """
    notes = _reported(module.report if report is None else report)
    for call in kernels:
        for place in call.places:
            notes.setdefault(place, []).append(_kernel_note(call.kernel))
    calls = {place: i for i, call in enumerate(kernels) for place in call.places}
    names = [call.kernel.name for call in kernels]
    with module.context, ir.Location.unknown():
        found = [f for f in functions(module.ir) if body_of(f) is not None]
        raw = {n for f in found if transform_targets(f) for n in full_argument_names(f)}
        return [_Function(f, raw, notes, calls, names).graph() for f in found]


def _kernel_note(kernel: Kernel) -> str:
    ops = ", ".join(op.removeprefix("relax.") for op in kernel.ops)
    return f"kernel: {kernel.name}, {kernel.kind} of {ops}{f', {kernel.plan}' if kernel.plan else ''}"


def _reported(report: Report) -> dict[str, list[str]]:
    """What was told of ops, by the place where they were written."""
    notes: dict[str, list[str]] = {}
    for section in report.sections:
        if isinstance(section, LiftSection):
            for stays in section.not_lifted:
                notes.setdefault(stays.location, []).append(f"not lifted: {stays.reason}: {stays.detail}")
    return {place: list(dict.fromkeys(told)) for place, told in notes.items() if place}


@dataclass
class _Function:
    """The graph of a function while it is made."""

    function: func.FuncOp
    raw_weights: Collection[str]
    reported: Mapping[str, list[str]]
    calls: Mapping[str, int]
    kernels: Sequence[str]
    nodes: list[GraphNode] = field(default_factory=list[GraphNode])
    makers: dict[ir.Value, int] = field(default_factory=dict[ir.Value, int])
    of_weights: set[int] = field(default_factory=set[int])
    by_call: dict[int, list[int]] = field(default_factory=dict[int, list[int]])

    def graph(self) -> FunctionGraph:
        block, name, targets = body_of(self.function), name_of(self.function), transform_targets(self.function)
        assert block is not None
        self._arguments(block)
        for op in operations(block):
            if op.name == "func.return":
                self._results(op)
            else:
                self._op(op)
        self._group_kernels()
        return FunctionGraph(name, is_private(self.function), targets[0] if targets else None, tuple(self.nodes))

    def _arguments(self, block: ir.Block) -> None:
        names, inputs = full_argument_names(self.function), num_input(self.function)
        for i, (value, name) in enumerate(zip(block.arguments, names, strict=True)):
            is_weight = inputs is not None and i >= inputs
            path = _module_of_weight(name, self.raw_weights, value.location) if is_weight else ""
            self._add(GraphNode("weight" if is_weight else "input", path, *_made([value]), 0, name, "", "", ()), [value])
            if is_weight:
                self.of_weights.add(i)

    def _results(self, end: ir.Operation) -> None:
        for value, name in zip(end.operands, full_result_names(self.function), strict=True):
            source = self.makers[value]
            path = self.nodes[source].path if transform_targets(self.function) else ""
            self._add(GraphNode("result", path, *_made([value]), 0, name, "", "", (source,)), [])

    def _op(self, op: ir.Operation) -> None:
        """An op, with what is in its regions as a group of its own."""
        node = self._node(op, free_values(op))
        position = self._add(node, op.results)
        self._note_call(op, position)
        if node.reads and all(r in self.of_weights for r in node.reads):
            self.of_weights.add(position)
        inside = ".".join(filter(None, (node.path, f"{node.op.replace('.', '_')}_{position}")))
        for inner in nested_operations(op):
            for value in (a for region in inner.parent.regions for b in region.blocks for a in b.arguments):
                self.makers.setdefault(value, position)
            if len(inner.results):
                found = self._node(inner, [v for v in free_values(inner) if v in self.makers])
                self._note_call(inner, self._add(replace(found, path=inside), inner.results))
        if len(op.regions) and len(self.nodes) > position + 1:
            self.nodes[position] = replace(node, path=inside)

    def _note_call(self, op: ir.Operation, position: int) -> None:
        call = self.calls.get(location_text(op.location)) if self.calls else None
        if call is not None:
            self.by_call.setdefault(call, []).append(position)

    def _group_kernels(self) -> None:
        """Ops of one call, in the module around them; a second call of a kernel is counted."""
        taken = Counter[str]()
        for call, members in sorted(self.by_call.items(), key=lambda item: item[1]):
            if len(members) == 1:
                continue
            path = ".".join(filter(None, (_common([self.nodes[i].path for i in members]), self.kernels[call])))
            taken[path] += 1
            group = path if taken[path] == 1 else f"{path} ({taken[path]})"
            for i in members:
                self.nodes[i] = replace(self.nodes[i], kernel=group)

    def _node(self, op: ir.Operation, read: Iterable[ir.Value]) -> GraphNode:
        reads = tuple(dict.fromkeys(self.makers[v] for v in read))
        (type_, _), work = _made(op.results), op_work(op)
        name = f"@{op.attributes['callee'].value}" if op.name == "func.call" else ""
        attributes, notes = "\n".join(_attributes(op)), "\n".join(_written(op, self.reported))
        moved, flops = _with_ones(work.bytes), _with_ones(work.flops)
        return GraphNode(
            op.name.removeprefix("relax."), self._path(op, reads), type_, moved, flops, name, attributes, notes, reads
        )

    def _path(self, op: ir.Operation, reads: Sequence[int]) -> str:
        own = _module_in(op.location)
        if own:
            return own
        weights = [r for r in reads if r in self.of_weights]
        return _common([p for r in weights or reads if (p := self.nodes[r].path)])

    def _add(self, node: GraphNode, values: Iterable[ir.Value]) -> int:
        self.nodes.append(node)
        self.makers.update(dict.fromkeys(values, len(self.nodes) - 1))
        return len(self.nodes) - 1


def _module_in(location: ir.Location) -> str:
    """The name in a location; empty where there is none."""
    return location.name_str if isinstance(location, ir.NameLoc) else ""


def _module_of_weight(name: str, raw: Collection[str], location: ir.Location) -> str:
    """What a location has behind the weight's own name, else its name without the last part.

    Of a prepared weight the names of its raw ones count: ``a.q.weight+a.k.weight.concat`` is in ``a``.
    """
    if isinstance(location, ir.NameLoc) and (inner := _module_in(location.child_loc)):
        return inner
    sources = [source for part in name.split("+") if (source := _raw_of(part, raw))]
    return _common([s.rpartition(".")[0] for s in sources]) if sources else name.rpartition(".")[0]


def _raw_of(part: str, raw: Collection[str]) -> str:
    """The raw weight that a part of a name begins with; empty where none does."""
    while part and part not in raw:
        part = part.rpartition(".")[0]
    return part


def _common(paths: Sequence[str]) -> str:
    """The innermost module around all."""
    if not paths:
        return ""
    parts = [p.split(".") for p in paths]
    shared: list[str] = []
    for names in zip(*parts, strict=False):
        if len(set(names)) > 1:
            break
        shared.append(names[0])
    return ".".join(shared)


def _made(values: Iterable[ir.Value]) -> tuple[str, int]:
    """Types in short, and bytes of those with constant sizes."""
    texts, total = list[str](), 0
    for value in values:
        if not is_tensor(value):
            texts.append(str(value.type))
            continue
        info = TensorInfo.of(value)
        texts.append(f"{info.dtype}[{', '.join(map(dim_text, info.shape))}]")
        total += _size(info)
    return ", ".join(texts), total


def _size(info: TensorInfo) -> int:
    try:
        return _with_ones(data_bytes(info))
    except UnknownSizeError:
        return 0


def _with_ones(size: Size) -> int:
    return evaluate(size, dict.fromkeys(size.names, 1)) if isinstance(size, Expr) else size


def _attributes(op: ir.Operation) -> Iterable[str]:
    for item in op.attributes:
        key = item if isinstance(item, str) else item.name
        text = str(op.attributes[key])
        yield f"{key}: {text if len(text) <= _MAX_ATTRIBUTE else text[:_MAX_ATTRIBUTE] + '...'}".replace("\n", " ")


def _written(op: ir.Operation, reported: Mapping[str, list[str]]) -> Iterable[str]:
    """Where it was written, and what passes told of that place."""
    place = location_text(op.location)
    return (f"written at: {place}", *reported.get(place, ())) if place else ()

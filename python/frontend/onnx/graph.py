"""ONNX graphs, and functions that nodes call, as relax ops at the current insertion point."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import onnx

from ...dialect.bindings import ir
from ...dialect.errors import RelaxError
from ...weights.onnx_tensors import dense_tensor
from ..torch_report import ImportReport
from .folding import folded
from .live import live_nodes, names_read
from .node import HANDLERS, Node, UnmappedError
from .operand_sizes import with_equal_sizes
from .schemas import schema_body
from .tensors import attribute_value
from .values import GraphValue, NumbersWantedError, TensorSequence, known_value, tensor_value
from .weights import Weights

__all__ = ["UNUSABLE", "Conversion", "FunctionKey", "GraphScope"]

#: Domain, name and overload of a function.
FunctionKey = tuple[str, str, str]

#: What a handler that was never meant to fail may raise all the same, on attributes of the wrong kind.
_PYTHON_ERRORS = (
    MemoryError,
    TypeError,
    AttributeError,
    KeyError,
    IndexError,
    ValueError,
    AssertionError,
    OverflowError,
    ZeroDivisionError,
)

#: What depends on a node that could not be converted.
UNUSABLE = TensorSequence()


@dataclass
class Conversion:
    """What is shared by all graphs of a model.

    Attributes:
        path: how errors name the model.
        weights: its initializers, which become arguments.
        functions: those that the model brings, by domain, name and overload.
        running: which of these are being converted, each called by the one before.
        report: what could not be converted.
        wanted: inputs whose elements some operator wants at import.
        read: names that nodes have read, with the prefixes of their graphs.
        opset: the version that the model was written in, which may have been converted to a newer one.
        symbols: names of sizes that are in use.
    """

    path: str
    weights: Weights
    functions: Mapping[FunctionKey, onnx.FunctionProto] = field(default_factory=dict[FunctionKey, onnx.FunctionProto])
    running: list[FunctionKey] = field(default_factory=list[FunctionKey])
    report: ImportReport = field(default_factory=ImportReport)
    wanted: set[str] = field(default_factory=set[str])
    read: set[str] = field(default_factory=set[str])
    opset: int = 0
    symbols: set[str] = field(default_factory=set[str])

    def new_symbol(self, prefix: str) -> str:
        """A name for a size that data decides."""
        name = next(n for i in itertools.count() if (n := f"{prefix}_{i}") not in self.symbols)
        self.symbols.add(name)
        return name


@dataclass
class GraphScope:
    """The values of a graph by name, and those of the graphs around it.

    Attributes:
        conversion: of the model.
        opsets: version by domain.
        parent: the graph around; None for the model's and for those of functions.
        attributes: of the node that calls the function whose body this is.
        prefix: of the names of nodes and weights: the nodes that lead here.
    """

    conversion: Conversion
    opsets: Mapping[str, int]
    parent: GraphScope | None = None
    attributes: Mapping[str, onnx.AttributeProto] = field(default_factory=dict[str, onnx.AttributeProto])
    prefix: str = ""
    names: dict[str, GraphValue | TensorSequence] = field(default_factory=dict[str, "GraphValue | TensorSequence"])

    def find(self, name: str) -> GraphValue | TensorSequence:
        """The value of a name. Raises RelaxError where there is none."""
        scope: GraphScope | None = self
        while scope is not None:
            if name in scope.names:
                self.conversion.read.add(scope.prefix + name)
                return scope.names[name]
            scope = scope.parent
        raise RelaxError(f"expected a value that an earlier node gives, got '{name}'")

    def nested(self, name: str) -> GraphScope:
        """A graph inside of a node of this one."""
        return GraphScope(self.conversion, self.opsets, self, self.attributes, f"{self.prefix}{name}/")

    def convert(self, graph: onnx.GraphProto) -> None:
        """Converts the nodes that a graph's results depend on, in their order; what cannot be converted goes into the report.

        Functions that nodes call are open at once, however many call one another, without any of Python's stack.
        """
        count = len(self.conversion.running)
        bodies = [_Body(self, iter(live_nodes(graph.node, [o.name for o in graph.output])))]
        try:
            while bodies:
                following = next(bodies[-1].nodes, None)
                if following is None:
                    bodies.pop().finish()
                elif (body := bodies[-1].scope._converted(*following)) is not None:
                    bodies.append(body)
        finally:
            del self.conversion.running[count:]

    def _converted(self, number: int, proto: onnx.NodeProto) -> _Body | None:
        """Converts a node, or gives the function that it calls."""
        name = self.prefix + (proto.name or next(iter(proto.output), ""))
        with ir.Location.name(name, ir.Location.file(self.conversion.path, number + 1, 0)) as location:
            return self._convert(proto, name, location)

    def initialize(self, graph: onnx.GraphProto) -> None:
        """Takes the graph's initializers. Raises RelaxError for one that a result depends on and that is none of numbers."""
        for tensor in [*graph.initializer, *map(dense_tensor, graph.sparse_initializer)]:
            try:
                self.names[tensor.name] = self.conversion.weights.operand(tensor, self.prefix)
            except RelaxError:
                outputs = [o.name for o in graph.output]
                if tensor.name in set(outputs).union(*(names_read(n) for _, n in live_nodes(graph.node, outputs))):
                    raise
                self.names[tensor.name] = UNUSABLE

    def _convert(self, proto: onnx.NodeProto, name: str, location: ir.Location) -> _Body | None:
        key = f"{proto.domain}.{proto.op_type}" if proto.domain not in ("", "ai.onnx") else proto.op_type
        proto = self._resolved(proto)
        try:
            node = self._node(proto, key, name)
            if any(o is UNUSABLE for o in node.operands):
                self._unusable(proto)
                return None
            results = self._handled(node, proto, location)
        except NumbersWantedError as error:
            self.conversion.wanted |= error.inputs
            self._failed(proto, key, error.args[0], location)
            return None
        except RelaxError as error:
            self._failed(proto, key, error.args[0], location)
            return None
        except RecursionError:
            self._failed(proto, key, "expected control flow that is less deep", location)
            return None
        except _PYTHON_ERRORS as error:
            self._failed(proto, key, f"no relax form of these operands and attributes ({type(error).__name__})", location)
            return None
        if isinstance(results, _Body):
            return results
        self.bind(node, results)
        return None

    def _failed(self, proto: onnx.NodeProto, key: str, reason: str, location: ir.Location) -> None:
        self.conversion.report.add(key, reason, location)
        self._unusable(proto)

    def _unusable(self, proto: onnx.NodeProto) -> None:
        self.names.update((o, UNUSABLE) for o in proto.output if o)

    def _node(self, proto: onnx.NodeProto, key: str, name: str) -> Node:
        domain = "" if proto.domain == "ai.onnx" else proto.domain
        version = self.opsets.get(domain, 1)
        operands = [self.find(i) if i else None for i in proto.input]
        attributes = {a.name: attribute_value(a) for a in proto.attribute}
        return Node(key, name, version, operands, attributes, list(proto.output), self)

    def _handled(self, node: Node, proto: onnx.NodeProto, location: ir.Location) -> Sequence[Any] | _Body:
        called = proto.domain, proto.op_type, proto.overload
        local = self.conversion.functions.get(called)
        if local is not None:
            return self._called(local, node, proto, location, called)
        known = folded(node, proto)
        if known is not None:
            return known
        _require_numbers(node)
        node = with_equal_sizes(node)
        handler = HANDLERS.get(node.key)
        unmapped: RelaxError | None = None
        if handler is not None:
            try:
                return _listed(handler(node))
            except UnmappedError as error:
                unmapped = error
        body = schema_body(node, proto)
        if body is None:
            raise unmapped or RelaxError("no relax form")
        return self._called(body, node, proto, location)

    def _called(
        self,
        function: onnx.FunctionProto,
        node: Node,
        proto: onnx.NodeProto,
        location: ir.Location,
        key: FunctionKey | None = None,
    ) -> _Body:
        """The nodes of a function in the place of a node that calls it. Raises RelaxError where it is open already."""
        if key in self.conversion.running:
            raise RelaxError(f"expected functions that do not call themselves, got '{function.name}'")
        attributes = {a.name: a for a in [*function.attribute_proto, *proto.attribute]}
        opsets = {o.domain if o.domain != "ai.onnx" else "": o.version for o in function.opset_import}
        inner = GraphScope(self.conversion, opsets or self.opsets, None, attributes, f"{node.name}/")
        for name, operand in zip(function.input, node.operands, strict=False):
            if operand is not None:
                inner.names[name] = operand
        for name in function.input[len(node.operands) :]:
            inner.names.pop(name, None)
        absent = [n for n in function.input if n not in inner.names]
        if key is not None:
            self.conversion.running.append(key)
        outputs = [o for o, wanted in zip(function.output, node.outputs, strict=False) if wanted]
        nodes = live_nodes(list(_without(function.node, absent)), outputs)
        return _Body(inner, iter(nodes), _Call(self, node, function, location, key is not None))

    def _resolved(self, proto: onnx.NodeProto) -> onnx.NodeProto:
        """The node with the attributes of the function's caller in the place of references to them."""
        if not any(a.ref_attr_name for a in proto.attribute):
            return proto
        found = onnx.NodeProto()
        found.CopyFrom(proto)
        del found.attribute[:]
        for attribute in proto.attribute:
            value = self.attributes.get(attribute.ref_attr_name) if attribute.ref_attr_name else attribute
            if value is not None:
                copy = found.attribute.add()
                copy.CopyFrom(value)
                copy.name = attribute.name
        return found

    def bind(self, node: Node, results: Sequence[Any]) -> None:
        inputs = frozenset[str]().union(*(o.inputs for o in node.operands if isinstance(o, GraphValue)))
        for name, result in zip(node.outputs, results, strict=False):
            if name and result is not None:
                self.names[name] = _bound(name, result, inputs)
        for name in node.outputs[len(results) :]:
            if name:
                raise RelaxError(f"expected {len(results)} results of {node.key}, got a use of '{name}'")


@dataclass
class _Call:
    """A node that calls a function, in its graph; ``is_local`` says whether the function is one of the model's."""

    scope: GraphScope
    node: Node
    function: onnx.FunctionProto
    location: ir.Location
    is_local: bool


@dataclass
class _Body:
    """Nodes that are being converted, and the call whose results they give; None for a graph's own."""

    scope: GraphScope
    nodes: Iterator[tuple[int, onnx.NodeProto]]
    call: _Call | None = None

    def finish(self) -> None:
        """Gives the results to the node that calls."""
        if self.call is None:
            return
        node = self.call.node
        if self.call.is_local:
            self.scope.conversion.running.pop()
        with self.call.location:
            self.call.scope.bind(node, [self.scope.names.get(o) for o in self.call.function.output[: len(node.outputs)]])


#: Operators that know what codes stand for (:mod:`.codes`), or do not care.
_ON_CODES = ("Cast", "CastLike", "QuantizeLinear", "DequantizeLinear", "Identity")


def _require_numbers(node: Node) -> None:
    """Raises RelaxError where an operator would compute with codes."""
    coded = [o.coded for o in node.operands if isinstance(o, GraphValue) and o.coded]
    if coded and node.key not in _ON_CODES:
        name = onnx.TensorProto.DataType.Name(coded[0])
        raise RelaxError(f"expected an element type that relax computes with, got {name}")


def _without(nodes: Iterable[onnx.NodeProto], absent: Sequence[str]) -> Iterable[onnx.NodeProto]:
    """The nodes, where names of operands that the caller leaves out are empty."""
    for node in nodes:
        if not any(i in absent for i in node.input):
            yield node
            continue
        copy = onnx.NodeProto()
        copy.CopyFrom(node)
        copy.input[:] = ["" if i in absent else i for i in node.input]
        yield copy


def _bound(name: str, result: Any, inputs: frozenset[str]) -> GraphValue | TensorSequence:
    if isinstance(result, TensorSequence):
        return result
    if isinstance(result, GraphValue):
        return result if result.known is not None or inputs <= result.inputs else replace(result, inputs=result.inputs | inputs)
    if isinstance(result, ir.Value):
        return tensor_value(name, result, inputs)
    return known_value(name, result)


def _listed(results: Any) -> Sequence[Any]:
    return results if isinstance(results, list | tuple) else [results]

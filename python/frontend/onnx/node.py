"""An ONNX node as conversion handlers see it: operands, attributes, the version of its operator set; and the op map."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from ...dialect.bindings import ir
from ...dialect.errors import RelaxError
from ...dialect.inference import normalize_axis
from ...dialect.struct_info import TensorInfo
from ...dialect.symbolic import Expr
from ..torch_op import UnmappedError
from .values import GraphValue, TensorSequence, info

__all__ = ["HANDLERS", "Handler", "Node", "Surroundings", "UnmappedError", "handles"]


class Surroundings(Protocol):
    """The graph that a node is in, as handlers of nodes with graphs inside see it: :class:`.graph.GraphScope`."""

    conversion: Any
    prefix: str
    attributes: Mapping[str, Any]
    names: dict[str, GraphValue | TensorSequence]

    def find(self, name: str) -> GraphValue | TensorSequence: ...
    def nested(self, name: str) -> Surroundings: ...
    def initialize(self, graph: Any) -> None: ...
    def convert(self, graph: Any) -> None: ...


@dataclass
class Node:
    """One node, while its handler runs.

    Attributes:
        key: domain, where it is not ONNX's own, and operator: ``Conv``, ``com.microsoft.MatMulNBits``.
        name: the node's own name, or that of its first output.
        version: of its operator set.
        operands: None for one that is absent.
        attributes: Python values; graphs and tensors as protos.
        outputs: names of the results, empty for one that nothing wants.
        scope: the graph that it is in, for those that have graphs inside.
    """

    key: str
    name: str
    version: int
    operands: list[GraphValue | TensorSequence | None]
    attributes: Mapping[str, Any]
    outputs: Sequence[str]
    scope: Surroundings

    def has(self, index: int) -> bool:
        """Whether an operand is there."""
        return index < len(self.operands) and self.operands[index] is not None

    def wants(self, index: int) -> bool:
        """Whether a result is used."""
        return index < len(self.outputs) and bool(self.outputs[index])

    def operand(self, index: int) -> GraphValue:
        """A tensor. Raises RelaxError where it is absent, or a sequence."""
        found = self.operands[index] if index < len(self.operands) else None
        if not isinstance(found, GraphValue):
            what = "none" if found is None else "a sequence"
            raise RelaxError(f"expected a tensor as operand {index}, got {what}")
        return found

    def sequence(self, index: int) -> TensorSequence:
        """A sequence, or an optional. Raises RelaxError for anything else."""
        found = self.operands[index] if index < len(self.operands) else None
        if not isinstance(found, TensorSequence):
            raise RelaxError(f"expected a sequence as operand {index}")
        return found

    def tensor(self, index: int) -> ir.Value:
        """The relax value of an operand."""
        return self.operand(index).value

    def weight(self, index: int) -> ir.Value:
        """The same; a number that the model's file has is a weight: layers that differ in these alone have the same kernels."""
        operand = self.operand(index)
        return operand.value if operand.argument is None else operand.argument()

    def optional(self, index: int) -> ir.Value | None:
        """The relax value of an operand, None where it is absent."""
        return self.tensor(index) if self.has(index) else None

    def tensors(self) -> list[ir.Value]:
        """All operands."""
        return [self.tensor(i) for i in range(len(self.operands))]

    def info(self, index: int) -> TensorInfo:
        return info(self.operand(index))

    def rank(self, index: int) -> int:
        return self.operand(index).rank

    def dtype(self, index: int = 0) -> ir.Type:
        return self.operand(index).dtype

    def numbers(self, index: int) -> list[Any]:
        """The elements of an operand, in one row. Raises NumbersWantedError where they are not known at import."""
        return self.operand(index).numbers().reshape(-1).tolist()

    def number(self, index: int, default: Any = None) -> Any:
        """The one element of an operand; the default where it is absent."""
        if not self.has(index):
            return default
        found = self.numbers(index)
        if len(found) != 1:
            raise RelaxError(f"expected one number as operand {index}, got {len(found)}")
        return found[0]

    def attribute(self, name: str, default: Any = None) -> Any:
        """An attribute; the default where it is absent."""
        return self.attributes.get(name, default)

    def listed(self, name: str, index: int) -> list[Any] | None:
        """Numbers that are an attribute in older operator sets and an operand in newer ones; None where there are none."""
        if name in self.attributes:
            return list(self.attributes[name])
        return self.numbers(index) if self.has(index) else None

    def axis(self, default: int | None, rank: int, name: str = "axis") -> int:
        """An attribute that is an axis. Raises RelaxError for one that is none."""
        found = self.attribute(name, default)
        if not isinstance(found, int):
            raise RelaxError(f"expected an attribute '{name}'")
        return normalize_axis(found, rank, name)

    def axes(self, given: Sequence[Any] | None, rank: int) -> list[int]:
        """Axes of a tensor, counted from the start; all where none are given."""
        found = [normalize_axis(_integer(a), rank, "axes") for a in given] if given is not None else list(range(rank))
        if len(set(found)) != len(found):
            raise RelaxError(f"expected distinct axes, got {found}")
        return found

    def size(self, index: int, axis: int) -> int | Expr:
        """A dimension of an operand that is known or symbolic."""
        found = self.operand(index).shape[axis]
        if found is None:
            raise RelaxError(f"expected a dimension {axis} of operand {index} that is known or symbolic")
        return found

    def new_symbol(self) -> str:
        """A name for a size that data decides."""
        return self.scope.conversion.new_symbol(self.key.rpartition(".")[2].lower())

    def known_size(self, index: int, axis: int) -> int:
        """A dimension of an operand that is a number."""
        found = self.operand(index).shape[axis]
        if not isinstance(found, int):
            raise RelaxError(f"expected a dimension {axis} of operand {index} that is known, got {found or 'an unknown one'}")
        return found


def _integer(value: Any) -> int:
    if isinstance(value, Expr) or not isinstance(value, int):
        raise RelaxError(f"expected a constant integer, got {value}")
    return value


Handler = Callable[[Node], Any]

#: What converts the nodes of each operator.
HANDLERS: dict[str, Handler] = {}


def handles(*keys: str) -> Callable[[Handler], Handler]:
    """Declares a function as what converts nodes of these operators."""

    def register(handler: Handler) -> Handler:
        for key in keys:
            if key in HANDLERS:
                raise TypeError(f"expected one handler of {key}")
            HANDLERS[key] = handler
        return handler

    return register

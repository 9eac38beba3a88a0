"""What several steps of the lowering ask about linalg ops on tensors, and about the kernels that hold them."""

from __future__ import annotations

from ...dialect.bindings import ir
from ...dialect.context_table import ContextTable
from ...dialect.traversal import values_inside

__all__ = [
    "captured",
    "captures_tensors",
    "destinations",
    "generics_in",
    "index_maps",
    "is_empty",
    "is_fill",
    "is_parallel",
    "is_scalar_constant",
    "owner_name",
]


def is_parallel(op: ir.Operation) -> bool:
    """Whether no loop of a ``linalg.generic`` is a reduction."""
    return _ALL_PARALLEL.of(op.attributes["iterator_types"])


def _are_parallel(kinds: ir.Attribute) -> bool:
    text = str(kinds)
    return text.count("<parallel>") == text.count("<")


_ALL_PARALLEL = ContextTable(_are_parallel)


def index_maps(op: ir.Operation) -> list[ir.AffineMap]:
    """The index maps of a ``linalg.generic``, one per operand."""
    return [ir.AffineMapAttr(m).value for m in ir.ArrayAttr(op.attributes["indexing_maps"])]


def generics_in(op: ir.Operation) -> list[ir.Operation]:
    """The ``linalg.generic`` inside of an op, in program order; their bodies are not gone through."""
    found: list[ir.Operation] = []

    def visit(inner: ir.Operation) -> ir.WalkResult:
        if inner.name != "linalg.generic":
            return ir.WalkResult.ADVANCE
        found.append(inner)
        return ir.WalkResult.SKIP

    op.walk(visit, ir.WalkOrder.PRE_ORDER)
    return found


def captured(op: ir.Operation) -> list[ir.Value]:
    """Values from outside that the op's region uses."""
    inside, own = values_inside(op)
    return list(dict.fromkeys(value for value in inside if value not in own))


def captures_tensors(op: ir.Operation) -> bool:
    """Whether the op's region reads tensors element by element."""
    inside, own = values_inside(op)
    return any(isinstance(v.type, ir.RankedTensorType) and v not in own for v in inside)


def owner_name(value: ir.Value) -> str:
    """The name of the op that makes a value, empty for a block argument."""
    return "" if isinstance(value, ir.BlockArgument) else value.owner.name


def is_scalar_constant(value: ir.Value) -> bool:
    """Whether a value is an ``arith.constant`` that kernels repeat instead of taking it as an argument."""
    return owner_name(value) == "arith.constant" and not isinstance(value.type, ir.RankedTensorType)


def destinations(op: ir.Operation) -> list[ir.Value]:
    """The operands that a linalg op writes its results to."""
    return list(op.operands)[len(op.operands) - len(op.results) :]


def is_empty(value: ir.Value) -> bool:
    """Whether a value is a ``tensor.empty``."""
    return owner_name(value) == "tensor.empty"


def is_fill(value: ir.Value) -> bool:
    """Whether a value is a ``linalg.fill`` with a constant."""
    return owner_name(value) == "linalg.fill" and owner_name(value.owner.operands[0]) == "arith.constant"

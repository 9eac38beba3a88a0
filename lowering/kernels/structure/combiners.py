"""What reductions accumulate by: operations whose steps may be taken in another order, over lanes or threads."""

from __future__ import annotations

from dataclasses import dataclass

from ....dialect.bindings import ir
from .nest import Nest

__all__ = ["COMBINERS", "Combiner", "combiners", "element_bits"]


@dataclass(frozen=True)
class Combiner:
    """A reduction that can be split over lanes: its neutral element and the kind of vector.reduction."""

    kind: str
    neutral: float | None

    def neutral_of(self, element: ir.Type) -> float:
        """The neutral element; None stands for the least or greatest integer of a type."""
        if self.neutral is not None:
            return self.neutral
        signed, bits = self.kind[-2] == "s", element_bits(element)
        low, high = (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1) if signed else (0, -1)  # -1 is the largest unsigned one
        return low if self.kind.startswith("max") else high


COMBINERS = {
    "arith.addf": Combiner("add", 0.0),
    "arith.mulf": Combiner("mul", 1.0),
    "arith.maximumf": Combiner("maximumf", float("-inf")),
    "arith.minimumf": Combiner("minimumf", float("inf")),
    "arith.maxnumf": Combiner("maxnumf", float("-inf")),
    "arith.minnumf": Combiner("minnumf", float("inf")),
    "arith.addi": Combiner("add", 0),
    "arith.muli": Combiner("mul", 1),
    "arith.andi": Combiner("and", -1),
    "arith.ori": Combiner("or", 0),
    "arith.xori": Combiner("xor", 0),
    "arith.maxsi": Combiner("maxsi", None),
    "arith.minsi": Combiner("minsi", None),
    "arith.maxui": Combiner("maxui", None),
    "arith.minui": Combiner("minui", None),
}


def combiners(nest: Nest) -> list[tuple[ir.Operation, ir.Value]] | None:
    """Per output the operation that combines its accumulator with a value, and that value; None when some output has none."""
    if not nest.reductions:
        return None
    _, yielded = nest.body()
    accumulators = [o.argument for o in nest.outputs]
    found = [_combiner(value, accumulator) for value, accumulator in zip(yielded, accumulators, strict=True)]
    return None if None in found else [pair for pair in found if pair is not None]


def element_bits(kind: ir.Type) -> int:
    """The width of a number type."""
    if isinstance(kind, ir.IndexType):
        return 64
    width: int = kind.width  # type: ignore[attr-defined]
    return width


def _combiner(value: ir.Value, accumulator: ir.Value) -> tuple[ir.Operation, ir.Value] | None:
    owner = value.owner
    if isinstance(owner, ir.Block) or owner.name not in COMBINERS:
        return None
    operation = owner.operation if isinstance(owner, ir.OpView) else owner
    a, b = operation.operands
    uses = len(list(accumulator.uses))
    if uses != 1 or (a == accumulator) == (b == accumulator):
        return None
    return operation, b if a == accumulator else a

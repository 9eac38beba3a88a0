"""What is computed of nothing, a constant or a fill, is computed for each memory where a module uses both.

Before, where ``%h`` is in the host's memory::

    %c = call @kernel_0(%e) : (tensor<4xf32>) -> tensor<4xf32>
    %0 = call @kernel_1(%h, %c, ...)
    %1 = call @kernel_2(%x, %c, ...)

after::

    %c = call @kernel_0(%e) : (tensor<4xf32>) -> tensor<4xf32>
    %c_host = call @kernel_0(%e) : (tensor<4xf32>) -> tensor<4xf32>
    %0 = call @kernel_1(%h, %c_host, ...)
    %1 = call @kernel_2(%x, %c, ...)

Equal computations have become one by then, wherever the module said that they are. What control flow hands on, and functions
return, is of its own, too.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from ...dialect.bindings import func, ir
from ...dialect.traversal import erase_unused, nested_operations
from ..entries import entries_of
from ..lowering_pass import LoweringPass
from .host_places import HOST_KIND, HostPlaces, transfers_of, uses_both

__all__ = ["SeparateValues", "separate_values"]


@dataclass(frozen=True)
class SeparateValues(LoweringPass):
    """Computes what is in no memory for each one."""

    name: ClassVar[str] = "relax-separate-values"

    def run(self, op: ir.Operation) -> None:
        separate_values(op)


def separate_values(module: ir.Operation) -> None:
    """Rewrites every entry on tensors of a module that uses both memories; in place."""
    if not uses_both(module):
        return
    transfers = transfers_of(module)
    for function, entry in entries_of(module):
        if not entry.is_step:
            _Separation(function, HostPlaces(function, transfers)).run()


class _Separation:
    """One function."""

    def __init__(self, function: func.FuncOp, places: HostPlaces):
        self._ops, self._places = list(nested_operations(function.operation)), places
        self._host: dict[ir.Value, ir.Value] = {}

    def run(self) -> None:
        free = [op for op in self._ops if any(self._places.is_free(r) for r in op.results)]
        for op in [op for op in self._ops if op not in free]:
            for position, value in enumerate(op.operands):
                if self._places.is_free(value):
                    self._use(op, position, value)
        erase_unused(free)

    def _use(self, op: ir.Operation, position: int, value: ir.Value) -> None:
        if op.name.startswith("scf.") or op.name == "func.return":
            op.operands[position] = _cloned(value, self._places, {})
        elif self._is_host(op, position):
            op.operands[position] = _cloned(value, self._places, self._host)

    def _is_host(self, op: ir.Operation, position: int) -> bool:
        """Whether an operation wants an operand in the host's memory."""
        target = self._places.transfer(op)
        if target is None:
            return self._places.on_host(op)
        return (target == HOST_KIND) == (position > 0)


def _cloned(value: ir.Value, places: HostPlaces, known: dict[ir.Value, ir.Value]) -> ir.Value:
    """A tensor, and all that it is computed of, computed again."""
    if value not in known:
        op = value.owner.operation
        clone = op.clone(ip=ir.InsertionPoint.after(op)).operation
        for position, operand in enumerate(op.operands):
            if places.is_free(operand):
                clone.operands[position] = _cloned(operand, places, known)
        known.update(zip(op.results, clone.results, strict=True))
    return known[value]

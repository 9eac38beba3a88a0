"""The functions that kernels are: of a module on the CPU, of a ``gpu.module`` on a GPU."""

from __future__ import annotations

from collections.abc import Iterator

from ...dialect.bindings import ir

__all__ = ["function_bodies"]

_FUNCTIONS = frozenset({"func.func", "gpu.func", "llvm.func"})


def function_bodies(module: ir.Operation) -> Iterator[tuple[ir.Operation, ir.Block]]:
    """The functions directly in a module, each with its entry block; none that are declared only."""
    for op in list(module.regions[0].blocks[0].operations):
        if op.operation.name in _FUNCTIONS and len(op.operation.regions[0].blocks):
            yield op.operation, op.operation.regions[0].blocks[0]

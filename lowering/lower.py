"""A module through passes of ours and of MLIR, as the text of a pipeline says."""

from __future__ import annotations

from ..dialect.bindings import ir
from ..dialect.errors import DiagnosticError, RelaxError
from ..dialect.passes import manager
from .passes import register_passes

__all__ = ["lower"]


def lower(module: ir.Operation, pipeline: str) -> None:
    """Runs passes of ours and of MLIR in place, verifying before MLIR's.

    Raises:
        RelaxError: what a pass raised, or MLIR said.
    """
    register_passes()
    with manager.verifying_before_upstream():
        try:
            manager.run_in_place(module, pipeline)
        except DiagnosticError as error:
            if isinstance(error.__cause__, RelaxError):
                raise error.__cause__ from None
            raise

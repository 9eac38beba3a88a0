"""``exported``: what torch.export makes of a model, where it cannot prove by itself that sizes fit, too."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn
from torch._dynamo.exc import UserError
from torch.export import Dim, ExportedProgram
from torch.fx.experimental.symbolic_shapes import ConstraintViolationError

from .repeated_layers import exported_by_layers

__all__ = ["exported", "open_size"]


def exported(
    module: nn.Module, example: tuple[Any, ...], dynamic: Any = None, by_layers: bool = True
) -> ExportedProgram:  # fmt: skip
    """The program of a module. Of many layers that do the same few are exported (:mod:`.repeated_layers`).

    What torch.export needs to hold of sizes and cannot derive from their bounds is checked as the program runs: of Llama 4 that
    ``n * min(32, 32 * n)`` is ``32 * n``.

    Args:
        module: in the mode that is meant, without gradients.
        example: inputs.
        dynamic: as ``dynamic_shapes`` of torch.export.
        by_layers: False for a module with results of each layer, all of which are exported.
    """

    def export() -> ExportedProgram:
        return _exported(module, example, dynamic)

    with torch.no_grad():
        return (exported_by_layers(module, example, dynamic, export) if by_layers else None) or export()


def _exported(module: nn.Module, example: tuple[Any, ...], dynamic: Any) -> ExportedProgram:
    try:
        return torch.export.export(module, example, dynamic_shapes=dynamic)
    except (UserError, ConstraintViolationError):
        return torch.export.export(module, example, dynamic_shapes=dynamic, prefer_deferred_runtime_asserts_over_guards=True)


def open_size(axis: int, name: str, least: int, most: int | None) -> dict[int, Any]:
    """A dimension of any size between two; one that can have a single size only is not open."""
    return {} if most == least else {axis: Dim(name, min=least, max=most)}

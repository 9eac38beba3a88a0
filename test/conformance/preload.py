"""Imports what each model or sample needs, once, before processes are forked for them."""

from __future__ import annotations

import torch

import relaxir.compiler  # noqa: F401
from relaxir.dialect.passes.registry import registered
from relaxir.dialect.reference import interpreter  # noqa: F401
from relaxir.frontend import torch_graph, torch_to_relax  # noqa: F401

__all__ = ["preload"]


def preload() -> None:
    """Imports torch.export's modules and those of all passes: 1.3 seconds that each process would take otherwise."""
    torch.export.export(torch.nn.Identity(), (torch.ones(1),))
    list(registered().values())

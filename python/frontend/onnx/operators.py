"""Loads the op map: one module per family of operators."""

from __future__ import annotations

import importlib

__all__ = ["FAMILIES", "load_operators"]

FAMILIES = (
    "attention", "blocks", "control_flow", "convolution", "data_sizes", "elementwise", "fused", "indexing",
    "linear_algebra", "manipulate", "nn", "pooling", "qlinear", "quantize", "recurrent", "reduction", "resize", "sampling",
    "sequences", "signal", "slices",
)  # fmt: skip


def load_operators() -> None:
    """Fills the table of handlers; nothing the second time."""
    for family in FAMILIES:
        importlib.import_module(f"{__package__}.ops.{family}")

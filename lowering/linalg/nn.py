"""Neural-network operators; each group has a module of its own."""

from __future__ import annotations

from . import activation, attention, convolution, normalization, pooling

__all__ = ["activation", "attention", "convolution", "normalization", "pooling"]

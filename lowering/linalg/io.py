"""Lazy IO has no lowering of its own: partitioning the transform function turns it into arguments and results before."""

from __future__ import annotations

from ...dialect.bindings import ir
from ...dialect.errors import RelaxError
from .builder import Builder
from .registry import Source, lowering

__all__: list[str] = []


@lowering("relax.get_param", "relax.set_output", "relax.bind_argument")
def _lower(b: Builder, source: Source) -> ir.Value:
    raise RelaxError("expected weights as arguments and results, run relax-partition-transform first")

"""Every executable of a process as a checked one, whatever compiles it: ``RELAXIR_CHECKED=1`` does this to the tests."""

from __future__ import annotations

from relaxir import compiler
from relaxir.lowering.target import Target
from relaxir.module import Module
from relaxir.object_cache import Entry

__all__ = ["check_all_code"]


def check_all_code() -> None:
    """From now on ``rx.compile`` behaves as with ``checked=True``."""
    compiled = compiler._compiled

    def checked(module: Module, target: Target, pipeline: str, _: bool) -> Entry:
        return compiled(module, target, pipeline, True)

    compiler._compiled = checked

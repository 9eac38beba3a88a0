"""Contexts that know the dialect: its definitions are loaded into them, once."""

from __future__ import annotations

from . import ops as ops  # defining the op classes fills the dialect
from .bindings import ir
from .relax import NAMESPACE, Relax

__all__ = ["definitions", "load", "new_context"]


def load(context: ir.Context | None = None) -> ir.Context:
    """Registers the dialect with a context, once; a second call does nothing.

    Must run before ``relax.*`` text is parsed in that context: loading later crashes the bindings.
    """
    context = context or ir.Context.current
    if not context.is_dialect_loaded(NAMESPACE):
        with context, ir.Location.unknown():
            Relax.load()
        Relax._mlir_module = None  # the class would keep the context alive
    return context


def definitions() -> str:
    """The dialect in IRDL, as ``mlir-opt --irdl-file=`` reads it."""
    new_context()
    assert Relax._definitions is not None
    return Relax._definitions


def new_context() -> ir.Context:
    """A context with the dialect loaded. Multithreading stays off: Python callbacks would deadlock with it."""
    return load(ir.Context())

"""The Relax dialect itself: namespace, opaque types and loading. Ops are in :mod:`relaxir.dialect.ops`.

The bindings look for a module named like the dialect under their search prefixes; this module is what they find.
"""

from __future__ import annotations

import importlib

from .bindings import append_dialect_search_prefix, ext, ir, passmanager

__all__ = ["NAMESPACE", "Object", "OutputSink", "ParamProvider", "Relax", "definitions", "load", "new_context"]

NAMESPACE = "relax"

append_dialect_search_prefix(__package__)


class Relax(ext.Dialect, name=NAMESPACE):
    """Tensor operators of Apache TVM's Relax, and what weight preparation needs."""

    _definitions: str | None = None

    @classmethod
    def _emit_module(cls) -> ir.Module:
        """The definitions as IRDL; parsing their text takes 3 ms for another context, emitting them again 20 ms."""
        if cls._definitions is None:
            module = super()._emit_module()
            passmanager.PassManager.parse("builtin.module(canonicalize,cse)").run(module.operation)
            cls._definitions = str(module)
        return ir.Module.parse(cls._definitions)


class ParamProvider(Relax.Type, name="param_provider"):
    """``!relax.param_provider``: where ``relax.get_param`` reads weights from."""


class OutputSink(Relax.Type, name="output_sink"):
    """``!relax.output_sink``: where ``relax.set_output`` writes results to."""


class Object(Relax.Type, name="object"):
    """``!relax.object``: a value that the compiler passes through without looking inside."""


def load(context: ir.Context | None = None) -> ir.Context:
    """Registers the dialect with a context, once; a second call does nothing.

    Must run before ``relax.*`` text is parsed in that context: loading later crashes the bindings.
    """
    importlib.import_module(".ops", __package__)  # defining the op classes fills the dialect

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

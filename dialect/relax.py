"""The Relax dialect itself: namespace and opaque types. Ops are in :mod:`.ops`, loading is in :mod:`.context`.

The bindings look for a module named like the dialect under their search prefixes; this module is what they find.
"""

from __future__ import annotations

from .bindings import append_dialect_search_prefix, ext, ir, passmanager

__all__ = ["NAMESPACE", "Object", "OutputSink", "ParamProvider", "Relax"]

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

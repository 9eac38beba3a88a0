"""The Relax dialect itself: namespace and opaque types. Ops are in :mod:`.ops`, loading is in :mod:`.context`.

The bindings look for a module named like the dialect under their search prefixes; this module is what they find.
"""

from __future__ import annotations

import io
from typing import Any, cast

from .bindings import append_dialect_search_prefix, ext, ir, irdl, passmanager, register_type_caster

__all__ = ["NAMESPACE", "Object", "OutputSink", "ParamProvider", "Relax"]

NAMESPACE = "relax"

append_dialect_search_prefix(__package__)


class Relax(ext.Dialect, name=NAMESPACE):
    """Tensor operators of Apache TVM's Relax, and what weight preparation needs."""

    _definitions: bytes | None = None

    @classmethod
    def _emit_module(cls) -> ir.Module:
        """The definitions as IRDL; reading its bytecode takes 2 ms for another context, text 3, emitting it again 20."""
        if cls._definitions is None:
            module = super()._emit_module()
            passmanager.PassManager.parse("builtin.module(canonicalize,cse)").run(module.operation)
            written = io.BytesIO()
            module.operation.write_bytecode(written)
            cls._definitions = written.getvalue()
        return ir.Module.parse(cls._definitions)

    @classmethod
    def load(cls) -> None:
        """Loads the dialect into the current context. Classes of ops are known to the bindings from the first time on.

        What is left of :meth:`ext.Dialect.load` then takes 3 instead of 6 ms: it runs passes over the definitions each time.
        """
        if cls._definitions is None:
            super().load()
            return
        cast(Any, irdl).load_dialects(cls._emit_module())
        for op in cls.operations:
            op._attach_traits()
        for kind in cls.types:  # which have another id in each context
            register_type_caster(ir.DynamicType.lookup_typeid(kind.type_name), replace=True)(kind)


class ParamProvider(Relax.Type, name="param_provider"):
    """``!relax.param_provider``: where ``relax.get_param`` reads weights from."""


class OutputSink(Relax.Type, name="output_sink"):
    """``!relax.output_sink``: where ``relax.set_output`` writes results to."""


class Object(Relax.Type, name="object"):
    """``!relax.object``: a value that the compiler passes through without looking inside."""

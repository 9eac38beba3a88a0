"""Contexts that know the dialect: its definitions are loaded into them, once."""

from __future__ import annotations

import functools
import threading
from typing import Any

from . import ops as ops  # defining the op classes fills the dialect
from .attribute_casters import register_casters
from .bindings import ir
from .errors import RelaxError
from .plugins import load_parts
from .relax import NAMESPACE, Relax

__all__ = ["UPSTREAM", "definitions", "load", "new_context", "operations"]

#: Upstream dialects that a context has from the start: those whose ops we make in most modules. Others come with the first
#: text, or pass of MLIR, that has them, and with a pass of ours that names them (`Pass.dialects`). All of them take 5 ms a
#: context, these 1.
UPSTREAM = (
    "affine", "arith", "bufferization", "cf", "complex", "func", "index", "irdl", "linalg", "llvm", "math", "memref", "scf",
    "tensor", "ub", "vector",
)  # fmt: skip


# The dialect's class keeps the module that it loads from: of two threads one would load what the other has put away.
_loading = threading.RLock()


@functools.cache
def operations() -> tuple[type[Any], ...]:
    """The op classes of the dialect, those of other packages included (:mod:`.plugins`).

    Raises:
        RelaxError: two ops have one name, or a package does not load.
    """
    load_parts("ops")
    homes: dict[str, str] = {}
    for cls in Relax.operations:
        home = homes.setdefault(cls.OPERATION_NAME, cls.__module__)
        if home != cls.__module__:
            raise RelaxError(f"expected one op '{cls.OPERATION_NAME}', got those of {home} and {cls.__module__}")
    return tuple(Relax.operations)


def load(context: ir.Context | None = None) -> ir.Context:
    """Registers the dialect with a context, once; a second call does nothing. Threads with contexts of their own may call it.

    Must run before ``relax.*`` text is parsed in that context: loading later crashes the bindings.
    """
    context = context or ir.Context.current
    with _loading:
        operations()
        if not context.is_dialect_loaded(NAMESPACE):
            with context, ir.Location.unknown():
                register_casters()
                Relax.load()
            Relax._mlir_module = None  # the class would keep the context alive
    return context


def definitions() -> str:
    """The dialect in IRDL, as ``mlir-opt --irdl-file=`` reads it."""
    with new_context(), ir.Location.unknown():
        return str(Relax._emit_module())


def new_context() -> ir.Context:
    """A context with the dialect loaded. Multithreading stays off: Python callbacks would deadlock with it."""
    return load(ir.Context(load_on_create_dialects=UPSTREAM))

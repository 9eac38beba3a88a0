"""What packages that add to relaxir build on: the base classes of passes and ops, and what these are written with.

A package names what it adds by entry points (:mod:`.dialect.plugins`); ``CONTRIBUTING.md`` says where each is shown. Names are
imported when first used, so that a package which adds ops does not import the code generator with them.

**Passes**: :class:`Pass`, on IR through MLIR's bindings (``ir``, ``func``, ``arith``, ``scf``; ``dialect_module("memref")`` for
others), with ``ops`` (the op classes) and ``report``; patterns with :class:`Rewriter`, which :func:`walk` or :func:`greedily`
drive.

**Ops**: :class:`Op` and its siblings; :class:`Operand`, :class:`Result` and :data:`Tensor` declare what it takes and makes, the
module ``attributes`` its attributes; ``infer`` is written with :class:`TensorInfo` and the module ``inference``; ``op_costs``,
``image_rules`` and :class:`Narrow` say what the op is. ``reference`` registers what it means, ``lowering`` how it is lowered,
with :class:`Source` (the op), :class:`LinalgBuilder` and :class:`Scalar`.

**Kernels**: a function of a kernel (a ``func.func`` with ``linalg.generic`` on buffers) and a :class:`Target`, which puts its
own code in their place and returns True, or returns False.

**Backends**: a :class:`Backend`, which says where its :class:`Compiler` and its :class:`Runtime` are; these write and read a
:class:`Manifest` with a :class:`TargetSpec`, and make a :class:`Library` of code.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .dialect import attributes, image_rules, inference, op_costs, ops
    from .dialect.bindings import arith, dialect_module, func, ir, scf
    from .dialect.errors import RelaxError
    from .dialect.op import Attrs, DefiningOp, EffectOp, Narrow, Op, Operand, Result, SymbolicOp, Tensor
    from .dialect.passes.base import Pass
    from .dialect.passes.rewriting import Pattern, Patterns, Rewriter, greedily, walk
    from .dialect.reference.numeric import Array
    from .dialect.reference.registry import reference
    from .dialect.reports import report
    from .dialect.struct_info import TensorInfo
    from .dialect.symbolic import Dim, Expr
    from .lowering.backend import Backend
    from .lowering.compiler import Compiler
    from .lowering.linalg.builder import LinalgBuilder
    from .lowering.linalg.registry import Source, lowering
    from .lowering.linalg.scalar import Scalar, math, select
    from .lowering.manifest import Manifest
    from .lowering.manifest_specs import TargetSpec
    from .lowering.target import Target
    from .runtime.backend import Runtime
    from .runtime.library import Library

__all__ = [
    "Array",
    "Attrs",
    "Backend",
    "Compiler",
    "DefiningOp",
    "Dim",
    "EffectOp",
    "Expr",
    "Library",
    "LinalgBuilder",
    "Manifest",
    "Narrow",
    "Op",
    "Operand",
    "Pass",
    "Pattern",
    "Patterns",
    "RelaxError",
    "Result",
    "Rewriter",
    "Runtime",
    "Scalar",
    "Source",
    "SymbolicOp",
    "Target",
    "TargetSpec",
    "Tensor",
    "TensorInfo",
    "arith",
    "attributes",
    "dialect_module",
    "func",
    "greedily",
    "image_rules",
    "inference",
    "ir",
    "lowering",
    "math",
    "op_costs",
    "ops",
    "reference",
    "report",
    "scf",
    "select",
    "walk",
]

#: The module that holds each name, or that is one, below ``relaxir``.
_HOMES = {
    "dialect.bindings": ("arith", "dialect_module", "func", "ir", "scf"),
    "dialect.errors": ("RelaxError",),
    "dialect.op": ("Attrs", "DefiningOp", "EffectOp", "Narrow", "Op", "Operand", "Result", "SymbolicOp", "Tensor"),
    "dialect.passes.base": ("Pass",),
    "dialect.passes.rewriting": ("Pattern", "Patterns", "Rewriter", "greedily", "walk"),
    "dialect.reference.numeric": ("Array",),
    "dialect.reference.registry": ("reference",),
    "dialect.struct_info": ("TensorInfo",),
    "dialect.symbolic": ("Dim", "Expr"),
    "lowering.backend": ("Backend",),
    "lowering.compiler": ("Compiler",),
    "lowering.linalg.builder": ("LinalgBuilder",),
    "lowering.linalg.registry": ("Source", "lowering"),
    "lowering.linalg.scalar": ("Scalar", "math", "select"),
    "lowering.manifest": ("Manifest", "TargetSpec"),
    "lowering.target": ("Target",),
    "runtime.backend": ("Runtime",),
    "runtime.library": ("Library",),
}
_MODULES = {
    "attributes": "dialect.attributes",
    "op_costs": "dialect.op_costs",
    "image_rules": "dialect.image_rules",
    "inference": "dialect.inference",
    "ops": "dialect.ops",
    "report": "dialect.reports.report",
}


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return importlib.import_module(f".{_MODULES[name]}", __package__)
    home = next((home for home, names in _HOMES.items() if name in names), None)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f".{home}", __package__), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})

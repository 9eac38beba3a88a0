"""The only module that names the distribution of MLIR's Python bindings; everything else imports MLIR from here.

Today that is ``torch_mlir``, whose wheel carries all upstream bindings. Dialect modules that cost tens of milliseconds to
import (linalg, llvm) are fetched by :func:`dialect_module` when a pass needs them.
"""

from __future__ import annotations

import importlib
from types import ModuleType

from torch_mlir import ir, passmanager, rewrite
from torch_mlir.dialects import arith, ext, func, irdl, scf
from torch_mlir.dialects._ods_common import _cext
from torch_mlir.ir import OpResult as Result
from torch_mlir.ir import Value as Operand

__all__ = [
    "DISTRIBUTION",
    "Operand",
    "Result",
    "append_dialect_search_prefix",
    "arith",
    "dialect_module",
    "ext",
    "extras_module",
    "func",
    "ir",
    "irdl",
    "passmanager",
    "register_type_caster",
    "rewrite",
    "scf",
]

DISTRIBUTION = "torch_mlir"

# Without a module `<prefix>.relax` the bindings retry a failing import on every operation they wrap: 15-20 us each.
append_dialect_search_prefix = _cext.globals.append_dialect_search_prefix

register_type_caster = _cext.register_type_caster


def dialect_module(name: str) -> ModuleType:
    """Imports the bindings' Python module of an upstream dialect, e.g. ``linalg``, ``vector`` or ``llvm``."""
    return importlib.import_module(f"{DISTRIBUTION}.dialects.{name}")


def extras_module(name: str) -> ModuleType:
    """Imports a module of the bindings that is not a dialect, e.g. ``extras.fx_importer``."""
    return importlib.import_module(f"{DISTRIBUTION}.{name}")

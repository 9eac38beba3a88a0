"""The C names of entries: a prefix that the module says, ``relaxir`` by itself, and each function's own name.

Two artifacts are linked into one program where their prefixes differ::

    module attributes {relax.c_prefix = "encoder"} { func.func @main ... }      // int64_t encoder_main(...)
"""

from __future__ import annotations

import re

from ..dialect.bindings import func, ir
from ..dialect.errors import RelaxError
from ..dialect.functions import C_PREFIX, name_of
from .c_prefix import DEFAULT, in_c

__all__ = ["set_prefix", "symbol_name"]

#: How the C names begin that an image has beside those of its functions.
_OF_IMAGES = ("relaxir_cuda_", "relaxir_hip_", "relaxir_manifest_")


def set_prefix(module: ir.Operation, prefix: str) -> None:
    """Says how the C names of a module's entries begin.

    Raises:
        RelaxError: the prefix is none of a C name: a letter, then letters, digits and ``_``.
    """
    module.attributes[C_PREFIX] = ir.StringAttr.get(_checked(prefix), module.context)


def symbol_name(function: func.FuncOp) -> str:
    """The name of a module's function in the object code, which is none that an image has for itself."""
    symbol = f"{_prefix(function.operation.parent.operation)}_{in_c(name_of(function))}"
    return f"{symbol}_" if symbol.startswith(_OF_IMAGES) else symbol


def _prefix(module: ir.Operation) -> str:
    if C_PREFIX not in module.attributes:
        return DEFAULT
    given = module.attributes[C_PREFIX]
    return _checked(given.value if isinstance(given, ir.StringAttr) else str(given), module.location)


def _checked(prefix: object, location: ir.Location | None = None) -> str:
    if isinstance(prefix, str) and re.fullmatch("[A-Za-z][A-Za-z0-9_]*", prefix):
        return prefix
    raise RelaxError(f"expected a prefix of C names, letters, digits and '_' behind a letter, got {prefix!r}", location)

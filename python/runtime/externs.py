"""Functions of other libraries that compiled code calls: found when an executable is made, handed on with each call."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Mapping, Sequence
from typing import Any

from ..dialect.checks import expect, expect_text
from ..dialect.errors import RelaxError
from ..dialect.extern_functions import allow_extern, find_extern
from ..lowering.manifest_specs import ExternSpec

__all__ = ["ExternPaths", "extern_table"]

#: Which library has a function instead of the one that the code was compiled for, by the function's name in C.
ExternPaths = Mapping[str, str | os.PathLike[str]]


def extern_table(specs: Sequence[ExternSpec], paths: ExternPaths | None, what: str, trusted: bool = False) -> Any:
    """The addresses of functions as a C array, None where there are none.

    Args:
        specs: the functions.
        paths: other libraries of some of them.
        what: how errors name the code.
        trusted: whether all of them may be called, as of an artifact, which is a program; else those that this program names.

    Raises:
        RelaxError: a library cannot be loaded or lacks its function (all are told), or ``paths`` names another function.
    """
    if paths is not None:
        expect(paths, Mapping, "externs as a mapping from functions to libraries")
    given = dict(paths or {})
    for name in given:
        expect_text(name, "names of functions in externs")
    unknown = sorted(set(given) - {s.symbol for s in specs})
    if unknown:
        known = ", ".join(s.symbol for s in specs) or "none"
        raise RelaxError(f"{what}: expected externs for functions that it calls ({known}), got {', '.join(unknown)}")
    addresses: list[int] = []
    errors: list[str] = []
    for spec in specs:
        try:
            path = _path(given.get(spec.symbol, spec.library), spec.symbol)
            if trusted or spec.symbol in given:
                allow_extern(path, spec.symbol)
            addresses.append(find_extern(path, spec.symbol))
        except RelaxError as error:
            errors.append(f"{error.args[0]} (for '{spec.symbol}': externs={{'{spec.symbol}': ...}} says where another one is)")
    if errors:
        raise RelaxError(f"{what}: " + "; ".join(errors))
    return (ctypes.c_void_p * len(addresses))(*addresses) if addresses else None


def _path(path: object, symbol: str) -> str:
    if not isinstance(path, str | os.PathLike):
        raise RelaxError(f"expected the path of a library for '{symbol}', got {type(path).__name__}")
    return os.fspath(path)

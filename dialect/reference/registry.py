"""The reference functions by op name: ``@reference`` puts one in, :func:`reference_of` gets it with what it asks for."""

from __future__ import annotations

import functools
import importlib
import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np

from ..errors import RelaxError
from ..foreign_code import check_ops, missing_in
from ..plugins import load_parts

__all__ = ["FAMILIES", "Reference", "families_loaded", "reference", "reference_of"]

#: Modules of this folder that hold reference functions; the same names as in ``dialect/ops``.
FAMILIES = (
    "binary", "builtin", "collective", "creation", "datatype", "extern", "indexing", "io", "linear_algebra", "manipulate",
    "nn", "quantize", "search", "statistical", "unary", "vdevice", "winograd",
)  # fmt: skip

_F = TypeVar("_F", bound=Callable[..., Any])


@dataclass(frozen=True)
class Reference:
    """One op's meaning.

    Attributes:
        function: operands in order (None for an absent optional one), attributes as keywords; returns an array or a tuple.
        family: the module it is in.
        wants_shape: whether it takes the result's shape as ``shape``; -1 is a dimension that the type does not know.
        wants_dtype: whether it takes the result's dtype as ``dtype``.
        wants_results: whether it takes shape and dtype of every result as ``results``.
    """

    function: Callable[..., Any]
    family: str
    wants_shape: bool
    wants_dtype: bool
    wants_results: bool


_REFERENCES: dict[str, Reference] = {}


def reference(function: _F) -> _F:
    """Registers a function as the meaning of the op of the same name. It computes without NumPy's warnings."""
    quiet = np.errstate(all="ignore")(function)
    keywords = {p.name for p in inspect.signature(function).parameters.values() if p.kind is p.KEYWORD_ONLY}
    family = function.__module__.rsplit(".", 1)[-1]
    known = _REFERENCES.get(function.__name__)
    if known is not None and known.function.__module__ != function.__module__:
        home = known.function.__module__
        raise RelaxError(f"expected one meaning of 'relax.{function.__name__}', got those of {home} and {function.__module__}")
    wants = ("shape" in keywords, "dtype" in keywords, "results" in keywords)
    _REFERENCES[function.__name__] = Reference(quiet, family, *wants)
    return quiet


@functools.cache
def families_loaded() -> dict[str, Reference]:
    """Every reference function by op name (without ``relax.``), those of other packages included."""
    for family in FAMILIES:
        importlib.import_module(f".{family}", __package__)
    load_parts("reference")
    check_ops({name: found.function for name, found in _REFERENCES.items()}, "reference", "relax.")
    return _REFERENCES


def reference_of(name: str) -> Reference:
    """The meaning of an op, by its name without ``relax.``. Raises RelaxError when it has none."""
    found = families_loaded().get(name)
    if found is None:
        where = missing_in(f"relax.{name}", "reference")
        raise RelaxError(f"expected an op with reference semantics, got 'relax.{name}'{where}")
    return found

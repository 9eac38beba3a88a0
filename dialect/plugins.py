"""Packages of others, found by their entry points, and imported when what they add is first needed.

::

    [project.entry-points."relaxir.passes"]
    acme-fold-negative = "acme_passes:FoldNegative"     # the pass's name, its class

    [project.entry-points."relaxir.ops"]
    acme = "acme_ops"     # a package with the modules ops, reference and lowering, which define and register

    [project.entry-points."relaxir.kernels"]
    acme-negate = "acme_kernels:lower_negation"         # a function that lowers kernels for a CPU

    [project.entry-points."relaxir.backends"]
    acme = "acme_backend:BACKEND"     # what is in front of the colon of its targets, its table entry

    [project.entry-points."relaxir.torch_ops"]
    "acme::soft_sign" = "acme_torch:soft_sign"          # an operator of torch, a function of others that computes it

Ops are imported before the dialect is loaded, what they mean and how they are lowered not before someone asks for that.
"""

from __future__ import annotations

import functools
import importlib
import importlib.util
from collections.abc import Callable, Iterator
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from typing import Any

from .errors import RelaxError

__all__ = [
    "BACKENDS", "GROUPS", "KERNELS", "OPS", "PASSES", "TORCH_OPS", "load", "load_one", "load_parts", "plugins", "sources",
]  # fmt: skip

BACKENDS = "relaxir.backends"
KERNELS = "relaxir.kernels"
OPS = "relaxir.ops"
PASSES = "relaxir.passes"
TORCH_OPS = "relaxir.torch_ops"
GROUPS = (BACKENDS, KERNELS, OPS, PASSES, TORCH_OPS)


@functools.cache
def plugins(group: str) -> tuple[EntryPoint, ...]:
    """The entry points of a group, sorted by name."""
    return tuple(sorted(entry_points(group=group), key=lambda entry: entry.name))


@functools.cache
def load_parts(part: str) -> None:
    """Imports one module of every package that adds ops: ``ops``, ``reference`` or ``lowering``; once.

    Raises:
        RelaxError: a package lacks it, or what it imports.
    """
    for entry in plugins(OPS):
        try:
            importlib.import_module(f"{entry.value}.{part}")
        except Exception as error:  # whatever its own code does
            raise RelaxError(f"expected plug-in ops '{entry.name}' at {entry.value}.{part}, got {_reason(error)}") from error


@functools.cache
def load(group: str, wanted: str, fits: Callable[[Any], bool]) -> tuple[Any, ...]:
    """What the entry points of a group name, in the order of their names; imported once.

    Args:
        group: one of ``GROUPS``.
        wanted: what each of them has to be, for messages.
        fits: whether it is that.

    Raises:
        RelaxError: one does not load, or names something else.
    """
    return tuple(_fitting(entry, wanted, fits) for entry in plugins(group))


def load_one(entry: EntryPoint) -> Any:
    """What an entry point names. Raises RelaxError where it does not load."""
    try:
        return entry.load()
    except Exception as error:  # whatever its own code does
        raise RelaxError(f"expected plug-in '{entry.name}' of {entry.group} at {entry.value}, got {_reason(error)}") from error


def _fitting(entry: EntryPoint, wanted: str, fits: Callable[[Any], bool]) -> Any:
    found = load_one(entry)
    if not fits(found):
        kind = type(found).__name__
        raise RelaxError(f"expected plug-in '{entry.name}' of {entry.group} at {entry.value} to be {wanted}, got {kind}")
    return found


def _reason(error: Exception) -> str:
    return str(error) if isinstance(error, ImportError | AttributeError | RelaxError) else f"{type(error).__name__}: {error}"


def sources() -> Iterator[Path]:
    """The Python files of all packages that add something, in a fixed order: what compilation gives depends on them, too."""
    names = {entry.module.partition(".")[0] for group in GROUPS for entry in plugins(group)}
    for name in sorted(names):
        spec = importlib.util.find_spec(name)
        folders = list(spec.submodule_search_locations or ()) if spec is not None else []
        for folder in folders:
            yield from sorted(Path(folder).rglob("*.py"))
        if spec is not None and not folders and spec.origin is not None:
            yield Path(spec.origin)

"""Lowers relax to calls of kernels, layers that are like their neighbours once."""

from __future__ import annotations

from ...dialect.bindings import func, ir
from ...dialect.functions import find_function, functions, is_private, name_of
from ..lower import lower
from .lengthen import lengthen
from .shorten import Shortened, shorten

__all__ = ["lower_layers"]


def lower_layers(module: ir.Operation, pipeline: str) -> None:
    """Runs passes in place, from relax to calls of kernels, on fewer layers, and puts the others into what they made.

    Where layers have become anything but alike, the passes run again, on all of them: the result is that of the passes alone.

    Args:
        module: on relax, with entries.
        pipeline: passes that rewrite neighbours: what they make of one part of a function does not depend on far ones.

    Raises:
        RelaxError: as :func:`.lower.lower`.
    """
    whole = module.clone(ip=False).operation if any(_may_repeat(f) for f in functions(module)) else None
    with module.context, ir.Location.unknown():
        shortened = {} if whole is None else _shortened(module)
    lower(module, pipeline)
    if whole is None or not shortened:
        return
    with module.context, ir.Location.unknown():
        if all([lengthen(find_function(module, name), made) for name, made in shortened.items()]):
            return
        _replace(module, whole)
    lower(module, pipeline)


def _may_repeat(function: func.FuncOp) -> bool:
    return not is_private(function) and len(function.regions[0].blocks) == 1


def _shortened(module: ir.Operation) -> dict[str, Shortened]:
    found = ((name_of(f), shorten(f)) for f in functions(module) if _may_repeat(f))
    return {name: made for name, made in found if made is not None}


def _replace(module: ir.Operation, whole: ir.Operation) -> None:
    """Makes a module what another one is, which has nothing left."""
    for op in list(module.regions[0].blocks[0].operations):
        op.operation.erase()
    for name in list(module.attributes):
        if name not in whole.attributes:
            del module.attributes[name]
    for name, value in whole.attributes.items():
        module.attributes[name] = value
    for op in list(whole.regions[0].blocks[0].operations):
        op.operation.detach_from_parent()
        module.regions[0].blocks[0].append(op)

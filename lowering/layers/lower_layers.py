"""Lowers relax to calls of kernels, layers that are like their neighbours once."""

from __future__ import annotations

from ...dialect.bindings import func, ir
from ...dialect.functions import find_function, functions, is_private, name_of
from ..lower import lower
from .lengthen import lengthen
from .shorten import Shortened, shorten

__all__ = ["lower_layers"]

# Layers that stay behind those taken out: the last one alone, and where that has become another than the others, as all that
# is behind them is part of its kernels, these.
_BEHIND = (1, 3)


def lower_layers(module: ir.Operation, pipeline: str) -> None:
    """Runs passes in place, from relax to calls of kernels, on fewer layers, and puts the others into what they made.

    Where layers have become anything but alike, the passes run again, on more of them, and then on all: the result is that of
    the passes alone.

    Args:
        module: on relax, with entries.
        pipeline: passes that rewrite neighbours: what they make of one part of a function does not depend on far ones.

    Raises:
        RelaxError: as :func:`.lower.lower`.
    """
    if not any(_may_repeat(f) for f in functions(module)):
        lower(module, pipeline)
        return
    whole = module.clone(ip=False).operation
    for behind in _BEHIND:
        with module.context, ir.Location.unknown():
            shortened = _shortened(module, behind)
        if not shortened:
            break
        lower(module, pipeline)
        with module.context, ir.Location.unknown():
            if all([lengthen(find_function(module, name), made) for name, made in shortened.items()]):
                return
            _replace(module, whole.clone(ip=False).operation)
    lower(module, pipeline)


def _may_repeat(function: func.FuncOp) -> bool:
    return not is_private(function) and len(function.regions[0].blocks) == 1


def _shortened(module: ir.Operation, behind: int) -> dict[str, Shortened]:
    found = ((name_of(f), shorten(f, behind)) for f in functions(module) if _may_repeat(f))
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

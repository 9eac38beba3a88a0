"""Views of memory by strides (``as_strided``) as elements of what owns the memory; others are marked as refused."""

from __future__ import annotations

import torch

from ..dialect.bindings import extras_module
from .torch_complex import REFUSED

__all__ = ["WRITTEN", "strided_as_indices"]

#: Of a refused node: the operator's name as the user wrote it.
WRITTEN = "relax.written"

_VIEW = torch.ops.aten.as_strided.default
_STAND_IN = torch.ops.aten.as_strided_copy.default
_fx_as_strided = extras_module("extras.fx_as_strided")


def strided_as_indices(graph: torch.fx.Graph) -> None:
    """Rewrites a graph in place, as torch-mlir's importer would, which ends with the first node that it cannot take.

    It goes from the last node to the first one: the last one that is left is what it could not take.
    """
    while True:
        try:
            _fx_as_strided.rewrite_as_strided(graph)
            return
        except ValueError as error:
            node = [n for n in graph.nodes if n.target is _VIEW][-1]
            node.meta[REFUSED] = str(error).removeprefix("aten.as_strided.default ")
            node.meta[WRITTEN] = "aten.as_strided"
            node.target = _STAND_IN  # which torch-mlir leaves alone

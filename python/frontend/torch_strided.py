"""Views of memory by strides (``as_strided``) as elements of what owns the memory; others are marked as refused."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch

from ..dialect.bindings import extras_module
from .torch_complex import REFUSED

__all__ = ["WRITTEN", "strided_as_indices", "strided_writes"]

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


def strided_writes() -> dict[Any, Callable[..., Any]]:
    """The decomposition of writes through such views, as of ``fill_diagonal_``, by operator."""
    return {torch.ops.aten.as_strided_scatter.default: _written}


def _written(
    x: torch.Tensor, source: torch.Tensor, sizes: Sequence[int], strides: Sequence[int], offset: int | None = None
) -> Any:  # fmt: skip
    """A tensor that is contiguous, of known sizes, with elements of the source at the places that strides say."""
    is_known = all(isinstance(n, int) for n in (*x.shape, *sizes, *strides, offset or 0))
    if not is_known or not x.is_contiguous() or x.storage_offset():
        return NotImplemented
    places = torch.full((), offset or 0)
    for size, stride in zip(sizes, strides, strict=True):
        places = places[..., None] + torch.arange(size) * stride
    return x.reshape(-1).index_put([places.reshape(-1)], source.reshape(-1)).reshape(x.shape)

"""Decompositions of our own, of operators for which torch has none and which have no relax form."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

__all__ = ["own_decompositions"]

# Each round reads the row again: a router takes up to 8 of 128 experts.
_ROUNDS = 16


def own_decompositions() -> dict[Any, Callable[..., Any]]:
    """What takes the place of which operator; ``NotImplemented`` leaves it as it is, to be reported."""
    return {torch.ops.aten.topk.default: _topk}


def _topk(x: torch.Tensor, k: Any, dim: int = -1, largest: bool = True, sorted: bool = True) -> Any:
    """The k largest numbers, largest first, and where they are: one after the other, of equal ones the first."""
    if not isinstance(k, int) or not 0 < k <= _ROUNDS or not largest or not x.dim() or not x.dtype.is_floating_point:
        return NotImplemented
    rows = x.transpose(dim, -1)
    column = torch.arange(rows.shape[-1], device=x.device)
    taken = torch.zeros_like(rows, dtype=torch.bool)
    places: list[torch.Tensor] = []
    for _ in range(k):
        place = torch.where(taken, float("-inf"), rows).argmax(-1, keepdim=True)
        # Where only -inf is left, the first of these may be one that is taken.
        place = torch.where(taken.gather(-1, place), (~taken).to(torch.float32).argmax(-1, keepdim=True), place)
        taken = taken | (column == place)
        places.append(place)
    indices = torch.cat(places, -1)
    return rows.gather(-1, indices).transpose(dim, -1), indices.transpose(dim, -1)
